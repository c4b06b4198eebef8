//! Model of the PMU registers after the manuals, for tests of the drivers: an MSR that does not
//! exist, a reserved bit, or a write that the manual forbids fails the test.

use core::ops::RangeInclusive;
use std::{collections::BTreeMap, vec::Vec};

use crate::{
    Bus,
    registers::{Register, amd, intel},
};

/// Registers of branch records: architectural ones and their depth, older ones, AMD's.
pub(crate) const BRANCHES: [RangeInclusive<u32>; 8] = [
    0x1500..=0x151f,
    0x1600..=0x161f,
    0x1200..=0x121f,
    0x14cf..=0x14cf,
    0x680..=0x69f,
    0x6c0..=0x6df,
    0xdc0..=0xddf,
    0xc001_0300..=0xc001_031f,
];

const WIDTH_MASK: u64 = (1 << 48) - 1;

/// Vendor whose registers exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    Intel { freeze: bool },
    Amd { global: bool },
}

/// PMU of one CPU, with the events that happen on it.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) vendor: Vendor,
    pub(crate) msrs: BTreeMap<u32, u64>,
    /// WRMSRs since the test last looked, in order.
    pub(crate) written: Vec<(u32, u64)>,
    /// Register on which writes have no effect.
    pub(crate) stuck: Option<u32>,
    /// Counter register that keeps written values and counts nothing.
    pub(crate) still: Option<u32>,
    /// Cycles in ring 0 that an RDMSR or a WRMSR takes.
    pub(crate) cycles_an_access: u64,
    /// Number of overflow interrupts raised.
    pub(crate) interrupts: u64,
    counters: u8,
    /// Whether the registers of the counters are at version 6's addresses, and at those alone.
    is_version_6: bool,
}

/// Returns the bits of a register of precise records that a write may set.
fn of_records(msr: u32) -> u64 {
    match msr {
        0x3f2 => 0xff00_000f,
        0x3f4 => !0xfff,
        0x3f5 => 0x7f_ffff << 36 | 1 << 32,
        0x600 => u64::MAX,
        _ if msr % 4 == 3 => 3 << 62 | 0xffff_ffff,
        _ => panic!("write to {msr:#x}, which is not there"),
    }
}

impl Model {
    pub(crate) fn new(vendor: Vendor, counters: u8) -> Model {
        let mut msrs = BTreeMap::new();
        for index in 0..counters {
            let addresses = match vendor {
                Vendor::Intel { .. } => {
                    [intel::PerfEvtSel::address(index), intel::Pmc::address(index)]
                }
                Vendor::Amd { .. } => [amd::PerfCtl::address(index), amd::PerfCtr::address(index)],
            };
            msrs.extend(addresses.map(|address| (address, 0)));
        }
        let others: &[u32] = match vendor {
            Vendor::Intel { freeze: true } => &[
                0x309, 0x30a, 0x30b, 0x30c, 0x329, 0x38d, 0x38e, 0x38f, 0x390, 0x1a6, 0x1a7, 0x3f7,
                0x1d9, 0x345,
            ],
            Vendor::Intel { freeze: false } => {
                &[0x309, 0x30a, 0x30b, 0x38d, 0x38e, 0x38f, 0x390, 0x1a6, 0x1a7, 0x3f7]
            }
            Vendor::Amd { global: true } => &[0xc000_0300, 0xc000_0301, 0xc000_0302, 0x1d9],
            Vendor::Amd { global: false } => &[],
        };
        msrs.extend(others.iter().map(|address| (*address, 0)));
        if matches!(vendor, Vendor::Intel { .. }) {
            // After reset the global control enables the general counters.
            msrs.insert(intel::PerfGlobalCtrl::FIRST, (1 << counters) - 1);
        }
        if let Some(capabilities) = msrs.get_mut(&intel::PerfCapabilities::FIRST) {
            let all = intel::PerfCapabilities::FW_WRITE | intel::PerfCapabilities::METRICS;
            *capabilities = all.bits();
        }
        Model {
            vendor,
            msrs,
            written: Vec::new(),
            stuck: None,
            still: None,
            cycles_an_access: 0,
            interrupts: 0,
            counters,
            is_version_6: false,
        }
    }

    /// Makes an Intel PMU of version 6 with ten general counters.
    pub(crate) fn version_6() -> Model {
        let model = Model::new(Vendor::Intel { freeze: true }, 10);
        Model { is_version_6: true, ..model }
    }

