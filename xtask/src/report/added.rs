//! Additions to a report on request: a breakdown, and results from the records of slices.

use std::sync::Arc;

use tally_abi::{Mode, PhaseConfig, Shares, text::Grouped, trace::SliceRecord, truth::Truth};
use tally_breakdown::{Breakdown, Count, INDEPENDENT, Stack, break_down, wrapped};
use tally_engine::Plan;
use tally_pmu::CostTable;

use super::{
    Report, SessionReport,
    event::counts,
    groups::groups,
    intervals::intervals,
    phases::PhaseReport,
    refined::Refiner,
    rings::{RING_0, Rings},
    sums::{Sums, Term},
    unobserved::unobserved,
    what_if::WhatIf,
};
use crate::{
    machine::{Boot, Session},
    output,
};

/// The additions that are requested.
#[derive(Clone, Copy)]
pub struct Additions {
    /// The values without interrupts.
    pub unobserved: bool,
    /// The refined estimates.
    pub refined: bool,
    /// The stack for breaking down the cycles.
    pub stack: Option<&'static Stack>,
    /// The rings whose cycles are broken down.
    pub rings: Rings,
    /// The savings without each cause, from shadow cores.
    pub what_if: bool,
    /// The number of intervals, each of which gets its counts and its breakdown.
    pub intervals: Option<usize>,
    /// The configuration of phases, and the cost model.
    pub phases: Option<(PhaseConfig, &'static CostTable)>,
}

impl Report {
    /// Makes the report of `boot` with these additions. All except the breakdown need the plan.
    pub fn with(boot: &Boot, plan: Option<&Plan>, additions: &Additions) -> Report {
        let mut report = Report::of(boot);
        if let Some(plan) = plan.filter(|_| additions.unobserved) {
            report.add_unobserved(boot, plan);
        }
        if let Some(plan) = plan.filter(|_| additions.refined) {
            report.add_refined(boot, plan);
        }
        if let Some(plan) = plan.filter(|_| additions.stack.is_some() && !additions.refined) {
            report.add_sums(boot, plan);
        }
        if let Some((plan, number)) = plan.zip(additions.intervals) {
            let stack = additions.stack.map(|stack| (stack, additions.rings));
            report.add_intervals(boot, plan, stack, number);
        }
        if let Some(plan) = plan {
            report.add_groups(boot, plan);
        }
        if let Some((config, costs)) = additions.phases {
            report.add_phases(boot, config, costs);
        }
        if let Some(truth) = boot.truth.as_ref().filter(|_| additions.what_if) {
            report.add_what_if(truth);
        }
        let Some(stack) = additions.stack else { return report };
        if let Err(missing) = report.add_breakdown(stack, additions.rings) {
            let (some, rest) = missing.split_at(missing.len().min(2));
            let more = if rest.is_empty() { "" } else { " and others" };
            output::note(wrapped(&format!(
                "xtask: no breakdown: the program ran too short: fewer than four slices have \
                 {}{more}. Give it more work, or shorter slices: --slice 5000 --budget 50. Cycles \
                 and instructions can be had of any run: --events cycles,instructions",
                some.join(", "),
            )));
        }
        report
    }

    /// Adds the cycles by cause, for the sessions that counted the stack's events.
    ///
    /// # Errors
    /// The names of the events that were not measured, in the first session.
    pub fn add_breakdown(
        &mut self,
        stack: &Stack,
        rings: Rings,
    ) -> std::result::Result<(), Vec<&'static str>> {
        // A session that a program opened itself has events of its own.
        let counts = |session: &SessionReport| {
            session.events.iter().any(|event| event.name.starts_with(stack.cycles))
        };
        for session in self.first.iter_mut().chain(&mut self.others).filter(|it| counts(it)) {
            let of = |suffix: Option<&str>| suffix.map(|it| broken_down(session, stack, it));
            let [user, kernel] = rings.suffixes().map(of);
            (session.breakdown, session.kernel_breakdown) =
                (user.transpose()?, kernel.transpose()?);
        }
        Ok(())
    }

    /// Adds the savings of each session's program without each cause, if the truth has the shadow
    /// cores for it.
    pub fn add_what_if(&mut self, truth: &Truth) {
        for session in self.first.iter_mut().chain(&mut self.others) {
            let Some(tag) = session.session else { continue };
            match WhatIf::of_session(truth, tag) {
                Ok(what_if) => session.what_if = Some(what_if),
                Err(why) => {
                    output::note(format_args!("xtask: {}: no what-if: {why}", session.program));
                }
            }
        }
    }

    /// Adds the counts of `number` intervals, and their cycles by the stack's causes, to the
    /// sessions of `boot` whose events were counted by this plan, and whose trace is complete.
    pub fn add_intervals(
        &mut self,
        boot: &Boot,
        plan: &Plan,
        stack: Option<(&Stack, Rings)>,
        number: usize,
    ) {
        for (report, _, slices) in self.traced(boot, plan) {
            report.intervals = intervals(&slices, plan, &names(report), stack, number);
        }
    }

    /// Adds the phases of the sessions of `boot` that were tracked, if the trace is complete.
    pub fn add_phases(&mut self, boot: &Boot, config: PhaseConfig, costs: &CostTable) {
        if boot.transcript.rings.iter().any(|ring| ring.lost > 0) {
            output::note("xtask: no phases: records of the trace were lost");
            return;
        }
        let reports = self.first.iter_mut().chain(&mut self.others);
        for (report, (tag, session)) in reports.zip(&boot.transcript.sessions) {
            let records = boot.transcript.phases.iter().filter(|record| record.session == *tag);
            let records: Vec<_> = records.copied().collect();
            if records.is_empty() {
                output::note(format_args!(
                    "xtask: no phases of {}: it ended before an interval did, which has at least {} \
                     instructions",
                    report.program,
                    Grouped(config.interval_instructions),
                ));
            }
            let counted =
                |event: &str| session.readings.iter().any(|of| of.native.as_deref() == Some(event));
            let missing = CostTable::missing(&costs.model_of(counted).0);
            report.phases =
                (!records.is_empty()).then(|| PhaseReport::of(&records, config, missing));
        }
    }

