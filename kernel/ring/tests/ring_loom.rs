//! The ring under the interleavings that loom finds:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p tally-ring --test ring_loom`.
//!
//! Under loom the operations that are atomic on one CPU are atomic for all threads. So two writers
//! on two threads interleave in every way in which an interrupt and a writer can, and in more.

#![cfg(loom)]

use loom::{model::Builder, sync::Arc, thread};
use tally_ring::{Item, Reader, Ring, WhenFull};

/// Ring whose pages have eight words, which one record of three words fills: the next record turns
/// the page.
type Small = Ring<16, 2>;
type Reading<'a> = Reader<'a, 16, 2>;

fn write(ring: &Small, n: u64) {
    // SAFETY: (1) the ring is a new one; (2) under loom a writer's steps are atomic, whichever
    // thread they are on.
    unsafe { ring.write(n as u8, || n, &[n, !n], &[]) };
}

/// Takes at most `most` items. Returns the numbers of records read and lost.
fn take(reader: &mut Reading<'_>, most: usize) -> (u64, u64) {
    let (mut read, mut lost) = (0, 0);
    for _ in 0..most {
        match reader.take() {
            None => break,
            Some(Item::Lost(records)) => lost += records,
            Some(Item::Record { kind, words, .. }) => {
                assert_eq!(words.len(), 3);
                assert_eq!((words[1], words[2]), (kind.into(), !u64::from(kind)), "torn");
                read += 1;
            }
        }
    }
    (read, lost)
}

fn check(mode: WhenFull, writers: &'static [u64], preemptions: usize) {
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let ring = Arc::new(Small::new(mode, 0));
        let mut threads = Vec::new();
        for (i, records) in writers.iter().enumerate().skip(1) {
            let ring = Arc::clone(&ring);
            let first = 100 * i as u64;
            threads.push(thread::spawn(move || {
                (first..first + records).for_each(|n| write(&ring, n))
            }));
        }
        let looker = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let mut reader = Reading::consume(&ring);
                let (read, lost) = take(&mut reader, 2);
                (read, lost, ring.status().written)
            })
        };
        (1..=writers[0]).for_each(|n| write(&ring, n));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let (read, lost, _) = looker.join().unwrap();
        let written: u64 = writers.iter().sum();
        assert_eq!(ring.status().written, written);
        assert!(read + lost <= written);
        // Another reader finds the remaining records: all are accounted for.
        let mut reader = Reading::observe(&ring);
        let (left, gone) = take(&mut reader, 100);
        assert!(left + gone <= written);
    });
}

#[test]
fn one_writer_that_turns_pages_and_a_reader() {
    check(WhenFull::Discard, &[4], 3);
}

#[test]
fn one_writer_that_overwrites_and_a_reader() {
    check(WhenFull::Overwrite, &[3], 2);
}

#[test]
fn two_writers_and_a_reader() {
    check(WhenFull::Discard, &[1, 1], 2);
}

#[test]
fn two_writers_that_overwrite_and_a_reader() {
    check(WhenFull::Overwrite, &[1, 1], 2);
}
