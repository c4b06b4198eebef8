//! Published measurements of the modelled cores, and the results of small programs in the model.

use tally_model::{
    Access, Block, Branch, BranchKind, Core, Geometry, Insn, Operation, PageSize, PageSizes,
    PipelineMode, Privilege, RegisterSet, Signal, Unit,
};

const PC: u64 = 0x40_0000;
const DATA: u64 = 0x1000_0000;

/// A quantity, its source, and the published value of each profile in the order of
/// [`Geometry::ALL`]; `None` where no source is certain.
struct Quantity {
    name: &'static str,
    source: &'static str,
    published: [Option<&'static str>; 4],
    measure: fn(&Geometry) -> f64,
}

const QUANTITIES: [Quantity; 15] = [
    Quantity {
        name: "load to use from the L1, cycles",
        source: "Intel, AMD",
        published: [Some("5"), Some("5"), Some("4"), Some("4")],
        measure: |geometry| chase(geometry, 16 << 10, 64),
    },
    Quantity {
        name: "load to use from the L2, cycles",
        source: "AMD",
        published: [None, None, Some("12"), Some("14")],
        measure: |geometry| chase(geometry, geometry.l2.bytes() / 2, 64),
    },
    Quantity {
        name: "L1 data cache, KiB",
        source: "Intel, AMD",
        published: [Some("48"), Some("48"), Some("32"), Some("32")],
        measure: |geometry| largest(geometry, 4 << 10, 64) / 1024.0,
    },
    Quantity {
        name: "L1 data TLB, entries",
        source: "Intel, AMD",
        published: [Some("64"), Some("96"), Some("64"), Some("72")],
        // One line in each page, in another set of the L1 than the page before.
        measure: |geometry| largest(geometry, 8 * 4160, 4160) / 4160.0,
    },
    Quantity {
        name: "L1 data TLB, entries of 2 MiB",
        source: "Intel, AMD",
        published: [Some("32"), Some("32"), Some("64"), Some("72")],
        measure: |geometry| {
            // One line in each large page, each in another set.
            let step = (2 << 20) + 64;
            largest(&Geometry { has_large_pages: true, ..*geometry }, 8 * step, step) / step as f64
        },
    },
    Quantity {
        name: "return stack, entries",
        source: "jia.je",
        published: [Some("22"), Some("20"), Some("32"), Some("32")],
        measure: returns,
    },
    Quantity {
        name: "branch target buffer, entries",
        source: "Intel, AMD",
        published: [None, Some("12288"), Some("6656"), Some("7168")],
        measure: targets,
    },
    Quantity {
        name: "cache of micro-operations",
        source: "Intel, AMD",
        published: [Some("2304"), Some("4096"), Some("4096"), Some("6912")],
        measure: cached,
    },
    Quantity {
        name: "instructions of 4 bytes decoded in a cycle",
        source: "Intel, AMD",
        published: [Some("4"), Some("6"), Some("4"), Some("4")],
        measure: decoded,
    },
    Quantity {
        name: "misprediction, cycles",
        source: "AMD",
        published: [None, None, Some("13"), Some("13")],
        measure: misprediction,
    },
    Quantity {
        name: "IMUL r64, latency in cycles",
        source: "uops.info",
        published: [Some("3"); 4],
        measure: |geometry| chain(geometry, Unit::Multiply),
    },
    Quantity {
        name: "ADDSD, latency in cycles",
        source: "uops.info",
        published: [Some("4"), Some("3"), Some("3"), Some("3")],
        measure: |geometry| chain(geometry, Unit::FpAdd),
    },
    Quantity {
        name: "MULSD, latency in cycles",
        source: "uops.info",
        published: [Some("4"), Some("4"), Some("3"), Some("3")],
        measure: |geometry| chain(geometry, Unit::FpMultiply),
    },
    Quantity {
        name: "ADD r64, independent, in a cycle",
        source: "uops.info",
        published: [Some("4"), Some("5"), Some("4"), Some("4")],
        measure: |geometry| 1.0 / independent(geometry, Unit::Integer),
    },
    Quantity {
        name: "ADDSD, independent, in a cycle",
        source: "uops.info",
        published: [Some("2"); 4],
        measure: |geometry| 1.0 / independent(geometry, Unit::FpAdd),
    },
];

/// The table in the form that the crate's page has.
pub fn table() -> String {
    let mut text = "| ours, published | source |".to_owned();
    Geometry::ALL.iter().for_each(|(name, _)| text += &format!(" {name} |"));
    text += "\n|---|---|---|---|---|---|\n";
    for Quantity { name, source, published, measure } in QUANTITIES {
        text += &format!("| {name} | {source} |");
        for ((_, geometry), published) in Geometry::ALL.iter().zip(published) {
            let ours = measure(&geometry.out_of_order(PipelineMode::Real));
            text += &format!(" {ours:.1}, {} |", published.unwrap_or("—"));
        }
        text += "\n";
    }
    text
}

/// A block of instructions with these operations, in one line of code.
fn block(geometry: &Geometry, branch: BranchKind, operations: &[Operation]) -> Block {
    let insn = |(index, operation): (usize, &Operation)| Insn {
        pc: PC + 4 * index as u64,
        length: 4,
        uops: 1,
        operation: *operation,
        ..Insn::default()
    };
    let insns: Vec<Insn> = operations.iter().enumerate().map(insn).collect();
    let end = PC + 4 * operations.len() as u64;
    let branch = Branch { kind: branch, pc: end - 4, fall_through: end };
    Block::new(Privilege::User, geometry.width, (1 << 20, 1 << 20), branch, &insns)
}

/// Cycles of the second of two runs, divided by `count`.
fn warm(geometry: &Geometry, count: u64, mut run: impl FnMut(&mut Core)) -> f64 {
    let mut core = Core::new(geometry);
    run(&mut core);
    let before = core.clock();
    run(&mut core);
    (core.clock() - before) as f64 / f64::from(geometry.width) / count as f64
}

/// Cycles of a load whose result is the next one's address, over `bytes` in steps of `step`, in an
/// order without locality.
fn chase(geometry: &Geometry, bytes: u64, step: u64) -> f64 {
    let pointer = RegisterSet::general(1);
    let load = Operation { address: pointer, writes: pointer, ..Operation::default() };
    let block = block(geometry, BranchKind::None, &[load]);
    let mut geometry = *geometry;
    // The chase over pages has steps of a page and a line.
    geometry.perfect.dtlb = step == 64;
    let (places, mut at) = (bytes / step, 0);
    // Every place is visited once per round.
    let shared = |stride: &u64| {
        (2..=*stride).any(|by| stride.is_multiple_of(by) && places.is_multiple_of(by))
    };
    let stride = (places * 5 / 8..).find(|stride| !shared(stride)).unwrap_or(1);
    warm(&geometry, places, |core| {
        core.set_page_sizes(PageSizes { of: |_, _| PageSize::Large, tables: 0 });
        for _ in 0..places {
            at = (at + stride) % places;
            let address = DATA + step * at;
            let access = Access { address, bytes: 8, retires: true, insn: 0 };
            core.fetch(&block);
            core.access::<false>(&block, access, |address| address);
            core.retire(&block, PC);
        }
    })
}

/// The largest size in bytes for which a chase is as fast as for `fewest`.
fn largest(geometry: &Geometry, fewest: u64, step: u64) -> f64 {
    let fast = chase(geometry, fewest, step) + 0.01;
    let longer = (1..).map(|times| times * fewest);
    longer.take_while(|bytes| chase(geometry, *bytes, step) < fast).last().unwrap_or(0) as f64
}

fn computing(geometry: &Geometry, operations: &[Operation]) -> f64 {
    let block = block(geometry, BranchKind::None, operations);
    warm(geometry, 2_000 * operations.len() as u64, |core| {
        for _ in 0..2_000 {
            core.fetch(&block);
            core.retire(&block, PC);
        }
    })
}

/// Cycles of an operation that needs the result of the one before.
fn chain(geometry: &Geometry, unit: Unit) -> f64 {
    let result = RegisterSet::general(0);
    let operation = Operation { unit, reads: result, writes: result, ..Operation::default() };
    computing(geometry, &[operation; 14])
}

/// Cycles of one of many independent operations.
fn independent(geometry: &Geometry, unit: Unit) -> f64 {
    let one =
        |number| Operation { unit, writes: RegisterSet::general(number), ..Operation::default() };
    let operations: Vec<Operation> = (0..14).map(one).collect();
    computing(geometry, &operations)
}

/// The deepest nesting of calls, each from another place, whose returns are all predicted.
fn returns(geometry: &Geometry) -> f64 {
    let branch = |kind, place: u64| {
        let insn = Insn { pc: PC + 64 * place, length: 4, uops: 1, ..Insn::default() };
        let branch = Branch { kind, pc: insn.pc, fall_through: insn.pc + 4 };
        let line = (1 << 20) + place;
        Block::new(Privilege::User, geometry.width, (line, line), branch, &[insn])
    };
    let mispredicted = |depth: u64| {
        let mut core = Core::new(geometry);
        let mut run = |block: &Block, next: u64| {
            core.fetch(block);
            core.retire(block, next);
        };
        (0..depth).for_each(|place| run(&branch(BranchKind::Call, place), PC + 64 * (place + 1)));
        (0..depth).rev().for_each(|place| {
            run(&branch(BranchKind::Return, depth), PC + 64 * place + 4);
        });
        core.counts()[0][Signal::MispredictReturn]
    };
    (1..100).take_while(|depth| mispredicted(*depth) == 0).last().unwrap_or(0) as f64
}

/// The largest number of jumps, 16 bytes apart, that fetch knows in the second round.
fn targets(geometry: &Geometry) -> f64 {
    const STEP: u64 = 16;
    const JUMPS: u64 = 256;
    let geometry = Geometry { has_target_buffer: true, ..*geometry };
    let jump = |place: u64| {
        let pc = PC + STEP * place;
        let insn = Insn { pc, length: 4, uops: 1, ..Insn::default() };
        let branch = Branch { kind: BranchKind::Jump, pc, fall_through: pc + 4 };
        let line = (1 << 20) + place / 4;
        Block::new(Privilege::User, geometry.width, (line, line), branch, &[insn])
    };
    let are_known = |count: &u64| {
        let mut core = Core::new(&geometry);
        let mut round = || {
            (0..*count).for_each(|place| {
                core.fetch(&jump(place));
                core.retire(&jump(place), PC + STEP * ((place + 1) % count));
            });
            core.counts()[0][Signal::Resteers]
        };
        round() == round()
    };
    (1..100).map(|count| count * JUMPS).take_while(are_known).last().unwrap_or(0) as f64
}

/// A line of code with `insns` instructions, which fill it.
fn line(geometry: &Geometry, number: u64, insns: u64) -> Block {
    let length = 64 / insns;
    let insn = |index| Insn {
        pc: PC + 64 * number + length * index,
        length: if index + 1 == insns { 64 - length * index } else { length } as u8,
        uops: 1,
        ..Insn::default()
    };
    let insns: Vec<Insn> = (0..insns).map(insn).collect();
    let line = (1 << 20) + number;
    Block::new(Privilege::User, geometry.width, (line, line), Branch::default(), &insns)
}

/// Runs the lines `rounds` times; returns the core.
fn run_lines(geometry: &Geometry, lines: &[Block], rounds: usize) -> Core {
    let mut geometry = Geometry { has_uop_cache: true, ..*geometry };
    (geometry.perfect.l1i, geometry.perfect.itlb) = (true, true);
    let mut core = Core::new(&geometry);
    for _ in 0..rounds {
        for line in lines {
            core.fetch(line);
            core.retire(line, 0);
        }
    }
    core
}

/// The largest number of micro-operations of which none is decoded twice.
fn cached(geometry: &Geometry) -> f64 {
    // Each line has as many micro-operations as some entries have.
    let entry = u64::from(geometry.decode.entry_uops);
    let insns = 16 / entry * entry;
    let are_cached = |count: &u64| {
        let lines: Vec<Block> = (0..*count).map(|number| line(geometry, number, insns)).collect();
        let decoded = |rounds| run_lines(geometry, &lines, rounds).counts()[0][Signal::UopsDecoded];
        decoded(1) == decoded(2)
    };
    let lines = (1..1_000).map(|times| 16 * times).take_while(are_cached).last();
    (lines.unwrap_or(0) * insns) as f64
}

/// Instructions per cycle of code that does not fit in the micro-op cache.
fn decoded(geometry: &Geometry) -> f64 {
    let lines: Vec<Block> = (0..2_000).map(|number| line(geometry, number, 16)).collect();
    let mut core = run_lines(geometry, &lines, 1);
    let insns = core.counts()[0][Signal::Instructions];
    insns as f64 / (core.clock() as f64 / f64::from(geometry.width))
}

/// The extra cycles of a branch that is mispredicted half the time, per misprediction.
fn misprediction(geometry: &Geometry) -> f64 {
    let branch = Operation { unit: Unit::Branch, ..Operation::default() };
    let block = block(geometry, BranchKind::Cond, &[branch]);
    let run = |geometry: &Geometry| {
        let (mut core, mut state) = (Core::new(geometry), 9u64);
        for _ in 0..100_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            core.fetch(&block);
            core.retire(&block, if state >> 63 == 1 { PC + 64 } else { PC + 4 });
        }
        let wrong = core.counts()[0][Signal::MispredictCond];
        (core.clock() as f64 / f64::from(geometry.width), wrong)
    };
    let mut perfect = *geometry;
    perfect.perfect.branch = true;
    let ((slow, wrong), (fast, _)) = (run(geometry), run(&perfect));
    (slow - fast) / wrong.max(1) as f64
}
