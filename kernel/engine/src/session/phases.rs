//! A session's phases: its slices form intervals, which are evaluated outside of the overflow
//! interrupt.

use alloc::boxed::Box;

use tally_abi::{PhaseState, phase::PREDICTORS, trace::PhaseRecord};

use super::{
    state::{Session, Timestamp},
    tracked::Tracked,
};
use crate::{
    Sink,
    phase::{Ended, Tracker},
};

impl Session {
    /// Starts tracking phases, or stops it with `None`.
    pub fn track_phases(&mut self, tracker: Option<Tracker>) {
        let state = PhaseState::default();
        self.phases = tracker.map(|tracker| Box::new(Tracked { tracker, state, pending: false }));
    }

    /// The phase of the last interval that has ended, if phases are tracked.
    pub fn phase(&self) -> Option<&PhaseState> {
        self.phases.as_ref().map(|phases| &phases.state)
    }

    /// Returns whether a change of phase was found that was not taken yet.
    pub fn has_changed(&self) -> bool {
        self.phases.as_ref().is_some_and(|phases| phases.pending)
    }

    /// Takes a change that was found: the phase, and the number of changes so far.
    pub fn take_change(&mut self) -> Option<(u8, u64)> {
        let phases = self.phases.as_mut()?;
        let pending = core::mem::take(&mut phases.pending);
        pending.then_some((phases.state.phase, phases.state.changes))
    }

    /// Returns whether an interval that has ended waits for its evaluation.
    #[inline]
    pub(crate) fn interval_is_due(&self) -> bool {
        self.phases.as_ref().is_some_and(|phases| phases.tracker.is_due())
    }

    /// Evaluates the interval that has ended, if there is one: records it, and publishes it in the
    /// bank. Not in the overflow interrupt.
    pub(crate) fn end_interval(&mut self, at: Timestamp, sink: &mut impl Sink) {
        let Some(phases) = &mut self.phases else { return };
        let Some(ended) = phases.tracker.evaluate() else { return };
        let config = phases.tracker.config();
        phases.pending |= ended.changed;
        phases.state = PhaseState {
            intervals: ended.number + 1,
            changes: phases.tracker.changes(),
            phase: ended.class.phase,
            predicted: ended.predicted[config.predictor as usize],
            sure: ended.class.sure,
            bottleneck: ended.bottleneck,
            cycles: ended.cycles,
            instructions: ended.instructions,
        };
        if let Some(bank) = &mut self.bank {
            bank.publish_phase(&phases.state);
        }
        sink.phase(|| record(self.id, at, &ended), ended.changed);
    }
}

fn record(session: u32, at: Timestamp, ended: &Ended) -> PhaseRecord {
    let [_, history, markov, run_length, best]: [u8; PREDICTORS] = ended.predicted;
    let mut record = PhaseRecord {
        tsc: at.tsc,
        session,
        cpu: at.cpu,
        phase: ended.class.phase,
        sure: ended.class.sure,
        number: ended.number as u32,
        changed: ended.changed,
        bottleneck: ended.bottleneck,
        history,
        markov,
        run_length,
        best,
        cycles: ended.cycles,
        instructions: ended.instructions,
        model_cycles: ended.model_cycles,
        ..PhaseRecord::default()
    };
    let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    record.set_costs(ended.vector.costs.map(|cost| (word(cost.cycles), word(cost.half_width))));
    record
}
