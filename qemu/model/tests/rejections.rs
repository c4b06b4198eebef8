//! Rejections: loads whose address only looks like an older store's, and loads that were executed
//! ahead of a store that they depend on.

mod common;

use common::{Ran, load_op, op, store_op, user_counts};
use tally_model::{Counts, Geometry, PipelineMode, Signal, Unit};

const PC: u64 = 0x40_0000;
const DATA: u64 = 0x1000_0000;
const PAGE: u64 = 4096;
const ROUNDS: u64 = 2_000;

fn count(geometry: &Geometry, has_rejections: bool, stream: &[Ran]) -> Counts {
    let mut geometry = Geometry { has_rejections, ..geometry.out_of_order(PipelineMode::Real) };
    geometry.perfect.dtlb = true;
    user_counts(&geometry, stream)
}

/// Repeats a round of instructions.
fn rounds(round: impl Fn(u64) -> Vec<Ran>) -> Vec<Ran> {
    let all = (0..ROUNDS).flat_map(|at| {
        let mut round = round(at);
        let last = round.len() - 1;
        round[last].next_pc = PC;
        round
    });
    all.collect()
}

/// A store, followed by a load `distance` bytes further on.
fn apart(distance: u64) -> Vec<Ran> {
    rounds(|at| {
        let address = DATA + 8 * (at % 64);
        vec![
            Ran::new(PC, store_op(15, 3)).store(address),
            Ran::new(PC + 4, load_op(15, 4)).load(address + distance),
        ]
    })
}

#[test]
fn a_load_is_issued_again_for_a_store_to_another_page_with_its_low_bits() {
    for (name, geometry) in Geometry::ALL {
        let compares = geometry.backend.alias_cycles == 0;
        for (distance, is_alias) in [(PAGE, true), (8 * PAGE, true), (PAGE + 2048, false)] {
            let stream = apart(distance);
            let aliased = count(geometry, true, &stream)[Signal::AliasedLoads];
            let expected = if is_alias && !compares { ROUNDS } else { 0 };
            assert!(aliased.abs_diff(expected) <= ROUNDS / 20, "{name}, {distance}: {aliased}");
            assert_eq!(count(geometry, false, &stream)[Signal::AliasedLoads], 0, "{name}");
        }
    }
}

/// A store whose address is known late, followed by a load. In one of `often` rounds the load reads
/// the stored bytes; in the others it reads other bytes.
fn late_stores(often: u64) -> Vec<Ran> {
    rounds(|at| {
        let conflicts = at % often == often - 1;
        let late = (0..6).map(|at| Ran::new(PC + 4 * at, op(Unit::Multiply, &[1], 1)));
        let address = DATA + 8 * (at % 64);
        let loaded = if conflicts { address } else { address + 1024 };
        let store = Ran::new(PC + 24, store_op(1, 3)).store(address);
        late.chain([store, Ran::new(PC + 28, load_op(15, 4)).load(loaded)]).collect()
    })
}

#[test]
fn a_load_ahead_of_a_store_that_it_follows_clears_the_pipeline() {
    for (name, geometry) in Geometry::ALL {
        // After fifteen executions without a violation a load does not wait. A load with more
        // frequent violations always waits, and nothing has to be cleared.
        for (often, expected) in [(40, ROUNDS / 40), (20, ROUNDS / 20), (10, 0), (1, 0)] {
            let stream = late_stores(often);
            let counts = count(geometry, true, &stream);
            let clears = counts[Signal::MachineClears];
            assert!(clears.abs_diff(expected) <= 1, "{name}, {often}: {clears}");
            let without = count(geometry, false, &stream);
            assert_eq!(without[Signal::MachineClears], 0, "{name}");
            let wrong = counts[Signal::SlotsWrongPath] + counts[Signal::SlotsRefill];
            assert_eq!(wrong > 0, clears > 0, "{name}, {often}: {wrong} slots");
            assert!(clears == 0 || counts[Signal::Slots] > without[Signal::Slots], "{name}");
        }
    }
}
