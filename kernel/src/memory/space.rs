//! Address spaces: the kernel's own page tables and one set for each program.
//!
//! The lower half is the program's and ends at [`USER_END`]. Its pages are those that the program
//! asked for. Programs share no memory, and reach none of the kernel's but what it lends them
//! read-only ([`AddressSpace::lend`]).
//!
//! The kernel accesses a program's memory through its own view of physical memory, after looking up
//! the page, never through the program's addresses. So a bad pointer is an error and not a fault.

use x86_64::{
    VirtAddr,
    registers::control::{Cr3, Cr3Flags},
    structures::paging::{PageTableFlags as Flags, PhysFrame, page_table::PageTableEntry},
};

pub use super::{
    access::PageAccess,
    range::{SpaceError, USER_END, UserPage, UserRange},
};
use super::{
    frames::{self, Claim, FRAME_BYTES, OutOfMemory, User, kernel_view},
    records,
    tables::{LENT, first_page, free_below, index, table},
};

/// Entries of a table that belong to the lower half of the top level.
const USER_ENTRIES: usize = 256;

/// A set of page tables. Dropping a program's frees every frame of its lower half.
#[derive(Debug)]
pub struct AddressSpace {
    root: PhysFrame,
    /// Pages of the lower half.
    pages: u64,
    /// Tables of the lower half, which are freed with the space.
    tables: u64,
    /// A page was mapped, moved, protected or unmapped since the audit looked.
    has_changed: bool,
}

impl AddressSpace {
    /// A new space with the upper half of the top table `from`, and an empty lower half.
    ///
    /// # Errors
    /// No frame is left.
    pub fn with_upper_half(from: PhysFrame) -> Result<Self, OutOfMemory> {
        let root = frames::allocate_in_turn(User::Program)?;
        let (new, old) = (table(root.start_address()), table(from.start_address()));
        for (new, old) in new.iter_mut().zip(old.iter()).skip(USER_ENTRIES) {
            *new = old.clone();
        }
        Ok(AddressSpace { root, pages: 0, tables: 0, has_changed: true })
    }

    /// A new space for a program.
    ///
    /// # Errors
    /// No frame is left.
    pub fn for_program(kernel: &AddressSpace) -> Result<Self, OutOfMemory> {
        Self::with_upper_half(kernel.root)
    }

    /// Physical address of the top table: CR3's value, and the space's identity in records.
    pub fn id(&self) -> u64 {
        self.root.start_address().as_u64()
    }

    /// Loads the space into CR3.
    ///
    /// # Safety
    /// Another space is activated before this one is dropped.
    pub unsafe fn activate(&self) {
        // SAFETY: the upper half, where the kernel runs, is the same in every space.
        unsafe { Cr3::write(self.root, Cr3Flags::empty()) };
    }

