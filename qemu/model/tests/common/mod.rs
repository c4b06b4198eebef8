//! A stream of instructions for tests, and its division into blocks for a core.

#![allow(dead_code, reason = "each test binary uses its part")]

pub mod code;
pub mod stream;

use tally_model::{
    Access, Block, Branch, BranchKind, Core, Counts, Geometry, Insn, Operation, PageSize,
    PageSizes, Privilege, RegisterSet, Signal, Unit,
};

/// An executed instruction, its accesses, and where execution continued.
#[derive(Clone, Debug)]
pub struct Ran {
    pub insn: Insn,
    pub kind: BranchKind,
    /// Address, size, and whether the access was a store.
    pub accesses: Vec<(u64, u64, bool)>,
    pub next_pc: u64,
    /// The target, if the instruction is a direct branch.
    pub target: Option<u64>,
    pub ring: Privilege,
}

impl Ran {
    /// Makes an instruction of four bytes at `pc`; execution continues after it.
    pub fn new(pc: u64, operation: Operation) -> Ran {
        let mut insn = Insn { pc, length: 4, uops: 1, operation, ..Insn::default() };
        let divides = matches!(operation.unit, Unit::Divide | Unit::FpDivide);
        if divides {
            insn.divider_cycles = 10;
            insn.add(Signal::Divisions);
        }
        Ran {
            insn,
            kind: BranchKind::None,
            accesses: vec![],
            next_pc: pc.wrapping_add(4),
            target: None,
            ring: Privilege::User,
        }
    }

    /// Adds a load.
    pub fn load(mut self, address: u64) -> Ran {
        self.accesses.push((address, 8, false));
        self
    }

    /// Adds a store.
    pub fn store(mut self, address: u64) -> Ran {
        self.accesses.push((address, 8, true));
        self
    }

    /// Makes the instruction a branch to `target`.
    pub fn branch(mut self, kind: BranchKind, target: u64) -> Ran {
        self.kind = kind;
        self.next_pc = target;
        let is_direct = matches!(kind, BranchKind::Cond | BranchKind::Jump | BranchKind::Call);
        self.target = is_direct.then_some(target);
        self.insn.add(Signal::Branches);
        if kind == BranchKind::Cond {
            self.insn.add(Signal::BranchCond);
            self.insn.condition = 1 << 5;
            self.insn.operation.reads |= RegisterSet::FLAGS;
        }
        self.insn.operation.unit = Unit::Branch;
        self
    }

    fn ends_block(&self) -> bool {
        self.kind != BranchKind::None || self.next_pc != self.insn.pc.wrapping_add(4)
    }
}

/// An operation on general registers.
pub fn op(unit: Unit, reads: &[u8], writes: u8) -> Operation {
    let reads =
        reads.iter().fold(RegisterSet::NONE, |all, number| all | RegisterSet::general(*number));
    Operation { unit, reads, writes: RegisterSet::general(writes), ..Operation::default() }
}

/// A load into a general register from an address in another.
pub fn load_op(address: u8, writes: u8) -> Operation {
    Operation {
        address: RegisterSet::general(address),
        writes: RegisterSet::general(writes),
        ..Operation::default()
    }
}

/// A store of a general register to an address in another.
pub fn store_op(address: u8, value: u8) -> Operation {
    Operation {
        address: RegisterSet::general(address),
        reads: RegisterSet::general(value),
        ..Operation::default()
    }
}

/// Pages of all sizes: every second region of 2 MiB is a page, and every fourth of 1 GiB.
const SIZES: PageSizes = PageSizes { of: |_, address| size(address), tables: 0 };

fn size(address: u64) -> PageSize {
    match (address >> 30 & 3, address >> 21 & 1) {
        (3, _) => PageSize::Huge,
        (_, 1) => PageSize::Large,
        _ => PageSize::Small,
    }
}

