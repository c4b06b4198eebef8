//! Costs of writing a record of 16 bytes with its time stamp, in this ring and in others. Run by
//! `cargo xtask bench ring`, which describes the measurement. One line for each ring: its name,
//! instructions of a record in nearly all cases and on average, locked ones, then nanoseconds of a
//! record, one value for each repetition.
//!
//! Instructions are counted by the processor's trap flag: each raises a signal, whose handler
//! inspects the next instruction.

use std::{
    env,
    hint::black_box,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use ringbuf::traits::{Consumer as _, Producer as _, Split as _};
use tally_ring::{Item, Reader, Ring, Tsc, WhenFull};

/// Records that are written in a row, then read: half of a ring.
const BATCH: u64 = 2_048;
/// Number of batches of a measurement.
const BATCHES: u64 = 2_000;
/// Number of records whose instructions are counted together, which fit into a page; [`COUNTS`] is
/// the number of repetitions.
const COUNTED: u64 = 50;
/// See [`COUNTED`].
const COUNTS: usize = 40;
/// Capacity of the other rings, in records.
const CAPACITY: usize = 4_096;

type Ours = Ring<8_192, 16>;

#[inline(always)]
fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC; it has no effect on memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Ring under test, with functions that write records of a time stamp and `n` and read them.
struct Contender {
    name: &'static str,
    /// Writes a number of records.
    write: Box<dyn FnMut(u64)>,
    /// Reads all records and returns their number.
    read: Box<dyn FnMut() -> u64>,
}

fn contenders() -> Vec<Contender> {
    let mut all = vec![nothing(), clock(), ours("tally-ring", WhenFull::Discard)];
    all.extend([ours("tally-ring, overwriting", WhenFull::Overwrite), rtrb(), ringbuf()]);
    all.extend([bbqueue(), crossbeam()]);
    all
}

/// Cost of the loop around each contender, and of a number that the compiler does not know.
fn nothing() -> Contender {
    let write = |records| {
        (0..records).for_each(|n: u64| {
            // SAFETY: there is no instruction in it.
            unsafe { core::arch::asm!("/* {} */", in(reg) black_box(n)) };
        });
    };
    Contender { name: "nothing", write: Box::new(write), read: Box::new(|| BATCH) }
}

/// Cost of time stamps alone.
fn clock() -> Contender {
    let write = |records| {
        (0..records).for_each(|n: u64| {
            // SAFETY: there is no instruction in it.
            unsafe { core::arch::asm!("/* {} {} */", in(reg) black_box(n), in(reg) tsc()) };
        });
    };
    Contender { name: "time stamp alone", write: Box::new(write), read: Box::new(|| BATCH) }
}

fn ours(name: &'static str, mode: WhenFull) -> Contender {
    // SAFETY: a ring is nothing but words, for which 0 is a value.
    let mut ring = unsafe { Box::<Ours>::new_zeroed().assume_init() };
    ring.init(mode, tsc());
    let ring: &'static Ours = Box::leak(ring);
    let mut reader = Reader::consume(ring);
    let write = move |records| {
        (0..records).for_each(|n| {
            let n = black_box(n);
            // SAFETY: (1) it was made above; (2) only this writes to it, on one thread.
            unsafe { ring.write(1, Tsc, &[n], &[]) };
        })
    };
    let read = move || {
        let mut records = 0;
        while let Some(item) = reader.take() {
            records += match item {
                Item::Record { words, .. } => black_box(words).len() as u64 / 2,
                Item::Lost(lost) => lost,
            };
        }
        records
    };
    Contender { name, write: Box::new(write), read: Box::new(read) }
}

fn rtrb() -> Contender {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<[u64; 2]>::new(CAPACITY);
    let write = move |records| {
        (0..records).for_each(|n| {
            let _ = black_box(producer.push([tsc(), black_box(n)]));
        });
    };
    let read = move || std::iter::from_fn(|| consumer.pop().ok()).map(black_box).count() as u64;
    Contender { name: "rtrb", write: Box::new(write), read: Box::new(read) }
}

fn ringbuf() -> Contender {
    let (mut producer, mut consumer) = ringbuf::HeapRb::<[u64; 2]>::new(CAPACITY).split();
    let write = move |records| {
        (0..records).for_each(|n| {
            let _ = black_box(producer.try_push([tsc(), black_box(n)]));
        });
    };
    let read = move || std::iter::from_fn(|| consumer.try_pop()).map(black_box).count() as u64;
    Contender { name: "ringbuf", write: Box::new(write), read: Box::new(read) }
}

fn bbqueue() -> Contender {
    let buffer: &'static bbqueue::BBBuffer<{ 16 * CAPACITY }> =
        Box::leak(Box::new(bbqueue::BBBuffer::new()));
    let (mut producer, mut consumer) = buffer.try_split().expect("nobody has split it");
    let write = move |records| {
        (0..records).for_each(|n: u64| {
            if let Ok(mut grant) = producer.grant_exact(16) {
                let (stamp, word) = grant.buf().split_at_mut(8);
                stamp.copy_from_slice(&tsc().to_le_bytes());
                word.copy_from_slice(&black_box(n).to_le_bytes());
                grant.commit(16);
            }
        });
    };
    let read = move || {
        let mut bytes = 0;
        while let Ok(grant) = consumer.read() {
            let length = black_box(grant.buf()).len();
            bytes += length;
            grant.release(length);
        }
        bytes as u64 / 16
    };
    Contender { name: "bbqueue", write: Box::new(write), read: Box::new(read) }
}

fn crossbeam() -> Contender {
    let queue: &'static _ =
        Box::leak(Box::new(crossbeam_queue::ArrayQueue::<[u64; 2]>::new(CAPACITY)));
    let write = |records| {
        (0..records).for_each(|n| {
            let _ = black_box(queue.push([tsc(), black_box(n)]));
        });
    };
    let read = || std::iter::from_fn(|| queue.pop()).map(black_box).count() as u64;
    Contender { name: "crossbeam ArrayQueue", write: Box::new(write), read: Box::new(read) }
}

static INSTRUCTIONS: AtomicU64 = AtomicU64::new(0);
static LOCKED: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_trap(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler of this kind a context.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    let next = context.uc_mcontext.gregs[libc::REG_RIP as usize] as *const u8;
    // SAFETY: the processor is about to execute what is there.
    let first = unsafe { [*next, *next.add(1)] };
    // Relaxed: one thread. XCHG with memory is locked without a prefix; in this benchmark every
    // XCHG is.
    INSTRUCTIONS.fetch_add(1, Ordering::Relaxed);
    let is_exchange = |byte| matches!(byte, 0x86 | 0x87);
    let locked = first[0] == 0xf0
        || is_exchange(first[0])
        || first[0] & 0xf0 == 0x40 && is_exchange(first[1]);
    LOCKED.fetch_add(locked.into(), Ordering::Relaxed);
}

/// Returns the instructions, and the locked ones, of `work`, including those that switch the
/// counting.
fn count(work: impl FnOnce()) -> (u64, u64) {
    // SAFETY: all zeros is a value of the struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_trap as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler touches atomics and the context that it gets, and is of the kind that is
    // asked for.
    unsafe { libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()) };
    INSTRUCTIONS.store(0, Ordering::Relaxed);
    LOCKED.store(0, Ordering::Relaxed);
    // SAFETY: sets the trap flag; a signal after each instruction is what the handler is for.
    unsafe { core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    work();
    // SAFETY: clears it.
    unsafe { core::arch::asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
    (INSTRUCTIONS.load(Ordering::Relaxed), LOCKED.load(Ordering::Relaxed))
}

/// Returns the instructions of a record, minimum and mean, and the locked ones.
fn instructions(contender: &mut Contender) -> [f64; 3] {
    (contender.read)();
    let (none, _) = count(|| (contender.write)(black_box(0)));
    let counted: Vec<(u64, u64)> =
        (0..COUNTS).map(|_| count(|| (contender.write)(black_box(COUNTED)))).collect();
    let records = COUNTED * COUNTS as u64;
    let read = (contender.read)();
    assert!(read >= BATCH.min(records), "{}: {read} of {records} records came out", contender.name);
    let each = |all: u64, records: u64| all as f64 / records as f64;
    let least = counted.iter().map(|(all, _)| all - none).min().unwrap_or_default();
    let sum: u64 = counted.iter().map(|(all, _)| all - none).sum();
    let locked: u64 = counted.iter().map(|(_, locked)| locked).sum();
    [each(least, COUNTED), each(sum, records), each(locked, records)]
}

/// Returns the nanoseconds of a record: only writing is timed.
fn nanoseconds(contender: &mut Contender) -> f64 {
    let mut nanoseconds = 0;
    for _ in 0..BATCHES {
        let start = Instant::now();
        (contender.write)(black_box(BATCH));
        nanoseconds += start.elapsed().as_nanos();
        let read = (contender.read)();
        assert_eq!(read, BATCH, "{}", contender.name);
    }
    nanoseconds as f64 / (BATCHES * BATCH) as f64
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip_while(|word| word != "--repetitions").skip(1);
    let Some(Ok(repetitions)) = arguments.next().map(|word| word.parse::<u32>()) else {
        eprintln!("rings: run by `cargo xtask bench ring`; wants --repetitions N");
        return ExitCode::from(64);
    };
    let mut contenders = contenders();
    let counts: Vec<_> = contenders.iter_mut().map(instructions).collect();
    let mut times = vec![Vec::new(); contenders.len()];
    // In turns, so that a noisy host affects all contenders alike.
    for _ in 0..repetitions {
        for (times, contender) in times.iter_mut().zip(&mut contenders) {
            times.push(nanoseconds(contender));
        }
    }
    for ((contender, [least, mean, locked]), times) in contenders.iter().zip(counts).zip(times) {
        let times: Vec<String> = times.iter().map(|ns| format!("{ns:.3}")).collect();
        println!("{}\t{least:.2}\t{mean:.2}\t{locked:.2}\t{}", contender.name, times.join(" "));
    }
    ExitCode::SUCCESS
}
