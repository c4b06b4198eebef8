//! An area of a program's addresses: consecutive pages with one access and one origin.

use alloc::sync::Arc;

use x86_64::structures::paging::PhysFrame;

use super::{
    frames::FRAME_BYTES,
    lent_pages::Lent,
    space::{PageAccess, SpaceError},
};

/// A file whose pages programs map. The value exists as long as a mapping of it.
pub trait PageSource: Send + Sync {
    /// The frame of page `index` of the file, which stays the file's.
    ///
    /// # Errors
    /// The page is behind the file's end, or no memory is left.
    fn share(&self, index: u64) -> Result<PhysFrame, SpaceError>;

    /// Copies page `index` of the file to `to`, a page of zeros.
    ///
    /// # Errors
    /// The page is behind the file's end.
    fn copy(&self, index: u64, to: &mut [u8]) -> Result<(), SpaceError>;

    /// The file's number, for `/proc/self/maps`.
    fn number(&self) -> u64;
}

/// What an area's pages are when they are first touched.
#[derive(Clone)]
pub enum Origin {
    /// Zeros.
    Zeros,
    /// The program's heap: zeros.
    Heap,
    /// The stack of the program's first thread: zeros.
    Stack,
    /// A segment of the program's file. Pages that are not there yet are zeros.
    Segment,
    /// Copies of a file's pages from this one on.
    Copy(Arc<dyn PageSource>, u64),
    /// A file's pages from this one on, and whether the program may become able to write to them.
    Shared(Arc<dyn PageSource>, u64, bool),
    /// Pages of the kernel's, all there: the program can neither unmap nor protect them.
    Kernel(Lent),
    /// None: a mapping is being moved here, in steps.
    Arriving,
}

/// An area, without its first address.
#[derive(Clone)]
pub struct Area {
    /// The address behind its last page.
    pub end: u64,
    /// What the program may do there.
    pub access: PageAccess,
    /// What its pages are at first.
    pub origin: Origin,
}

impl Area {
    /// The area without its first `bytes`.
    pub(super) fn after(&self, bytes: u64) -> Area {
        let pages = bytes / FRAME_BYTES;
        let origin = match &self.origin {
            Origin::Copy(source, page) => Origin::Copy(source.clone(), page + pages),
            Origin::Shared(source, page, writable) => {
                Origin::Shared(source.clone(), page + pages, *writable)
            }
            origin => origin.clone(),
        };
        Area { origin, ..*self }
    }

    /// Returns whether `next`, which follows at once, can be one area with this one, of `bytes`.
    pub(super) fn joins(&self, bytes: u64, next: &Area) -> bool {
        let follows = |own: &Arc<dyn PageSource>, first: u64, next: &Arc<dyn PageSource>, page| {
            Arc::ptr_eq(own, next) && first + bytes / FRAME_BYTES == page
        };
        let same = match (&self.origin, &next.origin) {
            (Origin::Copy(own, first), Origin::Copy(source, page)) => {
                follows(own, *first, source, *page)
            }
            (Origin::Shared(own, first, writes), Origin::Shared(source, page, others)) => {
                writes == others && follows(own, *first, source, *page)
            }
            (own, next) => own.is_alike(next),
        };
        same && self.access == next.access
    }
}

impl Origin {
    /// Returns whether both say the same of each page, wherever it is.
    fn is_alike(&self, other: &Origin) -> bool {
        matches!(
            (self, other),
            (Origin::Zeros, Origin::Zeros)
                | (Origin::Heap, Origin::Heap)
                | (Origin::Stack, Origin::Stack)
                | (Origin::Segment, Origin::Segment)
                | (Origin::Arriving, Origin::Arriving)
        )
    }
}

impl Area {
    /// Returns whether the program may be given this access to the area.
    pub(super) fn permits(&self, access: PageAccess) -> bool {
        match self.origin {
            Origin::Kernel(_) | Origin::Arriving => false,
            Origin::Shared(_, _, writable) => writable || !access.writes(),
            _ => true,
        }
    }
}
