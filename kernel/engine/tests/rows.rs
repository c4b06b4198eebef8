//! Rows: data that overflow interrupts store until it is folded into the session.

mod fake;

use fake::{NoClock, Records, Simulated};
use proptest::prelude::*;
use tally_abi::{
    Reading, SessionConfig, Shares, Slice,
    trace::{End, SliceRecord, ThresholdRecord},
};
use tally_engine::{Demand, Layout, Multiplexer, Selector, Session, Sink, Widths};

const SLICE: u64 = 10_000;
/// Number of rows that fit into a multiplexer.
const ROWS: u64 = 62;

/// Records, and the number of requests for folding.
#[derive(Default)]
struct Asked(Records, u32);

impl Sink for Asked {
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        self.0.record(record);
    }

    fn fold_soon(&mut self) {
        self.1 += 1;
    }

    fn threshold(&mut self, _: ThresholdRecord) {}
}

/// Session and its CPU.
struct Bench {
    pmu: Simulated,
    multiplexer: Multiplexer<Simulated>,
    session: Session,
    sink: Asked,
}

impl Bench {
    /// Makes a session on eight events and three counters, which count.
    fn new(shares: Shares) -> Bench {
        let layout = Layout { general: 0b111, reference: false, extra: 0, widths: Widths::of(48) };
        let demands = (0..8).map(|event| Demand::general(Selector(event), 0xff)).collect();
        let slice = Slice::Cycles(SLICE);
        let config = SessionConfig { slice, shares, ..SessionConfig::default() };
        let pmu = Simulated::default();
        let mut bench = Bench {
            multiplexer: Multiplexer::new(pmu.clone(), 0, 0),
            pmu,
            session: Session::open(1, 0, config, 5, demands, &layout).unwrap(),
            sink: Asked::default(),
        };
        bench.multiplexer.resume(&mut bench.session, &NoClock, &mut bench.sink);
        bench
    }

    /// Runs the program through a slice with a number of events, and interrupts it.
    fn run(&mut self, events: u64) {
        assert!(self.pmu.run(4 * SLICE + events, 2 * SLICE, &[events, 1, 2, 3, 4, 5, 6, 7]));
        self.multiplexer.overflow(Some(&mut self.session), &NoClock, || &mut self.sink);
    }

    fn fold(&mut self) {
        self.multiplexer.fold(&mut self.session, &NoClock, &mut self.sink);
    }

    /// Ends counting. Returns the readings and the records.
    fn end(mut self) -> (Vec<Reading>, Vec<SliceRecord>) {
        self.multiplexer.suspend(&mut self.session, End::Stopped, &NoClock, &mut self.sink);
        (self.session.final_readings(), self.sink.0.0)
    }
}

#[test]
fn folding_is_asked_for_in_time_and_done_where_there_is_no_room() {
    let mut bench = Bench::new(Shares::Planned);
    for slice in 1..ROWS {
        bench.run(slice);
        assert_eq!(bench.session.stats().slices, 0);
        assert_eq!(bench.sink.1, u32::from(slice >= ROWS / 2));
    }
    bench.run(0);
    assert_eq!((bench.session.stats().slices, bench.sink.0.0.len() as u64), (ROWS, ROWS));
    bench.run(0);
    assert_eq!((bench.session.stats().slices, bench.sink.1), (ROWS, 1));
    bench.fold();
    assert_eq!(bench.session.stats().slices, ROWS + 1);
}

proptest! {
    /// Whenever rows are folded: readings and records are the same, and so are adaptive shares and
    /// random lengths.
    #[test]
    fn it_does_not_matter_when_rows_are_folded(
        slices in prop::collection::vec((0_u64..5_000, any::<bool>()), 1..400),
        shares in prop::sample::select(vec![Shares::Planned, Shares::Adaptive, Shares::Paired]),
    ) {
        let (mut now, mut later) = (Bench::new(shares), Bench::new(shares));
        for (number, (events, folds)) in slices.into_iter().enumerate() {
            now.run(events);
            now.fold();
            later.run(events);
            if folds {
                later.fold();
            }
            // A tick.
            if number % 50 == 0 {
                for bench in [&mut now, &mut later] {
                    bench.fold();
                    bench.session.adapt(3);
                }
            }
        }
        prop_assert_eq!(now.end(), later.end());
    }
}
