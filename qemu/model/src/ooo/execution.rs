//! Activity of each cycle: how many micro-operations execute, or why none does.
//!
//! Micro-operations are dispatched in order and issue in any order, so a cycle is complete when
//! dispatch has passed it: from then on none can issue in it. Until then each property of a cycle
//! is a bit in a window; complete cycles are charged in words of 64. So the counts lag behind
//! dispatch by at most a word.
//!
//! A micro-operation that issues beyond the window (behind a chain of misses longer than that) is
//! charged as the only one of its cycle.

use super::ports::Ports;
use crate::{counts::Counts, signal::Signal};

/// Cycles of the window, and of a word.
const WINDOW: u64 = 1 << 12;
const WORD: u64 = u64::BITS as u64;

/// Indices of a cycle's properties: at least 1, 2, … micro-operations execute, one waits for a
/// port, a load is outstanding.
const CONTENDED: usize = Signal::EXECUTED.len();
const LOADING: usize = CONTENDED + 1;

/// The properties of a word of cycles, with one bit per cycle: one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Row([u64; LOADING + 1]);

/// A mask of the cycles `from` to `to` (exclusive) in the word that begins at cycle `word`.
#[inline]
fn bits(word: u64, from: u64, to: u64) -> u64 {
    let (from, to) = (from.max(word) - word, to.clamp(word, word + WORD) - word);
    let below = |end: u64| if end >= WORD { u64::MAX } else { (1 << end) - 1 };
    below(to) & !below(from)
}

/// The properties of each cycle of the window.
#[derive(Clone, Debug)]
struct Bits(Box<[Row; (WINDOW / WORD) as usize]>);

impl Bits {
    fn new() -> Bits {
        Bits(Box::new([Row::default(); (WINDOW / WORD) as usize]))
    }

    #[inline]
    fn row(&mut self, cycle: u64) -> &mut Row {
        &mut self.0[(cycle % WINDOW / WORD) as usize]
    }

    /// Sets a property of the cycles `from` to `to`, all in the window.
    #[inline]
    fn set_all(&mut self, property: usize, from: u64, to: u64) {
        let mut word = from / WORD * WORD;
        while word < to {
            self.row(word).0[property] |= bits(word, from, to);
            word += WORD;
        }
    }
}

/// The cycles up to which an instruction waited for dispatch: because of the store queue, and
/// because of any full structure or a serializing instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Blocked {
    pub(super) stores_to: u64,
    pub(super) any_to: u64,
}

/// The ports, and the charging of cycles.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    ports: Ports,
    window: Bits,
    /// The first cycle beyond the window in which a load is outstanding, and the end of such
    /// cycles.
    far_loads: (u64, u64),
    /// Masks for the word of the next cycle to charge: cycles in which the scheduler has a
    /// micro-operation, the store queue is full, dispatch is blocked.
    waiting: u64,
    stores_full: u64,
    blocked: u64,
    /// The cycle up to which the masks are known, and the one up to which all is charged.
    known_to: u64,
    charged_to: u64,
    /// The cycle after the last one in which a micro-operation leaves the scheduler.
    issued_to: u64,
    /// Micro-operations that issued beyond the window and are not charged yet.
    beyond: u64,
    /// Whether the scheduler was empty in the last charged cycle.
    was_empty: bool,
}

impl Execution {
    /// Makes the ports: the processor's, or endless ones of which one is always free.
    pub(super) fn new(has_endless_ports: bool) -> Execution {
        Execution {
            ports: Ports::new(has_endless_ports),
            window: Bits::new(),
            far_loads: (0, 0),
            waiting: 0,
            stores_full: 0,
            blocked: 0,
            known_to: 0,
            charged_to: 0,
            issued_to: 0,
            beyond: 0,
            was_empty: false,
        }
    }

    /// Issues a micro-operation that is ready at `ready` to one of `ports`; returns the cycle.
    #[inline]
    pub(super) fn issue(&mut self, ports: u16, ready: u64, counts: &mut Counts) -> u64 {
        let issued = self.ports.issue(ports, ready);
        counts[Signal::PORTS[usize::from(issued.port)]] += 1;
        self.issued_to = self.issued_to.max(issued.cycle + 1);
        let end = self.charged_to + WINDOW;
        match usize::from(issued.place).checked_sub(1) {
            Some(others) if (self.charged_to..end).contains(&issued.cycle) => {
                let (held, bit) =
                    (&mut self.window.row(issued.cycle).0, 1 << (issued.cycle % WORD));
                let mut others = others.min(CONTENDED - 1);
                // Micro-operations that issued while the cycle was beyond the window have no bits.
                while others > 0 && held[others - 1] & bit == 0 {
                    others -= 1;
                }
                held[others] |= bit;
            }
            _ => self.beyond += 1,
        }
        let (from, to) = issued.waited;
        if from < to {
            self.window.set_all(CONTENDED, from.max(self.charged_to), to.min(end));
        }
        issued.cycle
    }

