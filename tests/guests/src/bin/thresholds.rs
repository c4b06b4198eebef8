//! Sets thresholds with handlers: each must run once, at the count, and the interrupted code must
//! keep all its registers.
//!
//! `thresholds EVENTS beside` has another session beside it.
//!
//! `thresholds EVENTS`: instructions, cycles, conditional branches and loads, in this order, and
//! any others. `thresholds EVENTS fault` has a handler that faults; `thresholds EVENTS armed` exits
//! with thresholds set.

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
/// Number of handlers that have run; the events, counts and iterations of the first [`MOST`].
static FIRED: AtomicUsize = AtomicUsize::new(0);
static EVENTS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static COUNTS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
/// Iteration of [`spin`] at each handler, and the current one.
static ITERATIONS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static ITERATION: AtomicU64 = AtomicU64::new(0);
/// Number of handlers that are running, and its maximum.
static RUNNING: AtomicU64 = AtomicU64::new(0);
static MOST_RUNNING: AtomicU64 = AtomicU64::new(0);

extern "C" fn note(event: usize, count: u64) {
    MOST_RUNNING.fetch_max(RUNNING.fetch_add(1, Relaxed) + 1, Relaxed);
    let index = FIRED.load(Relaxed);
    if index < MOST {
        EVENTS[index].store(event as u64, Relaxed);
        COUNTS[index].store(count, Relaxed);
        ITERATIONS[index].store(ITERATION.load(Relaxed), Relaxed);
    }
    FIRED.store(index + 1, Relaxed);
    // SAFETY: the code changes the flags, registers that a handler may change, and words below the
    // stack pointer.
    unsafe {
        asm!("xorps xmm0, xmm0", "xorps xmm15, xmm15", "push 0", "pop rax", "std", "cld", "cmp rax, 1",
             out("rax") _, out("xmm0") _, out("xmm15") _);
    }
    RUNNING.fetch_sub(1, Relaxed);
}

/// Runs until other thresholds have fired.
extern "C" fn note_slowly(event: usize, count: u64) {
    note(event, count);
    RUNNING.fetch_add(1, Relaxed);
    spin(20_000);
    RUNNING.fetch_sub(1, Relaxed);
}

/// Ends its thread after another threshold has fired.
extern "C" fn note_and_end_thread(event: usize, count: u64) {
    note(event, count);
    spin(20_000);
    end();
}

/// Entry of the second thread.
extern "C" fn spin_in_thread(_: u64) -> ! {
    spin(100_000);
    end();
}

/// Runs another thread to its end.
fn with_thread(function: extern "C" fn(u64) -> !) {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    RUNS.store(1, Relaxed);
    assert!(
        spawn(alloc::vec![0; 2048].leak(), function, 0, Some(&RUNS)) > 0,
        "the kernel starts a thread"
    );
    while RUNS.load(Relaxed) != 0 {
        // SAFETY: the word is static.
        unsafe { sys::call(sys::FUTEX, [RUNS.as_ptr() as u64, 0, 1, 0, 0, 0]) };
    }
}

extern "C" fn fault(_: usize, _: u64) {
    // SAFETY: the exception ends the program.
    unsafe { asm!("ud2") };
}

/// Sets a threshold with a handler.
fn set(session: &Session, event: usize, at: u64, handler: Handler) {
    // SAFETY: the handlers here use only atomics and registers, or end their thread or the program.
    let set = unsafe { session.set_threshold_handler(event, at, handler) };
    set.expect("the event and the bank are there");
}

/// Executes five instructions per iteration, among them a conditional branch, a load and a store.
/// Uses the red zone and registers of all kinds, and returns their final contents.
fn spin(iterations: u64) -> [u64; 4] {
    let (mut sum, mut float, mut red) = (0_u64, 0.0_f64, 0x1234_5678_u64);
    let address = ITERATION.as_ptr();
    ITERATION.store(0, Relaxed);
    // SAFETY: the code changes registers, the static counter, and eight bytes of the red zone.
    unsafe {
        asm!(
            "mov [rsp - 128], {red}",
            "stc",
            "2:",
            "inc qword ptr [{iteration}]",
            "lea {sum}, [{sum} + 3]",
            "addsd {float}, {one}",
            "dec {iterations}",
            "jnz 2b",
            "mov {red}, [rsp - 128]",
            // The carry flag is still set: INC, DEC and LEA do not change it.
            "adc {red}, 0",
            iteration = in(reg) address,
            iterations = inout(reg) iterations => _,
            sum = inout(reg) sum,
            red = inout(reg) red,
            float = inout(xmm_reg) float,
            one = in(xmm_reg) 1.0_f64,
        );
    }
    [sum, float as u64, red, ITERATION.load(Relaxed)]
}

