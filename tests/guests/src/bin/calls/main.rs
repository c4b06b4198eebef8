//! Makes invalid system calls, one for each documented error, and checks the errors.

#![no_std]
#![no_main]

mod call;
mod files;
mod memory;
mod sessions;
mod threads;

use tally::{println, runtime::arguments};
use tally_test_guests::Checks;

tally::main!(main);

fn main() -> i32 {
    let event = arguments().nth(1).expect("usage: calls EVENT");
    let mut checks = Checks::default();
    files::check(&mut checks);
    memory::check(&mut checks);
    threads::check(&mut checks);
    sessions::check(&mut checks, event);
    println!("calls: done");
    checks.status()
}
