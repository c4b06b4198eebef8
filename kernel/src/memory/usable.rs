//! The regions of memory that the firmware reports as usable, in a table of the kernel's own: the
//! boot loader's is wherever the boot loader had room.

use core::ops::Range;

use bootloader_api::info::{MemoryRegion, MemoryRegionKind};

use super::frame::FRAME_BYTES;

/// Memory below this address is not allocated: a starting processor's trampoline and the firmware's
/// tables are there.
const LOW_BYTES: u64 = 1 << 20;
/// The most regions. Firmware reports some dozens.
const MAX_REGIONS: usize = 192;

/// The usable regions, in whole frames.
pub(super) struct Usable {
    /// By address; none is empty, and none reaches another.
    regions: [(u64, u64); MAX_REGIONS],
    count: usize,
    /// A frame below [`LOW_BYTES`], or 0.
    low: u64,
}

impl Usable {
    pub(super) const NONE: Usable = Usable { regions: [(0, 0); MAX_REGIONS], count: 0, low: 0 };

    /// Adds those of the firmware's list, as far as they are in `addresses`.
    pub(super) fn add_all(&mut self, list: &[MemoryRegion], addresses: &Range<u64>) {
        for region in list.iter().filter(|region| region.kind == MemoryRegionKind::Usable) {
            let [start, low] = [LOW_BYTES, FRAME_BYTES].map(|least| {
                region.start.max(least).max(addresses.start).next_multiple_of(FRAME_BYTES)
            });
            let end = region.end.min(addresses.end);
            // Not the first page: address 0 is the null pointer.
            if low + FRAME_BYTES <= end.min(LOW_BYTES) && self.low == 0 {
                self.low = low;
            }
            self.add(start..end - end % FRAME_BYTES);
        }
    }

    /// Adds a region.
    fn add(&mut self, region: Range<u64>) {
        if region.is_empty() {
            return;
        }
        let regions = &mut self.regions[..self.count];
        let at = regions.partition_point(|(start, _)| *start < region.start);
        match at.checked_sub(1).and_then(|before| regions.get_mut(before)) {
            Some((_, end)) if *end == region.start => *end = region.end,
            _ if self.count == MAX_REGIONS => {
                log::warn!("more than {MAX_REGIONS} regions of memory; {region:x?} is not used");
            }
            _ => {
                self.regions.copy_within(at..self.count, at + 1);
                self.regions[at] = (region.start, region.end);
                self.count += 1;
            }
        }
    }

    /// Bytes of all regions.
    pub(super) fn bytes(&self) -> u64 {
        self.regions[..self.count].iter().map(|(start, end)| end - start).sum()
    }

    /// A usable frame below 1 MiB.
    pub(super) fn low_frame(&self) -> Option<u64> {
        (self.low != 0).then_some(self.low)
    }

    /// The lowest address from `least` on where `bytes` are usable. `align` rounds an address up to
    /// one that fits.
    pub(super) fn find(&self, least: u64, bytes: u64, align: impl Fn(u64) -> u64) -> Option<u64> {
        let regions = self.regions[..self.count].iter();
        let mut fitting = regions.map(|(start, end)| (align(*start.max(&least)), *end));
        fitting.find(|(start, end)| start + bytes <= *end).map(|(start, _)| start)
    }

    /// Removes a part of a region.
    pub(super) fn remove(&mut self, part: Range<u64>) {
        let regions = &mut self.regions[..self.count];
        let of_part = |(start, end): &&mut (u64, u64)| *start <= part.start && part.end <= *end;
        if let Some((_, end)) = regions.iter_mut().find(of_part) {
            let rest = part.end..*end;
            *end = part.start;
            self.add(rest);
        }
    }
}
