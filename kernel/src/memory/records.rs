//! Records of what has each frame, in a kernel with the feature `audit`. They are made where frames
//! are mapped and freed, apart from the page tables and areas that [`super::audit`] compares them
//! with. Without the feature nothing here is compiled into the kernel. A violation is a panic: the
//! kernel's bug.

use alloc::{boxed::Box, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spin::Once;
use x86_64::structures::paging::PhysFrame;

/// Whether this kernel has the feature.
pub const ON: bool = cfg!(feature = "audit");

/// What has a frame: a kind, or the address space of a program's own frame.
const NOTHING: u64 = 0;
const LENT_PAGE: u64 = 1;
const KERNEL: u64 = 2;
const TABLE: u64 = 3;

/// The record of a frame. Written by the CPU that maps or frees the frame; only the number of a
/// lent frame's mappings changes on several CPUs at once.
#[derive(Default)]
struct Record {
    owner: AtomicU64,
    /// The page of a program's own frame, or how many pages a lent frame is mapped at.
    page: AtomicU64,
}

static RECORDS: Once<Box<[Record]>> = Once::new();

/// Makes the records of `frames` frames. What is in use already has none.
pub(super) fn init(frames: u64) {
    let mut records = Vec::new();
    records.resize_with(frames as usize, Record::default);
    RECORDS.call_once(|| records.into());
}

fn record(frame: PhysFrame) -> Option<&'static Record> {
    let number = frame.start_address().as_u64() / frame.size();
    RECORDS.get().filter(|_| ON)?.get(number as usize)
}

/// The kernel's own memory has a frame.
pub(super) fn take_for_kernel(frame: PhysFrame) {
    take(frame, KERNEL);
}

/// A page table has a frame.
pub(super) fn take_for_table(frame: PhysFrame) {
    take(frame, TABLE);
}

fn take(frame: PhysFrame, kind: u64) {
    let Some(record) = record(frame) else { return };
    let before = record.owner.swap(kind, Relaxed);
    assert_eq!(before, NOTHING, "audit: {frame:?} has an owner already");
}

/// A page table is about to be freed.
pub(super) fn leave_table(frame: PhysFrame) {
    let Some(record) = record(frame) else { return };
    let before = record.owner.swap(NOTHING, Relaxed);
    assert!([TABLE, NOTHING].contains(&before), "audit: {frame:?} is no table: {before:#x}");
}

/// A program maps a frame.
pub(super) fn map(space: u64, page: u64, frame: PhysFrame, is_lent: bool) {
    let Some(record) = record(frame) else { return };
    if is_lent {
        let before = record.owner.swap(LENT_PAGE, Relaxed);
        let fits = [NOTHING, LENT_PAGE, KERNEL].contains(&before);
        assert!(fits, "audit: {frame:?} of {before:#x} is lent to {space:#x}");
        record.page.fetch_add(1, Relaxed);
    } else {
        take(frame, space);
        record.page.store(page, Relaxed);
    }
}

/// A program maps a frame no more.
pub(super) fn unmap(space: u64, page: u64, frame: PhysFrame, is_lent: bool) {
    let Some(record) = record(frame) else { return };
    if is_lent {
        let before = (record.owner.load(Relaxed), record.page.fetch_sub(1, Relaxed));
        assert!(before.0 == LENT_PAGE && before.1 > 0, "audit: {frame:?} is not lent: {before:?}");
    } else {
        check_own(space, page, frame);
        record.owner.store(NOTHING, Relaxed);
        record.page.store(0, Relaxed);
    }
}

/// A frame is about to be freed: no program maps it.
pub(super) fn free(frame: PhysFrame) {
    let Some(record) = record(frame) else { return };
    let before = (record.owner.swap(NOTHING, Relaxed), record.page.load(Relaxed));
    let is_unused = matches!(before, (NOTHING | LENT_PAGE | KERNEL, 0));
    assert!(is_unused, "audit: {frame:?} is freed, and mapped: {before:x?}");
}

pub(super) fn check_own(space: u64, page: u64, frame: PhysFrame) {
    let Some(record) = record(frame) else { return };
    let found = (record.owner.load(Relaxed), record.page.load(Relaxed));
    let wanted = (space, page);
    assert_eq!(found, wanted, "audit: {frame:?} at {page:#x} of {space:#x} is another's");
}
