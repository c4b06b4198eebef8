//! `run --what-if`: the virtual PMU's options that it needs, and the options that it refuses.

use clap::Args;
use tally_abi::ExitStatus;

use crate::{Failure, Result, machine::Accel, report::Wanted};

/// Default time limit in seconds: a run takes several times as long with the shadow cores as
/// without them.
pub(super) const TIME_LIMIT: &str = "1200";

/// Options for the savings without each cause.
#[derive(Args, Clone, Debug)]
pub(super) struct WhatIfArgs {
    /// Also print what the program would save without each cause of lost cycles, by the virtual
    /// PMU, from cores that run beside with one structure perfect; takes some ten times as long
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "causes", requires = "breakdown")]
    pub(super) what_if: Option<Wanted>,
}

impl WhatIfArgs {
    /// The options of the virtual PMU, `given` ones first.
    pub(super) fn machine_options(&self, given: &[String]) -> Vec<String> {
        let mut options = given.to_vec();
        if let Some(wanted) = self.what_if {
            options.push(wanted.option());
        }
        options
    }

    /// Checks that no conflicting options of the machine are given.
    ///
    /// # Errors
    /// The machine has no virtual PMU, or an option gives the virtual PMU other perfect structures.
    pub(super) fn check(&self, accel: Accel, given: &[String]) -> Result<()> {
        let refused = |why: String| Err(Failure::new(ExitStatus::Usage, why));
        if self.what_if.is_none() {
            return Ok(());
        }
        if accel == Accel::Kvm {
            return refused(
                "--what-if needs a virtual PMU, as no processor has perfect structures: omit --accel \
                 kvm, or --what-if for the breakdown alone"
                    .into(),
            );
        }
        for option in given {
            let name = option.split('=').next().unwrap_or_default();
            if ["perfect", "shadows"].contains(&name) {
                return refused(format!(
                    "--what-if sets the perfect structures itself: omit {name}=..., or \
                     --what-if for a machine with your own"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::run::RunArgs;

    use super::*;

    fn request(words: &str) -> Result<Vec<String>> {
        let args = RunArgs::of(&format!("cargo xtask run {words}"))?;
        args.request().map(|request| request.vpmu)
    }

    #[test]
    fn it_needs_a_breakdown_and_gives_the_machine_its_cores() {
        assert!(request("--what-if").unwrap_err().message.contains("--breakdown"));
        for pmu in ["intel", "sapphire-rapids", "amd"] {
            let vpmu = request(&format!("--pmu {pmu} --breakdown --what-if")).unwrap();
            assert_eq!(vpmu, [Wanted::Causes.option()]);
        }
        let vpmu = request("--breakdown --what-if=pairs").unwrap();
        assert_eq!(vpmu, [Wanted::Pairs.option()]);
        let vpmu = request("--breakdown --what-if --vpmu pipeline=ooo,prefetch=on").unwrap();
        assert_eq!(vpmu[..2], ["pipeline=ooo", "prefetch=on"]);
        assert!(request("--breakdown").unwrap().is_empty());
    }

    #[test]
    fn what_it_cannot_have_is_refused_in_one_line() {
        for (words, why, status) in [
            ("--accel kvm", "omit --accel kvm, or --what-if", ExitStatus::Usage),
            ("--vpmu perfect=l1d", "omit perfect=..., or --what-if", ExitStatus::Usage),
            ("--vpmu pipeline=ooo,shadows=none", "omit shadows=..., or", ExitStatus::Usage),
            ("--vpmu mode=odd", "unknown mode", ExitStatus::Usage),
            ("--pmu zen3", "use --pmu intel", ExitStatus::NoBreakdown),
        ] {
            let failure = request(&format!("--breakdown --what-if {words}")).unwrap_err();
            assert!(failure.message.contains(why), "{failure}");
            assert!(!failure.message.contains('\n'), "{failure}");
            assert_eq!(failure.status, status, "{failure}");
        }
    }
}