    /// Records an outstanding load from `from` to `to`.
    #[inline]
    pub(super) fn load(&mut self, from: u64, to: u64) {
        let end = self.charged_to + WINDOW;
        self.window.set_all(LOADING, from.max(self.charged_to), to.min(end));
        if to > end {
            let (first, last) = (from.max(end), to);
            let is_past = self.far_loads.1 <= self.charged_to;
            let (from, to) = if is_past { (first, last) } else { self.far_loads };
            self.far_loads = (from.min(first), to.max(last));
        }
    }

    /// Advances to cycle `at`, in which the next instruction is dispatched: no micro-operation can
    /// issue in an earlier cycle any more.
    #[inline]
    pub(super) fn dispatched(&mut self, at: u64, blocked: Blocked, counts: &mut Counts) {
        while self.known_to < at {
            let word = self.known_to / WORD * WORD;
            let end = at.min(word + WORD);
            self.waiting |= bits(word, self.known_to, end.min(self.issued_to));
            self.stores_full |= bits(word, self.known_to, end.min(blocked.stores_to));
            self.blocked |= bits(word, self.known_to, end.min(blocked.any_to));
            self.known_to = end;
            if end == word + WORD {
                self.charge(counts);
            }
        }
    }

    /// Advances to cycle `at`, in which the pipeline is empty, as dispatch waited for that: charges
    /// all earlier cycles.
    pub(super) fn drained(&mut self, at: u64, counts: &mut Counts) {
        self.dispatched(at, Blocked { stores_to: 0, any_to: at }, counts);
        self.charge(counts);
    }

    /// Advances to cycle `at`, up to which a load is outstanding, or the store queue is full if
    /// `is_store`: charges all earlier cycles.
    pub(super) fn waited(&mut self, at: u64, is_store: bool, counts: &mut Counts) {
        self.issued_to = self.issued_to.max(at);
        if !is_store {
            self.load(self.known_to, at);
        }
        let stores_to = if is_store { at } else { 0 };
        self.dispatched(at, Blocked { stores_to, any_to: at }, counts);
        self.charge(counts);
    }