    /// Returns the key in `msrs` of the register at an address: the legacy one. `None` if there is
    /// none at the address.
    fn key(&self, msr: u32) -> Option<u32> {
        let key = match (self.is_version_6, msr) {
            (true, 0xc1..=0xca | 0x186..=0x18f | 0x309..=0x30c | 0x4c1..=0x4ca) => return None,
            (true, 0x1900..=0x1927) if msr.is_multiple_of(4) => 0xc1 + (msr - 0x1900) / 4,
            (true, 0x1900..=0x1927) if msr % 4 == 1 => 0x186 + (msr - 0x1900) / 4,
            (true, 0x1980..=0x198f) if msr.is_multiple_of(4) => 0x309 + (msr - 0x1980) / 4,
            _ => msr,
        };
        self.msrs.contains_key(&key).then_some(key)
    }

    /// Lets the cycles of an access pass.
    fn pass_access(&mut self) {
        let cycles = self.cycles_an_access;
        if cycles > 0 {
            let is_cycles = |code, umask| (code, umask) == (0, 2) || (code, umask) == (0x76, 0);
            self.run(true, |code, umask| if is_cycles(code, umask) { cycles } else { 0 });
        }
    }

    pub(crate) fn peek<R: Register>(&self, index: u8) -> R {
        R::from_raw(self.msrs[&R::address(index)])
    }

    /// Returns the value of a general counter.
    pub(crate) fn count_of(&self, index: u8) -> u64 {
        match self.vendor {
            Vendor::Intel { .. } => self.peek::<intel::Pmc>(index).raw(),
            Vendor::Amd { .. } => self.peek::<amd::PerfCtr>(index).raw(),
        }
    }

    /// Returns whether an overflow has frozen all counters.
    fn is_frozen(&self) -> bool {
        let status = self.status().and_then(|address| self.msrs.get(&address));
        status.is_some_and(|status| status >> 59 & 1 == 1)
    }

    /// Returns the address of the overflow status register.
    fn status(&self) -> Option<u32> {
        match self.vendor {
            Vendor::Intel { .. } => Some(0x38e),
            Vendor::Amd { global } => global.then_some(0xc000_0300),
        }
    }

    /// Lets events happen at the given privilege. `events(code, umask)` returns the number of each;
    /// code 0 is that of the fixed counters.
    pub(crate) fn run(&mut self, kernel: bool, events: impl Fn(u16, u8) -> u64) {
        if self.is_frozen() {
            return;
        }
        for index in 0..self.counters {
            let (select, counter, enabled) = match self.vendor {
                Vendor::Intel { .. } => {
                    let global = self.peek::<intel::PerfGlobalCtrl>(0).bits() >> index & 1 == 1;
                    let select = self.peek::<intel::PerfEvtSel>(index).bits();
                    (select, intel::Pmc::address(index), global)
                }
                Vendor::Amd { global } => {
                    let on =
                        !global || self.peek::<amd::PerfCntrGlobalCtl>(0).bits() >> index & 1 == 1;
                    let select = self.peek::<amd::PerfCtl>(index).bits();
                    (select, amd::PerfCtr::address(index), on)
                }
            };
            let at_privilege = select >> if kernel { 17 } else { 16 } & 1 == 1;
            if enabled && at_privilege && select >> 22 & 1 == 1 {
                let code = (select & 0xff | select >> 24 & 0xf00) as u16;
                let more = events(code, (select >> 8) as u8) + (select >> 40 & 0xff);
                // A counter of AMD's adds at most 15 in a cycle; only pairs add more.
                let is_merged = self.is_merged(index);
                let more = if is_large(select) && !is_merged { more.min(15) } else { more };
                self.count(counter, more, 1 << index, select >> 20 & 1 == 1);
            }
        }
        if matches!(self.vendor, Vendor::Intel { .. }) {
            self.run_fixed(kernel, &events);
        }
    }

    fn run_fixed(&mut self, kernel: bool, events: &impl Fn(u16, u8) -> u64) {
        let control = self.peek::<intel::FixedCtrCtrl>(0).bits();
        let global = self.peek::<intel::PerfGlobalCtrl>(0).bits();
        for index in 0..4_u8 {
            let nibble = control >> (4 * index);
            let at_privilege = nibble >> u8::from(!kernel) & 1 == 1;
            if at_privilege && global >> (32 + index) & 1 == 1 {
                let more = events(0, index + 1);
                let address = intel::FixedCtr::address(index);
                self.count(address, more, 1 << (32 + index), nibble >> 3 & 1 == 1);
            }
        }
    }