    /// Adds the groups of the sessions of `boot` whose events were counted by this plan, with their
    /// slices if the trace is complete.
    fn add_groups(&mut self, boot: &Boot, plan: &Plan) {
        for session in self.first.iter_mut().chain(&mut self.others) {
            if session.events.len() == plan.assignments.len() {
                session.groups = groups(plan, &names(session), None);
            }
        }
        for (report, _, slices) in self.traced(boot, plan) {
            if !slices.is_empty() {
                report.groups = groups(plan, &names(report), Some(&slices));
            }
        }
    }

    /// Adds the unobserved values of the sessions of `boot` whose events were counted in ring 3 by
    /// this plan, in pairs of rounds, and whose trace is complete.
    pub fn add_unobserved(&mut self, boot: &Boot, plan: &Plan) {
        for (report, session, slices) in self.traced(boot, plan) {
            let is_paired = session.config.shares == Shares::Paired;
            let in_ring_3 = session.readings.iter().all(|event| event.mode == Mode::User);
            if let Some(stats) = session.stats.filter(|_| is_paired && in_ring_3) {
                let values = unobserved(&slices, plan, stats.instructions);
                let events = report.events.iter_mut().zip(values);
                events.for_each(|(event, value)| {
                    event.unobserved = value.map(|value| event.without_interrupts(value));
                });
            }
        }
    }

    /// Adds refined estimates, from the records of all slices, to the sessions of `boot` whose
    /// events were counted by this plan, and whose trace is complete.
    pub fn add_refined(&mut self, boot: &Boot, plan: &Plan) {
        for (report, _, slices) in self.traced(boot, plan) {
            let refiner = Refiner::of(&slices, plan);
            let events = report.events.iter_mut().zip(refiner.estimates());
            events.for_each(|(event, value)| event.refined = value);
            report.sums = Some(Arc::new(Sums::of(&slices, plan, Some(refiner))));
        }
    }

    /// Adds the errors of sums of events to the sessions of `boot` whose events were counted by
    /// this plan, and whose trace is complete.
    pub fn add_sums(&mut self, boot: &Boot, plan: &Plan) {
        for (report, _, slices) in self.traced(boot, plan).filter(|(.., it)| !it.is_empty()) {
            report.sums = Some(Arc::new(Sums::of(&slices, plan, None)));
        }
    }

    /// The sessions of `boot` whose events were counted by this plan, with the records of their
    /// slices; empty unless all records are present.
    fn traced<'a>(
        &'a mut self,
        boot: &'a Boot,
        plan: &'a Plan,
    ) -> impl Iterator<Item = (&'a mut SessionReport, &'a Session, Vec<SliceRecord>)> {
        let is_complete = boot.transcript.rings.iter().all(|ring| ring.lost == 0);
        let reports = self.first.iter_mut().chain(&mut self.others);
        let sessions = reports.zip(&boot.transcript.sessions);
        let is_planned = move |session: &Session| {
            is_complete && session.readings.len() == plan.assignments.len()
        };
        sessions.filter(move |(_, (_, session))| is_planned(session)).map(
            |(report, (tag, session))| {
                let slices = boot.transcript.slices.iter().filter(|slice| slice.session == *tag);
                (report, session, slices.copied().collect())
            },
        )
    }
}

/// Breaks the cycles of a session down by cause, from the events whose names have this suffix.
/// Errors of sums are computed from its slices, if present.
fn broken_down(
    session: &SessionReport,
    stack: &Stack,
    suffix: &str,
) -> std::result::Result<Breakdown, Vec<&'static str>> {
    let counts = counts(&session.events);
    let of_engine = |name: &str| counts(&format!("{name}{suffix}"));
    let Some(sums) = &session.sums else { return break_down(&of_engine, INDEPENDENT, stack) };
    let place = |name: &str| {
        let full = format!("{name}{suffix}");
        session.events.iter().position(|event| event.name == full)
    };
    // Half widths of ring 0's counts include a skew by overflow interrupts, which slices do not
    // show (decision 23), so the engine's own are used.
    let regressed = |event: usize| sums.regressed(event).filter(|_| suffix != RING_0);
    let named = |name: &str| {
        let count = of_engine(name)?;
        Some(match regressed(place(name)?) {
            Some((estimate, half_width)) => {
                let half_width_95 = half_width.unwrap_or(count.half_width_95);
                Count { estimate: estimate.max(0.0), half_width_95, ..count }
            }
            None => count,
        })
    };
    let errors = |terms: &[(&'static str, f64)]| {
        let term = |(name, factor): &(&'static str, f64)| {
            let event = place(name)?;
            let is_refined = session.events[event].refined.is_some();
            let is_made_again = is_refined || regressed(event).is_some();
            let half_width_95 = named(name)?.half_width_95;
            Some(Term { event, factor: *factor, half_width_95, is_made_again })
        };
        terms.iter().map(term).collect::<Option<Vec<_>>>().map(|terms| sums.error(&terms))
    };
    break_down(&named, &errors, stack)
}

/// The names of a session's events.
fn names(session: &SessionReport) -> Vec<&str> {
    session.events.iter().map(|event| &*event.name).collect()
}
