//! Code behind mispredicted branches, which fetch takes for the program's until they are resolved.
//!
//! It goes straight on from where it was predicted to go, line after line, for as long as the
//! branch takes to be resolved, or until a line or a translation is missing: that of the line is
//! asked for and comes, for a translation there is no time. What follows there is not decoded, and
//! executes nothing.

use super::state::Core;
use crate::{
    block::{Block, Privilege},
    signal::Signal,
    tlb::{Found, TlbLevel},
};

/// Bytes of a line of code, and lines of a page, as powers of two.
const LINE_SHIFT: u32 = 6;
const PAGE_LINES_SHIFT: u32 = 6;
/// Virtual lines of a 64-bit address space.
const LINES: u64 = u64::MAX >> LINE_SHIFT;

impl Core {
    /// Fetches the code at `pc`, an address as at the translation of a block whose branch was
    /// predicted to go there.
    #[cold]
    pub(super) fn fetch_wrong_path(&mut self, block: &Block, pc: u64) {
        let ring = block.ring;
        let first = pc >> LINE_SHIFT;
        for line in first..first + self.wrong_path_lines() {
            let line = line & LINES;
            let Some(frame) = self.wrong_path_frame(ring, line >> PAGE_LINES_SHIFT) else { return };
            let line = frame << PAGE_LINES_SHIFT | line & ((1 << PAGE_LINES_SHIFT) - 1);
            // The right path has to come back, even to the line that was fetched last.
            self.fetched = u64::MAX;
            if self.look_up_code(ring, line).is_some() {
                return self.fetch_code_ahead();
            }
        }
    }

    /// The lines that fetch comes to until a branch is resolved.
    fn wrong_path_lines(&self) -> u64 {
        let bytes =
            self.geometry.latency.mispredict_cycles * u32::from(self.geometry.decode.fetch_bytes);
        u64::from(bytes >> LINE_SHIFT).max(1)
    }

    /// The physical page of code in a page, if a TLB has it.
    fn wrong_path_frame(&mut self, ring: Privilege, page: u64) -> Option<u64> {
        let Found { frame, level, size } = self.tlbs.known_code(page)?;
        (self.fetched_page, self.fetched_size) = (page, size);
        self.bump(
            ring,
            match level {
                TlbLevel::Second if !self.geometry.perfect.itlb => Signal::ItlbStlbHit,
                _ => Signal::FETCH_HITS[size as usize],
            },
        );
        Some(frame)
    }
}
