//! Sets the affinities of child programs, before their start and while they run.
//!
//! `pinned` loads two children for each CPU; `pinned child CPU` checks that it runs on that CPU.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, string::String, vec::Vec};

use tally::{CpuSet, Program, io::read_file, println, runtime::arguments, sys};
use tally_abi::{boot::MAX_CPUS, syscall::errno};
use tally_test_guests::{Checks, yield_turn};

tally::main!(main);

/// Sets the affinity of a program.
fn set(of: u64, cpus: CpuSet) -> i64 {
    let words = cpus.to_words();
    let arguments = [of, size_of_val(&words) as u64, words.as_ptr() as u64, 0, 0, 0];
    // SAFETY: the words are valid for reading.
    unsafe { sys::call(sys::SCHED_SETAFFINITY, arguments) }
}

/// Affinity of a program; none if there is no such program.
fn affinity(of: u64) -> CpuSet {
    let mut words = CpuSet::default().to_words();
    let arguments = [of, size_of_val(&words) as u64, words.as_mut_ptr() as u64, 0, 0, 0];
    // SAFETY: the words are valid for writing.
    unsafe { sys::call(sys::SCHED_GETAFFINITY, arguments) };
    CpuSet::from_words(words)
}

/// CPU that this program runs on.
fn cpu() -> usize {
    let mut cpu = u32::MAX;
    // SAFETY: the word is valid for writing.
    unsafe { sys::call(sys::GETCPU, [&raw mut cpu as u64, 0, 0, 0, 0, 0]) };
    cpu as usize
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

/// Runs for several turns of the scheduler.
fn child(checks: &mut Checks, wanted: usize) {
    checks.equal("the affinity of a child", affinity(0), CpuSet::of(wanted));
    for piece in 0..300 {
        for iteration in 0..20_000 {
            core::hint::black_box(iteration);
        }
        checks.equal("the CPU of a child", cpu(), wanted);
        if piece % 50 == 0 {
            yield_turn();
        }
    }
}

fn parent(checks: &mut Checks) {
    let is_there = |cpu: &usize| set(0, CpuSet::of(*cpu)) == 0;
    let cpus: Vec<usize> = CpuSet::ALL.numbers().take_while(is_there).collect();
    checks.equal("any CPU again", set(0, CpuSet::ALL), 0);
    checks.equal("the CPUs of a program", affinity(0).numbers().count(), 1);
    let lines = |path: &str, start: &str| {
        let text = read_file(path).unwrap_or_default();
        let text = String::from_utf8(text).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(start)).count()
    };
    checks.equal("the processors in a text", lines("/proc/cpuinfo", "processor"), 1);
    // The first line is of all CPUs together.
    checks.equal("the CPUs with times", lines("/proc/stat", "cpu"), 2);
    let online = read_file("/sys/devices/system/cpu/online").unwrap_or_default();
    checks.equal("a CPU that is online", online.split(|byte| *byte == b'\n').count(), 2);
    let mut children = Vec::new();
    for wanted in cpus.iter().chain(&cpus) {
        let child = Program::load(&["pinned", "child", &format!("{wanted}")])
            .expect("it is in the ramdisk");
        checks.equal("the CPUs of a new child", affinity(child.number()).numbers().count(), 1);
        checks.equal("set an affinity", set(child.number(), CpuSet::of(*wanted)), 0);
        checks.equal("the affinity that was set", affinity(child.number()), CpuSet::of(*wanted));
        checks.equal(
            "set the affinity to a CPU that is not there",
            set(child.number(), CpuSet::of(MAX_CPUS - 1)),
            -errno::EINVAL,
        );
        child.run().expect("it was not started");
        children.push(child);
    }
    for child in children {
        // The child may have ended.
        let number = child.number();
        let is_one_or_none = affinity(number).numbers().count() <= 1;
        checks.equal("the affinity of a running child", is_one_or_none, true);
        checks.equal("the status of a child", child.wait(), Ok(0));
        checks.equal(
            "set the affinity of a child that has ended",
            set(number, CpuSet::of(0)),
            -errno::ESRCH,
        );
    }
    println!("pinned: done on {} CPUs", cpus.len());
}
