//! Intel architectural performance monitoring (SDM vol. 3, chapter "Performance Monitoring").

use tally_model::Counts;

use crate::{
    offcore,
    pmu::{
        access::{
            AccessResult, STATUS_BRANCHES_FROZEN, STATUS_FROZEN, STATUS_METRICS, STATUS_RECORDS,
            Unmodelled, select,
        },
        lbr, load_latency,
        state::VirtualPmu,
        version_6::{self, Place, bank},
    },
    profile::Profile,
};

/// Register addresses (SDM vol. 4, "Architectural MSRs").
mod msr {
    pub(super) const SMI_COUNT: u32 = 0x34;
    pub(super) const PMC0: u32 = 0xc1;
    pub(super) const PERFEVTSEL0: u32 = 0x186;
    pub(super) const OFFCORE_RSP0: u32 = 0x1a6;
    pub(super) const OFFCORE_RSP1: u32 = 0x1a7;
    pub(super) const DEBUGCTL: u32 = 0x1d9;
    pub(super) const FIXED_CTR0: u32 = 0x309;
    pub(super) const PERF_METRICS: u32 = 0x329;
    pub(super) const PERF_CAPABILITIES: u32 = 0x345;
    pub(super) const FIXED_CTR_CTRL: u32 = 0x38d;
    pub(super) const GLOBAL_STATUS: u32 = 0x38e;
    pub(super) const GLOBAL_CTRL: u32 = 0x38f;
    pub(super) const GLOBAL_STATUS_RESET: u32 = 0x390;
    pub(super) const GLOBAL_STATUS_SET: u32 = 0x391;
    pub(super) const GLOBAL_INUSE: u32 = 0x392;
    pub(super) const PEBS_LD_LAT: u32 = 0x3f6;
    pub(super) const FRONTEND: u32 = 0x3f7;
    pub(super) const A_PMC0: u32 = 0x4c1;
    /// Precise sampling where the profile lacks it, and branch records, which are not modelled:
    /// PEBS_ENABLE, PEBS_DATA_CFG, DS_AREA,
    /// LBR_SELECT, LBR_TOS and the architectural LBR's control.
    pub(super) const ABSENT: [u32; 6] = [0x3f1, 0x3f2, 0x600, 0x1c8, 0x1c9, 0x14ce];
}

/// PERF_CAPABILITIES: freezing in system-management mode, full-width writes; no LBR.
const CAPABILITIES: u64 = 1 << 12 | 1 << 13;
/// PERF_CAPABILITIES.PERF_METRICS_AVAILABLE.
const CAPABILITIES_METRICS: u64 = 1 << 15;
/// RDPMC's index of PERF_METRICS (SDM vol. 2, "RDPMC").
const RDPMC_METRICS: u32 = 1 << 29;
/// `IA32_DEBUGCTL`: branch records and branch trace messages, which are not modelled.
const DEBUGCTL_ABSENT: u64 = 1 | 1 << 6 | 1 << 7;
/// Event-select bits that are reserved before version 6: the upper half.
const SELECT_RESERVED: u64 = 0xffff_ffff_0000_0000;
/// The event select's AnyThread bit, which versions 3 and 4 have.
const SELECT_ANY_THREAD: u64 = 1 << 21;
/// Status bits other than the counters' that can be reset: OvfUncore, OvfDSBuffer, CondChgd.
const STATUS_OTHER: u64 = 1 << 61 | 1 << 62 | 1 << 63;
/// Status bits that can also be reset from version 4 on: LBR_FRZ and CTR_FRZ.
const STATUS_FREEZES: u64 = STATUS_BRANCHES_FROZEN | STATUS_FROZEN;
/// `IA32_DEBUGCTL` bits that can be set: LBR to TR, BTS, freezing, uncore PMI, SMM freezing.
const DEBUGCTL_VALID: u64 = 0xffc3;
/// The bits of one counter in FIXED_CTR_CTRL: OS, user and interrupt, without AnyThread.
const FIXED_CTRL_VALID: u64 = 0b1011;
/// The AnyThread bit of one counter in FIXED_CTR_CTRL.
const FIXED_CTRL_ANY_THREAD: u64 = 0b0100;
/// Event select and unit mask of the architectural events in CPUID leaf 0AH, by their bits in EBX:
/// the original seven, and top-down slots (SDM vol. 3, "Pre-defined Architectural Performance
/// Events").
const ARCHITECTURAL_EVENTS: [(u16, u16); 8] = [
    (0x3c, 0x00),
    (0xc0, 0x00),
    (0x3c, 0x01),
    (0x2e, 0x4f),
    (0x2e, 0x41),
    (0xc4, 0x00),
    (0xc5, 0x00),
    (0xa4, 0x01),
];

