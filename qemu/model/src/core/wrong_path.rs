//! Wrong paths: code behind mispredicted branches, which fetch takes for the program's until they
//! are resolved.
//!
//! Fetch continues where the branch was predicted to go, and follows the predictions of the
//! branches on the path. The path ends when the mispredicted branch is resolved, or when a line or
//! a translation is missing. A missing line is requested and arrives; for a translation there is
//! not enough time. Nothing on the path executes, and no predictor is trained by it.

use super::{path::WrongPath, state::Core};
use crate::{
    block::{Block, Branch, Privilege},
    code::{CodeAt, CodeMemory},
    signal::Signal,
    tlb::{Found, TlbLevel},
};

/// Lines of a page, as a power of two.
const PAGE_LINES_SHIFT: u32 = 6;

impl Core {
    /// Sets the functions that read the code of wrong paths. Without wrong paths in the geometry
    /// they are not used; without these functions fetch goes straight on.
    pub fn set_code_memory(&mut self, memory: CodeMemory) {
        if let Some(path) = &mut self.wrong_path {
            path.memory = Some(memory);
        }
    }

    /// Fetches the code at `predicted`, where a block's branch was predicted to go, though it went
    /// to `next_pc`: addresses under the mapping at the block's translation.
    #[cold]
    #[inline(never)]
    pub(super) fn fetch_wrong_path(&mut self, block: &Block, next_pc: u64, predicted: u64) {
        let Some(mut path) = self.wrong_path.take() else { return };
        self.predictor.begin_path(&mut path.histories, block.branch.kind, [next_pc, predicted]);
        path.begin(predicted);
        let mut cycles = self.geometry.latency.mispredict_cycles;
        while cycles > 0 {
            let Some(taken) = self.fetch_cycle(block.ring, &mut path) else { break };
            cycles = cycles.saturating_sub(taken);
        }
        self.wrong_path = Some(path);
    }

    /// Fetches one cycle's code, up to a taken branch. Returns the cycles until fetch continues;
    /// `None` if the path ends.
    fn fetch_cycle(&mut self, ring: Privilege, path: &mut WrongPath) -> Option<u32> {
        let window = path.window();
        while path.window() == window {
            let (branch, target) = self.fetch_branch(ring, path)?;
            path.pc = self.predictor.next_on_path(&mut path.histories, &branch, target)?;
            if path.pc == branch.fall_through {
                continue;
            }
            let is_known = self.predictor.knows_on_path(branch.pc);
            return Some(if is_known { 1 } else { 1 + self.geometry.latency.resteer_cycles });
        }
        Some(1)
    }

    /// Fetches and decodes the next instruction of a path. Returns it as a branch, and its target
    /// if it is a direct one.
    fn fetch_branch(&mut self, ring: Privilege, path: &mut WrongPath) -> Option<(Branch, u64)> {
        self.fetch_path_line(ring, path, path.first_line())?;
        let mut code = path.decode();
        if code == CodeAt::Incomplete {
            self.fetch_path_line(ring, path, path.second_line())?;
            code = path.decode();
        }
        let CodeAt::Insn { length, kind, target } = code else { return None };
        let fall_through = path.pc.wrapping_add(u64::from(length.max(1)));
        Some((Branch { kind, pc: path.pc, fall_through }, target))
    }

    /// Fetches a virtual line, if it was not the last one. Returns `None` if the path ends.
    fn fetch_path_line(&mut self, ring: Privilege, path: &mut WrongPath, line: u64) -> Option<()> {
        if path.is_in(line) {
            return Some(());
        }
        let frame = self.wrong_path_frame(ring, line >> PAGE_LINES_SHIFT)?;
        let physical_line = frame << PAGE_LINES_SHIFT | line & ((1 << PAGE_LINES_SHIFT) - 1);
        // Fetch on the right path has to look up its line again, even if it was fetched last.
        self.fetched = u64::MAX;
        if self.look_up_code(ring, physical_line).is_some() {
            self.fetch_code_ahead();
            return None;
        }
        path.enter(line, physical_line).then_some(())
    }

    /// The physical page of a virtual page of code, if a TLB has it.
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
