//! The logical counter bank under loom's interleavings: a reader that follows [`tally_abi::bank`]'s
//! rules never sees half of a change.

#![cfg(loom)]

use loom::thread;
use tally_abi::{
    Mode, SessionConfig, Slice,
    bank::{BUSY, HEADER_WORDS, counter, header, writable},
    trace::{End, SliceRecord, ThresholdRecord},
};
use tally_engine::{
    Clock, CounterMask, Counts, Demand, Group, Layout, MAX_GENERAL, Multiplexer, Pinned, Pmu,
    Selector, Session, Setup, Sink, Switch, Widths, bank::Page,
};

/// PMU whose counters all increase by 100 at each access.
struct Steady(u64);

const WIDTH: u64 = (1 << 48) - 1;

impl Pmu for Steady {
    fn program(&mut self, _: &Group, _: &Setup, _: u64) {}
    fn enable(&mut self) {}
    fn can_restore(&self) -> bool {
        false
    }
    fn restore(&mut self, _: &Group, _: Mode, _: &Counts) {}
    fn stop(&mut self) {}
    fn scrub(&mut self) {}
    fn is_counting(&mut self) -> bool {
        true
    }
    fn read(&mut self, _: CounterMask) -> Counts {
        self.0 += 100;
        let mut counts = Counts::default();
        counts.general = [self.0; MAX_GENERAL];
        Pinned::ALL.into_iter().for_each(|event| counts[event] = self.0);
        counts
    }
    fn switch(&mut self, _: &Switch, counts: &mut Counts) -> bool {
        *counts = self.read(CounterMask::default());
        true
    }
    fn ack_and_resume(&mut self) {}
    fn preload(&mut self, _: usize, _: u64) -> u64 {
        0
    }
    fn disarm(&mut self) {}
    fn widths(&self) -> Widths {
        Widths { pinned: WIDTH, general: WIDTH }
    }
    fn msr_accesses(&self) -> u64 {
        0
    }
}

struct Nothing;

impl Clock for Nothing {
    fn tsc(&self) -> u64 {
        0
    }

    fn core_cycles(&self) -> Option<u64> {
        None
    }
}

impl Sink for Nothing {
    fn record(&mut self, _: impl FnOnce() -> SliceRecord) {}
    fn threshold(&mut self, _: ThresholdRecord) {}
}

/// Returns the event's count and the cycles, if the kernel did not write in between.
fn look(own: &Page, page: &Page) -> Option<(u64, u64)> {
    let switch = own.load(writable::CONTROL);
    let events = page.load(HEADER_WORDS + counter::EVENTS);
    let total = page.load(header::TOTAL + Pinned::Cycles as usize);
    loom::sync::atomic::fence(loom::sync::atomic::Ordering::Acquire);
    let same = switch == own.load(writable::CONTROL);
    (switch as u32 != BUSY && same).then_some((events, total))
}

#[test]
fn no_reader_takes_half_of_a_change() {
    // Two preemptions show all that a reader can see of one change; without a bound it takes
    // minutes.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let own: &'static Page = Box::leak(Box::default());
        let page: &'static Page = Box::leak(Box::default());
        let demand = Demand::general(Selector(1), 1);
        let config =
            SessionConfig { slice: Slice::Instructions(1 << 20), ..SessionConfig::default() };
        let layout = Layout { general: 1, reference: false, extra: 0, widths: Widths::of(48) };
        // The planner needs more stack than loom's threads have.
        let open = move || Session::open(1, 0, config, 1, vec![demand], &layout).unwrap();
        let mut session = std::thread::spawn(open).join().unwrap();
        assert!(session.map_bank(own, Box::new([page]), |_| 0));
        let reader = thread::spawn(move || look(own, page));
        let mut multiplexer = Multiplexer::new(Steady(0), 0, 0);
        multiplexer.resume(&mut session, &Nothing, &mut Nothing);
        multiplexer.sync(&mut session, &Nothing, &mut Nothing);
        multiplexer.suspend(&mut session, End::Stopped, &Nothing, &mut Nothing);
        if let Some((events, total)) = reader.join().unwrap() {
            // The event and the cycles are counted alike.
            assert_eq!(events, total);
        }
    });
}
