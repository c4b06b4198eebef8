//! Is interrupted when its logical counters reach thresholds: once, at the count, and goes on with all of
//! its registers as they were.
//!
//! `thresholds EVENTS` wants instructions and cycles first, which are counted all the time, then
//! conditional branches and loads, and any others. `thresholds EVENTS fault` has a handler that
//! crashes; `thresholds EVENTS armed` ends with thresholds set.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::{
    arch::asm,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use tally::{
    Bank, Error, Handler, Session, SessionConfig, Slice, Value, println, runtime::arguments, sys,
};
use tally_test_guests::{
    Checks,
    threads::{end, spawn},
};

tally::main!(main);

const INSTRUCTIONS: usize = 0;
const CYCLES: usize = 1;
const BRANCHES: usize = 2;
const LOADS: usize = 3;

const MOST: usize = 64;
static HEARD: AtomicUsize = AtomicUsize::new(0);
static EVENTS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static COUNTS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
/// How often the loop had turned when a handler came.
static TURNS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static TURN: AtomicU64 = AtomicU64::new(0);
/// Handlers that run, and the most that ran at once.
static INSIDE: AtomicU64 = AtomicU64::new(0);
static DEEPEST: AtomicU64 = AtomicU64::new(0);

extern "C" fn hear(event: usize, count: u64) {
    DEEPEST.fetch_max(INSIDE.fetch_add(1, Relaxed) + 1, Relaxed);
    let index = HEARD.load(Relaxed);
    if index < MOST {
        EVENTS[index].store(event as u64, Relaxed);
        COUNTS[index].store(count, Relaxed);
        TURNS[index].store(TURN.load(Relaxed), Relaxed);
    }
    HEARD.store(index + 1, Relaxed);
    // SAFETY: changes the flags, registers that a handler may change, and words of its own below the
    // stack pointer.
    unsafe {
        asm!("xorps xmm0, xmm0", "xorps xmm15, xmm15", "push 0", "pop rax", "std", "cld", "cmp rax, 1",
             out("rax") _, out("xmm0") _, out("xmm15") _);
    }
    INSIDE.fetch_sub(1, Relaxed);
}

/// Waits in the handler until others have become due.
extern "C" fn hear_slowly(event: usize, count: u64) {
    hear(event, count);
    INSIDE.fetch_add(1, Relaxed);
    spin(20_000);
    INSIDE.fetch_sub(1, Relaxed);
}

/// Ends its thread, when another threshold has become due.
extern "C" fn hear_last(event: usize, count: u64) {
    hear(event, count);
    spin(20_000);
    end();
}

/// What another thread does.
extern "C" fn spin_in_thread(_: u64) -> ! {
    spin(100_000);
    end();
}

/// Lets another thread begin, and waits for its end.
fn with_thread(function: extern "C" fn(u64) -> !) {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    RUNS.store(1, Relaxed);
    assert!(
        spawn(alloc::vec![0; 2048].leak(), function, 0, Some(&RUNS)) > 0,
        "there is room for it"
    );
    while RUNS.load(Relaxed) != 0 {
        // SAFETY: the word is this program's.
        unsafe { sys::call(sys::FUTEX, [RUNS.as_ptr() as u64, 0, 1, 0, 0, 0]) };
    }
}

extern "C" fn crash(_: usize, _: u64) {
    // SAFETY: it is the end of the program.
    unsafe { asm!("ud2") };
}

/// Has a handler hear of a threshold.
fn set(session: &Session, event: usize, at: u64, handler: Handler) {
    // SAFETY: the handlers here use atomics and registers alone, or end their thread or the program.
    let set = unsafe { session.set_threshold_handler(event, at, handler) };
    set.expect("it can be set");
}

/// Each turn has five instructions, one of them a conditional branch, a load and a store; the red zone
/// and registers of all kinds are in use. What is left of them all.
fn spin(turns: u64) -> [u64; 4] {
    let (mut sum, mut float, mut red) = (0_u64, 0.0_f64, 0x1234_5678_u64);
    let address = TURN.as_ptr();
    TURN.store(0, Relaxed);
    // SAFETY: works on registers, the counter, and eight bytes of the red zone.
    unsafe {
        asm!(
            "mov [rsp - 128], {red}",
            "stc",
            "2:",
            "inc qword ptr [{turn}]",
            "lea {sum}, [{sum} + 3]",
            "addsd {float}, {one}",
            "dec {turns}",
            "jnz 2b",
            "mov {red}, [rsp - 128]",
            // The carry is as it was set before: neither INC, DEC nor LEA changes it.
            "adc {red}, 0",
            turn = in(reg) address,
            turns = inout(reg) turns => _,
            sum = inout(reg) sum,
            red = inout(reg) red,
            float = inout(xmm_reg) float,
            one = in(xmm_reg) 1.0_f64,
        );
    }
    [sum, float as u64, red, TURN.load(Relaxed)]
}

/// What [`spin`] has to come to.
fn spun(turns: u64) -> [u64; 4] {
    [3 * turns, turns, 0x1234_5679, turns]
}

fn heard(index: usize) -> (usize, u64, u64) {
    (EVENTS[index].load(Relaxed) as usize, COUNTS[index].load(Relaxed), TURNS[index].load(Relaxed))
}

fn forget() {
    HEARD.store(0, Relaxed);
    DEEPEST.store(0, Relaxed);
}

struct Guest {
    session: Session,
    checks: Checks,
}

impl Guest {
    fn read(&self, bank: Bank<'_>, event: usize) -> u64 {
        bank.counter(event).expect("it is there").read()
    }

