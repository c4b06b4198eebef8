//! Perfect units and endless queues: the cycles that they save, and that they change nothing else.

mod common;

use common::{Ran, is_timed, load_op, op, stream, user_counts, warm_cycles};
use tally_model::{BranchKind, Counts, Geometry, Perfect, PipelineMode, Signal, Unit};

const PC: u64 = 0x40_0000;
const DATA: u64 = 0x1000_0000;
/// Instructions of a stream.
const COUNT: usize = 20_000;

/// The processor with code and translations that cost nothing, and with these structures perfect.
fn with(geometry: &Geometry, names: &[&str]) -> Geometry {
    let mut perfect = Perfect { l1i: true, itlb: true, dtlb: true, ..Perfect::default() };
    assert!(names.iter().all(|name| perfect.set(name)));
    Geometry { perfect, ..geometry.out_of_order(PipelineMode::Real) }
}

/// Instructions of a straight line of code that fits in the L1. Its end continues at its start.
fn line(ran: impl Fn(u64, usize) -> Ran) -> Vec<Ran> {
    let at = |at: usize| {
        let ran = ran(PC + 4 * (at as u64 % 1024), at);
        let next_pc = if at % 1024 == 1023 { PC } else { ran.next_pc };
        Ran { next_pc, ..ran }
    };
    (0..COUNT).map(at).collect()
}

/// Cycles per instruction.
fn each(geometry: &Geometry, stream: &[Ran]) -> f64 {
    warm_cycles(geometry, stream) as f64 / stream.len() as f64
}

fn near(found: f64, expected: f64, name: &str) {
    assert!((found - expected).abs() < 0.03 * expected, "{name}: {found}, not {expected}");
}

#[test]
fn a_chain_of_divisions_becomes_as_fast_as_one_of_additions() {
    for (name, geometry) in Geometry::ALL {
        for unit in [Unit::Divide, Unit::FpDivide, Unit::Multiply, Unit::FpAdd] {
            let chain = line(|pc, _| Ran::new(pc, op(unit, &[1], 1)));
            assert!(each(&with(geometry, &[]), &chain) > 2.5, "{name} {unit:?}");
            near(each(&with(geometry, &["units"]), &chain), 1.0, name);
        }
    }
}

#[test]
fn independent_operations_are_limited_by_dispatch_alone() {
    for (name, geometry) in Geometry::ALL {
        let divisions = line(|pc, at| Ran::new(pc, op(Unit::Divide, &[15], (at % 14) as u8)));
        let loads = line(|pc, at| {
            Ran::new(pc, load_op(15, (at % 14) as u8)).load(DATA + 8 * (at as u64 % 64))
        });
        let least = 1.0 / f64::from(geometry.width);
        for stream in [divisions, loads] {
            assert!(each(&with(geometry, &[]), &stream) > 1.2 * least, "{name}");
            near(each(&with(geometry, &["units"]), &stream), least, name);
        }
    }
}

/// Loads that miss every cache and do not depend on each other, each followed by 99 additions. The
/// reorder buffer holds several such groups.
fn misses() -> Vec<Ran> {
    line(|pc, at| match at % 100 {
        0 => Ran::new(pc, load_op(15, 14)).load(DATA + ((at as u64) << 12)),
        _ => Ran::new(pc, op(Unit::Integer, &[], (at % 14) as u8)),
    })
}

#[test]
fn independent_misses_overlap_further_in_endless_queues() {
    for (name, geometry) in Geometry::ALL {
        let counts = |names: &[&str]| user_counts(&with(geometry, names), &misses());
        let cycles = |counts: &Counts| counts[Signal::Slots] / u64::from(geometry.width);
        let (real, endless) = (counts(&[]), counts(&["queues"]));
        let (slow, fast) = (cycles(&real), cycles(&endless));
        assert!(fast * 2 < slow, "{name}: {fast}, not less than half of {slow}");
        assert!(real[Signal::FullReorder] > 0, "{name}");
        let waits =
            [Signal::FullReorder, Signal::FullLoads, Signal::FullStores, Signal::FullScheduler];
        assert_eq!(waits.map(|signal| endless[signal]), [0; 4], "{name}");
    }
}

/// Endless queues do not make a chain faster, as nothing in it could be executed ahead.
#[test]
fn a_chain_gains_nothing_from_endless_queues() {
    for (name, geometry) in Geometry::ALL {
        let chain = line(|pc, _| Ran::new(pc, op(Unit::Divide, &[1], 1)));
        let cycles = |names: &[&str]| each(&with(geometry, names), &chain);
        near(cycles(&["queues"]), cycles(&[]), name);
        near(cycles(&["units", "queues"]), 1.0, name);
    }
}

#[test]
fn what_is_counted_but_time_stays() {
    for (name, geometry) in Geometry::ALL {
        for seed in 1..=3 {
            let stream = stream::stream(seed, COUNT);
            let real = user_counts(&with(geometry, &[]), &stream);
            for names in [&["units"][..], &["queues"], &["units", "queues"]] {
                let perfect = user_counts(&with(geometry, names), &stream);
                for signal in Signal::ALL.iter().filter(|signal| !is_timed(**signal)) {
                    assert_eq!(perfect[*signal], real[*signal], "{name} {names:?} {signal:?}");
                }
                assert!(perfect[Signal::Slots] <= real[Signal::Slots], "{name} {names:?}");
            }
        }
    }
}

/// A loop of `adds` additions, with a division by the same divisor if `divides`, and its branch.
fn small_loop(adds: usize, divides: bool) -> Vec<Ran> {
    let body = adds + usize::from(divides) + 1;
    let at = |at: usize| {
        let (index, pc) = (at % body, PC + 4 * (at % body) as u64);
        if index + 1 == body {
            return Ran::new(pc, op(Unit::Branch, &[], 15)).branch(BranchKind::Jump, PC);
        }
        let unit = if divides && index == 0 { Unit::Divide } else { Unit::Integer };
        Ran::new(pc, op(unit, &[14], (index % 14) as u8))
    };
    (0..COUNT / body * body).map(at).collect()
}

/// Fetch follows one taken branch a cycle into the queue before dispatch. Dispatch loses slots to
/// that only where it waits for fetch: behind a divider the queue is full.
#[test]
fn slots_lost_to_fetch_are_the_cycles_that_perfect_fetch_saves() {
    for (name, geometry) in Geometry::ALL {
        for (adds, divides) in (0..14).flat_map(|adds| [(adds, false), (adds, true)]) {
            let stream = small_loop(adds, divides);
            // Without a divider nothing but dispatch may be slower than fetch.
            let names = if divides { ["fetch", "l1i"] } else { ["fetch", "units"] };
            let [real, perfect] =
                [&names[1..], &names].map(|names| user_counts(&with(geometry, names), &stream));
            let all = real[Signal::Slots] as f64;
            let saved = 1.0 - perfect[Signal::Slots] as f64 / all;
            let fetch = [Signal::SlotsFetchBandwidth, Signal::SlotsFetchLatency];
            let lost = fetch.map(|cause| real[cause]).iter().sum::<u64>() as f64 / all;
            assert!((lost - saved).abs() < 0.02, "{name}, {adds}, {divides}: {lost}, {saved}");
        }
    }
}
