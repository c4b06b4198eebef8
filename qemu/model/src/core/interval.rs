//! Data misses in the interval pipeline: which overlap and which do not.
//!
//! A long miss opens a window of one reorder buffer. A later miss inside it overlaps and costs only
//! its share of the memory's bandwidth. A load that chases its own pointer cannot start there: it
//! hides nothing. This is the interval model of Eyerman, Eeckhout, Karkhanis and
//! Smith, "A mechanistic performance model for superscalar out-of-order processors" (TOCS 27:2,
//! 2009).

use super::state::Core;
use crate::{
    access::{Access, ServedBy},
    block::Block,
};

/// The inverse of the share of a hidden miss's latency that is exposed, as bandwidth.
const OVERLAP: u32 = 12;

impl Core {
    /// The cycles of a data miss that the reorder buffer does not hide.
    pub(super) fn exposed_cycles<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        source: ServedBy,
    ) -> u32 {
        let latency = self.latency(source);
        if access.chases {
            // The block's recurrence contains the L1's latency.
            return latency - self.geometry.latency.l1_cycles;
        }
        match source {
            ServedBy::L1 => return 0,
            ServedBy::L2 => return if STORE { 0 } else { latency / 4 },
            ServedBy::Llc | ServedBy::Memory if STORE => return latency / OVERLAP,
            ServedBy::Llc | ServedBy::Memory => {}
        }
        let before = block.insns().get(self.settled..access.insn).unwrap_or_default();
        let now_uops = self.uops + before.iter().map(|insn| u64::from(insn.uops)).sum::<u64>();
        if now_uops < self.shadow_ends_uops {
            return latency / OVERLAP;
        }
        self.shadow_ends_uops = now_uops + u64::from(self.geometry.reorder_uops);
        let ahead = self.geometry.reorder_uops / u32::from(self.geometry.width);
        latency - (latency / 2).min(ahead / 2)
    }
}