impl VirtualPmu {
    fn all_counters(&self) -> u64 {
        let general = (1u64 << self.counters.len()) - 1;
        general | ((1u64 << self.fixed.len()) - 1) << 32
    }

    /// Returns whether event selects have AnyThread (count both threads of a core): in versions 3
    /// and 4. The model's cores have one thread.
    fn has_any_thread(&self) -> bool {
        matches!(self.profile.version, 3 | 4)
    }

    fn fixed_ctrl_valid(&self) -> u64 {
        let any_thread = if self.has_any_thread() { FIXED_CTRL_ANY_THREAD } else { 0 };
        let adaptive = if self.has_debug_store() { select::FIXED_ADAPTIVE } else { 0 };
        let each = FIXED_CTRL_VALID | any_thread | adaptive;
        (0..self.fixed.len()).map(|index| each << (4 * index)).sum()
    }

    /// The debug control bits whose feature is not modelled.
    fn debugctl_absent(&self) -> u64 {
        DEBUGCTL_ABSENT & if self.lbr.is_some() { !1 } else { !0 }
    }

    /// Returns whether the architectural version has `msr`.
    fn intel_has(&self, msr: u32) -> bool {
        let since = match msr {
            msr::FIXED_CTR_CTRL | msr::GLOBAL_STATUS..=msr::GLOBAL_STATUS_RESET => 2,
            msr::GLOBAL_STATUS_SET | msr::GLOBAL_INUSE => 4,
            _ => 1,
        };
        self.profile.version >= since
    }

    fn extra_slot(msr: u32) -> Option<usize> {
        [msr::OFFCORE_RSP0, msr::OFFCORE_RSP1, msr::FRONTEND, msr::PEBS_LD_LAT]
            .iter()
            .position(|extra| *extra == msr)
    }

    pub(crate) fn intel_rdmsr(&mut self, msr: u32, counts: &[Counts; 2]) -> AccessResult {
        if !self.intel_has(msr) {
            return AccessResult::Fault;
        }
        if let Some(access) = self.pebs_rdmsr(msr).or_else(|| self.lbr_rdmsr(msr)) {
            return access;
        }
        let value = match msr {
            msr::SMI_COUNT => self.smis,
            msr::FIXED_CTR_CTRL => self.fixed_ctrl,
            msr::GLOBAL_STATUS => self.status,
            msr::GLOBAL_CTRL => self.global_ctrl,
            msr::GLOBAL_STATUS_RESET | msr::GLOBAL_STATUS_SET => 0,
            msr::GLOBAL_INUSE => self.in_use(),
            msr::PERF_CAPABILITIES => self.capabilities(),
            msr::PERF_METRICS => match &self.metrics {
                Some(metrics) => metrics.read(counts, self.geometry()),
                None => return AccessResult::Fault,
            },
            msr::DEBUGCTL => self.debugctl,
            _ => {
                if let Some(place) = self.place(msr) {
                    match place {
                        Place::Counter(index) | Place::FullCounter(index) => {
                            self.value(index, counts)
                        }
                        Place::Select(index) => self.selects[index],
                        Place::Fixed(index) => {
                            self.fixed[index].value(counts, self.geometry(), self.profile.width)
                        }
                    }
                } else if let Some(slot) = VirtualPmu::extra_slot(msr) {
                    self.extra[slot]
                } else {
                    return absent(msr);
                }
            }
        };
        AccessResult::Done(value)
    }

    fn capabilities(&self) -> u64 {
        let metrics = if self.metrics.is_some() { CAPABILITIES_METRICS } else { 0 };
        CAPABILITIES | metrics | self.pebs_capabilities() | self.lbr_capabilities()
    }

    /// The status bits of PERF_METRICS, if there is one.
    fn metrics_status(&self) -> u64 {
        if self.metrics.is_some() { STATUS_METRICS } else { 0 }
    }