    /// Returns whether the odd counter after an even one of AMD's is its upper part.
    fn is_merged(&self, index: u8) -> bool {
        let is_amd = matches!(self.vendor, Vendor::Amd { .. });
        let next = is_amd.then(|| self.msrs.get(&amd::PerfCtl::address(index + 1))).flatten();
        index.is_multiple_of(2) && next == Some(&0xf_0040_00ff)
    }

    fn count(&mut self, address: u32, more: u64, status_bit: u64, interrupts: bool) {
        if self.still == Some(address) {
            return;
        }
        let counter = self.msrs.get_mut(&address).unwrap();
        let sum = *counter + more;
        *counter = sum & WIDTH_MASK;
        let mut overflows = sum > WIDTH_MASK;
        if overflows
            && address >= 0xc001_0201
            && self.is_merged(((address - 0xc001_0201) / 2) as u8)
        {
            let upper = self.msrs.get_mut(&(address + 2)).unwrap();
            *upper = (*upper + 1) & 0xffff;
            overflows = *upper == 0;
        }
        if overflows {
            self.interrupts += u64::from(interrupts);
            let freezes = self.msrs.get(&0x1d9).is_some_and(|debug| debug >> 12 & 1 == 1);
            let frozen = u64::from(interrupts && freezes) << 59;
            if let Some(status) = self.status().and_then(|address| self.msrs.get_mut(&address)) {
                *status |= status_bit | frozen;
            }
        }
    }

    /// Returns the bits that a write to `msr` may set; a read-only register has none.
    fn writable(&self, msr: u32) -> u64 {
        let rows = (1_u64 << self.counters) - 1;
        // Whether there is a debug store, with adaptive records.
        let store = u64::from(self.msrs.contains_key(&intel::DsArea::FIRST));
        let buffer = u64::from(self.msrs.contains_key(&0x3f5));
        let branches = BRANCHES.iter().any(|all| self.msrs.contains_key(all.start()));
        match (self.vendor, msr) {
            (Vendor::Intel { .. }, 0x186..=0x18f) => {
                let more = if self.is_version_6 { 0xff << 40 | 1 << 36 } else { 0 };
                0xffdf_ffff & !(1 << 19) | more | store << 34
            }
            (Vendor::Intel { .. }, 0xc1..=0xca | 0x309..=0x30c) => WIDTH_MASK,
            (Vendor::Intel { freeze: true }, 0x329) => {
                assert_eq!(self.msrs[&0x30c], 0, "PERF_METRICS before the counter of slots");
                u64::MAX
            }
            (Vendor::Intel { .. }, 0x38d) => intel::FixedCtrCtrl::VALID,
            (Vendor::Intel { freeze: true }, 0x38f) => rows | 0xf << 32 | 1 << 48,
            (Vendor::Intel { freeze: true }, 0x390) => {
                let records = store << 62 | buffer << 54;
                rows | 0xf << 32 | 1 << 48 | 1 << 59 | records | u64::from(branches) << 58
            }
            (Vendor::Intel { .. }, 0x38f | 0x390) => rows | 7 << 32,
            (_, 0x1d9) if branches => 1 << 12 | 1 << 11 | 1 << 1 | 1,
            (_, 0x1d9) => 1 << 12 | 1 << 1,
            (Vendor::Intel { .. }, 0x3f1) => (rows | 7 << 32) * store,
            (Vendor::Intel { .. }, 0x3f2..=0x3f5 | 0x600 | 0x1903..0x1a00) => of_records(msr),
            (Vendor::Intel { .. }, 0x14ce) => 0x7f_000f * u64::from(branches),
            (Vendor::Amd { .. }, 0xc000_010f) => u64::from(branches) << 6,
            (Vendor::Intel { .. }, 0x1c8) => 0x3ff,
            (Vendor::Amd { .. }, 0xc000_010e) => 0x1ff,
            _ if branches && BRANCHES.iter().any(|all| all.contains(&msr)) => u64::MAX,
            (Vendor::Intel { .. }, 0x1a6 | 0x1a7) => intel::OffcoreRsp::VALID,
            (Vendor::Intel { .. }, 0x3f7) => intel::PebsFrontend::VALID,
            (Vendor::Amd { .. }, 0xc001_0200..=0xc001_020b) if msr & 1 == 0 => amd::PerfCtl::VALID,
            (Vendor::Amd { .. }, 0xc001_0200..=0xc001_020b) => WIDTH_MASK,
            (Vendor::Amd { .. }, 0xc001_1033) => <amd::IbsOpCtl as Register>::VALID,
            (Vendor::Amd { .. }, 0xc000_0301) => rows,
            (Vendor::Amd { .. }, 0xc000_0302) => rows | 3 << 58,
            _ => panic!("write to {msr:#x}, which is read only or not there"),
        }
    }

