//! Last branch records: their registers, CPUID, and freezing at an interrupt.
//!
//! While recording is off, or frozen, [`VirtualPmu::records_branches`] says so, and the caller need
//! not announce branches. On Sapphire Rapids the older records' switch in `IA32_DEBUGCTL` keeps its
//! value and has no effect.

use crate::{
    lbr::{Entry, Lbr, TakenBranch},
    pmu::{
        access::{AccessResult, STATUS_BRANCHES_FROZEN},
        state::VirtualPmu,
        version_6::bank,
    },
    profile::LbrKind,
};

/// Older records (SDM vol. 4, "MSRs in the Ice Lake Microarchitecture").
const SELECT: u32 = 0x1c8;
const TOP: u32 = 0x1c9;
const FROM: u32 = 0x680;
const TO: u32 = 0x6c0;
const INFO: u32 = 0xdc0;
/// Architectural records (SDM vol. 4, "Architectural MSRs").
const CTL: u32 = 0x14ce;
const DEPTH: u32 = 0x14cf;
const ARCH_FROM: u32 = 0x1500;
const ARCH_TO: u32 = 0x1600;
const ARCH_INFO: u32 = 0x1200;
/// AMD's (APM vol. 2, appendix A.6): the switch, the filter, and pairs of registers.
const EXTENSION: u32 = 0xc000_010f;
const AMD_SELECT: u32 = 0xc000_010e;
const AMD_PAIRS: u32 = 0xc001_0300;
/// The switch's one modelled bit.
const EXTENSION_VALID: u64 = 1 << 6;

/// Depths that the architectural records have: 8, 16 and 32.
const DEPTHS: u32 = 0b1011;
/// Intel: freezing of the records at an interrupt, in `IA32_DEBUGCTL` and in AMD's register.
const DEBUGCTL_FREEZE: u64 = 1 << 11;
/// Format of the older records in PERF_CAPABILITIES (Linux, `LBR_FORMAT_INFO`), and the number that
/// stands for architectural ones.
const FORMAT_INFO: u64 = 5;
const FORMAT_ARCHITECTURAL: u64 = 0x3f;

/// CPUID leaf of architectural records.
pub(super) const LEAF: u32 = 0x1c;

/// Part of an entry.
#[derive(Clone, Copy)]
enum Part {
    From,
    To,
    Info,
}

impl Part {
    fn of(self, entry: &mut Entry) -> &mut u64 {
        match self {
            Part::From => &mut entry.from,
            Part::To => &mut entry.to,
            Part::Info => &mut entry.info,
        }
    }
}

/// The register of an entry at an address: the part and the number.
fn place(kind: LbrKind, msr: u32) -> Option<(Part, usize)> {
    let banks = match kind {
        LbrKind::Legacy => [FROM, TO, INFO],
        LbrKind::Architectural => [ARCH_FROM, ARCH_TO, ARCH_INFO],
        LbrKind::Amd => {
            let index = bank(msr, AMD_PAIRS, 32)?;
            return Some((if index.is_multiple_of(2) { Part::From } else { Part::To }, index / 2));
        }
    };
    let parts = [Part::From, Part::To, Part::Info];
    banks.iter().zip(parts).find_map(|(first, part)| Some((part, bank(msr, *first, 32)?)))
}

impl Lbr {
    /// The register that an address names among those that are not entries.
    fn named(&mut self, msr: u32) -> Option<&mut u64> {
        match (self.kind, msr) {
            (LbrKind::Legacy, SELECT) | (LbrKind::Architectural, CTL) => Some(&mut self.control),
            (LbrKind::Amd, AMD_SELECT) => Some(&mut self.control),
            (LbrKind::Amd, EXTENSION) => Some(&mut self.extension),
            _ => None,
        }
    }

    /// Writes the number of entries, which clears them.
    fn set_depth(&mut self, value: u64) -> AccessResult {
        let is_valid = value.is_multiple_of(8) && (8..=64).contains(&value);
        if !is_valid || DEPTHS >> (value / 8 - 1) & 1 == 0 {
            return AccessResult::Fault;
        }
        self.clear();
        self.depth = value as usize;
        AccessResult::Done(0)
    }
}

