//! What must hold of a program's memory, looked at after each system call in a kernel with the
//! feature `audit`: every frame has one owner, and a program maps no frame but its own and those
//! that the kernel has lent it, all in areas of their kind.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use x86_64::structures::paging::{PageTableFlags as Flags, PhysFrame};

use super::{
    area::Origin,
    frames::{self, FRAME_BYTES},
    kernel, records,
    space::{AddressSpace, UserPage, UserRange},
    tables::LENT,
    user::UserMemory,
};

/// A program of more pages is looked at after one of so many calls.
const MANY_PAGES: u64 = 128;
const ONE_CALL_OF: u64 = 64;

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Begins the records of frames, if the kernel has the feature. At boot, once there is a heap.
pub fn begin() {
    if records::ON {
        records::init(frames::view_end().div_ceil(FRAME_BYTES));
        log::info!("audit: memory is checked after each system call");
    }
}

impl AddressSpace {
    /// Checks a page against the record of its frame. Returns its flags without those that the
    /// processor sets, and its frame.
    fn check_page(&mut self, page: UserPage) -> Option<(Flags, PhysFrame)> {
        let space = self.id();
        let entry = self.entry(page)?;
        let frame = PhysFrame::containing_address(entry.addr());
        let flags = entry.flags() - (Flags::ACCESSED | Flags::DIRTY);
        if !flags.contains(LENT) {
            records::check_own(space, page.address(), frame);
        }
        Some((flags, frame))
    }
}

impl UserMemory {
    /// Checks every page of the program's, and its areas.
    ///
    /// # Panics
    /// The kernel has a bug.
    pub fn check(&mut self) {
        if !records::ON {
            return;
        }
        let calls = CALLS.fetch_add(1, Relaxed);
        if self.space.pages() > MANY_PAGES && !calls.is_multiple_of(ONE_CALL_OF) {
            return;
        }
        let (mut rest, mut pages) = (UserRange::all(), 0);
        while let Some(page) = self.space.next_page(rest) {
            rest = rest.split(page).1.without_first();
            pages += 1;
            let found = self.space.check_page(page);
            let area = self.areas.at(page.address());
            let ((flags, frame), (_, area)) = found.zip(area).unwrap_or_else(|| {
                panic!("audit: {page:x?} is in no area: {:x?}", self.space.id())
            });
            let lent = flags & LENT;
            let is_lent = match &area.origin {
                Origin::Arriving => panic!("audit: {page:x?} is where a mapping is moved to"),
                Origin::Kernel(of) => {
                    let is_part = of.frames().contains(&frame);
                    assert!(is_part, "audit: {page:x?} shows {frame:?}, which was not lent");
                    true
                }
                Origin::Shared(..) => true,
                _ => false,
            };
            assert_eq!(lent.contains(LENT), is_lent, "audit: {page:x?}: {flags:?}");
            assert_eq!(flags - lent, area.access.flags(), "audit: {page:x?}");
        }
        assert_eq!(pages, self.space.pages(), "audit: pages of {:#x}", self.space.id());
        self.areas.check();
        self.space.check_upper_half(kernel::space());
    }
}
