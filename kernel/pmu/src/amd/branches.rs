//! Last branch records (LbrExtV2): the branches that were taken last, in a stack of registers.
//!
//! AMD64 Architecture Programmer's Manual volume 2, section "Last Branch Stack Registers"; CPUID
//! Fn8000_0022. Linux, arch/x86/events/amd/lbr.c. The records have neither types nor cycles.

use tally_abi::branches::{Branch, BranchFilter, BranchType, MAX_BRANCHES};

use crate::{
    branches::{BranchRecords, BranchStack},
    bus::{Bus, CountingBus},
    registers::amd::{DebugCtl, DebugExtnCfg, LbrSelect, SampledFrom, SampledTo},
};

/// Bits of an address, of which the last is the sign; bits above it have another meaning.
const ADDRESS_BITS: u32 = 58;
/// Mispredicted, in the register of the branch's address.
const WRONG: u64 = 1 << 63;
/// Neither of these two bits of the target's register is set in an empty record: valid, and
/// speculative.
const VALID: u64 = 0b11 << 62;

/// The records of this depth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extended {
    debug: DebugCtl,
    depth: u8,
}

/// Types by filter.
const TYPES: [(BranchFilter, LbrSelect); 6] = [
    (BranchFilter::CONDITIONAL, LbrSelect::CONDITIONAL),
    (BranchFilter::CALL, LbrSelect::CALL),
    (BranchFilter::INDIRECT_CALL, LbrSelect::INDIRECT_CALL),
    (BranchFilter::ANY_CALL, LbrSelect::CALL.union(LbrSelect::INDIRECT_CALL)),
    (BranchFilter::ANY_RETURN, LbrSelect::RETURN),
    (BranchFilter::INDIRECT_JUMP, LbrSelect::INDIRECT_JUMP),
];

fn address(value: u64) -> u64 {
    let unused = u64::BITS - ADDRESS_BITS;
    (((value << unused) as i64) >> unused) as u64
}

impl BranchStack for Extended {
    fn filters(&self) -> BranchFilter {
        BranchFilter::every(false)
    }

    fn start<B: Bus>(&self, bus: &mut CountingBus<B>, filter: BranchFilter) {
        let chosen = TYPES.into_iter().filter(|(of, _)| filter.has(*of));
        let chosen = chosen.fold(LbrSelect::empty(), |all, (_, select)| all | select);
        let all = filter.has(BranchFilter::ANY);
        let mut suppressed =
            if all { LbrSelect::empty() } else { LbrSelect::TYPES.difference(chosen) };
        suppressed.set(LbrSelect::NOT_RING_0, !filter.has(BranchFilter::KERNEL));
        suppressed.set(LbrSelect::NOT_RING_3, !filter.has(BranchFilter::USER));
        bus.put(0, suppressed);
        bus.put(0, self.debug | DebugCtl::FREEZE_LBR_ON_PMI);
        bus.put(0, DebugExtnCfg::LBRV2);
    }

    fn stop<B: Bus>(&self, bus: &mut CountingBus<B>) {
        bus.put(0, DebugExtnCfg::empty());
        bus.put(0, self.debug);
    }

    fn clear<B: Bus>(&self, bus: &mut CountingBus<B>) {
        for index in 0..self.depth {
            bus.put(index, SampledTo(0));
        }
    }

    fn read<B: Bus>(&self, bus: &mut CountingBus<B>, to: &mut [Branch]) -> usize {
        let mut known = 0;
        for (index, branch) in (0..self.depth).zip(to) {
            let SampledTo(target) = bus.get(index);
            if target & VALID == 0 {
                break;
            }
            let SampledFrom(from) = bus.get(index);
            let addresses = [address(from), address(target)];
            *branch = Branch::new(addresses, BranchType::Unknown, Some(from & WRONG != 0), 0);
            known += 1;
        }
        known
    }
}

/// Finds the records of this CPU, `depth` by CPUID; `None` if it has none that freeze, or a
/// hypervisor lacks a register.
pub(super) fn find<B: Bus>(bus: &mut CountingBus<B>, depth: u8) -> Option<BranchRecords<Extended>> {
    let depth = depth.min(MAX_BRANCHES as u8);
    let last = depth.checked_sub(1)?;
    let debug: DebugCtl = bus.try_get(0)?;
    let debug = debug.difference(DebugCtl::LBR | DebugCtl::FREEZE_LBR_ON_PMI);
    let has_all = bus.try_put(0, DebugExtnCfg::empty())
        && bus.try_put(0, LbrSelect::empty())
        && bus.try_get::<SampledFrom>(last).is_some()
        && bus.try_put(last, SampledTo(0));
    has_all.then(|| BranchRecords::new(Extended { debug, depth }))
}
