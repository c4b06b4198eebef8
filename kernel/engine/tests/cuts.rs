//! Slices whose time passes in ring 0, which their timer does not count.

mod fake;

use fake::{Records, Simulated, Ticking};
use tally_abi::{
    Mode, SessionConfig, Slice,
    bank::{STOPPED, writable},
    session,
};
use tally_engine::{Demand, Layout, Multiplexer, Selector, Session, Widths, bank::Page};

const SLICE: u64 = session::MIN_SLICE;
const EVENTS: [u64; 8] = [1; 8];

/// Session of two groups, one of them with an event of ring 0 if `kernel`.
fn session(kernel: bool, mode: Mode) -> Session {
    let layout = Layout { general: 1, reference: false, extra: 0, widths: Widths::of(48) };
    let config = SessionConfig {
        mode,
        slice: Slice::Cycles(SLICE),
        budget_ppm: session::NO_BUDGET_PPM,
        ..SessionConfig::default()
    };
    let demands = [0, 1].map(|event| Demand {
        kernel: kernel && event == 0,
        ..Demand::general(Selector(event), 1)
    });
    Session::open(9, 0x5000, config, 1, demands.into(), &layout).unwrap()
}

/// Runs a program whose kernel takes `ticks` in a slice, and returns how many slices have ended in
/// ten such entries.
fn slices(mut session: Session, ticks: u64) -> u64 {
    let (pmu, clock, mut records) = (Simulated::default(), Ticking::default(), Records::default());
    let mut multiplexer = Multiplexer::new(pmu.clone(), 0, 0);
    let entries = multiplexer.entries();
    multiplexer.resume(&mut session, &clock, &mut records);
    for _ in 0..10 {
        // The kernel's work has events, and no cycles of ring 3.
        assert!(!pmu.run(0, 0, &EVENTS));
        clock.pass(ticks);
        if entries.is_overdue(&clock) {
            multiplexer.cut(&mut session, &clock, &mut records);
            assert!(!entries.is_overdue(&clock), "a slice is cut once");
        }
        if pmu.run(2, 2, &EVENTS) {
            multiplexer.overflow(Some(&mut session), &clock, || &mut records);
        }
    }
    multiplexer.fold(&mut session, &clock, &mut records);
    session.ended_slices()
}

#[test]
fn a_slice_ends_after_twice_its_length_in_ring_0() {
    assert_eq!(slices(session(true, Mode::User), 3 * SLICE), 10);
    assert_eq!(slices(session(true, Mode::User), SLICE / 100), 0);
}

#[test]
fn a_session_that_does_not_count_ring_0_or_times_it_is_not_cut() {
    assert_eq!(slices(session(false, Mode::User), 3 * SLICE), 0);
    assert_eq!(slices(session(true, Mode::Full), 3 * SLICE), 0);
}

/// Regression: a slice that a stop through the bank had ended kept its deadline, so that each
/// return of the kernel looked for a slice to cut.
#[test]
fn a_session_that_a_cut_finds_stopped_has_no_deadline() {
    let (pmu, clock, mut records) = (Simulated::default(), Ticking::default(), Records::default());
    let mut session = session(true, Mode::User);
    let [own, page]: [&'static Page; 2] = [(); 2].map(|()| &*Box::leak(Box::default()));
    assert!(session.map_bank(own, [page].into(), |_| 0));
    let mut multiplexer = Multiplexer::new(pmu, 0, 0);
    let entries = multiplexer.entries();
    multiplexer.resume(&mut session, &clock, &mut records);
    let control = own.load(writable::CONTROL);
    assert!(own.exchange(writable::CONTROL, control, control + u64::from(STOPPED)));
    clock.pass(3 * SLICE);
    assert!(entries.is_overdue(&clock));
    multiplexer.cut(&mut session, &clock, &mut records);
    assert!(!session.is_running() && !entries.is_overdue(&clock));
}
