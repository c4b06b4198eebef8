//! Mapping device registers whose physical addresses are above the kernel's view of physical
//! memory.

use x86_64::{PhysAddr, structures::paging::PageTableFlags as Flags};

use super::{
    frames::{self, User, kernel_view},
    space::{AddressSpace, SpaceError},
    tables::{index, table},
};

impl AddressSpace {
    /// Maps a page of device registers, uncached, at the address that [`kernel_view`] returns.
    /// Only for the first CPU, before programs are loaded: their address spaces share only the
    /// mappings that exist by then.
    ///
    /// # Errors
    /// No frame is left for the tables, or another page is mapped there.
    pub fn map_registers(&self, page: PhysAddr) -> Result<(), SpaceError> {
        let address = kernel_view(page).as_u64();
        let flags = Flags::PRESENT | Flags::WRITABLE;
        let mut frame = PhysAddr::new(self.id());
        for level in (1..=3).rev() {
            let entry = &mut table(frame)[index(address, level)];
            if entry.is_unused() {
                entry.set_frame(frames::allocate(User::Kernel, address >> (9 * level))?, flags);
            }
            if entry.flags().contains(Flags::HUGE_PAGE) {
                // The view of physical memory contains it.
                return Ok(());
            }
            frame = entry.addr();
        }
        let entry = &mut table(frame)[index(address, 0)];
        if !entry.is_unused() {
            return if entry.addr() == page { Ok(()) } else { Err(SpaceError::Overlap) };
        }
        entry.set_addr(page, flags | Flags::NO_EXECUTE | Flags::NO_CACHE);
        Ok(())
    }
}
