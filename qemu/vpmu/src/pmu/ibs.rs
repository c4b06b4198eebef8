//! IBS: its registers, and the samples of ops and of fetches.
//!
//! A sample sets the valid bit of its control register and makes an interrupt pending. Until
//! software clears the bit, nothing is sampled. IBS knows no rings: it samples in all of them.
//!
//! The interrupt is that of entry 0 of the APIC's extended local vector table.

use tally_model::Counts;

use crate::{
    ibs::{Ibs, RetiredOp},
    pebs::{GuestMemory, RetiredInsn},
    pmu::{access::AccessResult, state::VirtualPmu},
    profile::IbsKind,
};

const FETCH_CTL: u32 = 0xc001_1030;
const FETCH_LIN_AD: u32 = 0xc001_1031;
const FETCH_PHYS_AD: u32 = 0xc001_1032;
const OP_CTL: u32 = 0xc001_1033;
const OP_RIP: u32 = 0xc001_1034;
/// The last register of a sample's row.
const DC_PHYS_AD: u32 = 0xc001_1039;
const IBS_CTL: u32 = 0xc001_103a;
const BR_TARGET: u32 = 0xc001_103b;
const FETCH_EXTENDED: u32 = 0xc001_103c;

/// Bits of `IbsOpCtl` that can be set; the filter by the L3 is Zen 4's.
const OP_VALID: u64 = 0x07ff_ffff_07fe_ffff;
const OP_VALID_ZEN4: u64 = OP_VALID | 1 << 16;
/// Bits of `IbsFetchCtl` that can be written: those of samples are read-only, and on Zen 4 there
/// are two more.
const FETCH_VALID: u64 = (1 << 59) - 1;
const FETCH_VALID_ZEN4: u64 = (1 << 62) - 1;
/// `IbsCtl`: the entry of the extended local vector table is valid, and 0.
const IBS_CTL_VALUE: u64 = 1 << 8;

/// CPUID leaf of IBS, and what it says: valid, fetches, ops, count readable and writable, count of
/// ops, branch targets, longer count, invalid addresses, fused branches, latency of a fetch's
/// translation.
pub(super) const LEAF: u32 = 0x8000_001b;
const CPUID_EAX: u32 = 0x3ff;
/// Zen 4's filter by the L3, and finer sources.
const CPUID_EAX_ZEN4: u32 = 1 << 11;
/// Leaf 8000_0001H, ECX: IBS exists.
pub(super) const CPUID_ECX: u32 = 1 << 10;

impl Ibs {
    /// Valid bits of the controls of ops and of fetches.
    fn valid(&self) -> (u64, u64) {
        match self.kind {
            IbsKind::Zen3 => (OP_VALID, FETCH_VALID),
            IbsKind::Zen4 => (OP_VALID_ZEN4, FETCH_VALID_ZEN4),
        }
    }
}

impl VirtualPmu {
    /// EAX of the leaf of IBS.
    pub(super) fn ibs_cpuid(&self) -> u32 {
        match self.profile.ibs {
            Some(IbsKind::Zen4) => CPUID_EAX | CPUID_EAX_ZEN4,
            Some(IbsKind::Zen3) => CPUID_EAX,
            None => 0,
        }
    }

    /// Reads a register; `None` if it is not one of IBS, or there is none.
    pub(super) fn ibs_rdmsr(&self, msr: u32, counts: &[Counts; 2]) -> Option<AccessResult> {
        let ibs = self.ibs.as_ref()?;
        let value = match msr {
            FETCH_CTL => ibs.fetch.control(counts, self.geometry()),
            FETCH_LIN_AD | FETCH_PHYS_AD => ibs.fetch.addresses[(msr - FETCH_LIN_AD) as usize],
            FETCH_EXTENDED => ibs.fetch.extended,
            OP_CTL => ibs.op.control(counts, self.geometry()),
            OP_RIP..=DC_PHYS_AD => ibs.op.sample.words[(msr - OP_RIP) as usize],
            IBS_CTL => IBS_CTL_VALUE,
            BR_TARGET => ibs.op.sample.target,
            _ => return None,
        };
        Some(AccessResult::Done(value))
    }

    /// Writes a register; `None` if it is not one of IBS, or there is none.
    pub(super) fn ibs_wrmsr(
        &mut self,
        msr: u32,
        value: u64,
        counts: &[Counts; 2],
    ) -> Option<AccessResult> {
        let ibs = self.ibs.as_mut()?;
        let (of_ops, of_fetches) = ibs.valid();
        match msr {
            FETCH_CTL if value & !of_fetches != 0 => return Some(AccessResult::Fault),
            FETCH_CTL => {
                let random = ibs.start();
                ibs.fetch.set_control(value, random, (counts, &self.profile.geometry));
            }
            FETCH_LIN_AD | FETCH_PHYS_AD => {
                ibs.fetch.addresses[(msr - FETCH_LIN_AD) as usize] = value;
            }
            FETCH_EXTENDED => ibs.fetch.extended = value,
            OP_CTL if value & !of_ops != 0 => return Some(AccessResult::Fault),
            OP_CTL => ibs.op.set_control(value, counts, &self.profile.geometry),
            OP_RIP..=DC_PHYS_AD => ibs.op.sample.words[(msr - OP_RIP) as usize] = value,
            IBS_CTL => return Some(AccessResult::Fault),
            BR_TARGET => ibs.op.sample.target = value,
            _ => return None,
        }
        Some(AccessResult::Done(0))
    }

    /// Returns whether the processor has IBS.
    pub fn has_ibs(&self) -> bool {
        self.ibs.is_some()
    }

    /// Returns whether the interrupt of a sample became pending since the last call.
    pub fn take_sampler_interrupt(&mut self) -> bool {
        std::mem::take(&mut self.sampler_pending)
    }

    /// Returns whether IBS samples.
    pub fn is_sampling(&self) -> bool {
        self.ibs.as_ref().is_some_and(|ibs| ibs.op.is_on() || ibs.fetch.is_on())
    }

    /// Minimum number of slots before an instruction can get a precise record, arm a counter for
    /// one, or have a tagged op, or a fetch be sampled; `None` if nothing of the kind is on.
    pub fn slots_to_record(&self, counts: &[Counts; 2]) -> Option<u64> {
        let geometry = self.geometry();
        let tag = self.ibs.as_ref().and_then(|ibs| ibs.op.slots_to_tag(counts, geometry));
        let fetch = self.ibs.as_ref().and_then(|ibs| ibs.fetch.slots_to_sample(counts, geometry));
        [self.slots_to_pebs(counts), tag, fetch].into_iter().flatten().min()
    }

    /// Handles the retirement of one instruction. The caller calls it after each instruction while
    /// [`Self::slots_to_record`] is near 0.
    pub fn retire_insn(
        &mut self,
        counts: &[Counts; 2],
        (insn, op): (&RetiredInsn, &RetiredOp),
        memory: &mut dyn GuestMemory,
    ) {
        self.retire_for_pebs(counts, insn, memory);
        if let Some(ibs) = &mut self.ibs {
            self.sampler_pending |= ibs.retire(counts, &self.profile.geometry, op);
        }
    }
}