    /// Maps new frames of zeros at the pages of a range.
    ///
    /// # Errors
    /// Out of memory, page 0 is in the range, or a page of it is mapped already. Nothing is mapped
    /// then.
    pub fn map_zeroed(&mut self, range: UserRange, access: PageAccess) -> Result<(), SpaceError> {
        if range.start() == 0 {
            return Err(SpaceError::BadAddress);
        }
        let mut claim = self.claim(range.bytes())?;
        for page in range.pages() {
            let mapped = self.map_page(page, access.flags(), || claim.allocate(page.address()));
            if let Err(error) = mapped {
                self.unmap(range.split(page).0);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Pages of the lower half.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns whether pages have changed since [`Self::forget_changes`].
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed
    }

    pub(super) fn forget_changes(&mut self) {
        self.has_changed = false;
    }

    /// Checks that the upper half is that of `kernel`.
    ///
    /// # Panics
    /// It is not.
    pub(super) fn check_upper_half(&self, kernel: &AddressSpace) {
        let kernel = table(kernel.root.start_address());
        let entries = kernel.iter().zip(table(self.root.start_address()).iter());
        // The processor marks entries that it has used in each table.
        let address = |entry: &PageTableEntry| (entry.addr(), entry.flags() - Flags::ACCESSED);
        let is_same = entries.skip(USER_ENTRIES).all(|(own, of)| address(own) == address(of));
        assert!(is_same, "audit: the upper half of {:#x} is not the kernel's", self.id());
    }

    /// Bytes of its pages.
    pub fn resident_bytes(&self) -> u64 {
        self.pages * FRAME_BYTES
    }

    /// Returns whether a program could ever have pages for `bytes`.
    pub fn may_have(&self, bytes: u64) -> bool {
        bytes <= frames::max_for_program()
    }

    /// Claims memory for `bytes` of pages.
    ///
    /// # Errors
    /// It is more than one program may have, or than there is.
    fn claim(&self, bytes: u64) -> Result<Claim, SpaceError> {
        // With the tables: one for each 512 pages, and the tables above them. Pages are allocated
        // from the claim; the tables' frames are what is left of it at the end.
        let needed = bytes.saturating_add(bytes / 511);
        let held = (self.pages + self.tables).saturating_mul(FRAME_BYTES);
        if held.saturating_add(needed) > frames::max_for_program() {
            return Err(SpaceError::OutOfMemory);
        }
        frames::claim(needed).ok_or(SpaceError::OutOfMemory)
    }

    fn map_page(
        &mut self,
        page: UserPage,
        flags: Flags,
        frame: impl FnOnce() -> Result<PhysFrame, OutOfMemory>,
    ) -> Result<(), SpaceError> {
        let space = self.id();
        let entry = self.entry_or_new(page)?;
        if !entry.is_unused() {
            return Err(SpaceError::Overlap);
        }
        let frame = frame()?;
        records::map(space, page.address(), frame, flags.contains(LENT));
        entry.set_frame(frame, flags);
        self.pages += 1;
        self.has_changed = true;
        Ok(())
    }

    /// Maps frames that are not the program's, and that outlive the mapping, at the pages of a
    /// range, as many as there are of both.
    ///
    /// # Errors
    /// No frame is left for a table, or a page is mapped already; those before it stay mapped.
    pub fn lend(
        &mut self,
        range: UserRange,
        frames: &[PhysFrame],
        access: PageAccess,
    ) -> Result<(), SpaceError> {
        for (page, frame) in range.pages().zip(frames) {
            self.map_page(page, access.flags() | LENT, || Ok(*frame))?;
        }
        Ok(())
    }

    /// Changes what the program may do with the pages of a range that are there.
    pub fn protect_all(&mut self, range: UserRange, access: PageAccess) {
        let mut rest = range;
        while let Some(page) = self.next_page(rest) {
            rest = rest.split(page).1.without_first();
            if let Some(entry) = self.entry(page) {
                entry.set_flags(access.flags() | entry.flags() & LENT);
                self.has_changed = true;
                x86_64::instructions::tlb::flush(VirtAddr::new(page.address()));
            }
        }
    }

    /// Moves the page at `from` to `to`, where it replaces a page that is there.
    ///
    /// # Errors
    /// No memory is left for a table.
    pub fn move_page(&mut self, from: UserPage, to: UserPage) -> Result<(), SpaceError> {
        self.unmap(to.range());
        let old = self.entry(from).ok_or(SpaceError::BadAddress)?.clone();
        *self.entry_or_new(to)? = old.clone();
        let (frame, is_lent) = (frame_of(&old), old.flags().contains(LENT));
        records::unmap(self.id(), from.address(), frame, is_lent);
        records::map(self.id(), to.address(), frame, is_lent);
        if let Some(entry) = self.entry(from) {
            entry.set_unused();
        }
        self.has_changed = true;
        x86_64::instructions::tlb::flush(VirtAddr::new(from.address()));
        Ok(())
    }

    /// Unmaps the pages of a range, and frees the frames that are the program's.
    pub fn unmap(&mut self, range: UserRange) {
        let mut rest = range;
        while let Some(page) = self.next_page(rest) {
            rest = rest.split(page).1.without_first();
            let space = self.id();
            let Some(entry) = self.entry(page) else { continue };
            let (frame, is_lent) = (frame_of(entry), entry.flags().contains(LENT));
            entry.set_unused();
            x86_64::instructions::tlb::flush(VirtAddr::new(page.address()));
            self.pages -= 1;
            self.has_changed = true;
            records::unmap(space, page.address(), frame, is_lent);
            if !is_lent {
                // SAFETY: (1) leaf frames of the lower half that are not lent come from
                // `map_zeroed`, and no other page has them; (2) one CPU at a time uses the space,
                // and its TLB entry was flushed.
                unsafe { frames::free(frame) };
            }
        }
    }

    /// Unmaps every page that is the program's or was lent to it.
    fn unmap_all(&mut self) {
        let mut rest = UserRange::all();
        while let Some(page) = self.next_page(rest) {
            rest = rest.split(page).1.without_first();
            // Not what the kernel has mapped for itself (`map_identity`).
            if self.entry(page).is_some_and(|it| it.flags().contains(Flags::USER_ACCESSIBLE)) {
                self.unmap(page.range());
            }
        }
    }

    /// The first mapped page of a range. Missing tables are skipped at once.
    pub fn next_page(&self, range: UserRange) -> Option<UserPage> {
        let page = first_page(self.root.start_address(), 3, range.start(), range.end())?;
        UserPage::containing(page).ok()
    }

    /// The page of a range that follows the first `count` mapped ones, if it is mapped.
    pub fn page_after(&self, range: UserRange, count: u64) -> Option<UserPage> {
        let next = |page: &UserPage| self.next_page(range.split(*page).1.without_first());
        core::iter::successors(self.next_page(range), next).nth(count as usize)
    }

    /// Returns whether a page is there, accessible or not.
    pub fn has_page(&self, page: UserPage) -> bool {
        self.next_page(page.range()).is_some()
    }

    /// The bytes of a page that was mapped just now.
    ///
    /// # Panics
    /// There is no such page.
    pub fn page_bytes(&mut self, page: UserPage) -> &mut [u8] {
        let entry = self.entry(page).expect("it was mapped just now");
        let view: *mut u8 = kernel_view(entry.addr()).as_mut_ptr();
        // SAFETY: the kernel's view of a whole frame that this space alone maps; no program has
        // used it yet.
        unsafe { core::slice::from_raw_parts_mut(view, FRAME_BYTES as usize) }
    }

    /// Copies `from` to `address`, even to pages that the program may not write: for loading it.
    ///
    /// # Errors
    /// Some of the range is not mapped.
    pub fn fill(&mut self, address: u64, from: &[u8]) -> Result<(), SpaceError> {
        let mut done = 0;
        while done < from.len() {
            let (view, room) = self.view(address, done, from.len(), Flags::empty())?;
            // SAFETY: `view` returns `room` bytes of one mapped frame that this space alone maps.
            unsafe { view.copy_from_nonoverlapping(from[done..].as_ptr(), room) };
            done += room;
        }
        Ok(())
    }

    /// The kernel's view of the program's byte `base + done`, and how many of the bytes up to
    /// `base + total` are in the same page.
    ///
    /// # Errors
    /// The page is not there, or does not have the flags `needed`.
    pub(super) fn view(
        &mut self,
        base: u64,
        done: usize,
        total: usize,
        needed: Flags,
    ) -> Result<(*mut u8, usize), SpaceError> {
        let address = base.checked_add(done as u64).ok_or(SpaceError::BadAddress)?;
        let entry = self.entry(UserPage::containing(address)?).ok_or(SpaceError::BadAddress)?;
        if !entry.flags().contains(Flags::PRESENT | Flags::USER_ACCESSIBLE | needed) {
            return Err(SpaceError::BadAddress);
        }
        let offset = address % FRAME_BYTES;
        let room = ((FRAME_BYTES - offset) as usize).min(total - done);
        Ok((kernel_view(entry.addr() + offset).as_mut_ptr(), room))
    }

    /// The entry of a mapped page.
    pub(super) fn entry(&mut self, page: UserPage) -> Option<&mut PageTableEntry> {
        let page = page.address();
        let mut frame = self.root.start_address();
        for level in [3, 2, 1] {
            let entry = &table(frame)[index(page, level)];
            if entry.is_unused() {
                return None;
            }
            frame = entry.addr();
        }
        let entry = &mut table(frame)[index(page, 0)];
        (!entry.is_unused()).then_some(entry)
    }

    /// The entry of a program's page. Makes missing tables above it.
    fn entry_or_new(&mut self, page: UserPage) -> Result<&mut PageTableEntry, OutOfMemory> {
        let flags = Flags::PRESENT | Flags::WRITABLE | Flags::USER_ACCESSIBLE;
        self.entry_at(page.address(), 0, flags)
    }

    /// The entry of an address of the kernel's half in its table of level `down_to`, 0 to 2. Makes
    /// missing tables above it.
    ///
    /// # Errors
    /// No frame is left for a table.
    pub(super) fn kernel_entry(
        &mut self,
        address: VirtAddr,
        down_to: u32,
    ) -> Result<&mut PageTableEntry, OutOfMemory> {
        assert!(address.as_u64() > USER_END, "{address:?} is in the program's half");
        self.entry_at(address.as_u64(), down_to, Flags::PRESENT | Flags::WRITABLE)
    }

    fn entry_at(
        &mut self,
        address: u64,
        down_to: u32,
        flags: Flags,
    ) -> Result<&mut PageTableEntry, OutOfMemory> {
        let mut frame = self.root.start_address();
        for level in (down_to + 1..=3).rev() {
            let entry = &mut table(frame)[index(address, level)];
            if entry.is_unused() {
                let user = if address < USER_END { User::Program } else { User::Kernel };
                let frame = frames::allocate(user, address >> (9 * level))?;
                records::take_for_table(frame);
                entry.set_frame(frame, flags);
                self.tables += 1;
            }
            frame = entry.addr();
        }
        Ok(&mut table(frame)[index(address, down_to)])
    }

    /// Maps one frame at its own physical address, for the kernel alone: a starting processor turns
    /// paging on while it runs there.
    ///
    /// # Errors
    /// No frame is left for the tables.
    pub fn map_identity(&mut self, frame: PhysFrame) -> Result<(), SpaceError> {
        let page = UserPage::containing(frame.start_address().as_u64())?;
        let flags = Flags::PRESENT | Flags::WRITABLE;
        self.entry_or_new(page)?.set_addr(frame.start_address(), flags);
        Ok(())
    }
}

/// The frame of a page.
fn frame_of(entry: &PageTableEntry) -> PhysFrame {
    PhysFrame::containing_address(entry.addr())
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        if records::ON {
            self.unmap_all();
        }
        free_below(self.root.start_address(), 3, USER_ENTRIES);
        // SAFETY: the top table came from the allocator; no CPU uses it (`activate`'s contract).
        unsafe { frames::free(self.root) };
    }
}