    /// Charges the known cycles, all in one word.
    fn charge(&mut self, counts: &mut Counts) {
        let word = self.charged_to / WORD * WORD;
        let mask = bits(word, self.charged_to, self.known_to);
        let row = self.window.row(word);
        let held = row.0.map(|property| property & mask);
        row.0.iter_mut().for_each(|property| *property &= !mask);
        let mut busy = 0;
        for (executed, signal) in held[..CONTENDED].iter().zip(Signal::EXECUTED).rev() {
            counts[*signal] += u64::from((executed & !busy).count_ones());
            busy |= executed;
        }
        let (far_from, far_to) = self.far_loads;
        let loading = held[LOADING] | bits(word, far_from, far_to);
        let idle = mask & !busy;
        let behind_loads = idle & self.waiting & loading;
        let behind_stores = idle & self.waiting & !loading & self.stores_full;
        let behind_units = idle & self.waiting & !loading & !self.stores_full;
        let early = self.beyond.min(behind_loads.count_ones().into());
        self.beyond -= early;
        counts[Signal::EXECUTED[0]] += early;
        counts[Signal::IdleLoads] += u64::from(behind_loads.count_ones()) - early;
        counts[Signal::IdleStores] += u64::from(behind_stores.count_ones());
        counts[Signal::IdleUnits] += u64::from(behind_units.count_ones());
        let empty = idle & !self.waiting;
        counts[Signal::IdleEmpty] += u64::from(empty.count_ones());
        counts[Signal::IdleBlocked] += u64::from((empty & self.blocked).count_ones());
        if mask != 0 {
            let before = empty << 1 | u64::from(self.was_empty) << mask.trailing_zeros();
            counts[Signal::IdleEmptyEnds] += u64::from((before & !empty & mask).count_ones());
            self.was_empty = empty & 1 << mask.ilog2() != 0;
        }
        counts[Signal::PortContention] += u64::from(held[CONTENDED].count_ones());
        for word in [&mut self.waiting, &mut self.stores_full, &mut self.blocked] {
            *word &= !mask;
        }
        self.charged_to = self.known_to;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A micro-operation: its ports, the cycle of its dispatch, the first cycle in which it is
    /// ready, and for how long a load is outstanding.
    struct Uop {
        dispatched: u64,
        ready: u64,
        ports: u16,
        load_cycles: u64,
        blocked: Blocked,
    }

    fn random(seed: u64) -> Vec<Uop> {
        let mut state = seed;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut dispatched = 0;
        let uops = (0..4_000).map(|_| {
            dispatched += [0, 0, 0, 0, 1, 1, 2, 90][next(8) as usize];
            Uop {
                dispatched,
                ready: dispatched + 1 + [0, 3, next(200)][next(3) as usize],
                ports: [0b1, 0b11, 0b110, 0b11_1111, 0b1000][next(5) as usize],
                load_cycles: [0, 0, 5, next(60)][next(4) as usize],
                blocked: Blocked {
                    stores_to: if next(9) == 0 { dispatched.saturating_sub(1) } else { 0 },
                    any_to: dispatched.saturating_sub(next(100)),
                },
            }
        });
        uops.collect()
    }

    /// The cycle in which each micro-operation issues, and the ports in use.
    fn issued(uops: &[Uop], counts: &mut Counts) -> (Vec<u64>, BTreeSet<(u64, u32)>) {
        let mut used = BTreeSet::new();
        let issue = |uop: &Uop| {
            let is_port = |port: &u32| uop.ports >> port & 1 == 1;
            let free = |cycle| (0..16).filter(is_port).find(|p| !used.contains(&(cycle, *p)));
            let place = (uop.ready..).find_map(|cycle| Some((cycle, free(cycle)?)));
            let (cycle, port) = place.expect("there is always a later cycle");
            used.insert((cycle, port));
            counts[Signal::PORTS[port as usize]] += 1;
            cycle
        };
        let cycles = uops.iter().map(issue).collect();
        (cycles, used)
    }

    /// Reference result: charges the cycles up to `end` one by one.
    fn directly(uops: &[Uop], end: u64) -> Counts {
        let mut counts = Counts::ZERO;
        let (issued, used) = issued(uops, &mut counts);
        let all = || uops.iter().zip(&issued);
        let last = Blocked { stores_to: 0, any_to: end };
        let (mut before, mut was_empty) = (0, false);
        for cycle in 0..end {
            let executed = (0..16).filter(|port| used.contains(&(cycle, *port))).count();
            let waits = all().any(|(uop, at)| (uop.dispatched..=*at).contains(&cycle));
            let loads = all().any(|(uop, at)| (*at..*at + uop.load_cycles).contains(&cycle));
            // The first instruction that is dispatched after the cycle has the blocked state.
            while uops.get(before).is_some_and(|uop| uop.dispatched <= cycle) {
                before += 1;
            }
            let next = uops.get(before).map_or(last, |uop| uop.blocked);
            let is_full = cycle < next.stores_to;
            if executed == 0 && !waits && cycle < next.any_to {
                counts[Signal::IdleBlocked] += 1;
            }
            counts[match executed {
                0 if !waits => Signal::IdleEmpty,
                0 if loads => Signal::IdleLoads,
                0 if is_full => Signal::IdleStores,
                0 => Signal::IdleUnits,
                executed => Signal::EXECUTED[executed.min(5) - 1],
            }] += 1;
            let is_empty = executed == 0 && !waits;
            counts[Signal::IdleEmptyEnds] += u64::from(was_empty && !is_empty);
            was_empty = is_empty;
            let contended = all().any(|(uop, at)| (uop.ready..*at).contains(&cycle));
            counts[Signal::PortContention] += u64::from(contended);
        }
        counts
    }

    #[test]
    fn it_charges_each_cycle_as_one_that_goes_through_them() {
        for seed in 1..=6 {
            let uops = random(seed);
            let (mut execution, mut counts) = (Execution::new(false), Counts::ZERO);
            let mut end = 0;
            for uop in &uops {
                execution.dispatched(uop.dispatched, uop.blocked, &mut counts);
                let at = execution.issue(uop.ports, uop.ready, &mut counts);
                execution.load(at, at + uop.load_cycles);
                end = end.max(at + 1);
            }
            execution.drained(end, &mut counts);
            assert_eq!(counts, directly(&uops, end), "{seed}");
        }
    }

    #[test]
    fn endless_ports_execute_any_number_in_a_cycle() {
        let (mut execution, mut counts) = (Execution::new(true), Counts::ZERO);
        for ready in [3, 3, 3, 7, 9, 9, 9, 9, 9, 9, 9] {
            assert_eq!(execution.issue(1, ready, &mut counts), ready);
        }
        execution.drained(10, &mut counts);
        let executed = Signal::EXECUTED.map(|signal| counts[signal]);
        assert_eq!((executed, counts[Signal::PortContention]), ([1, 0, 1, 0, 1], 0));
        assert_eq!(counts[Signal::PORTS[0]], 11);
    }

    #[test]
    fn what_issues_beyond_the_window_is_alone_in_its_cycle() {
        let (mut execution, mut counts) = (Execution::new(false), Counts::ZERO);
        let mut ready = 1;
        for _ in 0..50 {
            execution.dispatched(0, Blocked::default(), &mut counts);
            let at = execution.issue(1, ready, &mut counts);
            execution.load(at, at + 300);
            ready = at + 300;
        }
        execution.drained(ready, &mut counts);
        assert_eq!(counts[Signal::Executed1], 50);
        // After the last load nothing waits.
        assert_eq!((counts[Signal::IdleLoads], counts[Signal::IdleEmpty]), (49 * 299, 299));
        let all = Signal::EXECUTED.iter().chain(Signal::IDLE).map(|signal| counts[*signal]);
        assert_eq!(all.sum::<u64>(), ready);
    }
}
