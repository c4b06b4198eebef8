//! The events that a run counts: those named, those of a breakdown, or the default ones.

use tally_abi::{Mode, Shares, events};
use tally_engine::Plan;
use tally_pmu::DetectedPmu;
use tally_vpmu::VirtualPmu;

use super::RunArgs;
use crate::{
    Result,
    explain::{self, Asked},
    job::Job,
    machine::{self, Accel},
    phases, program_words,
    report::{Rings, Stack, short_stack_of, stack_of, stalls_of, table::Detail},
};

impl RunArgs {
    /// The job, with the shares that `--unobserved` needs, the events of `--breakdown`, and those
    /// that are counted by default.
    pub(in crate::run) fn sampled_job(&self) -> Job {
        let shares = if self.unobserved { Some(Shares::Paired) } else { self.work.job.shares };
        let is_own = self.work.programs().is_empty();
        let stack = self.stack_events();
        let (of_stack, default) = match self.breakdown {
            None if !is_own && self.prints_counts() => {
                (None, Some(stack.unwrap_or_else(|| self.default_events())))
            }
            _ => (stack, None),
        };
        let of_roofline = self.roofline.events(self.signature());
        let events = of_roofline.or(of_stack).or_else(|| self.work.job.events.clone());
        // The default job's own list may have events that the machine does not model.
        let is_shown = is_own && self.processor.is_given() && self.is_default();
        let events = events.or_else(|| is_shown.then(|| self.default_events()));
        let events = events.or_else(|| self.phase_events());
        let phases = self.work.phases.config().ok().flatten();
        Job { shares, events, default, phases, ..self.work.job.clone() }
    }

    /// Returns whether counts are printed or written.
    fn prints_counts(&self) -> bool {
        !self.quiet || self.json || self.report.is_some() || self.trace.is_some()
    }

    /// The signature that the machine's processor shows.
    pub(in crate::run) fn signature(&self) -> u32 {
        let shown = machine::virtual_pmu_of(self.pmu, &self.vpmu);
        shown.map_or(self.pmu.signature(), |pmu| pmu.profile().signature)
    }

    /// Returns whether the machine's processor has all events of a list.
    pub(in crate::run) fn knows(&self, list: &str) -> bool {
        let pmu = machine::virtual_pmu_of(self.pmu, &self.vpmu);
        let found = pmu.and_then(|pmu| explain::detect(&pmu));
        found.is_ok_and(|found| found.catalogue().resolve(list, Mode::Full).is_ok())
    }

    /// The virtual PMU that shows another processor, and what the kernel detects of it; `None`
    /// without one, or if its options are wrong.
    fn shown_machine(&self) -> Option<(VirtualPmu, DetectedPmu)> {
        if !self.processor.is_given() {
            return None;
        }
        let pmu = machine::virtual_pmu_of(self.pmu, &self.vpmu).ok()?;
        let found = explain::detect(&pmu).ok()?;
        Some((pmu, found))
    }

    /// The default job's events, as far as the machine models them.
    fn default_events(&self) -> String {
        let list = match self.accel {
            Accel::Tcg => events::default_list(self.signature()),
            // The processor is not known before the run.
            Accel::Kvm => events::DEFAULT_STAT,
        };
        let shown = self.shown_machine();
        let is_counted = |event: &&str| {
            shown.as_ref().is_none_or(|(pmu, found)| explain::models(pmu, found, event))
        };
        events::words(list).filter(is_counted).collect::<Vec<_>>().join(",")
    }

    /// The stack of `--breakdown`, or its first level for a default run, if the processor has one.
    pub fn stack(&self) -> Option<&'static Stack> {
        let signature = self.signature();
        match self.breakdown {
            Some(Rings::Stalls) => stalls_of(signature),
            Some(_) => stack_of(signature),
            None if self.roofline.roofline.is_some() => None,
            None => short_stack_of(signature).filter(|_| self.is_known_default()),
        }
    }

    /// The events of the stack; for a default run together with those that the program would count.
    fn stack_events(&self) -> Option<String> {
        let stack = self.stack()?;
        Some(match self.breakdown {
            Some(rings) => rings.list(stack),
            None => {
                let own = events::default_list(self.signature());
                stack.before(events::words(own)).join(",")
            }
        })
    }

    /// Returns whether one program is counted by default, on one machine.
    pub(in crate::run) fn is_default(&self) -> bool {
        let RunArgs { work, breakdown, unobserved, refine, .. } = self;
        let counts = work.is_counted_by_default() && work.job.events.is_none() && !work.job.check;
        let is_one = self.repeat.is_none() && work.jobs.is_none();
        let asks = breakdown.is_some() || *unobserved || *refine || work.phases.phases.is_some();
        counts && is_one && !asks && (work.programs().is_empty() || self.prints_counts())
    }

    /// The part of the report that is printed.
    pub(crate) fn detail(&self) -> Detail {
        let programs = self.work.programs();
        let counts_itself = |words: &Vec<String>| program_words::tally(words).is_some();
        if self.verbose {
            Detail::All
        } else if !programs.is_empty() && programs.iter().all(counts_itself) {
            Detail::Truth
        } else {
            Detail::Answer
        }
    }

    /// Returns whether the run is a default one, on a processor that is known before the run.
    fn is_known_default(&self) -> bool {
        self.is_default() && self.accel == Accel::Tcg
    }

    /// Checks that the intervals of phases have a round of slices of the plan, if it is known.
    ///
    /// # Errors
    /// The interval is too short.
    pub(in crate::run) fn check_interval(&self, plan: Option<&Plan>) -> Result<()> {
        let Some((phases, plan)) = self.work.phases.config()?.zip(plan) else { return Ok(()) };
        let asked = Asked::of(&self.sampled_job(), &self.work.first(), self.signature())?;
        phases::check_interval(phases, asked.config.slice, plan)
    }

    /// The events of the cost model, if phases are tracked.
    fn phase_events(&self) -> Option<String> {
        self.work.phases.phases?;
        let pmu = machine::virtual_pmu_of(self.pmu, &self.vpmu).ok()?;
        phases::events(&pmu).ok().map(|events| events.join(","))
    }
}
