//! Instruction-based sampling (IBS): the sampler of ops, and the layout of its registers (APM
//! vol. 2, "Instruction-Based Sampling"; the processor programming reference of family 19h, "IBS
//! Execution Control" to "IBS Branch Target").

use tally_model::{Counts, DataAccess, FetchedLine, Geometry, Privilege, ServedBy, Signal};

use crate::{
    counter::{Counter, CounterInput},
    event::{Conversion, Event},
    ibs_fetch::FetchSampler,
    profile::IbsKind,
};

/// `IbsOpCtl`: ops that hit the last level are dropped (Zen 4), enable, a sample is there, count
/// dispatched ops in place of cycles.
pub(crate) const OP_L3_MISS: u64 = 1 << 16;
pub(crate) const OP_ENABLE: u64 = 1 << 17;
pub(crate) const OP_VALID: u64 = 1 << 18;
pub(crate) const OP_COUNTS_OPS: u64 = 1 << 19;
/// Bits 19:4 and 26:20 of the maximum count.
const OP_MAXIMUM: u64 = 0xffff;
const OP_MAXIMUM_HIGH: u64 = 0x7f << 20;
/// The current count, of which a sample leaves the low bits at random.
const OP_CURRENT_SHIFT: u32 = 32;
const CURRENT_BITS: u32 = 27;
const RANDOM_BITS: u64 = 0x7f;

/// The cycles from dispatch to retirement of an op that waits for nothing.
const LEAST_CYCLES: u64 = 4;

/// Cycles, and dispatched ops, those of wrong paths included.
static CYCLES: Event = Event::new("IBS cycles", 0x76, 0, &[Signal::Slots], "Cycles.")
    .conversion(Conversion::SlotsAsCycles);
static OPS: Event =
    Event::new("IBS ops", 0xc1, 0, &[Signal::Uops, Signal::SlotsWrongPath], "Ops dispatched.");

/// A retired branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetiredBranch {
    /// Whether it was taken, predicted wrongly, and a return.
    pub is_taken: bool,
    /// Whether the model predicted it wrongly.
    pub is_wrong: bool,
    /// Whether it is a near return.
    pub is_return: bool,
    /// Address at which execution continues.
    pub target: u64,
}

/// A retired instruction, as a sample of ops describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetiredOp {
    /// Linear address of the instruction.
    pub ip: u64,
    /// Whether it has an op: the second instruction of a fused pair has none.
    pub has_op: bool,
    /// Whether the next instruction shares its op.
    pub fuses: bool,
    /// Whether the microcode sequencer ran it.
    pub is_microcoded: bool,
    /// Load of the instruction, or its store if it has no load.
    pub data: Option<DataAccess>,
    /// The instruction's branch.
    pub branch: Option<RetiredBranch>,
    /// The line of code that was fetched since the instruction before.
    pub fetched: Option<FetchedLine>,
    /// Cycles from its dispatch to its retirement, if the pipeline knows them.
    pub flight_cycles: Option<u64>,
}

/// Registers of a sample of ops, by their addresses from C001_1034H on, and the branch's target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpSample {
    /// `IbsOpRip`, `IbsOpData`, `IbsOpData2`, `IbsOpData3`, `IbsDcLinAd`, `IbsDcPhysAd`.
    pub(crate) words: [u64; 6],
    /// `IbsBrTarget`.
    pub(crate) target: u64,
}

/// Progress of the sampler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tag {
    #[default]
    None,
    /// The op that is dispatched next, at these cycles of the CPU or later.
    Next { at_cycle: u64 },
    /// The op that this instruction shares with the next one.
    Shared { op: RetiredOp, at_cycle: u64 },
}

/// The sampler of ops.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpSampler {
    /// `IbsOpCtl` without the current count.
    control: u64,
    counter: Counter,
    tag: Tag,
    /// Cycles of the CPU when the last instruction retired.
    last_cycle: u64,
    pub(crate) sample: OpSample,
}

/// State of a CPU's IBS.
#[derive(Clone, Debug)]
pub(crate) struct Ibs {
    pub(crate) kind: IbsKind,
    pub(crate) op: OpSampler,
    pub(crate) fetch: FetchSampler,
    random: u64,
}

/// Cycles of the CPU in both rings.
fn cycles(counts: &[Counts; 2], geometry: &Geometry) -> u64 {
    let in_ring = |ring| CYCLES.in_ring(counts, ring, geometry);
    in_ring(Privilege::User) + in_ring(Privilege::Kernel)
}

