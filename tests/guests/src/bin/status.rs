//! Exits with status N: `status N [EVENTS]`. Panics without an argument. With EVENTS, exits inside
//! a session on them.

#![no_std]
#![no_main]

use tally::{Session, SessionConfig, runtime::arguments};

tally::main!(main);

fn main() -> i32 {
    let word = arguments().nth(1).expect("usage: status N");
    if let Some(events) = arguments().nth(2) {
        let session = Session::open(events, SessionConfig::default()).expect("the events exist");
        session.start().expect("it was not started");
        core::mem::forget(session);
    }
    word.parse().expect("a number")
}
