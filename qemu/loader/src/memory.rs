//! The machine's memory map, in the form that the boot loader's crate takes.

use core::{iter::Copied, slice::Iter};

use bootloader_api::info::MemoryRegionKind;
use bootloader_x86_64_common::legacy_memory_region::{LegacyFrameAllocator, LegacyMemoryRegion};
use tally_pvh::{MemoryEntry, StartInfo};
use x86_64::{PhysAddr, structures::paging::PhysFrame};

/// Maximum entries that QEMU writes.
const MAX_REGIONS: usize = 128;
/// The end of device memory, and of the range that the entry maps.
const FOUR_GIB: u64 = 1 << 32;

/// An entry of the memory map.
#[derive(Clone, Copy, Debug)]
pub struct Region(MemoryEntry);

impl LegacyMemoryRegion for Region {
    fn start(&self) -> PhysAddr {
        PhysAddr::new(self.0.start)
    }

    fn len(&self) -> u64 {
        self.0.len
    }

    fn kind(&self) -> MemoryRegionKind {
        if self.0.is_ram() {
            MemoryRegionKind::Usable
        } else {
            MemoryRegionKind::UnknownBios(self.0.kind())
        }
    }

    fn usable_after_bootloader_exit(&self) -> bool {
        false
    }
}

/// The entries that are passed to the kernel: memory, and the firmware's ranges below 4 GiB.
/// Reserved entries above are dropped: QEMU reserves addresses near 1 TiB, and the kernel would map
/// all addresses up to there.
pub struct MemoryMap {
    regions: [Region; MAX_REGIONS],
    count: usize,
}

impl MemoryMap {
    /// Makes the map from the machine's entries.
    pub fn of(info: &'static StartInfo) -> MemoryMap {
        let mut map = MemoryMap { regions: [Region(MemoryEntry::EMPTY); MAX_REGIONS], count: 0 };
        let entries = info.memory_map().iter();
        let kept = entries.filter(|e| e.is_ram() || e.start < FOUR_GIB).copied().map(Region);
        for (place, region) in map.regions.iter_mut().zip(kept) {
            *place = region;
            map.count += 1;
        }
        map
    }

    fn regions(&self) -> &[Region] {
        &self.regions[..self.count]
    }

    /// Returns whether there is memory at a physical address below 4 GiB.
    pub fn contains(&self, address: u64) -> bool {
        let mut ram = self.regions().iter().map(|region| region.0).filter(MemoryEntry::is_ram);
        address < FOUR_GIB && ram.any(|e| e.start <= address && address - e.start < e.len)
    }

    /// An allocator of frames from `first` up.
    pub fn frames_from(
        &self,
        first: PhysFrame,
    ) -> LegacyFrameAllocator<Copied<Iter<'_, Region>>, Region> {
        LegacyFrameAllocator::new_starting_at(first, self.regions().iter().copied())
    }
}