    /// Events that are counted all the time: at the count, again and again.
    fn exact(&mut self) {
        let bank = self.session.map().expect("it has one");
        let mut worst = 0;
        for round in 0..8_u64 {
            for (event, per_turn) in [(INSTRUCTIONS, 5), (BRANCHES, 1), (LOADS, 1), (CYCLES, 0)] {
                forget();
                let turns = 20_000 + 7_001 * round;
                let now = self.read(bank, event);
                let at = now + 10_000 + 997 * round;
                set(&self.session, event, at, hear);
                let before = self.read(bank, event);
                let left = spin(turns);
                self.checks.equal("what the program had", left, spun(turns));
                self.checks.equal("times that it was interrupted", HEARD.load(Relaxed), 1);
                let (heard, count, turn) = heard(0);
                self.checks.equal("the event", heard, event);
                self.checks.equal("not before the count", count >= at, true);
                let late = count - at;
                worst = late.max(worst);
                self.checks.equal("late by little", late < 60, true);
                if per_turn > 0 {
                    // What the loop itself shows agrees with the count.
                    let own = before + turn * per_turn;
                    self.checks.equal("where it was", own.abs_diff(count) < 100, true);
                }
            }
        }
        println!("thresholds: exact ones came at most {worst} events late");
    }

    /// Several at once, and one that comes due in another's handler.
    fn nested(&mut self) {
        let bank = self.session.map().expect("it has one");
        forget();
        let base = self.read(bank, INSTRUCTIONS);
        let set = |event, at, handler| set(&self.session, event, at, handler);
        set(INSTRUCTIONS, base + 30_000, hear_slowly);
        set(BRANCHES, self.read(bank, BRANCHES) + 8_000, hear);
        set(LOADS, self.read(bank, LOADS) + 8_010, hear);
        set(CYCLES, self.read(bank, CYCLES) + 1, hear);
        spin(50_000);
        self.checks.equal("handlers that came", HEARD.load(Relaxed), 4);
        self.checks.equal("handlers inside of others", DEEPEST.load(Relaxed), 1);
        let events: Vec<usize> = (0..4).map(|index| heard(index).0).collect();
        let mut sorted = events.clone();
        sorted.sort_unstable();
        self.checks.equal("each once", sorted, [0, 1, 2, 3].into());
        println!("thresholds: in the order {events:?}");
    }

    /// One that comes due in a handler in which its thread ends is heard by the next thread.
    fn in_threads(&mut self) {
        let bank = self.session.map().expect("it has one");
        forget();
        let set = |event, at, handler| set(&self.session, event, at, handler);
        set(INSTRUCTIONS, self.read(bank, INSTRUCTIONS) + 100_000, hear_last);
        set(LOADS, self.read(bank, LOADS) + 25_000, hear);
        with_thread(spin_in_thread);
        self.checks.equal("heard in two threads", HEARD.load(Relaxed), 2);
        forget();
    }

    /// Estimated events: where the bank shows the count.
    fn estimated(&mut self) {
        let bank = self.session.map().expect("it has one");
        let events = self.session.events();
        for event in LOADS + 1..events {
            forget();
            let at = self.read(bank, event) + 20_000;
            set(&self.session, event, at, hear);
            let mut most = 0;
            while HEARD.load(Relaxed) == 0 && most < 20_000 {
                spin(100);
                most += 1;
            }
            self.checks.equal("it came", HEARD.load(Relaxed), 1);
            let (heard, count, _) = heard(0);
            self.checks.equal("the estimated event", heard, event);
            let shown = self.read(bank, event);
            self.checks.equal("the bank shows it", at <= count && count <= shown, true);
            println!("thresholds: event {event} fired {} beyond {at}", count - at);
        }
        forget();
    }
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let events = words.next().expect("usage: thresholds EVENTS [fault|armed]");
    let config = SessionConfig { slice: Slice::Cycles(20_000), ..SessionConfig::default() };
    let session = Session::open(events, config).expect("the events exist");
    let mut checks = Checks::default();
    let early = session.set_threshold(INSTRUCTIONS, 5);
    checks.equal("a threshold without a bank", early, Err(Error::WrongState));
    let bank = session.map().expect("it was not started");
    bank.start().expect("this CPU can count");
    let beyond = session.set_threshold(session.events(), 5);
    checks.equal("a threshold on no event", beyond, Err(Error::BadArgument));
    // SAFETY: the call touches no memory.
    let stray = unsafe { tally::sys::call(tally::sys::UPCALL_RETURN, [0; 6]) };
    checks.equal("no handler runs", Error::from_return(stray), Some(Error::WrongState));
    match words.next() {
        Some("fault") => {
            set(&session, INSTRUCTIONS, 100_000, crash);
            spin(100_000);
            println!("survived");
        }
        Some("armed") => {
            set(&session, INSTRUCTIONS, 1 << 40, hear);
            set(&session, LOADS, 300_000, hear);
            spin(1_000);
        }
        _ => {
            let mut guest = Guest { session, checks };
            if guest.session.events() == LOADS + 1 {
                guest.exact();
                guest.nested();
                guest.in_threads();
            } else {
                guest.estimated();
            }
            guest.session.set_threshold(INSTRUCTIONS, 1).expect("a record alone");
            spin(10);
            guest.checks.equal("a record alone is not heard", HEARD.load(Relaxed), 0);
            let reading = guest.session.read().expect("the session is open")[INSTRUCTIONS].value;
            let bank = guest.session.map().expect("it has one");
            if let Value::Exact { count } = reading {
                guest.checks.equal("counting goes on", guest.read(bank, 0) > count, true);
            }
            println!("thresholds: done");
            return guest.checks.status();
        }
    }
    checks.status()
}
