//! The counters of one vendor, for the checks that both vendors share.

use crate::machine::{cpuid, rdmsr, rdpmc, wrmsr};

/// Event select: count in ring 3.
pub const USR: u64 = 1 << 16;
/// Event select: count in ring 0.
pub const OS: u64 = 1 << 17;
/// Event select: interrupt at an overflow.
pub const INT: u64 = 1 << 20;
/// Event select: enable.
pub const EN: u64 = 1 << 22;

/// The counters of one vendor.
#[derive(Clone, Copy)]
pub struct VendorPmu {
    /// Event-select register of the first counter, and the distance to the next.
    pub select: (u32, u32),
    /// Register of the first counter, and the distance to the next.
    pub counter: (u32, u32),
    /// Global control, status and status reset registers, if the PMU has them.
    pub global: Option<[u32; 3]>,
    /// Codes and unit masks of instructions, branches, conditional branches, loads, stores.
    pub events: [u64; 5],
    /// Events with their names in the truth: instructions, cycles, loads, mispredictions.
    pub named: [(&'static str, u64); 4],
}

/// Intel with full-width writes.
pub const INTEL: VendorPmu = VendorPmu {
    select: (0x186, 1),
    counter: (0x4c1, 1),
    global: Some([0x38f, 0x38e, 0x390]),
    events: [0xc0, 0xc4, 0x11c4, 0x81d0, 0x82d0],
    named: [
        ("INST_RETIRED.ANY_P", 0xc0),
        ("CPU_CLK_UNHALTED.THREAD_P", 0x3c),
        ("MEM_LOAD_RETIRED.L1_HIT", 0x1d1),
        ("BR_MISP_RETIRED.ALL_BRANCHES", 0xc5),
    ],
};

/// Lion Cove, whose conditional branches and hits of the first level have a second unit mask.
const LION_COVE: VendorPmu = VendorPmu {
    events: [0xc0, 0xc4, 1 << 40 | 0x11c4, 0x81d0, 0x82d0],
    named: {
        let mut named = INTEL.named;
        named[2].1 = 1 << 40 | 0x1d1;
        named
    },
    ..INTEL
};

/// Cougar Cove, whose conditional branches have another unit mask again.
const COUGAR_COVE: VendorPmu =
    VendorPmu { events: [0xc0, 0xc4, 0x7c4, 0x81d0, 0x82d0], ..LION_COVE };

/// AMD with PerfMonV2.
pub const AMD: VendorPmu = VendorPmu {
    select: (0xc001_0200, 2),
    counter: (0xc001_0201, 2),
    global: Some([0xc000_0301, 0xc000_0300, 0xc000_0302]),
    events: [0xc0, 0xc2, 0xd1, 0x129, 0x229],
    named: [
        ("RETIRED_INSTRUCTIONS", 0xc0),
        ("CYCLES_NOT_IN_HALT", 0x76),
        ("LS_DISPATCH.LD_DISPATCH", 0x129),
        ("RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", 0xc3),
    ],
};

/// AMD without PerfMonV2.
pub const AMD_FIRST: VendorPmu = VendorPmu { global: None, ..AMD };

impl VendorPmu {
    /// The vendor of this machine.
    pub fn here() -> VendorPmu {
        match (cpuid(0, 0)[1], cpuid(0x8000_0000, 0)[0]) {
            (0x756e_6547, _) if cpuid(1, 0)[0] >> 4 == 0xb06d => LION_COVE,
            (0x756e_6547, _) if cpuid(1, 0)[0] >> 4 == 0xc06c => COUGAR_COVE,
            (0x756e_6547, _) => INTEL,
            (_, 0x8000_0022..) if cpuid(0x8000_0022, 0)[0] & 1 == 1 => AMD,
            _ => AMD_FIRST,
        }
    }

    /// Returns whether the vendor is Intel.
    pub fn is_intel(&self) -> bool {
        self.select == INTEL.select
    }

    /// Mask of a counter's bits.
    pub fn counter_mask(&self) -> u64 {
        if self.is_intel() { (1 << (cpuid(0xa, 0)[0] >> 16 & 0xff)) - 1 } else { (1 << 48) - 1 }
    }

    /// Enables the counters of `mask` and disables all others.
    pub fn enable(&self, mask: u64) {
        match self.global {
            Some([control, ..]) => wrmsr(control, mask),
            None => (0..4).for_each(|index| {
                let select = self.select.0 + index * self.select.1;
                let on = if mask >> index & 1 == 1 { EN } else { 0 };
                wrmsr(select, rdmsr(select) & !EN | on);
            }),
        }
    }

    /// The first counter's overflow status, if there is a status register.
    pub fn overflowed(&self) -> Option<u64> {
        self.global.map(|[_, status, _]| rdmsr(status) & 1)
    }

    /// Resets the first counter's overflow status.
    pub fn reset_overflow(&self) {
        if let Some([_, _, reset]) = self.global {
            wrmsr(reset, 1);
        }
    }

    /// Writes counter `index` and its event select.
    pub fn program(&self, index: u32, value: u64, select: u64) {
        wrmsr(self.select.0 + index * self.select.1, 0);
        wrmsr(self.counter.0 + index * self.counter.1, value & self.counter_mask());
        wrmsr(self.select.0 + index * self.select.1, select);
    }

    /// Counts up to four events while `work` runs.
    pub fn count(&self, events: &[u64], rings: u64, work: impl FnOnce()) -> [u64; 4] {
        self.enable(0);
        for (index, event) in events.iter().enumerate() {
            self.program(index as u32, 0, event | rings | EN);
        }
        self.enable((1 << events.len()) - 1);
        work();
        self.enable(0);
        core::array::from_fn(|index| if index < events.len() { rdpmc(index as u32) } else { 0 })
    }
}
