//! Says of programs that it loads where they may run, before they run and after.
//!
//! `pinned` loads two for each CPU; `pinned child CPU` checks that it is there, all the time.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, vec::Vec};

use tally::{Program, println, runtime::arguments, sys};
use tally_abi::syscall::errno;
use tally_test_guests::{Checks, yield_turn};

tally::main!(main);

fn set(of: u64, cpus: u64) -> i64 {
    // SAFETY: the word is valid for reading.
    unsafe { sys::call(sys::SCHED_SETAFFINITY, [of, 8, (&raw const cpus) as u64, 0, 0, 0]) }
}

fn tell(of: u64) -> u64 {
    let mut cpus = 0_u64;
    let to = &raw mut cpus as u64;
    // SAFETY: the word is valid for writing.
    unsafe { sys::call(sys::SCHED_GETAFFINITY, [of, 8, to, 0, 0, 0]) };
    cpus
}

fn cpu() -> u32 {
    let mut cpu = u32::MAX;
    // SAFETY: the word is valid for writing.
    unsafe { sys::call(sys::GETCPU, [&raw mut cpu as u64, 0, 0, 0, 0, 0]) };
    cpu
}

fn main() -> i32 {
    let words: Vec<&str> = arguments().collect();
    let mut checks = Checks::default();
    match words[..] {
        [_, "child", cpu] => child(&mut checks, cpu.parse().expect("a number")),
        _ => parent(&mut checks),
    }
    checks.status()
}

/// Some of the scheduler's turns.
fn child(checks: &mut Checks, wanted: u32) {
    checks.equal("its CPUs", tell(0), 1 << wanted);
    for piece in 0..300 {
        for turn in 0..20_000 {
            core::hint::black_box(turn);
        }
        checks.equal("its CPU", cpu(), wanted);
        if piece % 50 == 0 {
            yield_turn();
        }
    }
}

fn parent(checks: &mut Checks) {
    let all = tell(0);
    let cpus: Vec<u32> = (0..64).filter(|cpu| all & 1 << cpu != 0).collect();
    let mut children = Vec::new();
    for wanted in cpus.iter().chain(&cpus) {
        let child = Program::load(&["pinned", "child", &format!("{wanted}")]).expect("it is there");
        checks.equal("as its parent", tell(child.number()), all);
        checks.equal("set", set(child.number(), 1 << wanted), 0);
        checks.equal("kept", tell(child.number()), 1 << wanted);
        checks.equal("a CPU that is not there", set(child.number(), 1 << 63), -errno::EINVAL);
        child.run().expect("it was not let go");
        children.push(child);
    }
    for child in children {
        // Wherever it is.
        let number = child.number();
        let told = tell(number);
        checks.equal("asked while it runs", told == 0 || told.count_ones() == 1, true);
        checks.equal("a child", child.wait(), Ok(0));
        checks.equal("when it is gone", set(number, 1), -errno::ESRCH);
    }
    println!("pinned: done on {} CPUs", cpus.len());
}
