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

/// A call pays for looking at so many pages. A program whose pages have changed is looked at as
/// soon as its pages are paid for, one whose pages have not when they are many times over.
const PAGES_PER_CALL: u64 = 16;
const TIMES_UNCHANGED: u64 = 32;

static PAID: AtomicU64 = AtomicU64::new(0);

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
        let paid = PAID.fetch_add(PAGES_PER_CALL, Relaxed);
        let times = if self.space.has_changed() { 1 } else { TIMES_UNCHANGED };
        if paid < times * self.space.pages() {
            return;
        }
        PAID.store(0, Relaxed);
        self.space.forget_changes();
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
