//! The trace ring under every interleaving that loom finds:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p tally-engine --test ring_loom`.

#![cfg(loom)]

use loom::{sync::Arc, thread};
use tally_abi::trace::SLICE_WORDS;
use tally_engine::ring::Ring;

/// One producer, one consumer, a ring that is too small: what is read is whole and in order, and
/// what is not read is counted.
#[test]
fn records_are_whole_in_order_and_accounted_for() {
    loom::model(|| {
        let ring = Arc::new(Ring::new(1));
        let producer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || (1..=2).filter(|n| ring.push(&[*n; SLICE_WORDS])).count())
        };
        let mut last = 0;
        let mut read = 0;
        let mut take = |ring: &Ring| {
            if let Some(words) = ring.pop() {
                assert!(words.iter().all(|word| *word == words[0]), "torn: {words:?}");
                assert!(words[0] > last, "out of order");
                last = words[0];
                read += 1;
            }
        };
        take(&ring);
        let put = producer.join().unwrap();
        take(&ring);
        take(&ring);
        let status = ring.status();
        assert_eq!((status.written, status.read), (2, read));
        assert_eq!(status.written, status.read + status.lost);
        assert_eq!(put as u64, status.read);
    });
}
