//! Wrong paths: the lines that fetch requests behind mispredicted branches, and the effects of
//! that. The code there is unknown; `followed_paths.rs` has the paths with known code.

mod common;

use common::{Ran, Random, op, user_counts};
use tally_model::{BranchKind, Counts, Geometry, Signal, Unit};

const PC: u64 = 0x40_0000;
const PAGE: u64 = 4096;
const LINE: u64 = 64;
const ROUNDS: u64 = 20_000;
const BRANCHES: u64 = 400;

/// The counts with wrong paths and without.
fn both(geometry: &Geometry, stream: &[Ran]) -> [Counts; 2] {
    [true, false]
        .map(|has_wrong_paths| user_counts(&Geometry { has_wrong_paths, ..*geometry }, stream))
}

/// Lines that fetch reaches while a branch is resolved.
fn lines(geometry: &Geometry) -> u64 {
    let bytes = geometry.latency.mispredict_cycles * u32::from(geometry.decode.fetch_bytes);
    u64::from(bytes).div_ceil(LINE)
}

fn more(counts: &[Counts; 2], signal: Signal) -> u64 {
    counts[0][signal] - counts[1][signal]
}

/// Branches that are not taken, one in every second page, and that are predicted taken, as unknown
/// branches are. A target is `distance` bytes behind the branch. The jump after a branch leads to
/// the next branch; with `visits` by way of the target.
fn branches(distance: u64, visits: bool) -> Vec<Ran> {
    let none = || op(Unit::None, &[], 15);
    let mut stream = Vec::new();
    for at in 0..BRANCHES {
        // The branch is the last instruction of a line.
        let pc = PC + 2 * at * PAGE + LINE - 4;
        let (target, next) = (pc + distance, pc + 2 * PAGE);
        let branch = Ran::new(pc, none()).branch(BranchKind::Cond, target);
        stream.push(Ran { next_pc: pc + 4, ..branch });
        let behind = Ran::new(pc + 4, none());
        if visits {
            stream.push(behind.branch(BranchKind::Jump, target));
            stream.push(Ran::new(target, none()).branch(BranchKind::Jump, next));
        } else {
            stream.push(behind.branch(BranchKind::Jump, next));
        }
    }
    stream
}

#[test]
fn code_at_a_predicted_target_is_fetched_though_it_does_not_run() {
    let stream = branches(10 * LINE, false);
    for (name, geometry) in Geometry::ALL {
        let counts = both(geometry, &stream);
        let mispredicted = counts[0][Signal::Mispredicts];
        assert!(mispredicted > BRANCHES / 2, "{name}: {mispredicted}");
        assert_eq!(counts[1][Signal::Mispredicts], mispredicted, "{name}");
        // The target's line misses, and there the wrong path ends.
        assert_eq!(more(&counts, Signal::L1iMiss), mispredicted, "{name}");
    }
}

#[test]
fn code_that_a_wrong_path_has_fetched_is_there_when_it_runs() {
    let stream = branches(10 * LINE, true);
    for (name, geometry) in Geometry::ALL {
        let [with, without] = both(geometry, &stream);
        assert!(with[Signal::Mispredicts] > BRANCHES / 2, "{name}");
        // The program does not miss lines that the wrong path has fetched.
        assert_eq!(with[Signal::L1iMiss], without[Signal::L1iMiss], "{name}");
        assert!(with[Signal::StallL1i] < without[Signal::StallL1i], "{name}");
    }
}

#[test]
fn fetch_goes_on_until_the_branch_is_resolved() {
    let mut random = Random(7);
    // All code is in the cache after the first round: a branch to the line of its target, or to the
    // next line, and back.
    let target = PC + 32 * LINE;
    let of = |random: &mut Random| {
        let taken = random.below(2) == 1;
        let branch = Ran::new(PC, op(Unit::None, &[], 15)).branch(BranchKind::Cond, target);
        let next_pc = if taken { target } else { PC + 4 };
        let back = Ran::new(next_pc, op(Unit::None, &[], 15)).branch(BranchKind::Jump, PC);
        [Ran { next_pc, ..branch }, back]
    };
    let stream: Vec<Ran> = (0..ROUNDS).flat_map(|_| of(&mut random)).collect();
    for (name, geometry) in Geometry::ALL {
        let counts = both(geometry, &stream);
        let mispredicted = counts[0][Signal::Mispredicts];
        assert!(mispredicted > ROUNDS / 3, "{name}: {mispredicted}");
        let hits = more(&counts, Signal::L1iHit) as f64 / mispredicted as f64;
        // The wrong path's own lines; and if the right path was in the last line, it fetches that
        // again.
        let wanted = lines(geometry) as f64;
        assert!((wanted..wanted + 1.0).contains(&hits), "{name}: {hits}, {wanted}");
        assert!(more(&counts, Signal::L1iMiss) <= 2 * lines(geometry), "{name}");
    }
}

#[test]
fn a_page_without_a_translation_is_not_fetched() {
    let stream = branches(PAGE, false);
    for (name, geometry) in Geometry::ALL {
        let counts = both(geometry, &stream);
        assert!(counts[0][Signal::Mispredicts] > BRANCHES / 2, "{name}");
        for signal in [Signal::L1iMiss, Signal::L1iHit, Signal::ItlbHit, Signal::ItlbWalks] {
            assert_eq!(more(&counts, signal), 0, "{name}: {signal:?}");
        }
    }
}
