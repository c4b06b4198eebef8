//! The speed of the model alone, on a stream like a compressor's: short blocks, a load or store in
//! every third instruction, mostly near the last one, and some branches that are hard to predict.

use std::{hint::black_box, time::Instant};

use tally_model::{
    Access, Block, Branch, BranchKind, Core, Counts, Geometry, Insn, Operation, PipelineMode,
    Privilege, RegisterSet, Signal, Unit,
};

const BLOCKS: usize = 600;
const STEPS: usize = 1 << 20;

/// Data requests that missed the L2.
const LLC_DATA: [Signal; 4] =
    [Signal::LlcReadHit, Signal::LlcReadMiss, Signal::LlcRfoHit, Signal::LlcRfoMiss];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn block(random: &mut Random, pc: u64) -> Block {
    let count = 2 + random.below(8);
    let mut insns: Vec<_> = (0..count)
        .map(|index| {
            let mut insn = Insn { pc: pc + 4 * index, length: 4, uops: 1, ..Insn::default() };
            let register = |random: &mut Random| RegisterSet::general(random.below(16) as u8);
            insn.operation = Operation {
                unit: Unit::Integer,
                address: register(random),
                reads: register(random) | register(random),
                writes: register(random) | RegisterSet::FLAGS,
            };
            if random.below(50) == 0 {
                insn.add(Signal::Nops);
            }
            insn
        })
        .collect();
    let last = &mut insns[count as usize - 1];
    last.add(Signal::Branches);
    last.add(Signal::BranchCond);
    let end = pc + 4 * count;
    let branch = Branch { kind: BranchKind::Cond, pc: last.pc, fall_through: end };
    Block::new(Privilege::User, 5, (pc >> 6, (end - 1) >> 6), branch, &insns)
}

/// The blocks of the stream, one after the other.
fn blocks(random: &mut Random) -> Vec<Block> {
    let mut pc = 0x40_0000;
    let mut blocks = Vec::new();
    for _ in 0..BLOCKS {
        blocks.push(block(random, pc));
        pc += 4 * blocks[blocks.len() - 1].insns().len() as u64;
    }
    blocks
}

/// Runs the stream; returns million instructions a second.
fn run(geometry: &Geometry) -> f64 {
    let mut random = Random(42);
    let blocks = blocks(&mut random);
    let mut core = Core::new(geometry);
    let (mut at, mut stream, mut phase) = (0, 0u64, 0u64);
    let start = Instant::now();
    for step in 0..STEPS {
        let block = &blocks[at];
        core.fetch(block);
        for index in 0..block.insns().len() {
            if index % 3 != 0 {
                continue;
            }
            stream += 8;
            let address = match (step + index) % 64 {
                0..32 => 0x7fff_0000 + (index as u64 * 8) % 512,
                32..60 => 0x100_0000 + (stream & 0x7fff),
                60..63 => 0x200_0000 + (random.next() & 0x3_ffff),
                _ => 0x300_0000 + (random.next() & 0x1ff_ffff),
            };
            let access = Access { address, bytes: 1, retires: true, insn: index };
            match index % 2 {
                0 => core.access::<false>(block, access, |address| address),
                _ => core.access::<true>(block, access, |address| address),
            }
        }
        phase = phase.wrapping_mul(6364136223846793005).wrapping_add(at as u64 | 1);
        // Most branches follow a pattern; every seventh is hard to predict.
        let taken = if at % 7 == 0 { phase >> 62 == 0 } else { step / 3 % (2 + at % 5) == 0 };
        at = if taken { (at * 7 + 3) % BLOCKS } else { (at + 1) % BLOCKS };
        core.retire(block, blocks[at].insns()[0].pc);
    }
    let seconds = start.elapsed().as_secs_f64();
    print_misses(black_box(&core.counts()[0]));
    core.counts()[0][Signal::Instructions] as f64 / seconds / 1e6
}

fn print_misses(user: &Counts) {
    let instructions = user[Signal::Instructions];
    eprintln!(
        "  per 1000 instructions: {} mispredictions, {} L1D misses, {} L2 misses",
        user[Signal::MispredictCond] * 1000 / instructions,
        user[Signal::L1dFills] * 1000 / instructions,
        LLC_DATA.iter().map(|signal| user[*signal]).sum::<u64>() * 1000 / instructions,
    );
}

fn main() {
    for (name, geometry) in [("icelake-server", Geometry::ICELAKE_SERVER), ("zen4", Geometry::ZEN4)]
    {
        let best = |geometry| (0..5).map(|_| run(&geometry)).fold(0.0, f64::max);
        let interval = best(geometry);
        if std::env::args().len() > 1 {
            println!("{name}: interval {interval:.0} million instructions a second");
            continue;
        }
        let ooo = best(geometry.out_of_order(PipelineMode::Real));
        println!("{name}: interval {interval:.0}, ooo {ooo:.0} million instructions a second");
    }
}