/// Expected result of [`spin`].
fn spun(iterations: u64) -> [u64; 4] {
    [3 * iterations, iterations, 0x1234_5679, iterations]
}

/// Event, count and iteration of a handler.
fn fired(index: usize) -> (usize, u64, u64) {
    let [event, count, iteration] =
        [&EVENTS, &COUNTS, &ITERATIONS].map(|all| all[index].load(Relaxed));
    (event as usize, count, iteration)
}

fn reset() {
    FIRED.store(0, Relaxed);
    MOST_RUNNING.store(0, Relaxed);
}

struct Guest {
    session: Session,
    checks: Checks,
}

impl Guest {
    fn read(&self, bank: Bank<'_>, event: usize) -> u64 {
        bank.counter(event).expect("the list has the event").read()
    }

    /// Checks that thresholds on pinned events fire at the count, repeatedly.
    fn exact(&mut self) {
        let bank = self.session.map().expect("the session has a bank");
        let mut latest = 0;
        for round in 0..8_u64 {
            for (event, per_iteration) in
                [(INSTRUCTIONS, 5), (BRANCHES, 1), (LOADS, 1), (CYCLES, 0)]
            {
                reset();
                let iterations = 20_000 + 7_001 * round;
                let now = self.read(bank, event);
                let at = now + 10_000 + 997 * round;
                set(&self.session, event, at, note);
                let before = self.read(bank, event);
                let left = spin(iterations);
                self.checks.equal("registers and red zone", left, spun(iterations));
                self.checks.equal("handlers of one threshold", FIRED.load(Relaxed), 1);
                let (found, count, iteration) = fired(0);
                self.checks.equal("the event of a handler", found, event);
                self.checks.equal("a handler runs not before the count", count >= at, true);
                let late = count - at;
                latest = late.max(latest);
                self.checks.equal("a handler runs at most 60 events late", late < 60, true);
                if per_iteration > 0 {
                    let by_loop = before + iteration * per_iteration;
                    let is_near = by_loop.abs_diff(count) < 100;
                    self.checks.equal("the iteration agrees with the count", is_near, true);
                }
            }
        }
        println!("thresholds: pinned events fired at most {latest} events late");
    }

    /// Checks thresholds of instructions that are some slices away, beside another session.
    fn distant(&mut self) {
        let bank = self.session.map().expect("the session has a bank");
        for distance in [1_000, 100_000, 700_000] {
            reset();
            let at = self.read(bank, INSTRUCTIONS) + distance;
            set(&self.session, INSTRUCTIONS, at, note);
            spin(distance);
            self.checks.equal("handlers of one threshold", FIRED.load(Relaxed), 1);
            let (_, count, _) = fired(0);
            let late = count.wrapping_sub(at);
            println!("thresholds: {distance} away, {late} late");
            self.checks.equal("a handler runs at most 60 events late", late < 60, true);
        }
    }

    /// Sets several thresholds at once, some of which fire in the handler of another.
    fn nested(&mut self) {
        let bank = self.session.map().expect("the session has a bank");
        reset();
        let base = self.read(bank, INSTRUCTIONS);
        let set = |event, at, handler| set(&self.session, event, at, handler);
        set(INSTRUCTIONS, base + 30_000, note_slowly);
        set(BRANCHES, self.read(bank, BRANCHES) + 8_000, note);
        set(LOADS, self.read(bank, LOADS) + 8_010, note);
        set(CYCLES, self.read(bank, CYCLES) + 1, note);
        spin(50_000);
        self.checks.equal("handlers of four thresholds", FIRED.load(Relaxed), 4);
        self.checks.equal("handlers that ran at once", MOST_RUNNING.load(Relaxed), 1);
        let events: Vec<usize> = (0..4).map(|index| fired(index).0).collect();
        let mut sorted = events.clone();
        sorted.sort_unstable();
        self.checks.equal("events, each once", sorted, [0, 1, 2, 3].into());
        println!("thresholds: in the order {events:?}");
    }

    /// Sets a threshold that fires in a handler that ends its thread: its own handler runs in the
    /// next thread.
    fn in_threads(&mut self) {
        let bank = self.session.map().expect("the session has a bank");
        reset();
        let set = |event, at, handler| set(&self.session, event, at, handler);
        set(INSTRUCTIONS, self.read(bank, INSTRUCTIONS) + 100_000, note_and_end_thread);
        set(LOADS, self.read(bank, LOADS) + 25_000, note);
        with_thread(spin_in_thread);
        self.checks.equal("handlers in two threads", FIRED.load(Relaxed), 2);
        reset();
    }