/// A count of cycles in a field of 16 bits.
fn in_16_bits(cycles: u64) -> u64 {
    cycles.min(0xffff)
}

impl Ibs {
    pub(crate) fn new(kind: IbsKind) -> Ibs {
        let (op, fetch) = (OpSampler::default(), FetchSampler::default());
        Ibs { kind, op, fetch, random: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The next random start of a count: xorshift (Marsaglia, 2003).
    pub(crate) fn start(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 32 & RANDOM_BITS
    }

    /// Handles the retirement of an instruction, and the fetch before it; returns whether a sample
    /// was taken.
    pub(crate) fn retire(
        &mut self,
        counts: &[Counts; 2],
        geometry: &Geometry,
        op: &RetiredOp,
    ) -> bool {
        let fetched = op.fetched.is_some_and(|line| self.fetch.fetch(counts, geometry, &line));
        let now = cycles(counts, geometry);
        let tagged = self.op.retire(counts, geometry, op, now);
        self.op.last_cycle = now;
        let Some((op, since)) = tagged else { return fetched };
        let sample = OpSample::of(self.kind, &op, now.saturating_sub(since));
        let start = self.start();
        let is_dropped = self.op.control & OP_L3_MISS != 0 && !misses_all(&op);
        self.op.counter.set(start, counts, geometry);
        if is_dropped {
            return fetched;
        }
        self.op.sample = sample;
        self.op.control |= OP_VALID;
        self.op.counter.run(None, counts, geometry);
        true
    }
}

/// Returns whether memory served an op's load.
fn misses_all(op: &RetiredOp) -> bool {
    op.data.is_some_and(|data| !data.is_store && data.by == ServedBy::Memory)
}

impl OpSampler {
    /// The maximum count.
    fn maximum(&self) -> u64 {
        (self.control & OP_MAXIMUM) << 4 | self.control & OP_MAXIMUM_HIGH
    }

    /// `IbsOpCtl`.
    pub(crate) fn control(&self, counts: &[Counts; 2], geometry: &Geometry) -> u64 {
        let current = self.counter.unwrapped(counts, geometry) & ((1 << CURRENT_BITS) - 1);
        self.control | current << OP_CURRENT_SHIFT
    }

    /// Writes `IbsOpCtl`.
    pub(crate) fn set_control(&mut self, value: u64, counts: &[Counts; 2], geometry: &Geometry) {
        self.control = value & ((1 << OP_CURRENT_SHIFT) - 1);
        self.tag = Tag::None;
        self.last_cycle = cycles(counts, geometry);
        self.counter.run(None, counts, geometry);
        self.counter.set(value >> OP_CURRENT_SHIFT, counts, geometry);
        if value & (OP_ENABLE | OP_VALID) == OP_ENABLE {
            let event = if value & OP_COUNTS_OPS != 0 { &OPS } else { &CYCLES };
            let input = CounterInput::of(vec![event], [true; 2]);
            self.counter.run(Some(input), counts, geometry);
        }
    }

    /// Returns whether the sampler counts.
    pub(crate) fn is_on(&self) -> bool {
        self.counter.is_running()
    }

    /// Minimum number of slots before an op can be tagged; `None` if none can.
    pub(crate) fn slots_to_tag(&self, counts: &[Counts; 2], geometry: &Geometry) -> Option<u64> {
        let left = self.maximum().saturating_sub(self.counter.unwrapped(counts, geometry));
        match self.tag {
            _ if !self.counter.is_running() => None,
            Tag::None => Some(left / self.counter.growth_per_slot()),
            Tag::Next { .. } | Tag::Shared { .. } => Some(0),
        }
    }

    /// Handles the retirement of an instruction. Returns the tagged op, if it has retired with it,
    /// and the cycle of its dispatch.
    ///
    /// The op with which the count of ops reaches the maximum is tagged; of cycles, the first one
    /// that is dispatched from then on.
    fn retire(
        &mut self,
        counts: &[Counts; 2],
        geometry: &Geometry,
        op: &RetiredOp,
        now: u64,
    ) -> Option<(RetiredOp, u64)> {
        if !self.counter.is_running() {
            return None;
        }
        let count = self.counter.unwrapped(counts, geometry);
        let over = count.checked_sub(self.maximum());
        let counts_ops = self.control & OP_COUNTS_OPS != 0;
        // Without the time of dispatch, an op follows the one before it at once.
        let dispatched = op.flight_cycles.map(|cycles| now.saturating_sub(cycles));
        let tag = match (self.tag, over) {
            (Tag::None, Some(over)) if !counts_ops => {
                Tag::Next { at_cycle: if dispatched.is_some() { now - over.min(now) } else { now } }
            }
            (tag, _) => tag,
        };
        let was_tagged = self.tag != Tag::None;
        self.tag = tag;
        let (of, at_cycle) = match tag {
            Tag::Shared { op: first, at_cycle } => {
                (RetiredOp { branch: op.branch, ..first }, at_cycle)
            }
            Tag::Next { at_cycle } => match dispatched {
                Some(dispatched) if dispatched < at_cycle => return None,
                None if !was_tagged => return None,
                _ if !op.has_op => return None,
                _ => (*op, dispatched.unwrap_or(at_cycle)),
            },
            Tag::None if over.is_some() && op.has_op => {
                (*op, dispatched.unwrap_or(self.last_cycle))
            }
            Tag::None => return None,
        };
        let is_first = op.fuses && !matches!(self.tag, Tag::Shared { .. });
        self.tag = if is_first { Tag::Shared { op: of, at_cycle } } else { Tag::None };
        (!is_first).then_some((of, at_cycle))
    }
}

impl OpSample {
    /// The registers of an op that retired some cycles after its dispatch.
    fn of(kind: IbsKind, op: &RetiredOp, since_cycles: u64) -> OpSample {
        let latency = op.data.filter(|data| !data.is_store).map_or(0, |data| data.latency_cycles);
        let to_retirement = since_cycles.max(u64::from(latency) + LEAST_CYCLES);
        let completed = to_retirement - u64::from(latency) - LEAST_CYCLES + 1;
        let (lin, phys) = op.data.map_or((0, 0), |data| (data.address, data.physical));
        let times = in_16_bits(completed) | in_16_bits(to_retirement) << 16;
        OpSample {
            words: [
                op.ip,
                times | branch_bits(op),
                op.data.map_or(0, |data| source(kind, &data)),
                op.data.map_or(0, |data| access_bits(&data)),
                lin,
                phys,
            ],
            target: op.branch.map_or(0, |branch| branch.target),
        }
    }
}

/// Flags of `IbsOpData`: return, taken, mispredicted, branch retired, fused with a branch,
/// microcode.
fn branch_bits(op: &RetiredOp) -> u64 {
    let branch = op.branch.unwrap_or_default();
    let bits = [
        (34, branch.is_return),
        (35, branch.is_taken),
        (36, branch.is_wrong),
        (37, op.branch.is_some()),
        (39, op.fuses && op.branch.is_some()),
        (40, op.is_microcoded),
    ];
    bits.into_iter().map(|(bit, is_set)| u64::from(is_set) << bit).sum()
}

/// `IbsOpData2` of a load that missed the L2: the source, whose upper bits are at 7:6. Zen 3's
/// caches of the node are 2; Zen 4's codes are finer, and 1 is the L3 of the core complex.
fn source(kind: IbsKind, data: &DataAccess) -> u64 {
    let code = match (kind, data.by) {
        _ if data.is_store => 0,
        (_, ServedBy::L1 | ServedBy::L2) => 0,
        (IbsKind::Zen3, ServedBy::Llc) => 2,
        (IbsKind::Zen4, ServedBy::Llc) => 1,
        (_, ServedBy::Memory) => 3,
    };
    code & 7 | code >> 3 << 6
}

/// `IbsOpData3`: the access. The miss latency is of loads that missed the L1; a store has a
/// request, and no latency.
fn access_bits(data: &DataAccess) -> u64 {
    let missed = data.by != ServedBy::L1;
    let bits = [
        (0, !data.is_store),
        (1, data.is_store || data.stores_too),
        (2, data.tlb_cycles != 0),
        (3, data.walks),
        (7, missed),
        (8, (data.address & 63) + u64::from(data.bytes) > 64),
        (15, data.is_locked),
        (17, true),
        (18, true),
        (20, data.by > ServedBy::L2),
    ];
    let flags: u64 = bits.into_iter().map(|(bit, is_set)| u64::from(is_set) << bit).sum();
    let width = u64::from(data.bytes.max(1).ilog2()) + 1;
    let latency = u64::from(data.latency_cycles.saturating_sub(data.tlb_cycles));
    let latency = if missed && !data.is_store { in_16_bits(latency) } else { 0 };
    let refill = in_16_bits(data.tlb_cycles.into());
    flags | width << 22 | latency << 32 | refill << 48
}
