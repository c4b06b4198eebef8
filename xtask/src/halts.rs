//! The options of a run for halting programs.

use clap::Args;
use tally_abi::{
    ExitStatus,
    boot::Delivery,
    halt::{HaltTimer, Halts},
};

use crate::{Failure, Result};

/// How programs are halted.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
pub struct HaltArgs {
    /// Halt each CPU for LENGTH cycles, with interrupts off, every PERIOD cycles of a program, and
    /// touch FOOTPRINT bytes of memory in each halt [default footprint: 0]; takes one counter
    #[arg(long, value_name = "LENGTH,PERIOD[,FOOTPRINT]", value_parser = halts)]
    pub halt: Option<Halts>,
    /// Scheduler's timer during halts: running, or held, so that a halt's length does not move the
    /// timer's interrupts [default: running]
    #[arg(long, value_name = "HOW", requires = "halt", value_parser = timer)]
    pub halt_timer: Option<HaltTimer>,
}

impl HaltArgs {
    /// Checks the options before anything is built.
    ///
    /// # Errors
    /// Overflow interrupts are NMIs.
    pub fn check(&self, overflows: Delivery) -> Result<()> {
        if self.halt.is_some() && overflows == Delivery::Nmi {
            let why = "--halt needs overflow interrupts that wait for a program: omit --overflows \
                       nmi, or --halt";
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        Ok(())
    }

    /// The kernel's options, each after a blank.
    pub fn options(&self) -> String {
        let halts = self.halt.map(|halts| format!(" halt={halts}"));
        let timer = self.halt_timer.map(|timer| format!(" halt-timer={}", timer.word()));
        halts.into_iter().chain(timer).collect()
    }
}

fn halts(text: &str) -> std::result::Result<Halts, String> {
    Halts::parse(text).map_err(|why| why.to_string())
}

fn timer(text: &str) -> std::result::Result<HaltTimer, String> {
    HaltTimer::parse(text).ok_or_else(|| "running or held".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_abi::boot::CommandLine;

    #[test]
    fn the_kernel_parses_the_options() {
        let halt = Halts { length_cycles: 0, period_cycles: 5_000, footprint_bytes: 64 };
        let args = HaltArgs { halt: Some(halt), halt_timer: Some(HaltTimer::Held) };
        let text = format!("wire{}", args.options());
        let line = CommandLine::parse(&text).unwrap();
        assert_eq!((line.halts, line.halt_timer), (args.halt, args.halt_timer));
        assert_eq!(HaltArgs::default().options(), "");
        assert!(args.check(Delivery::Fixed).is_ok() && args.check(Delivery::Nmi).is_err());
    }
}
