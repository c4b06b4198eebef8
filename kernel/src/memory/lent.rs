//! Kernel memory that a program has mapped read-only.

use super::{
    area::Origin,
    frames::FRAME_BYTES,
    shared::Shared,
    space::{PageAccess, SpaceError},
    user::{Place, UserMemory},
};

impl UserMemory {
    /// Maps kernel memory read-only until the program ends. Returns the address; the same memory
    /// has the same address each time.
    ///
    /// # Errors
    /// No memory is left for page tables.
    pub fn lend(&mut self, shared: &'static Shared) -> Result<u64, SpaceError> {
        let kernels = shared.start().as_u64();
        if let Some(address) = self.lent.get(&kernels) {
            return Ok(*address);
        }
        let frames = shared.frames();
        let bytes = frames.len() as u64 * FRAME_BYTES;
        let start = self.map(Place::Hint(0), bytes, (PageAccess::Read, Origin::Kernel))?;
        if let Err(error) = self.space.lend(start, frames, PageAccess::Read) {
            self.space.unmap(start, bytes);
            self.areas.cut(&(start..start + bytes));
            return Err(error);
        }
        self.lent.insert(kernels, start);
        Ok(start)
    }
}
