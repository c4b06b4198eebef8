//! Interrupts in every window of a writer, nested on the same CPU as NMIs are. The handler writes a
//! record. Each test repeats the same job with an interrupt in each window in turn, and then with
//! two interrupts, the second of which may interrupt the first.

use std::{boxed::Box, cell::RefCell, vec, vec::Vec};

use crate::{Item, Reader, Ring, WhenFull};

const WORDS: usize = 64;
const PAGES: usize = 4;
type Small = Ring<WORDS, PAGES>;

/// Action of an interrupt.
type Handler = Box<dyn Fn()>;

std::thread_local! {
    /// Number of windows before each of the next interrupts, and the handler.
    static PENDING: RefCell<(Vec<u64>, Option<std::rc::Rc<Handler>>)> = RefCell::default();
}

/// Marks a point at which an interrupt may come.
pub(crate) fn window() {
    let handler = PENDING.with_borrow_mut(|(pending, handler)| {
        let next = pending.last_mut()?;
        *next = next.checked_sub(1).unwrap_or_default();
        (*next == 0).then(|| pending.pop())?;
        handler.clone()
    });
    if let Some(handler) = handler {
        handler();
    }
}

/// Writer of numbered records of 1 to 4 words; the third word is a check of the others.
#[derive(Default)]
struct Writer {
    written: std::cell::Cell<u64>,
}

impl Writer {
    fn write(&self, ring: &Small, kind: u8) {
        let n = self.written.get();
        self.written.set(n + 1);
        let clock = || self.written.get();
        // SAFETY: (1) the ring is a new one; (2) each test has its own, and one thread.
        unsafe {
            match n % 3 {
                0 => ring.write(kind, clock, &[], &[]),
                1 => ring.write(kind, clock, &[n], &[]),
                _ => ring.write(kind, clock, &[n], &[!n, n ^ 7]),
            }
        };
    }
}

/// Reads all records and checks that each is complete and that their stamps do not decrease.
/// Returns the numbers of records read and lost.
fn drain(reader: &mut Reader<'_, WORDS, PAGES>, last_tsc: &mut u64) -> (u64, u64) {
    let (mut read, mut lost) = (0, 0);
    while let Some(item) = reader.take() {
        match item {
            Item::Lost(records) => lost += records,
            Item::Record { kind, tsc, words } => {
                assert!(kind == 1 || kind == 2);
                assert!(tsc >= *last_tsc, "{tsc} after {last_tsc}");
                *last_tsc = tsc;
                match words {
                    [_] | [_, _] => {}
                    [_, n, not, check] => assert_eq!((*not, *check), (!n, n ^ 7)),
                    _ => panic!("{words:?}"),
                }
                read += 1;
            }
        }
    }
    (read, lost)
}

/// Writes `records` records and reads after every `drain_every` writes. `interrupts` holds the
/// number of windows before each interrupt. Returns the number of windows.
fn run(mode: WhenFull, records: u64, interrupts: &[u64], drain_every: u64) {
    let ring: &'static Small = Box::leak(Box::new(Small::new(mode, 0)));
    let writer: &'static Writer = Box::leak(Box::default());
    let handler: Handler = Box::new(|| writer.write(ring, 2));
    PENDING.set((interrupts.iter().rev().copied().collect(), Some(std::rc::Rc::new(handler))));
    let mut reader = Reader::consume(ring);
    let (mut read, mut lost, mut tsc) = (0, 0, 0);
    for n in 1..=records {
        writer.write(ring, 1);
        if n % drain_every == 0 {
            let (more, gone) = drain(&mut reader, &mut tsc);
            (read, lost) = (read + more, lost + gone);
        }
    }
    PENDING.take();
    let (more, gone) = drain(&mut reader, &mut tsc);
    let (read, lost) = (read + more, lost + gone + reader.rest());
    let status = ring.status();
    assert_eq!(status.written, writer.written.get(), "{mode:?} {interrupts:?}");
    assert_eq!(read + lost, status.written, "{mode:?} {interrupts:?}");
    if drain_every == 1 && interrupts.len() < 2 {
        assert_eq!(lost, 0, "{mode:?} {interrupts:?}");
    }
}

#[test]
fn one_interrupt_in_every_window() {
    for mode in [WhenFull::Discard, WhenFull::Overwrite] {
        for drain_every in [1, 3, 1000] {
            for first in 1..400 {
                run(mode, 40, &[first], drain_every);
            }
        }
    }
}

#[test]
fn two_and_three_interrupts_in_every_window() {
    for mode in [WhenFull::Discard, WhenFull::Overwrite] {
        for first in 1..250 {
            for second in 1..30 {
                run(mode, 24, &[first, second], 5);
                run(mode, 24, &[first, second, 1], 1000);
            }
        }
    }
}

/// An interrupt that writes more than a whole page.
#[test]
fn long_interrupts() {
    for mode in [WhenFull::Discard, WhenFull::Overwrite] {
        for first in 1..200 {
            for burst in [4, 8, 30] {
                run(mode, 20, &[vec![first], vec![1; burst]].concat(), 4);
            }
        }
    }
}
