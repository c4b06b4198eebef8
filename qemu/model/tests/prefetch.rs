//! The effect of hardware prefetchers on streams whose lines are known.

mod common;

use common::{Ran, Random, feed, load_op, op, stream::stream};
use tally_model::{BranchKind, Core, Counts, Geometry, PipelineMode, Prefetchers, Signal, Unit};

const PC: u64 = 0x40_0000;
const DATA: u64 = 0x1000_0000;
/// Lines of the streams.
const LINES: u64 = 16_384;

/// The machine with these prefetchers, and without misses of translations.
fn with(geometry: Geometry, on: Prefetchers) -> Geometry {
    let mut geometry = Geometry { prefetch: Some(on), ..geometry };
    assert!(geometry.perfect.set("dtlb"));
    geometry
}

fn both(geometry: Geometry) -> [Geometry; 2] {
    [geometry, geometry.out_of_order(PipelineMode::Real)]
}

/// Counts and cycles of a stream on a cold machine.
fn run(geometry: &Geometry, stream: &[Ran]) -> (Counts, u64) {
    let mut core = Core::new(geometry);
    feed(&mut core, stream, |_| false);
    let cycles = core.clock() / u64::from(geometry.width);
    (core.counts()[0].clone(), cycles)
}

/// A loop of one load, which takes these addresses.
fn loads(addresses: impl Iterator<Item = u64>, chases: bool) -> Vec<Ran> {
    let operation = if chases { load_op(1, 1) } else { load_op(2, 1) };
    let body = |address| {
        [
            Ran::new(PC, operation).load(address),
            Ran::new(PC + 4, op(Unit::Integer, &[3], 3)).branch(BranchKind::Jump, PC),
        ]
    };
    addresses.flat_map(body).collect()
}

/// Every line once, in order.
fn in_order(chases: bool) -> Vec<Ran> {
    loads((0..LINES).map(|line| DATA + 64 * line), chases)
}

/// The first signal in which two counts differ.
fn difference(one: &Counts, other: &Counts) -> Option<Signal> {
    Signal::ALL.iter().copied().find(|signal| one[*signal] != other[*signal])
}

#[test]
fn prefetchers_that_are_off_change_nothing() {
    let stream = stream(17, 20_000);
    for geometry in Geometry::ALL.iter().flat_map(|(_, geometry)| both(*geometry)) {
        let (none, _) = run(&geometry, &stream);
        let prefetching = |on| Geometry { prefetch: Some(on), ..geometry };
        let (off, _) = run(&prefetching(Prefetchers::NONE), &stream);
        assert_eq!(difference(&none, &off), None);
        let mut switched = Core::new(&prefetching(Prefetchers::ALL));
        switched.set_prefetchers(Prefetchers::NONE);
        feed(&mut switched, &stream, |_| false);
        assert_eq!(difference(&none, &switched.counts()[0]), None);
        let (on, _) = run(&prefetching(Prefetchers::ALL), &stream);
        assert!(difference(&none, &on).is_some());
    }
}

/// A single prefetcher.
fn only(name: &str) -> Prefetchers {
    let mut on = Prefetchers::NONE;
    assert!(on.set(name), "{name}");
    on
}

#[test]
fn a_stream_misses_at_the_start_of_each_page_alone() {
    let (stream, pages) = (in_order(false), LINES / 64);
    for (name, geometry) in Geometry::ALL {
        for geometry in both(*geometry) {
            let of = |on| run(&with(geometry, on), &stream);
            let memory = |on| of(on).0[Signal::LoadL3Miss];
            assert_eq!(memory(Prefetchers::NONE), LINES, "{name}");
            // A stride, and a stream of the L2, are detected at the third access.
            for prefetcher in ["l1-stride", "l2-stream"] {
                assert_eq!(memory(only(prefetcher)), 3 * pages, "{name}: {prefetcher}");
            }
            assert_eq!(memory(only("l2-pair")), LINES / 2, "{name}");
            assert!((pages..=2 * pages).contains(&memory(only("l1-next"))), "{name}");
            let (all, cycles) = of(Prefetchers::ALL);
            assert!(all[Signal::LoadL3Miss] <= 2 * pages, "{name}");
            assert!(all[Signal::LoadL1Hit] * 100 >= LINES * 95, "{name}");
            assert!(cycles * 19 <= of(Prefetchers::NONE).1 * 10, "{name}");
        }
    }
}

#[test]
fn a_line_that_is_on_its_way_is_waited_for() {
    let stream = in_order(true);
    for (name, geometry) in Geometry::ALL {
        let geometry = geometry.out_of_order(PipelineMode::Real);
        let line = |on| run(&with(geometry, on), &stream).1 as f64 / LINES as f64;
        let latency = f64::from(geometry.latency.memory_cycles);
        assert!((line(Prefetchers::NONE) / latency - 1.0).abs() < 0.01, "{name}");
        // One line ahead of a chase, a line is requested when the one before it arrives: in half of
        // the cases both are requested together.
        for prefetcher in ["l1-stride", "l1-next", "l2-pair"] {
            let share = line(only(prefetcher)) / latency;
            assert!((0.5..0.56).contains(&share), "{name}: {prefetcher}: {share}");
        }
        // Farther ahead, only the L2's latency and the start of each page remain.
        let l2 = f64::from(geometry.latency.l2_cycles);
        assert!(line(only("l2-stream")) > l2 && line(only("l2-stream")) < latency / 5.0, "{name}");
    }
}

#[test]
fn longer_strides_are_the_work_of_one_prefetcher() {
    let stream = loads((0..LINES).map(|step| DATA + 192 * step), false);
    for (name, geometry) in Geometry::ALL {
        let hits = |on| run(&with(*geometry, on), &stream).0[Signal::LoadL1Hit];
        assert!(hits(only("l1-stride")) * 100 > LINES * 85, "{name}");
        for other in ["l1-next", "l2-stream", "l2-pair"] {
            assert_eq!(hits(only(other)), 0, "{name}: {other}");
        }
    }
}

#[test]
fn what_has_no_pattern_gains_nothing() {
    let mut random = Random(5);
    let stream = loads((0..LINES).map(|_| DATA + 64 * random.below(1 << 20)), true);
    for (name, geometry) in Geometry::ALL {
        let geometry = geometry.out_of_order(PipelineMode::Real);
        let (none, cycles) = run(&with(geometry, Prefetchers::NONE), &stream);
        let (all, with_all) = run(&with(geometry, Prefetchers::ALL), &stream);
        assert_eq!(all[Signal::LoadL1Hit], none[Signal::LoadL1Hit], "{name}");
        assert!(with_all.abs_diff(cycles) * 50 < cycles, "{name}: {with_all} and {cycles}");
        // Each miss of the L2 fetches its neighbour.
        assert!(all[Signal::L2PrefetchLlcMiss] * 10 > LINES * 9, "{name}");
    }
}
