//! Writes records on one thread and in signal handlers that interrupt it; reads and checks them on
//! another: `cargo test --release -p tally-ring --test stress -- --records 1000000000`. That tests
//! both modes; `--discard` or `--overwrite` selects one.
//!
//! A signal handler interrupts the thread as an NMI interrupts its CPU. Each record has its writer,
//! its number and a checksum of them. The numbers of each writer must grow, and at the end
//! written = read + lost.

use std::{
    env,
    process::ExitCode,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use tally_ring::{Item, Reader, Ring, WhenFull};

type Large = Ring<65_536, 16>;

/// Ring under test, which is never freed.
static RING: AtomicPtr<Large> = AtomicPtr::new(std::ptr::null_mut());
static FROM_SIGNALS: AtomicU64 = AtomicU64::new(0);
static OVER: AtomicBool = AtomicBool::new(false);

fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC; it has no effect on memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

fn check(kind: u8, n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(kind)
}

/// Writes records of 2, 3 and 4 words in turn.
///
/// # Safety
/// See [`Ring::write`].
unsafe fn write(ring: &Large, kind: u8, n: u64) {
    // SAFETY: the caller's word.
    unsafe {
        match n % 3 {
            0 => ring.write(kind, tsc, &[n], &[]),
            1 => ring.write(kind, tsc, &[n, check(kind, n)], &[]),
            _ => ring.write(kind, tsc, &[n, check(kind, n)], &[!n]),
        }
    };
}

extern "C" fn on_signal(_: libc::c_int) {
    // SAFETY: it is null or a ring that is never freed.
    if let Some(ring) = unsafe { RING.load(Ordering::Acquire).as_ref() } {
        for _ in 0..3 {
            // Relaxed: only this handler writes the word, and it does not interrupt itself.
            let n = FROM_SIGNALS.load(Ordering::Relaxed);
            FROM_SIGNALS.store(n + 1, Ordering::Relaxed);
            // SAFETY: (1) `run` made it; (2) signals go to the thread that writes, and to no other.
            unsafe { write(ring, 2, n) };
        }
    }
}

/// Records read and records lost.
fn read(ring: &'static Large, start: Instant) -> (u64, u64) {
    let mut reader = Reader::consume(ring);
    let (mut read, mut lost, mut next, mut last_tsc) = (0_u64, 0, [0_u64; 3], 0);
    loop {
        let over = OVER.load(Ordering::Acquire);
        while let Some(item) = reader.take() {
            match item {
                Item::Lost(records) => lost += records,
                Item::Record { kind, tsc, words } => {
                    let n = words[1];
                    assert!(n >= next[usize::from(kind)], "{kind} {n} again");
                    next[usize::from(kind)] = n + 1;
                    assert!(tsc >= last_tsc, "time runs backwards");
                    last_tsc = tsc;
                    assert_eq!(words.len() as u64, 2 + n % 3, "torn");
                    assert!(words[2..].first().is_none_or(|word| *word == check(kind, n)), "torn");
                    assert!(words[2..].get(1).is_none_or(|word| *word == !n), "torn");
                    read += 1;
                    if read.is_multiple_of(100_000_000) {
                        eprintln!("{read} read, {lost} lost, {:?}", start.elapsed());
                    }
                }
            }
        }
        if over {
            return (read, lost + reader.rest());
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let value = arguments.iter().position(|word| word == "--records");
    let records = value.and_then(|at| arguments.get(at + 1)).map_or(Ok(1_000_000), |n| n.parse());
    let Ok(records): Result<u64, _> = records else {
        eprintln!("stress: --records wants a number");
        return ExitCode::from(64);
    };
    for mode in [WhenFull::Discard, WhenFull::Overwrite] {
        if !has(if mode == WhenFull::Discard { "--overwrite" } else { "--discard" }) {
            run(mode, records);
        }
    }
    ExitCode::SUCCESS
}

fn run(mode: WhenFull, records: u64) {
    // SAFETY: a ring is nothing but words, for which 0 is a value.
    let mut ring = unsafe { Box::<Large>::new_zeroed().assume_init() };
    ring.init(mode, tsc());
    let ring = Box::leak(ring);
    RING.store(ring, Ordering::Release);
    let ring: &'static Large = ring;
    OVER.store(false, Ordering::Relaxed);
    FROM_SIGNALS.store(0, Ordering::Relaxed);
    let start = Instant::now();
    let reader = thread::spawn(move || read(ring, start));
    // SAFETY: the handler touches atomics only, and is of the type that is asked for.
    unsafe { libc::signal(libc::SIGUSR1, on_signal as *const () as libc::sighandler_t) };
    // SAFETY: a thread may always ask who it is.
    let writer = unsafe { libc::pthread_self() };
    let signals = AtomicU64::new(0);
    let all_written = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !all_written.load(Ordering::Relaxed) {
                // SAFETY: the writer lives: it waits for this thread.
                unsafe { libc::pthread_kill(writer, libc::SIGUSR1) };
                signals.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_micros(20));
            }
        });
        // SAFETY: (1) it was made above; (2) this thread writes, and the handler that interrupts
        // it.
        (0..records).for_each(|n| unsafe { write(ring, 1, n) });
        all_written.store(true, Ordering::Relaxed);
    });
    // Signals may come late, but not after this.
    RING.store(std::ptr::null_mut(), Ordering::Release);
    // Pairs with the reader's Acquire: then everything is written.
    OVER.store(true, Ordering::Release);
    let taken = start.elapsed();
    let (read, lost) = reader.join().expect("what was read is whole");
    let (status, from_signals) = (ring.status(), FROM_SIGNALS.load(Ordering::Relaxed));
    println!(
        "{mode:?}: {} written, {from_signals} of them in {} signals; {read} read + {lost} lost; {:.2} \
         ns a record",
        status.written,
        signals.load(Ordering::Relaxed),
        taken.as_nanos() as f64 / status.written as f64
    );
    assert_eq!(status.written, records + from_signals);
    assert_eq!(status.written, read + lost);
}