/// A core with these pages and with code everywhere for its wrong paths. The core uses the sizes if
/// its geometry models large pages.
pub fn core_of(geometry: &Geometry) -> Core {
    let mut core = Core::new(geometry);
    core.set_page_sizes(SIZES);
    core.set_code_memory(code::NOISE);
    core
}

/// Translates to a physical address: not equal to the virtual one, and in another order.
fn physical(address: u64) -> u64 {
    (address >> 12 ^ 5) << 12 | address & 0xfff
}

/// Translates as [`physical`] does; large pages have contiguous frames.
fn physical_of_sizes(address: u64) -> u64 {
    if size(address) == PageSize::Small { physical(address) } else { address ^ 1 << 38 }
}

/// Feeds a stream to a core, in blocks that end at branches and where `cut` returns true.
pub fn feed(core: &mut Core, stream: &[Ran], mut cut: impl FnMut(usize) -> bool) {
    let mut start = 0;
    for at in 0..stream.len() {
        let ends = stream[at].ends_block() || at + 1 == stream.len();
        if !ends && stream[at + 1].ring == stream[at].ring && !cut(at) && at - start < 500 {
            continue;
        }
        feed_block(core, &stream[start..=at]);
        start = at + 1;
    }
}

fn feed_block(core: &mut Core, ran: &[Ran]) {
    let insns: Vec<_> = ran.iter().map(|ran| ran.insn).collect();
    let last = &ran[ran.len() - 1];
    let end = last.insn.pc.wrapping_add(last.insn.length.into());
    let branch = match last.kind {
        BranchKind::None => Branch::default(),
        kind => Branch { kind, pc: last.insn.pc, fall_through: end },
    };
    let has_sizes = core.geometry().has_large_pages;
    let physical = if has_sizes { physical_of_sizes } else { physical };
    let lines = (physical(insns[0].pc) >> 6, physical(end.wrapping_sub(1)) >> 6);
    let block = Block::new(last.ring, core.geometry().width, lines, branch, &insns);
    let block = match last.target {
        Some(target) => block.with_target(target),
        None => block,
    };
    core.fetch(&block);
    for (insn, ran) in ran.iter().enumerate() {
        for (address, bytes, store) in &ran.accesses {
            let access = Access { address: *address, bytes: *bytes, retires: true, insn };
            if *store {
                core.access::<true>(&block, access, physical);
            } else {
                core.access::<false>(&block, access, physical);
            }
        }
    }
    core.retire(&block, last.next_pc);
}

/// The counts of a new core for a stream in ring 3.
pub fn user_counts(geometry: &Geometry, stream: &[Ran]) -> Counts {
    user_counts_of(Core::new(geometry), stream)
}

/// The counts of this core for a stream in ring 3.
pub fn user_counts_of(mut core: Core, stream: &[Ran]) -> Counts {
    feed(&mut core, stream, |_| false);
    core.counts()[0].clone()
}

/// Returns whether a signal depends on time, and so on the pipeline.
pub fn is_timed(signal: Signal) -> bool {
    const BEGINNINGS: [&str; 18] = [
        "Stall",
        "Resumed",
        "Episodes",
        "Naive",
        "NonSpec",
        "Power5",
        "Fmt",
        "Sfmt",
        "Full",
        "Slots",
        "RetireCycles",
        "Forwards",
        "AliasedLoads",
        "MachineClears",
        "Executed",
        "Idle",
        "Port",
        "Pending",
    ];
    let name = format!("{signal:?}");
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// The cycles of a stream in the second of two runs, when caches and predictors are warm.
pub fn warm_cycles(geometry: &Geometry, stream: &[Ran]) -> u64 {
    let mut core = Core::new(geometry);
    feed(&mut core, stream, |_| false);
    let before = core.clock();
    feed(&mut core, stream, |_| false);
    (core.clock() - before) / u64::from(geometry.width)
}

/// A generator of pseudo-random numbers.
pub struct Random(pub u64);

impl Random {
    /// The next number, below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}
