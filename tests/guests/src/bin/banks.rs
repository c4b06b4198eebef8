//! Reads the banks of all CPUs while programs run there, and sets thresholds on the CPUs' counts.
//!
//! `banks EVENTS ITERATIONS CPUS`: EVENTS are two pinned events, instructions first, and others. A
//! child on each of CPUS spins for ITERATIONS, `banks child ITERATIONS`. `banks thief SESSION`
//! tries to use a session of another program.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering};

use tally::{
    Bank, CpuSet, Error, Program, Session, SessionConfig, Value, println,
    runtime::{arguments, now_ns},
    sys,
};
use tally_test_guests::{Checks, PER_ITERATION, spin, yield_turn};

tally::main!(main);

/// Number of exact events, at the start of the list.
const PINNED: usize = 2;

/// Most instructions of a block of QEMU's translator: an interrupt comes at the end of the block
/// in which a counter overflows.
const BLOCK: u64 = 512;

/// Upcalls of thresholds on instructions, and the sum of the counts at which they fired.
static UPCALLS: AtomicU64 = AtomicU64::new(0);
static FIRED_AT: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(event: usize, count: u64) {
    if event == 0 {
        UPCALLS.fetch_add(1, Ordering::Relaxed);
        FIRED_AT.fetch_add(count, Ordering::Relaxed);
    }
}

fn main() -> i32 {
    let word = |index| arguments().nth(index).unwrap_or_default();
    let number = |index| word(index).parse::<u64>().expect("a number");
    let mut checks = Checks::default();
    match word(1) {
        "child" => spin(number(2)),
        "thief" => thief(&mut checks, number(2)),
        events => {
            monitor(&mut checks, events, number(2), number(3) as usize);
            println!("banks: done");
        }
    }
    checks.status()
}

/// Checks that a session belongs to the program that opened it.
fn thief(checks: &mut Checks, session: u64) {
    for number in [sys::SESSION_MAP, sys::SESSION_THRESHOLD, sys::SESSION_INSTANCE] {
        // SAFETY: the call is refused.
        let refused = unsafe { sys::call(number, [session, 0, 0, 0, 0, 0]) };
        checks.equal("a call of another program", refused, Error::NoSession.to_return());
    }
}

/// Starts a program on this CPU alone.
fn start_on(cpu: usize, iterations: u64) -> Program {
    let child = Program::load(&["banks", "child", &format!("{iterations}")]).expect("it is here");
    let set = CpuSet::of(cpu).to_words();
    let arguments = [child.number(), size_of_val(&set) as u64, set.as_ptr() as u64, 0, 0, 0];
    // SAFETY: the call reads the set.
    assert_eq!(unsafe { sys::call(sys::SCHED_SETAFFINITY, arguments) }, 0);
    child.run().expect("it was not started");
    child
}

fn open(checks: &mut Checks, events: &str, cpus: usize) -> Session {
    let session = Session::open_on_cpus(CpuSet::default(), events, SessionConfig::default())
        .expect("paranoid=0");
    checks.equal("threshold without a bank", session.set_threshold(0, 1), Err(Error::WrongState));
    let behind = session.map_cpu(cpus).err();
    checks.equal("the bank of a CPU that is not there", behind, Some(Error::BadArgument));
    let behind = session.set_cpu_threshold(cpus, 0, 1);
    checks.equal("the threshold of such a CPU", behind, Err(Error::BadArgument));
    session
}

fn monitor(checks: &mut Checks, events: &str, iterations: u64, cpus: usize) {
    let session = open(checks, events, cpus);
    let number = format!("{}", session.id());
    let thief = Program::load(&["banks", "thief", &number]).expect("it is here");
    thief.run().expect("it was not started");
    let banks: Vec<Bank> = (0..cpus).map(|cpu| session.map_cpu(cpu).expect("no start")).collect();
    // One threshold is set before the start and one after it.
    let middle = iterations * PER_ITERATION / 2;
    // Cycles are fewer than instructions, hence half of the middle.
    let first = session.set_cpu_threshold(cpus - 1, 1, middle / 2);
    checks.equal("a threshold before the start", first, Ok(()));
    checks.equal("start by a bank", banks[0].start(), Ok(()));
    checks.equal("map when it is started", session.map().err(), Some(Error::WrongState));
    for cpu in 0..cpus {
        // SAFETY: the handler uses only atomics.
        let set = unsafe { session.set_cpu_threshold_handler(cpu, 0, middle, handler) };
        checks.equal("a threshold after the start", set, Ok(()));
    }
    let event = session.events();
    let behind = session.set_threshold(event, 1);
    checks.equal("a threshold of no event", behind, Err(Error::BadArgument));
    let children: Vec<Program> = (0..cpus).map(|cpu| start_on(cpu, iterations)).collect();
    watch(checks, &session, &banks, &children, middle);
    checks.equal("status of the thief", thief.wait(), Ok(0));
    banks[0].stop();
    judge(checks, &session, &banks, middle);
}