    pub(crate) fn intel_wrmsr(
        &mut self,
        msr: u32,
        value: u64,
        counts: &[Counts; 2],
    ) -> AccessResult {
        if !self.intel_has(msr) {
            return AccessResult::Fault;
        }
        if let Some(access) = self.pebs_wrmsr(msr, value).or_else(|| self.lbr_wrmsr(msr, value)) {
            return access;
        }
        let (slot, reserved) = match msr {
            msr::FIXED_CTR_CTRL => {
                let valid = self.fixed_ctrl_valid();
                (&mut self.fixed_ctrl, !valid)
            }
            msr::GLOBAL_CTRL => {
                let valid = self.all_counters() | self.metrics_status();
                (&mut self.global_ctrl, !valid)
            }
            msr::DEBUGCTL => {
                if value & self.debugctl_absent() != 0 {
                    self.unmodelled.push(Unmodelled::Register(msr));
                }
                (&mut self.debugctl, !DEBUGCTL_VALID)
            }
            msr::PERF_METRICS => return self.write_metrics(value, counts),
            msr::SMI_COUNT | msr::GLOBAL_STATUS | msr::GLOBAL_INUSE | msr::PERF_CAPABILITIES => {
                return AccessResult::Fault;
            }
            msr::GLOBAL_STATUS_RESET | msr::GLOBAL_STATUS_SET => {
                return self.intel_write_status(msr, value, counts);
            }
            _ => return self.intel_write_bank(msr, value, counts),
        };
        if value & reserved != 0 {
            return AccessResult::Fault;
        }
        *slot = value;
        self.restart(counts);
        AccessResult::Done(0)
    }

    fn intel_write_status(&mut self, msr: u32, value: u64, counts: &[Counts; 2]) -> AccessResult {
        let freezes = if self.profile.version >= 4 { STATUS_FREEZES } else { 0 };
        let records = if self.has_record_buffer() { STATUS_RECORDS } else { 0 };
        let valid = self.all_counters() | STATUS_OTHER | freezes | self.metrics_status() | records;
        if value & !valid != 0 {
            return AccessResult::Fault;
        }
        match msr {
            msr::GLOBAL_STATUS_SET => self.status |= value,
            _ => self.status &= !value,
        }
        self.restart(counts);
        AccessResult::Done(0)
    }

    fn intel_write_bank(&mut self, msr: u32, value: u64, counts: &[Counts; 2]) -> AccessResult {
        if let Some(place) = self.place(msr) {
            return self.intel_write_place(place, value, counts);
        }
        if let Some(slot) = VirtualPmu::extra_slot(msr) {
            let valid = match slot {
                load_latency::SLOT => load_latency::VALID,
                _ if slot < self.profile.offcore.len() => offcore::VALID,
                _ => u64::MAX,
            };
            if value & !valid != 0 {
                return AccessResult::Fault;
            }
            self.extra[slot] = value;
            self.restart(counts);
        } else {
            if value != 0 && msr::ABSENT.contains(&msr) {
                self.unmodelled.push(Unmodelled::Register(msr));
            }
            return absent(msr);
        }
        AccessResult::Done(0)
    }

    fn intel_write_place(
        &mut self,
        place: Place,
        value: u64,
        counts: &[Counts; 2],
    ) -> AccessResult {
        let is_wide = value >> self.profile.width != 0;
        match place {
            // A legacy write takes 32 bits and sign-extends them.
            Place::Counter(index) => self.set_value(index, value as u32 as i32 as u64, counts),
            Place::FullCounter(_) | Place::Fixed(_) if is_wide => return AccessResult::Fault,
            Place::FullCounter(index) => self.set_value(index, value, counts),
            Place::Select(_) if value & self.select_reserved() != 0 => return AccessResult::Fault,
            Place::Select(index) => self.set_select(index, value, counts),
            Place::Fixed(index) => self.fixed[index].set(value, counts, &self.profile.geometry),
        }
        self.note_written(place, counts);
        AccessResult::Done(0)
    }

    /// The bits of an event select that are reserved.
    fn select_reserved(&self) -> u64 {
        let any_thread = if self.has_any_thread() { 0 } else { SELECT_ANY_THREAD };
        let version_6 = if self.profile.version >= 6 { version_6::SELECT } else { 0 };
        let adaptive = if self.has_debug_store() { select::ADAPTIVE } else { 0 };
        SELECT_RESERVED & !version_6 & !adaptive | any_thread
    }

    fn write_metrics(&mut self, value: u64, counts: &[Counts; 2]) -> AccessResult {
        let geometry = &self.profile.geometry;
        match (&mut self.metrics, self.fixed.get(3)) {
            (Some(metrics), Some(slots)) if value & !metrics.valid() == 0 => {
                let slots = slots.value(counts, geometry, self.profile.width);
                metrics.write(value, slots, counts, geometry);
                AccessResult::Done(0)
            }
            _ => AccessResult::Fault,
        }
    }