    /// Checks that a cleared threshold does not fire, and the next one does.
    fn cleared(&mut self) {
        let bank = self.session.map().expect("the session has a bank");
        let at = self.read(bank, INSTRUCTIONS) + 10_000;
        set(&self.session, INSTRUCTIONS, at, note);
        self.checks.equal("clear a threshold", self.session.clear_threshold(INSTRUCTIONS), Ok(()));
        spin(20_000);
        let passed = self.read(bank, INSTRUCTIONS) > at;
        self.checks.equal("the count passes a cleared threshold", passed, true);
        self.checks.equal("handlers of a cleared threshold", FIRED.load(Relaxed), 0);
        set(&self.session, INSTRUCTIONS, self.read(bank, INSTRUCTIONS) + 10_000, note);
        spin(20_000);
        self.checks.equal("handlers of the next threshold", FIRED.load(Relaxed), 1);
        reset();
    }

    /// Checks that thresholds on multiplexed events fire when the count in the bank reaches them.
    fn estimated(&mut self) {
        let bank = self.session.map().expect("the session has a bank");
        let events = self.session.events();
        for event in LOADS + 1..events {
            reset();
            let at = self.read(bank, event) + 20_000;
            set(&self.session, event, at, note);
            let mut loops = 0;
            while FIRED.load(Relaxed) == 0 && loops < 20_000 {
                spin(100);
                loops += 1;
            }
            self.checks.equal("handlers of a multiplexed event", FIRED.load(Relaxed), 1);
            let (found, count, _) = fired(0);
            self.checks.equal("the multiplexed event of a handler", found, event);
            let in_bank = self.read(bank, event);
            self.checks.equal(
                "the count is between the threshold and the bank",
                at <= count && count <= in_bank,
                true,
            );
            println!("thresholds: event {event} fired {} beyond {at}", count - at);
        }
        reset();
    }

    /// Runs all checks of a program with handlers, for exact events or for multiplexed ones.
    fn check(mut self) -> Self {
        if self.session.events() == LOADS + 1 {
            self.exact();
            self.nested();
            self.in_threads();
        } else {
            self.estimated();
        }
        self.session.set_threshold(INSTRUCTIONS, 1).expect("the event and the bank are there");
        spin(10);
        self.checks.equal("handlers of a threshold without one", FIRED.load(Relaxed), 0);
        self.cleared();
        let reading = self.session.read().expect("the session is open")[INSTRUCTIONS].value;
        let bank = self.session.map().expect("the session has a bank");
        if let Value::Exact { count } = reading {
            self.checks.equal(
                "the count afterwards is above the last reading",
                self.read(bank, 0) > count,
                true,
            );
        }
        self
    }
}

/// Makes calls that the kernel refuses: before the bank is mapped, and with it.
fn refusals(session: &Session, checks: &mut Checks) {
    let early = session.set_threshold(INSTRUCTIONS, 5);
    checks.equal("a threshold without a bank", early, Err(Error::WrongState));
    let bank = session.map().expect("it was not started");
    bank.start().expect("the PMU counts");
    let beyond = session.set_threshold(session.events(), 5);
    checks.equal("a threshold on an event that is not there", beyond, Err(Error::BadArgument));
    // SAFETY: the call touches no memory.
    let stray = unsafe { tally::sys::call(tally::sys::UPCALL_RETURN, [0; 6]) };
    checks.equal(
        "return from a handler that does not run",
        Error::from_return(stray),
        Some(Error::WrongState),
    );
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let events = words.next().expect("usage: thresholds EVENTS [fault|armed|beside]");
    let config = SessionConfig { slice: Slice::Cycles(20_000), ..SessionConfig::default() };
    let session = Session::open(events, config).expect("the events exist");
    let mut checks = Checks::default();
    refusals(&session, &mut checks);
    match words.next() {
        Some("fault") => {
            set(&session, INSTRUCTIONS, 100_000, fault);
            spin(100_000);
            println!("survived");
        }
        Some("armed") => {
            set(&session, INSTRUCTIONS, 1 << 40, note);
            set(&session, LOADS, 300_000, note);
            spin(1_000);
        }
        Some("beside") => {
            let other = Session::open("cycles,branches", SessionConfig::default());
            let other = other.expect("the events exist");
            other.start().expect("both sessions fit");
            let mut guest = Guest { session, checks };
            guest.distant();
            println!("thresholds: done");
            return guest.checks.status();
        }
        _ => {
            let guest = Guest { session, checks }.check();
            println!("thresholds: done");
            return guest.checks.status();
        }
    }
    checks.status()
}
