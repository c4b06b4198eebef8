//! The branch target buffer on streams whose branches fit in it, and on those with more branches.

mod common;

use common::{Ran, op, user_counts};
use tally_model::{BranchKind, Counts, Geometry, PipelineMode, Signal, Unit};

const PC: u64 = 0x40_0000;
/// Bytes from a branch to the next.
const STEP: u64 = 16;
const ROUNDS: u64 = 50_000;

fn machines() -> impl Iterator<Item = (&'static str, Geometry)> {
    Geometry::ALL.iter().map(|(name, geometry)| {
        let mut geometry = Geometry { has_target_buffer: true, ..*geometry };
        // No other delays of fetch.
        (geometry.perfect.l1i, geometry.perfect.itlb, geometry.perfect.stlb) = (true, true, true);
        (*name, geometry)
    })
}

/// `count` jumps in a circle, repeated.
fn jumps(count: u64) -> Vec<Ran> {
    let jump = |at: u64| {
        let next = PC + STEP * ((at + 1) % count);
        Ran::new(PC + STEP * (at % count), op(Unit::None, &[], 15)).branch(BranchKind::Jump, next)
    };
    (0..ROUNDS).map(jump).collect()
}

fn cycles_each(geometry: &Geometry, counts: &Counts) -> f64 {
    counts[Signal::Slots] as f64 / f64::from(geometry.width) / ROUNDS as f64
}

#[test]
fn jumps_that_the_buffer_has_cost_a_cycle() {
    for (name, geometry) in machines() {
        let geometry = geometry.out_of_order(PipelineMode::Real);
        let counts = user_counts(&geometry, &jumps(1_000));
        assert!((1_000..1_100).contains(&counts[Signal::Resteers]), "{name}");
        let cycles = cycles_each(&geometry, &counts);
        assert!((1.0..1.3).contains(&cycles), "{name}: {cycles}");
    }
}

#[test]
fn jumps_that_it_has_not_wait_until_they_are_decoded() {
    for (name, geometry) in machines() {
        let out_of_order = geometry.out_of_order(PipelineMode::Real);
        let stream = jumps(25_000);
        let counts = user_counts(&out_of_order, &stream);
        assert!(counts[Signal::Resteers] > 45_000, "{name}: {}", counts[Signal::Resteers]);
        let cycles = cycles_each(&out_of_order, &counts);
        let penalty = f64::from(geometry.latency.resteer_cycles);
        assert!((penalty - 0.5..penalty + 1.0).contains(&cycles), "{name}: {cycles}");
        // Fetch waits neither for a line nor for a misprediction.
        let waited = counts[Signal::StallFrontEnd] as f64 / ROUNDS as f64;
        assert!((penalty - 2.0..=cycles).contains(&waited), "{name}: {waited}");

        let interval = user_counts(&geometry, &stream);
        assert_eq!(interval[Signal::Resteers], counts[Signal::Resteers], "{name}");
        let ratio = cycles_each(&geometry, &interval) / cycles;
        assert!((0.9..1.1).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn branches_that_are_not_taken_or_mispredicted_are_none_of_it() {
    for (name, geometry) in machines() {
        let stream: Vec<Ran> = (0..ROUNDS)
            .map(|at| {
                let pc = PC + 4 * (at % 30_000);
                let next = if at % 30_000 == 29_999 { PC } else { pc + 4 };
                let ran = Ran::new(pc, op(Unit::None, &[], 15)).branch(BranchKind::Cond, next);
                Ran { next_pc: next, ..ran }
            })
            .collect();
        let counts = user_counts(&geometry, &stream);
        assert!(counts[Signal::Resteers] <= 1, "{name}: {}", counts[Signal::Resteers]);
        assert_eq!(
            user_counts(&Geometry { has_target_buffer: false, ..geometry }, &jumps(25_000))
                [Signal::Resteers],
            0,
            "{name}"
        );
    }
}
