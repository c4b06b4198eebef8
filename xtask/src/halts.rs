//! The options of a run by which programs are halted.

use std::fmt;

use clap::Args;
use serde::{Deserialize, Serialize};
use tally_abi::{
    ExitStatus,
    boot::Delivery,
    halt::{HaltTimer, Halts},
};

use crate::{Failure, Result, machine::Halted};

/// How programs are halted.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
pub struct HaltArgs {
    /// Halt each CPU for LENGTH cycles, with interrupts off, every PERIOD cycles of a program, and
    /// touch FOOTPRINT bytes of memory in each halt [default footprint: 0]; takes one counter
    #[arg(long, value_name = "LENGTH,PERIOD[,FOOTPRINT]", value_parser = halts,
          conflicts_with_all = ["explain", "repeat", "unobserved"])]
    pub halt: Option<Halts>,
    /// What the scheduler's timer does during halts: running, or held, so that a halt's length does
    /// not move the timer's interrupts [default: running]
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

/// How the machine was halted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HaltReport {
    /// How halts were asked for.
    #[serde(flatten)]
    pub halts: Halts,
    /// What the scheduler's timer did meanwhile.
    pub timer: HaltTimer,
    /// Halts of all CPUs.
    pub count: u64,
    /// Core cycles of a halt on average; none without a halt.
    pub mean_cycles: Option<f64>,
}

impl HaltReport {
    /// The kernel's message, for users.
    pub fn of(halted: &Halted) -> HaltReport {
        let Halted { halts, timer, count, cycles } = *halted;
        let mean_cycles = (count > 0).then(|| cycles as f64 / count as f64);
        HaltReport { halts, timer, count, mean_cycles }
    }
}

impl fmt::Display for HaltReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "xtask: {} halts", self.count)?;
        self.mean_cycles.map_or(Ok(()), |mean| write!(f, " of {mean:.0} cycles on average"))
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

    #[test]
    fn the_report_has_the_mean_of_the_halts() {
        let halts = Halts { length_cycles: 9, period_cycles: 5_000, footprint_bytes: 64 };
        let of = |count| {
            let halted = Halted { halts, timer: HaltTimer::Running, count, cycles: 21 };
            serde_json::to_value(HaltReport::of(&halted)).unwrap()
        };
        assert_eq!(of(2)["mean_cycles"], 10.5);
        assert_eq!(of(2)["length_cycles"], 9);
        assert_eq!(of(2)["timer"], "running");
        assert!(of(0)["mean_cycles"].is_null());
    }
}
