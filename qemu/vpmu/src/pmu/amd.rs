//! AMD core performance counters (APM vol. 2, 13.2 "Performance Monitoring Counters").

use tally_model::Counts;

use crate::pmu::{
    access::{AccessResult, STATUS_FROZEN, Unmodelled},
    ibs,
    state::VirtualPmu,
};

/// Register addresses (APM vol. 2, appendix A.5 "Performance-Monitoring MSRs").
mod msr {
    pub(super) const LEGACY_SELECT0: u32 = 0xc001_0000;
    pub(super) const LEGACY_COUNTER0: u32 = 0xc001_0004;
    pub(super) const CORE_BANK: u32 = 0xc001_0200;
    pub(super) const GLOBAL_STATUS: u32 = 0xc000_0300;
    pub(super) const GLOBAL_CTL: u32 = 0xc000_0301;
    pub(super) const GLOBAL_STATUS_CLEAR: u32 = 0xc000_0302;
    pub(super) const GLOBAL_STATUS_SET: u32 = 0xc000_0303;
    pub(super) const DEBUGCTL: u32 = 0x1d9;
    /// Control of branch records, and the first selects of the L3 and data fabric counters: not
    /// modelled.
    pub(super) const ABSENT: [u32; 3] = [0xc000_010f, 0xc001_0230, 0xc001_0240];
}

/// Bits of the debug control register that can be set: branch records, single-stepping on branches,
/// the pins, and freezing both kinds of records at the interrupt (APM vol. 2, "DebugCtl MSR").
const DEBUGCTL_VALID: u64 = 0x183f;
/// CPUID 8000_0022H EAX: PerfMonV2, and freezing of counters (LbrAndPmcFreeze).
const CPUID_PERFMON: u32 = 1 | 1 << 2;
/// Branch records in EAX (LbrStack), and their number in EBX[9:4].
const CPUID_LBR: u32 = 1 << 1;
const CPUID_LBR_SHIFT: u32 = 4;

/// Counters that the legacy K7 registers reach.
const LEGACY_COUNTERS: u32 = 4;
/// Select and counter registers of the widest core bank, six pairs.
const CORE_REGISTERS: u32 = 12;
/// Event-select bits that are reserved and must be zero: 63:42, 39:36, 21 and 19.
const SELECT_RESERVED: u64 = !0x0000_030f_ffd7_ffff;
/// CPUID 8000_0001H ECX: PerfCtrExtCore.
const CPUID_CORE_EXTENSION: u32 = 1 << 23;

/// A register of the counter banks.
enum Register {
    Select(usize),
    Counter(usize),
}

impl VirtualPmu {
    fn amd_register(&self, msr: u32) -> Option<Register> {
        let register = match msr {
            _ if msr.wrapping_sub(msr::LEGACY_SELECT0) < LEGACY_COUNTERS => {
                Register::Select((msr - msr::LEGACY_SELECT0) as usize)
            }
            _ if msr.wrapping_sub(msr::LEGACY_COUNTER0) < LEGACY_COUNTERS => {
                Register::Counter((msr - msr::LEGACY_COUNTER0) as usize)
            }
            _ if msr.wrapping_sub(msr::CORE_BANK) < CORE_REGISTERS => {
                let offset = (msr - msr::CORE_BANK) as usize;
                match offset % 2 {
                    0 => Register::Select(offset / 2),
                    _ => Register::Counter(offset / 2),
                }
            }
            _ => return None,
        };
        Some(register)
    }

    fn amd_all(&self) -> u64 {
        (1 << self.counters.len()) - 1
    }

    fn amd_is_global(&self, msr: u32) -> bool {
        (msr::GLOBAL_STATUS..=msr::GLOBAL_STATUS_SET).contains(&msr)
    }

    pub(crate) fn amd_rdmsr(&mut self, msr: u32, counts: &[Counts; 2]) -> AccessResult {
        if self.amd_is_global(msr) && self.profile.version < 2 {
            return AccessResult::Fault;
        }
        match msr {
            msr::DEBUGCTL if self.profile.version >= 2 => return AccessResult::Done(self.debugctl),
            msr::GLOBAL_STATUS => return AccessResult::Done(self.status),
            msr::GLOBAL_CTL => return AccessResult::Done(self.global_ctrl),
            msr::GLOBAL_STATUS_CLEAR | msr::GLOBAL_STATUS_SET => return AccessResult::Done(0),
            _ => {}
        }
        if let Some(access) = self.lbr_rdmsr(msr).or_else(|| self.ibs_rdmsr(msr, counts)) {
            return access;
        }
        let general = self.counters.len();
        match self.amd_register(msr) {
            Some(Register::Select(index)) if index < general => {
                AccessResult::Done(self.selects[index])
            }
            Some(Register::Counter(index)) if index < general => {
                AccessResult::Done(self.merged_value(index, counts))
            }
            Some(_) => AccessResult::Fault,
            None => AccessResult::Foreign,
        }
    }

