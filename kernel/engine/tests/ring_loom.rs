//! The trace ring under the interleavings that loom finds:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p tally-engine --test ring_loom`.
//!
//! The consumer is the thread that is spawned: loom compares an access with the last one of its
//! kind only, and a producer that first loads its own index would hide the consumer's load of it.

#![cfg(loom)]

use loom::{sync::Arc, thread};
use tally_abi::trace::RECORD_WORDS;
use tally_engine::ring::Ring;

/// Takes one record, if there is one: whole, and newer than `last`, which it becomes.
fn take(ring: &Ring, last: &mut u64) -> u64 {
    let Some(words) = ring.pop() else { return 0 };
    assert!(words.iter().all(|word| *word == words[0]), "torn: {words:?}");
    assert!(words[0] > *last, "out of order: {} after {last}", words[0]);
    *last = words[0];
    1
}

/// One producer, one consumer, a ring that is too small: what is read is whole and in order, and
/// what is not read is counted.
fn check(capacity: usize, records: u64) {
    loom::model(move || {
        let ring = Arc::new(Ring::new(capacity));
        let consumer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let mut last = 0;
                (take(&ring, &mut last) + take(&ring, &mut last), last)
            })
        };
        let put = (1..=records).filter(|n| ring.push(&[*n; RECORD_WORDS])).count() as u64;
        let (mut read, mut last) = consumer.join().unwrap();
        for _ in 0..capacity {
            read += take(&ring, &mut last);
        }
        let status = ring.status();
        assert_eq!((status.written, status.read), (records, read));
        assert_eq!(status.written, status.read + status.lost);
        assert_eq!(put, read);
    });
}

#[test]
fn one_slot() {
    check(1, 2);
}

#[test]
fn two_slots() {
    check(2, 3);
}