impl VirtualPmu {
    /// Returns whether taken branches are to be announced.
    pub fn records_branches(&self) -> bool {
        self.lbr.as_ref().is_some_and(|lbr| lbr.is_on(self.debugctl))
            && self.status & STATUS_BRANCHES_FROZEN == 0
    }

    /// Records a taken branch after this number of slots.
    pub fn record_branch(&mut self, branch: &TakenBranch, slots: u64) {
        let width = u64::from(self.profile.geometry.width);
        if self.records_branches()
            && let Some(lbr) = &mut self.lbr
        {
            lbr.record(branch, slots / width);
        }
    }

    /// Freezes the records at an interrupt, if the guest has enabled that.
    pub(super) fn freeze_branches(&mut self) {
        if self.debugctl & DEBUGCTL_FREEZE != 0 && self.records_branches() {
            self.status |= STATUS_BRANCHES_FROZEN;
        }
    }

    /// The words of a precise record's group of branches: three for each of `count` entries, the
    /// last branch first.
    pub(super) fn branch_group(&self, count: usize) -> Vec<u64> {
        let Some(lbr) = &self.lbr else { return vec![0; 3 * count] };
        let entries = lbr.latest().chain(std::iter::repeat(Entry::default()));
        entries.take(count).flat_map(|Entry { from, to, info }| [from, to, info]).collect()
    }

    /// The bits of PERF_CAPABILITIES.
    pub(super) fn lbr_capabilities(&self) -> u64 {
        match self.lbr.as_ref().map(|lbr| lbr.kind) {
            Some(LbrKind::Legacy) => FORMAT_INFO,
            Some(LbrKind::Architectural) => FORMAT_ARCHITECTURAL,
            _ => 0,
        }
    }

    /// Returns whether there are architectural records.
    pub(super) fn has_architectural_lbr(&self) -> bool {
        self.lbr.as_ref().is_some_and(|lbr| lbr.kind == LbrKind::Architectural)
    }

    /// CPUID leaf 1CH: depths; filters by privilege and type, and call-stack mode; mispredictions,
    /// cycles and types.
    pub(super) fn lbr_leaf(&self) -> [u32; 4] {
        [DEPTHS, 0b111, 0b111, 0]
    }

    /// Reads a register; `None` if it is not one of the records, or there are none.
    pub(super) fn lbr_rdmsr(&mut self, msr: u32) -> Option<AccessResult> {
        let lbr = self.lbr.as_mut()?;
        if let Some(register) = lbr.named(msr) {
            return Some(AccessResult::Done(*register));
        }
        match (lbr.kind, msr) {
            (LbrKind::Legacy, TOP) => return Some(AccessResult::Done(lbr.top as u64)),
            (LbrKind::Architectural, DEPTH) => return Some(AccessResult::Done(lbr.depth as u64)),
            _ => {}
        }
        let (part, number) = place(lbr.kind, msr)?;
        Some(AccessResult::Done(lbr.entry(number).map_or(0, |entry| *part.of(entry))))
    }

    /// Writes a register; `None` if it is not one of the records, or there are none.
    pub(super) fn lbr_wrmsr(&mut self, msr: u32, value: u64) -> Option<AccessResult> {
        let lbr = self.lbr.as_mut()?;
        let control_valid = lbr.control_valid();
        if let Some(register) = lbr.named(msr) {
            let valid = if msr == EXTENSION { EXTENSION_VALID } else { control_valid };
            if value & !valid != 0 {
                return Some(AccessResult::Fault);
            }
            *register = value;
            return Some(AccessResult::Done(0));
        }
        match (lbr.kind, msr) {
            (LbrKind::Legacy, TOP) if value as usize >= lbr.depth => {
                return Some(AccessResult::Fault);
            }
            (LbrKind::Legacy, TOP) => {
                lbr.top = value as usize;
                return Some(AccessResult::Done(0));
            }
            (LbrKind::Architectural, DEPTH) => return Some(lbr.set_depth(value)),
            _ => {}
        }
        let (part, number) = place(lbr.kind, msr)?;
        if let Some(entry) = lbr.entry(number) {
            *part.of(entry) = value;
        }
        Some(AccessResult::Done(0))
    }
}