    /// Checks that an AMD counter does not change its event while it is enabled, nor by the write
    /// that enables it.
    fn check_amd_select(&self, index: u8, new: u64) {
        let old = self.peek::<amd::PerfCtl>(index).bits();
        let enable = amd::PerfCtl::EN.bits();
        let event_changes = (old ^ new) & !enable != 0;
        let let_count = match self.vendor {
            Vendor::Amd { global: true } => {
                self.peek::<amd::PerfCntrGlobalCtl>(0).bits() >> index & 1 == 1
            }
            _ => true,
        };
        assert!(
            !(event_changes && let_count && new & enable != 0),
            "PERF_CTL{index} {old:#x} {new:#x}"
        );
        // Merge is on the odd counter for as long as such an event is enabled on the even one.
        let is_large = |select| is_large(select) && select & enable != 0;
        if is_large(new) && let_count {
            assert!(self.is_merged(index), "PERF_CTL{index} {new:#x} before Merge");
        }
        if index % 2 == 1 && self.is_merged(index - 1) && new != old && let_count {
            let even = self.peek::<amd::PerfCtl>(index - 1).bits();
            assert!(!is_large(even), "PERF_CTL{index} {new:#x} below PERF_CTL {even:#x}");
        }
    }
}

/// Returns whether a select of AMD's is of floating-point operations, with a unit mask that names
/// some.
fn is_large(select: u64) -> bool {
    select & (0xf << 32 | 0xff) == 3 && select & 0xff00 != 0
}

impl Bus for Model {
    fn read(&mut self, msr: u32) -> u64 {
        self.pass_access();
        let key = self.key(msr).unwrap_or_else(|| panic!("read of {msr:#x}, which is not there"));
        self.msrs[&key]
    }

    fn write(&mut self, msr: u32, value: u64) {
        self.pass_access();
        let full = intel::FullPmc::FIRST..intel::FullPmc::FIRST + u32::from(self.counters);
        if full.contains(&msr)
            && !self.is_version_6
            && self.msrs.contains_key(&intel::PerfCapabilities::FIRST)
        {
            assert_eq!(value & !WIDTH_MASK, 0, "{value:#x} into {msr:#x}");
            self.written.push((msr, value));
            self.msrs.insert(msr - 0x400, value);
            return;
        }
        let at = msr;
        let msr = self.key(at).unwrap_or_else(|| panic!("write to {at:#x}, which is not there"));
        assert_eq!(value & !self.writable(msr), 0, "reserved bits in {msr:#x}: {value:#x}");
        if matches!(self.vendor, Vendor::Amd { .. }) && msr >= 0xc001_0200 && msr & 1 == 0 {
            self.check_amd_select(((msr - 0xc001_0200) / 2) as u8, value);
        }
        self.written.push((at, value));
        match msr {
            _ if self.stuck == Some(msr) => {}
            0x390 => *self.msrs.get_mut(&0x38e).unwrap() &= !value,
            0xc000_0302 => *self.msrs.get_mut(&0xc000_0300).unwrap() &= !value,
            // The legacy address takes 32 bits and sign-extends them.
            0xc1..=0xc8 if !self.is_version_6 => {
                self.msrs.insert(msr, value as u32 as i32 as i64 as u64 & WIDTH_MASK);
            }
            _ => {
                self.msrs.insert(msr, value);
            }
        }
    }

    fn try_read(&mut self, msr: u32) -> Option<u64> {
        self.key(msr).is_some().then(|| self.read(msr))
    }

    fn try_write(&mut self, msr: u32, value: u64) -> bool {
        let is_there = self.key(msr).is_some();
        if is_there {
            self.write(msr, value);
        }
        is_there
    }

    fn rdpmc(&mut self, index: u32) -> u64 {
        let address = match (self.vendor, index >> 30) {
            (Vendor::Intel { freeze: true }, 0) if index == 1 << 29 => return self.msrs[&0x329],
            (Vendor::Intel { .. }, 1) => 0x309 + (index & 0xffff),
            (Vendor::Intel { .. }, 0) => 0xc1 + index,
            (Vendor::Amd { .. }, 0) => 0xc001_0201 + 2 * index,
            _ => panic!("RDPMC of {index:#x}, which is not there"),
        };
        if self.is_merged(index as u8) {
            return self.msrs[&address] | self.msrs[&(address + 2)] << 48;
        }
        self.msrs[&address]
    }
}