    pub(crate) fn intel_rdpmc(&mut self, index: u32, counts: &[Counts; 2]) -> AccessResult {
        if let (RDPMC_METRICS, Some(metrics)) = (index, &self.metrics) {
            return AccessResult::Done(metrics.read(counts, self.geometry()));
        }
        // SDM vol. 2, RDPMC: ECX[30] selects the fixed counters.
        let counter = match index.checked_sub(1 << 30) {
            Some(fixed) => self.fixed.get(fixed as usize),
            None => self.counters.get(index as usize),
        };
        match counter {
            Some(counter) => {
                AccessResult::Done(counter.value(counts, self.geometry(), self.profile.width))
            }
            None => AccessResult::Fault,
        }
    }

    fn in_use(&self) -> u64 {
        let mut bits = 0;
        let mut interrupts = false;
        for (index, value) in self.selects.iter().enumerate() {
            bits |= u64::from(value & 0xff != 0) << index;
            interrupts |= value & select::INT != 0;
        }
        for index in 0..self.fixed.len() {
            let control = self.fixed_ctrl >> (4 * index);
            bits |= u64::from(control & 3 != 0) << (32 + index);
            interrupts |= control & 8 != 0;
        }
        interrupts |= self.pebs.as_ref().is_some_and(|pebs| pebs.enable != 0);
        bits | u64::from(interrupts) << 63
    }

    pub(crate) fn intel_cpuid(&self, leaf: u32, subleaf: u32, registers: [u32; 4]) -> [u32; 4] {
        let [eax, ebx, ecx, edx] = registers;
        match leaf {
            0 => {
                let last = match self.profile {
                    Profile { version: 6.., .. } => version_6::LEAF,
                    Profile { kind: 1.., .. } => CORE_LEAF,
                    Profile { tsc_hz: Some(_), .. } => TSC_LEAF,
                    _ => 0xa,
                };
                [eax.max(last), ebx, ecx, edx]
            }
            // The machine's family, model and stepping; PDCM.
            1 => {
                let [store_ecx, store_edx] = self.pebs_cpuid();
                [self.profile.signature, ebx, ecx | 1 << 15 | store_ecx, edx | store_edx]
            }
            0xa => self.intel_leaf_a(),
            lbr::LEAF if self.has_architectural_lbr() => self.lbr_leaf(),
            // The ratio of the counter's frequency to the crystal's, and the latter.
            TSC_LEAF => self.profile.tsc_hz.map_or(registers, |hz| [1, 1, hz, 0]),
            CORE_LEAF if self.profile.kind != 0 => [self.profile.kind, 0, 0, 0],
            FEATURE_LEAF => self.leaf_7(subleaf, registers),
            version_6::LEAF if self.profile.version >= 6 => self.leaf_23(subleaf),
            _ => registers,
        }
    }

    fn intel_leaf_a(&self) -> [u32; 4] {
        let (version, width) = (u32::from(self.profile.version), u32::from(self.profile.width));
        let [general, fixed] = self.leaf_a_counters();
        let events = ARCHITECTURAL_EVENTS.len() as u32;
        let eax = version | general << 8 | width << 16 | events << 24;
        let missing = self.missing.map(|event| (event.code, event.umask));
        let bit = ARCHITECTURAL_EVENTS.iter().position(|event| Some(*event) == missing);
        let missing = bit.map_or(0, |bit| 1 << bit);
        if version < 2 {
            return [eax, missing, 0, 0];
        }
        // Version 5 lists the fixed counters one by one and has no AnyThread (EDX[15]).
        let (list, any_thread_gone) =
            if version >= 5 { ((1 << fixed) - 1, 1 << 15) } else { (0, 0) };
        [eax, missing, list, fixed | width << 5 | any_thread_gone]
    }
}

/// The CPUID leaf that has the core's type and native model.
pub(super) const CORE_LEAF: u32 = 0x1a;

/// The CPUID leaf of features, with sub-leaves.
pub(super) const FEATURE_LEAF: u32 = 7;

/// The CPUID leaf that has the time-stamp counter's frequency.
pub(super) const TSC_LEAF: u32 = 0x15;

/// The result of an access to a register that this PMU does not have: a fault if a PMU with more
/// counters has it, else foreign.
fn absent(msr: u32) -> AccessResult {
    let banks = [msr::PMC0, msr::A_PMC0, msr::PERFEVTSEL0];
    let of_a_bank = banks.iter().any(|first| bank(msr, *first, 10).is_some());
    if of_a_bank || bank(msr, msr::FIXED_CTR0, 8).is_some() || version_6::is_row(msr) {
        AccessResult::Fault
    } else {
        AccessResult::Foreign
    }
}
