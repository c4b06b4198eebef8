//! Last branch records (LBR): the branches that were taken last, in a ring of registers.
//!
//! Intel SDM volume 3, chapter "Last Branch Records" for the architectural records, and section
//! "Last Branch, Interrupt, and Exception Recording" for the older ones. Linux,
//! arch/x86/events/intel/lbr.c.

use tally_abi::branches::{Branch, BranchFilter, BranchType, MAX_BRANCHES};

use crate::{
    branches::{BranchRecords, BranchStack},
    bus::{Bus, CountingBus},
    registers::{
        branches::{
            LbrCtl, LbrDepth, LbrFrom, LbrInfo, LbrSelect, LbrTo, LbrTos, LegacyLbrFrom,
            LegacyLbrInfo, LegacyLbrTo,
        },
        intel::{DebugCtl, PerfCapabilities},
    },
};

/// The records that a processor has, from CPUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BranchSupport {
    /// No known records.
    None,
    /// Older ones, if IA32_PERF_CAPABILITIES has a format with information.
    Older,
    /// Architectural ones of this depth, with filters by ring and type.
    Architectural {
        /// Number of records.
        depth: u8,
    },
}

/// Formats in IA32_PERF_CAPABILITIES whose records have a register of information: from Skylake on,
/// and from Goldmont Plus on (Linux, `LBR_FORMAT_INFO`, `LBR_FORMAT_INFO2`).
const FORMATS: [u8; 2] = [5, 7];
/// Number of the older records of these formats.
const OLDER_DEPTH: u8 = 32;

/// Bits of information: mispredicted, and a type and a count of cycles that are valid.
const WRONG: u64 = 1 << 63;
const CYCLES_VALID: u64 = 1 << 60;
const TYPE_SHIFT: u32 = 56;

/// The older records: their filter suppresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Older {
    debug: DebugCtl,
}

/// The architectural records: their filter selects, and the last is always the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Architectural {
    debug: DebugCtl,
    depth: u8,
}

/// Types by filter: of the older filter and of the architectural one. A stack of calls needs
/// returns too (section "LBR Call Stack Mode").
const TYPES: [(BranchFilter, LbrSelect, LbrCtl); 7] = [
    (BranchFilter::STACK, CALLS.0.union(LbrSelect::RETURN), CALLS.1.union(LbrCtl::RETURN)),
    (BranchFilter::CONDITIONAL, LbrSelect::CONDITIONAL, LbrCtl::CONDITIONAL),
    (BranchFilter::CALL, LbrSelect::CALL, LbrCtl::CALL),
    (BranchFilter::INDIRECT_CALL, LbrSelect::INDIRECT_CALL, LbrCtl::INDIRECT_CALL),
    (BranchFilter::ANY_CALL, CALLS.0, CALLS.1),
    (BranchFilter::ANY_RETURN, LbrSelect::RETURN, LbrCtl::RETURN),
    (BranchFilter::INDIRECT_JUMP, LbrSelect::INDIRECT_JUMP, LbrCtl::INDIRECT_JUMP),
];
const CALLS: (LbrSelect, LbrCtl) =
    (LbrSelect::CALL.union(LbrSelect::INDIRECT_CALL), LbrCtl::CALL.union(LbrCtl::INDIRECT_CALL));

/// The filters' bits of the types.
fn types(filter: BranchFilter) -> (LbrSelect, LbrCtl) {
    if filter.has(BranchFilter::ANY) {
        return (LbrSelect::TYPES, LbrCtl::TYPES);
    }
    let chosen = TYPES.into_iter().filter(|(of, ..)| filter.has(*of));
    chosen.fold((LbrSelect::empty(), LbrCtl::empty()), |all, (_, select, control)| {
        (all.0 | select, all.1 | control)
    })
}

impl Older {
    fn start<B: Bus>(&self, bus: &mut CountingBus<B>, filter: BranchFilter) {
        let mut suppressed = LbrSelect::TYPES.difference(types(filter).0);
        if !filter.has(BranchFilter::KERNEL) {
            suppressed |= LbrSelect::NOT_RING_0;
        }
        if !filter.has(BranchFilter::USER) {
            suppressed |= LbrSelect::NOT_RING_3;
        }
        suppressed.set(LbrSelect::CALL_STACK, filter.has(BranchFilter::STACK));
        bus.put(0, suppressed);
        bus.put(0, self.debug | DebugCtl::LBR | DebugCtl::FREEZE_LBRS_ON_PMI);
    }

    fn stop<B: Bus>(&self, bus: &mut CountingBus<B>) {
        bus.put(0, self.debug);
    }

    fn clear<B: Bus>(&self, bus: &mut CountingBus<B>) {
        for index in 0..OLDER_DEPTH {
            bus.put(index, LegacyLbrFrom(0));
        }
    }

    fn read<B: Bus>(&self, bus: &mut CountingBus<B>, to: &mut [Branch]) -> usize {
        let last = bus.get::<LbrTos>(0).0 as u8;
        let mut known = 0;
        for (age, branch) in (0..OLDER_DEPTH).zip(to) {
            let index = last.wrapping_sub(age) % OLDER_DEPTH;
            let LegacyLbrFrom(from) = bus.get(index);
            if from == 0 {
                break;
            }
            let (LegacyLbrTo(to), LegacyLbrInfo(info)) = (bus.get(index), bus.get(index));
            let wrong = Some(info & WRONG != 0);
            *branch = Branch::new([from, to], BranchType::Unknown, wrong, info as u16);
            known += 1;
        }
        known
    }
}

