//! Two threads that request a value from one CPU, under loom's interleavings: each gets a value
//! that is no older than its request, and none waits forever.

#![cfg(loom)]

use loom::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};
use tally_engine::{Exchange, Ticket};

/// Data that the lock guards in the kernel, and the actions of the CPU.
#[derive(Default)]
struct Guarded {
    exchange: Exchange<u64>,
    done: u64,
}

/// Shared state, as in the kernel. Condition variables replace the interrupt of the CPU, and the
/// steps of the requesters, between which the CPU may serve: a wait that nothing ends is a
/// deadlock, which loom reports.
#[derive(Default)]
struct Shared {
    guarded: Mutex<Guarded>,
    interrupt: Condvar,
    step: Condvar,
    /// Count of the CPU.
    counted: AtomicU64,
}

const ASKERS: u64 = 2;

fn ask(shared: &Shared) {
    let before = shared.counted.load(Ordering::SeqCst);
    let ticket: Ticket = {
        let mut guarded = shared.guarded.lock().unwrap();
        shared.interrupt.notify_one();
        guarded.exchange.ask()
    };
    let mut guarded = shared.guarded.lock().unwrap();
    loop {
        if let Some(value) = guarded.exchange.take(ticket) {
            assert!(value.expect("the CPU has a value") > before);
            break;
        }
        guarded = shared.step.wait(guarded).unwrap();
    }
    guarded.done += 1;
    shared.interrupt.notify_one();
}

fn serve(shared: &Shared) {
    let mut guarded = shared.guarded.lock().unwrap();
    while guarded.done < ASKERS {
        if guarded.exchange.is_asked() {
            let value = shared.counted.fetch_add(1, Ordering::SeqCst) + 1;
            guarded.exchange.serve(Some(value));
            shared.step.notify_all();
        } else {
            guarded = shared.interrupt.wait(guarded).unwrap();
        }
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
