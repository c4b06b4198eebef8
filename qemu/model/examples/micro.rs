//! Runs published micro-benchmarks on the model and writes their results.
//!
//! `cargo run --release -p tally-model --example micro` writes, beside this crate's manifest,
//! `docs/branches.svg`: the mispredictions of a branch with a repeated pattern; and
//! `docs/micro.csv`: these, and the cycles of dependent chains, independent work, and streams from
//! each level.

use std::{error::Error, fs, path::Path};

use plotters::prelude::*;
use tally_model::{
    Access, Block, Branch, BranchKind, Core, Geometry, Insn, Operation, PipelineMode, Privilege,
    RegisterSet, Signal, Unit,
};

const PC: u64 = 0x40_0000;
const UNITS: [(&str, Unit); 7] = [
    ("integer", Unit::Integer),
    ("shift", Unit::Shift),
    ("multiply", Unit::Multiply),
    ("vector", Unit::Vector),
    ("fp add", Unit::FpAdd),
    ("fp multiply", Unit::FpMultiply),
    ("convert", Unit::Convert),
];

/// A block of instructions with these operations, in one line of code.
fn block(geometry: &Geometry, branch: BranchKind, operations: &[Operation]) -> Block {
    let insns: Vec<_> = (PC..)
        .step_by(4)
        .zip(operations)
        .map(|(pc, operation)| Insn {
            pc,
            length: 4,
            uops: 1,
            operation: *operation,
            ..Insn::default()
        })
        .collect();
    let end = PC + 4 * operations.len() as u64;
    let branch = Branch { kind: branch, pc: end - 4, fall_through: end };
    Block::new(Privilege::User, geometry.width, (1 << 20, 1 << 20), branch, &insns)
}

/// Cycles of an instruction on a unit, in a dependent chain or independent.
fn computing(geometry: &Geometry, unit: Unit, chained: bool) -> f64 {
    let operations: Vec<_> = (0..14)
        .map(|register| {
            let result = RegisterSet::general(if chained { 0 } else { register });
            let reads = if chained { result } else { RegisterSet::NONE };
            Operation { unit, reads, writes: result, ..Operation::default() }
        })
        .collect();
    let block = block(geometry, BranchKind::None, &operations);
    let mut core = Core::new(geometry);
    let mut run = || {
        for _ in 0..2000 {
            core.fetch(&block);
            core.retire(&block, PC);
        }
        core.clock()
    };
    let warm = run();
    (run() - warm) as f64 / f64::from(geometry.width) / (2000.0 * 14.0)
}

/// Cycles for a line of a stream of eight-byte loads over `bytes`.
fn stream(geometry: &Geometry, bytes: u64) -> f64 {
    let load = |register| Operation {
        address: RegisterSet::general(15),
        writes: RegisterSet::general(register),
        ..Operation::default()
    };
    let block = block(geometry, BranchKind::None, &[0, 1, 2, 3, 4, 5, 6, 7].map(load));
    let mut core = Core::new(geometry);
    let mut run = || {
        for line in 0..bytes / 64 {
            core.fetch(&block);
            for insn in 0..8 {
                let address = 0x1000_0000 + 64 * line + 8 * insn as u64;
                let access = Access { address, bytes: 8, retires: true, insn };
                core.access::<false>(&block, access, |address| address);
            }
            core.retire(&block, PC);
        }
        core.clock()
    };
    let warm = run();
    (run() - warm) as f64 / f64::from(geometry.width) / (bytes / 64) as f64
}

/// The share of mispredictions of a branch that repeats a random pattern of `period` outcomes.
fn mispredicted(period: usize) -> f64 {
    let mut state = 9u64;
    let pattern: Vec<_> = (0..period)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 63 == 1
        })
        .collect();
    let geometry = Geometry::ICELAKE_SERVER;
    let branch = Operation { unit: Unit::Branch, ..Operation::default() };
    let block = block(&geometry, BranchKind::Cond, &[branch]);
    let mut core = Core::new(&geometry);
    let mut run = |times: usize| {
        for at in 0..times {
            core.fetch(&block);
            core.retire(&block, if pattern[at % period] { PC + 64 } else { PC + 4 });
        }
        core.counts()[0][Signal::MispredictCond]
    };
    let times = 100 * period.max(1000);
    let warm = run(times);
    (run(times) - warm) as f64 / times as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut csv = String::from("profile,benchmark,of,value,unit\n");
    for (name, geometry) in Geometry::ALL {
        let mut geometry = geometry.out_of_order(PipelineMode::Real);
        geometry.perfect.dtlb = true;
        for (unit_name, unit) in UNITS {
            for (benchmark, chained) in [("chain", true), ("independent", false)] {
                let cycles = computing(&geometry, unit, chained);
                csv += &format!("{name},{benchmark},{unit_name},{cycles:.2},cycles\n");
            }
        }
        for (level, bytes) in [
            ("L1", geometry.l1d.bytes() / 2),
            ("L2", geometry.l2.bytes() / 2),
            ("last level", geometry.l2.bytes() * 2),
            ("memory", geometry.llc.bytes() * 2),
        ] {
            let cycles = stream(&geometry, bytes);
            csv += &format!("{name},stream,{level},{cycles:.2},cycles a line\n");
        }
    }
    let periods = (2..14).flat_map(|power| (4..8).map(move |quarter| (quarter << power) / 4));
    let points: Vec<_> = periods.map(|period| (period, mispredicted(period))).collect();
    for (period, share) in &points {
        csv += &format!("all,pattern,{period},{:.2},mispredictions in 100\n", 100.0 * share);
    }
    fs::write(docs.join("micro.csv"), csv)?;
    draw(&docs.join("branches.svg"), &points)
}

fn draw(path: &Path, points: &[(usize, f64)]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (800, 360)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("A branch that repeats a random pattern", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d((4f64..16384.0).log_scale().base(2.0), 0f64..55.0)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .x_desc("outcomes until the pattern repeats")
        .y_desc("mispredictions in 100 branches")
        .draw()?;
    let points = points.iter().map(|(period, share)| (*period as f64, 100.0 * share));
    chart.draw_series(LineSeries::new(points, BLUE.stroke_width(2)))?;
    area.present()?;
    Ok(())
}