    pub(crate) fn amd_wrmsr(&mut self, msr: u32, value: u64, counts: &[Counts; 2]) -> AccessResult {
        if self.amd_is_global(msr) {
            return self.amd_write_global(msr, value, counts);
        }
        if msr == msr::DEBUGCTL && self.profile.version >= 2 {
            if value & !DEBUGCTL_VALID != 0 {
                return AccessResult::Fault;
            }
            self.debugctl = value;
            return AccessResult::Done(0);
        }
        if let Some(access) = self.lbr_wrmsr(msr, value) {
            return access;
        }
        if let Some(access) = self.ibs_wrmsr(msr, value, counts) {
            return access;
        }
        let general = self.counters.len();
        match self.amd_register(msr) {
            Some(Register::Select(index)) if index < general => {
                if value & SELECT_RESERVED != 0 {
                    return AccessResult::Fault;
                }
                self.set_select(index, value, counts);
            }
            // The upper 16 bits of a counter are not writable.
            Some(Register::Counter(index)) if index < general => {
                self.set_value(index, value, counts);
            }
            Some(_) => return AccessResult::Fault,
            None => {
                if value != 0 && msr::ABSENT.contains(&msr) {
                    self.unmodelled.push(Unmodelled::Register(msr));
                }
                return AccessResult::Foreign;
            }
        }
        AccessResult::Done(0)
    }

    fn amd_write_global(&mut self, msr: u32, value: u64, counts: &[Counts; 2]) -> AccessResult {
        let frozen = match msr {
            msr::GLOBAL_CTL => 0,
            // Reserved bits are ignored: Linux writes all bits (AMD on linux-perf-users, 2024).
            msr::GLOBAL_STATUS_CLEAR => u64::MAX,
            _ => STATUS_FROZEN,
        };
        let reserved = !(self.amd_all() | frozen);
        if self.profile.version < 2 || msr == msr::GLOBAL_STATUS || value & reserved != 0 {
            return AccessResult::Fault;
        }
        match msr {
            msr::GLOBAL_CTL => self.global_ctrl = value,
            msr::GLOBAL_STATUS_CLEAR => self.status &= !value,
            _ => self.status |= value,
        }
        self.restart(counts);
        AccessResult::Done(0)
    }

    pub(crate) fn amd_rdpmc(&mut self, index: u32, counts: &[Counts; 2]) -> AccessResult {
        if (index as usize) < self.counters.len() {
            AccessResult::Done(self.merged_value(index as usize, counts))
        } else {
            AccessResult::Fault
        }
    }

    pub(crate) fn amd_cpuid(&self, leaf: u32, _: u32, registers: [u32; 4]) -> [u32; 4] {
        let [eax, ebx, ecx, edx] = registers;
        let general = self.counters.len() as u32;
        match leaf {
            1 => [self.profile.signature, ebx, ecx, edx],
            0x8000_0000 if self.profile.version >= 2 => [eax.max(0x8000_0022), ebx, ecx, edx],
            0x8000_0000 if self.ibs.is_some() => [eax.max(ibs::LEAF), ebx, ecx, edx],
            0x8000_0001 => {
                let ibs = if self.ibs.is_some() { ibs::CPUID_ECX } else { 0 };
                [self.profile.signature, ebx, ecx | CPUID_CORE_EXTENSION | ibs, edx]
            }
            ibs::LEAF => [self.ibs_cpuid(), 0, 0, 0],
            // The number of core counters is EBX[3:0].
            0x8000_0022 if self.profile.version >= 2 => {
                let lbr =
                    self.lbr.as_ref().map(|lbr| (CPUID_LBR, (lbr.depth as u32) << CPUID_LBR_SHIFT));
                let (flag, depth) = lbr.unwrap_or_default();
                [CPUID_PERFMON | flag, general | depth, 0, 0]
            }
            _ => registers,
        }
    }
}
