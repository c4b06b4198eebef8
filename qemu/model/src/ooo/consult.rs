//! The pipeline's reports to the oracle.

use super::state::{Engine, Touch};
use crate::{
    block::Insn,
    oracle::{Events, Passage, Place},
    signal::Signal,
};

impl Engine {
    /// Tells the oracle of the last instruction.
    #[inline]
    pub(super) fn consult(&mut self, insn: &Insn, dispatched_at: u64, touches: &[Touch]) {
        let Some(oracle) = &mut self.oracle else { return };
        touches.iter().for_each(|touch| oracle.access(touch.by, touch.walk_cycles > 0));
        let place = Place { ring: self.ring, pc: insn.pc };
        oracle.retire(place, Passage { dispatched_at, retired_at: self.retired_at });
    }

    /// Tells the oracle of an event of the instruction that is on its way.
    #[inline]
    pub(super) fn meet(&mut self, events: Events) {
        if let Some(oracle) = &mut self.oracle {
            oracle.meet(events);
        }
    }

    /// Tells the oracle that the instruction waits for the store queue, if that is the cause.
    #[inline]
    pub(super) fn meet_full(&mut self, cause: Signal) {
        if cause == Signal::StallStore {
            self.meet(Events::STORES_FULL);
        }
    }
}