/// Reads the banks until the children have ended.
fn watch(
    checks: &mut Checks,
    session: &Session,
    banks: &[Bank],
    children: &[Program],
    middle: u64,
) {
    let (mut last, mut seen) = (values(banks), 0_u64);
    let mut left: Vec<&Program> = children.iter().collect();
    while !left.is_empty() {
        let now = values(banks);
        let grows = now.iter().flatten().zip(last.iter().flatten()).all(|(now, last)| now >= last);
        checks.equal("values do not run backwards", grows, true);
        seen += u64::from(now[0][0] > last[0][0]);
        for bank in banks {
            let instructions = bank.counter(0).expect("the first event");
            let (fired, reached) = (instructions.fired(), instructions.read() >= middle);
            checks.equal("a threshold fires at its count", fired <= u64::from(reached), true);
        }
        last = now;
        left.retain(|child| {
            let end = child.wait_for(500_000).expect("a child of this program");
            checks.equal("status", end.unwrap_or(0), 0);
            end.is_none()
        });
        agree(checks, banks, session);
        yield_turn();
    }
    checks.equal("different values while they ran", seen > 3, true);
    println!("banks: {seen} values of the first CPU, at {} ns", now_ns());
}

/// Checks that a value of a bank is at most the exact value read after it, which is at most the
/// bank's next value.
fn agree(checks: &mut Checks, banks: &[Bank], session: &Session) {
    let before = values(banks);
    let instances = session.instances().expect("it counts CPUs apart");
    let after = values(banks);
    for ((before, after), (_, readings)) in before.iter().zip(&after).zip(&instances) {
        for event in 0..PINNED {
            let exact = count(readings[event].value);
            let is_between = before[event] <= exact && exact <= after[event];
            checks.equal("exact values are between two of the bank", is_between, true);
        }
    }
}

/// Checks that the final values of the banks equal those reported by the kernel.
fn judge(checks: &mut Checks, session: &Session, banks: &[Bank], middle: u64) {
    let cpus = banks.len() as u64;
    checks.equal("upcalls", UPCALLS.load(Ordering::Relaxed), cpus);
    let fired_at = FIRED_AT.load(Ordering::Relaxed);
    let is_at = (cpus * middle..cpus * (middle + BLOCK)).contains(&fired_at);
    checks.equal("the counts of upcalls", is_at, true);
    let instances = session.instances().expect("it counts CPUs apart");
    checks.equal("instances", instances.len(), banks.len());
    for (bank, (_, readings)) in banks.iter().zip(&instances) {
        let instructions = bank.counter(0).expect("the first event");
        checks.equal("a threshold fires once", instructions.fired(), 1);
        for (event, reading) in readings.iter().enumerate() {
            let counter = bank.counter(event).expect("it is in the list");
            let details = counter.details();
            match reading.value {
                Value::Exact { count } => checks.equal("the last value", counter.read(), count),
                Value::Estimated { estimate, half_width_95, .. } => {
                    let half_width = details.half_width_95.unwrap_or(-1.0);
                    checks.equal("the half width of an estimate", half_width > 0.0, true);
                    let differs = (details.value as f64 - estimate as f64).abs();
                    // The session's value is at least any earlier reading; the bank's value need
                    // not be. Their intervals overlap.
                    let overlaps = differs <= half_width + half_width_95;
                    checks.equal("the bank's estimate", overlaps, true);
                }
                Value::NotMeasured { .. } => {}
            }
        }
    }
    let last = banks[banks.len() - 1].counter(1).expect("the second event");
    checks.equal("a threshold without a handler", last.fired(), 1);
}

fn count(value: Value) -> u64 {
    match value {
        Value::Exact { count } => count,
        Value::NotMeasured { .. } => 0,
        Value::Estimated { .. } => panic!("a pinned event is exact"),
    }
}

fn values(banks: &[Bank]) -> Vec<Vec<u64>> {
    let of = |bank: &Bank| {
        (0..bank.counters()).map(|event| bank.counter(event).unwrap().read()).collect()
    };
    banks.iter().map(of).collect()
}