/// The type of an architectural record.
fn kind(info: u64) -> BranchType {
    match info >> TYPE_SHIFT & 0xf {
        0 => BranchType::Conditional,
        1 => BranchType::IndirectJump,
        2 => BranchType::Jump,
        3 => BranchType::IndirectCall,
        4 => BranchType::Call,
        5 => BranchType::Return,
        _ => BranchType::Unknown,
    }
}

impl Architectural {
    fn start<B: Bus>(&self, bus: &mut CountingBus<B>, filter: BranchFilter) {
        let mut control = LbrCtl::ENABLE | types(filter).1;
        if filter.has(BranchFilter::KERNEL) {
            control |= LbrCtl::RING_0;
        }
        if filter.has(BranchFilter::USER) {
            control |= LbrCtl::RING_3;
        }
        control.set(LbrCtl::CALL_STACK, filter.has(BranchFilter::STACK));
        bus.put(0, self.debug | DebugCtl::FREEZE_LBRS_ON_PMI);
        bus.put(0, control);
    }

    fn stop<B: Bus>(&self, bus: &mut CountingBus<B>) {
        bus.put(0, LbrCtl::empty());
        bus.put(0, self.debug);
    }

    fn clear<B: Bus>(&self, bus: &mut CountingBus<B>) {
        bus.put(0, LbrDepth(self.depth.into()));
    }

    fn read<B: Bus>(&self, bus: &mut CountingBus<B>, to: &mut [Branch]) -> usize {
        let mut known = 0;
        for (index, branch) in (0..self.depth).zip(to) {
            let LbrFrom(from) = bus.get(index);
            if from == 0 {
                break;
            }
            let (LbrTo(to), LbrInfo(info)) = (bus.get(index), bus.get(index));
            let cycles = if info & CYCLES_VALID != 0 { info as u16 } else { 0 };
            *branch = Branch::new([from, to], kind(info), Some(info & WRONG != 0), cycles);
            known += 1;
        }
        known
    }
}

/// The records of either kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stack {
    Older(Older),
    Architectural(Architectural),
}

macro_rules! either {
    ($self:expr, $stack:ident => $call:expr) => {
        match $self {
            Stack::Older($stack) => $call,
            Stack::Architectural($stack) => $call,
        }
    };
}

impl BranchStack for Stack {
    fn filters(&self) -> BranchFilter {
        BranchFilter::every(true)
    }

    fn start<B: Bus>(&self, bus: &mut CountingBus<B>, filter: BranchFilter) {
        either!(self, stack => stack.start(bus, filter));
    }

    fn stop<B: Bus>(&self, bus: &mut CountingBus<B>) {
        either!(self, stack => stack.stop(bus));
    }

    fn clear<B: Bus>(&self, bus: &mut CountingBus<B>) {
        either!(self, stack => stack.clear(bus));
    }

    fn read<B: Bus>(&self, bus: &mut CountingBus<B>, to: &mut [Branch]) -> usize {
        either!(self, stack => stack.read(bus, to))
    }
}

/// Finds the records of this CPU; `None` if it has none, or a hypervisor lacks a register.
pub(super) fn find<B: Bus>(
    bus: &mut CountingBus<B>,
    support: BranchSupport,
    capabilities: PerfCapabilities,
) -> Option<BranchRecords<Stack>> {
    let is_known = match support {
        BranchSupport::None => false,
        BranchSupport::Older => FORMATS.contains(&capabilities.lbr_format()),
        BranchSupport::Architectural { .. } => true,
    };
    if !is_known {
        return None;
    }
    let debug: DebugCtl = bus.try_get(0)?;
    let debug = debug.difference(DebugCtl::BRANCHES);
    let (has_all, stack) = match support {
        BranchSupport::Architectural { depth } => {
            let depth = depth.min(MAX_BRANCHES as u8);
            let stack = Stack::Architectural(Architectural { debug, depth });
            (has_architectural(bus, depth), stack)
        }
        _ => (has_older(bus), Stack::Older(Older { debug })),
    };
    has_all.then(|| BranchRecords::new(stack))
}

fn has_older<B: Bus>(bus: &mut CountingBus<B>) -> bool {
    let last = OLDER_DEPTH - 1;
    bus.try_put(0, LbrSelect::empty())
        && bus.try_get::<LbrTos>(0).is_some()
        && bus.try_put(last, LegacyLbrFrom(0))
        && bus.try_get::<LegacyLbrTo>(last).is_some()
        && bus.try_get::<LegacyLbrInfo>(last).is_some()
}

fn has_architectural<B: Bus>(bus: &mut CountingBus<B>, depth: u8) -> bool {
    bus.try_put(0, LbrCtl::empty())
        && bus.try_put(0, LbrDepth(depth.into()))
        && bus.try_get::<LbrFrom>(depth - 1).is_some()
        && bus.try_get::<LbrTo>(depth - 1).is_some()
        && bus.try_get::<LbrInfo>(depth - 1).is_some()
}
