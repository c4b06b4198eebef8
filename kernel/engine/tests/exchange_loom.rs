//! Two threads that ask one CPU for a value, under the interleavings that loom finds: each gets a
//! value that is no older than its request, and none waits for ever.

#![cfg(loom)]

use loom::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};
use tally_engine::{Exchange, Ticket};

/// As in the kernel: what was asked for is behind a lock, and beside it a number of changes, by
/// which the CPU sees that it was asked.
#[derive(Default)]
struct Shared {
    exchange: Mutex<Exchange<u64>>,
    changes: AtomicU64,
    done: AtomicU64,
    /// What the CPU counts.
    counted: AtomicU64,
}

const ASKERS: u64 = 2;

fn ask(shared: &Shared) {
    let before = shared.counted.load(Ordering::SeqCst);
    let ticket: Ticket = {
        let mut exchange = shared.exchange.lock().unwrap();
        let ticket = exchange.ask();
        shared.changes.fetch_add(1, Ordering::Release);
        ticket
    };
    loop {
        let taken = shared.exchange.lock().unwrap().take(ticket);
        if let Some(value) = taken {
            assert!(value.expect("the CPU has a value") > before);
            break;
        }
        thread::yield_now();
    }
    shared.done.fetch_add(1, Ordering::SeqCst);
}

fn serve(shared: &Shared) {
    let mut seen = 0;
    while shared.done.load(Ordering::SeqCst) < ASKERS {
        let changes = shared.changes.load(Ordering::Acquire);
        if seen != changes {
            seen = changes;
            let mut exchange = shared.exchange.lock().unwrap();
            if exchange.is_asked() {
                let value = shared.counted.fetch_add(1, Ordering::SeqCst) + 1;
                exchange.serve(Some(value));
            }
        }
        thread::yield_now();
    }
}

#[test]
fn each_of_two_askers_gets_a_value_of_its_own_time() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared = Arc::new(Shared::default());
        let askers: Vec<_> = (0..ASKERS)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || ask(&shared))
            })
            .collect();
        serve(&shared);
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
}
