//! Checks a ring's guarantees by random sequences of writes and reads.

#![cfg(not(loom))]

use std::collections::VecDeque;

use proptest::prelude::*;
use tally_ring::{Item, Reader, Ring, WhenFull};

const WORDS: usize = 256;
const PAGES: usize = 8;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Writes a record of one fixed word and a number of further words.
    Write(usize),
    /// Calls the consuming reader a number of times.
    Read(usize),
    /// Lets an observing reader read the whole ring.
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..40_usize).prop_map(Step::Write),
        1 => (0..20_usize).prop_map(Step::Read),
        1 => Just(Step::Look),
    ]
}

/// Returns words that belong to record number `n` alone.
fn tail(n: u64, words: usize) -> Vec<u64> {
    (1..=words as u64).map(|i| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i).collect()
}

/// Writes a record.
fn write<const HEAD: usize, const W: usize, const P: usize>(
    ring: &Ring<W, P>,
    kind: u8,
    tsc: u64,
    head: &[u64; HEAD],
    tail: &[u64],
) -> bool {
    // SAFETY: (1) all rings here are new ones; (2) each is one test's, and one thread's.
    unsafe { ring.write(kind, || tsc, head, tail) }
}

/// Returns the number in a record, which must be complete.
fn number(kind: u8, tsc: u64, words: &[u64]) -> u64 {
    let n = words[1];
    assert_eq!((kind, tsc), (n as u8, (1 << 50) + 3 * n));
    assert_eq!(words[2..], tail(n, words.len() - 2));
    n
}

proptest! {
    #[test]
    fn what_is_read_was_written_and_the_rest_is_counted(
        overwrite: bool,
        pages in 2..=PAGES,
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mode = if overwrite { WhenFull::Overwrite } else { WhenFull::Discard };
        let mut ring = Ring::<WORDS, PAGES>::new(mode, 1 << 50);
        ring.limit(pages);
        let (mut reader, mut looker) = (Reader::consume(&ring), Reader::observe(&ring));
        let (mut written, mut lost, mut looked) = (0, 0, 0);
        // Records that were written and not read yet.
        let mut inside = VecDeque::new();
        let mut read = |reader: &mut Reader<'_, WORDS, PAGES>, inside: &mut VecDeque<u64>, most| {
            for _ in 0..most {
                match reader.take() {
                    None => break,
                    Some(Item::Lost(records)) => lost += records,
                    Some(Item::Record { kind, tsc, words }) => {
                        let n = number(kind, tsc, words);
                        // A flight recorder has overwritten the earlier ones.
                        while overwrite && inside.front().is_some_and(|front| *front < n) {
                            inside.pop_front();
                        }
                        prop_assert_eq!(inside.pop_front(), Some(n));
                    }
                }
            }
            Ok(lost)
        };
        for step in steps {
            match step {
                Step::Write(words) => {
                    let n: u64 = written;
                    written += 1;
                    if write(&ring, n as u8, (1 << 50) + 3 * n, &[n], &tail(n, words)) {
                        inside.push_back(n);
                    }
                }
                Step::Read(most) => { read(&mut reader, &mut inside, most)?; }
                Step::Look => while let Some(item) = looker.take() {
                    if let Item::Record { kind, tsc, words } = item {
                        let n = number(kind, tsc, words);
                        prop_assert!(n >= looked);
                        looked = n + 1;
                    }
                }
            }
        }
        let lost = read(&mut reader, &mut inside, usize::MAX)? + reader.rest();
        prop_assert!(overwrite || inside.is_empty());
        let status = ring.status();
        prop_assert_eq!(status.written, written);
        // Every written record was read, is in the ring, or was lost; a record that is too long for
        // a page is lost too.
        let mut again = Reader::observe(&ring);
        while again.take().is_some() {}
        prop_assert!(lost <= written && status.refused <= lost);
        if !overwrite {
            prop_assert_eq!(status.refused, lost);
        }
    }

    #[test]
    fn a_flight_recorder_keeps_the_newest(records in 1..2_000_u64) {
        let ring = Ring::<WORDS, PAGES>::new(WhenFull::Overwrite, 1 << 50);
        for n in 0..records {
            prop_assert!(write(&ring, n as u8, (1 << 50) + 3 * n, &[n], &[]));
        }
        let mut reader = Reader::consume(&ring);
        let (mut next, mut lost) = (0, 0);
        while let Some(item) = reader.take() {
            match item {
                Item::Lost(records) => { lost += records; next += records; }
                Item::Record { kind, tsc, words } => {
                    prop_assert_eq!(number(kind, tsc, words), next);
                    next += 1;
                }
            }
        }
        prop_assert_eq!(next, records);
        // All but two of the pages, with 14 records each, still exist.
        prop_assert!(records - lost >= records.min(14 * (PAGES as u64 - 2)));
    }
}

#[test]
fn records_that_fit_no_page_are_lost() {
    let ring = Ring::<WORDS, PAGES>::new(WhenFull::Discard, 0);
    assert!(!write(&ring, 1, 0, &[0; 29], &[]));
    assert!(write(&ring, 1, 0, &[0; 28], &[]));
    assert!(!write(&ring, 1, 0, &[], &[0; 300]));
    let mut reader = Reader::consume(&ring);
    assert!(matches!(reader.take(), Some(Item::Record { words, .. }) if words.len() == 29));
    assert_eq!(reader.take(), None);
    assert_eq!(reader.rest(), 2);
    assert_eq!(ring.status().written, 3);
}

#[test]
fn memory_that_is_no_ring_is_none() {
    use std::sync::atomic::AtomicU64;
    let ring = Ring::<64, 4>::new(WhenFull::Discard, 0);
    write(&ring, 9, 7, &[5], &[]);
    // SAFETY: a ring is words.
    let words = unsafe {
        std::slice::from_raw_parts(
            (&raw const ring).cast::<AtomicU64>(),
            size_of_val(&ring) / size_of::<AtomicU64>(),
        )
    };
    let mapped = Ring::<64, 4>::at(words).expect("it is a ring's memory");
    let mut reader = Reader::observe(mapped);
    let record = reader.take();
    assert!(matches!(record, Some(Item::Record { kind: 9, tsc: 7, words: [_, 5] })), "{record:?}");
    assert!(Ring::<64, 4>::at(&words[1..]).is_none());
    assert!(Ring::<64, 4>::at(&words[..words.len() - 8]).is_none());
}

#[test]
fn a_ring_takes_as_many_pages_as_its_limit_and_says_when_half_are_full() {
    for pages in 2..=PAGES {
        let mut ring = Ring::<WORDS, PAGES>::new(WhenFull::Discard, 0);
        ring.limit(pages);
        let mut reader = Reader::consume(&ring);
        // The reader stays in the page that it has read, until it turns to the next.
        for room in [pages, pages - 1, pages - 1] {
            // A page has room for one record of this length.
            let tail = [0; WORDS / PAGES - 3 - 2];
            for number in 1..=room {
                assert!(write(&ring, 1, 0, &[0], &tail), "{number} of {room}");
                let full = pages - room + number - 1;
                assert_eq!(ring.is_half_full(), 2 * full >= pages, "{number} of {room}");
            }
            assert!(!write(&ring, 1, 0, &[0], &tail));
            while reader.take().is_some() {}
        }
    }
}
