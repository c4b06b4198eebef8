//! Retirement in bundles: which instructions retire together, and when a bundle ends.

mod common;

use common::{Ran, load_op, op, store_op, user_counts, warm_cycles};
use tally_model::{Counts, Geometry, PipelineMode, Signal, Unit};

const PC: u64 = 0x40_0000;
const DATA: u64 = 0x1000_0000;

/// `count` instructions of a straight line of code that fits in the L1. Its end continues at its
/// start.
fn line(count: usize, ran: impl Fn(u64, usize) -> Ran) -> Vec<Ran> {
    let at = |at: usize| {
        let ran = ran(PC + 4 * (at as u64 % 1024), at);
        let next_pc = if at % 1024 == 1023 { PC } else { ran.next_pc };
        Ran { next_pc, ..ran }
    };
    (0..count).map(at).collect()
}

/// An addition that depends on no other.
fn add(pc: u64, at: usize) -> Ran {
    Ran::new(pc, op(Unit::Integer, &[], (at % 14) as u8))
}

fn in_mode(mode: PipelineMode) -> Geometry {
    let mut geometry = Geometry::ICELAKE_SERVER.out_of_order(mode);
    geometry.perfect.dtlb = true;
    geometry
}

#[test]
fn one_bundle_retires_in_a_cycle() {
    let stream = line(20_000, add);
    let each = |mode| warm_cycles(&in_mode(mode), &stream) as f64 / stream.len() as f64;
    for most in [2, 3, 4] {
        let (found, expected) = (each(PipelineMode::Bundles(most)), 1.0 / f64::from(most));
        assert!((found - expected).abs() < 0.03 * expected, "{most}: {found}, not {expected}");
    }
}

/// Additions that depend on one another.
fn chain() -> Vec<Ran> {
    line(50_000, |pc, _| Ran::new(pc, op(Unit::FpAdd, &[1], 1)))
}

#[test]
fn instructions_of_a_bundle_retire_together() {
    let count = |mode| user_counts(&in_mode(mode), &chain());
    let [real, bundles] = [PipelineMode::Real, PipelineMode::Bundles(5)].map(count);
    assert_eq!(bundles[Signal::Uops], real[Signal::Uops]);
    let retiring = |counts: &Counts| counts[Signal::RetireCycles];
    assert!((49_900..=50_000).contains(&retiring(&real)), "{}", retiring(&real));
    assert!((9_999..=10_010).contains(&retiring(&bundles)), "{}", retiring(&bundles));
}

/// The whole gap before a bundle is charged to the wait of its last instruction.
#[test]
fn a_gap_is_charged_to_the_bundle_s_last_instruction() {
    let counts = user_counts(&in_mode(PipelineMode::Bundles(5)), &chain());
    let gaps: u64 = Signal::RESUMED.iter().map(|signal| counts[*signal]).sum();
    let units = counts[Signal::ResumedFp];
    assert!(units * 100 >= gaps * 95, "{units} of {gaps}");
}

/// Without the new bundle, the store would wait for the load's retirement and the load for the
/// store's.
#[test]
fn a_load_of_what_the_bundle_stores_begins_another() {
    let pairs = line(4_000, |pc, at| {
        let address = DATA + 8 * (at as u64 / 2 % 8);
        match at % 2 {
            0 => Ran::new(pc, store_op(15, 3)).store(address),
            _ => Ran::new(pc, load_op(15, (at % 14) as u8)).load(address),
        }
    });
    let counts = user_counts(&in_mode(PipelineMode::Bundles(16)), &pairs);
    assert_eq!(counts[Signal::Forwards], 2_000);
    let retiring = counts[Signal::RetireCycles];
    assert!((1_950..=2_050).contains(&retiring), "{retiring} bundles of a load and a store");
}
