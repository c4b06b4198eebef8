//! Checks of every counter of a CPU, on loops of known content: alone, together, by RDPMC and by
//! the kernel; its overflows, and its stop.

use alloc::{format, string::String, vec, vec::Vec};
use core::{
    arch::asm,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use tally::{Bank, Direct, Error, Mode, Session, SessionConfig, Slice, Value, session};
use tally_abi::check::Counter;

use super::loops::{SPIN_INSTRUCTIONS, spin};

/// Turns of the loop whose instructions are counted.
const TURNS: u64 = 10_000;
/// Number of overflows of each counter.
const OVERFLOWS: usize = 16;
/// Events between two overflows.
const PERIOD: u64 = 20_000;
/// Maximum number of general counters of a processor.
const MAX_GENERAL: u8 = 10;
/// Instructions in excess of the loop's that may be counted: those around it, and those that
/// interrupts add.
const SLACK: u64 = 100;

/// Counter, by the spelling of an event that is counted on it.
struct Named {
    name: String,
    event: String,
    /// ECX operand of RDPMC.
    number: u32,
    least: u64,
    most: u64,
}

/// Returns the counters that the kernel grants.
fn counters() -> Vec<Named> {
    let instructions = SPIN_INSTRUCTIONS * TURNS;
    let (least, most) = (instructions, instructions + SLACK);
    let general = (0..MAX_GENERAL).map(|index| {
        (format!("general-{index}"), on_counter("cpu/event=0xc0/", index), (least, most))
    });
    // No processor retires more than 16 instructions per cycle, or takes 50 cycles per instruction.
    let cycles = (instructions / 16, 50 * instructions);
    let pinned = [
        ("instructions", "instructions", (least, most)),
        ("cycles", "cycles", cycles),
        ("reference", "ref-cycles", cycles),
    ];
    let pinned = pinned.into_iter().map(|(name, event, of)| (name.into(), event.into(), of));
    // On some processors reference cycles are an event of a general counter.
    let mut numbers = Vec::new();
    let granted = |(name, event, (least, most)): (String, String, (u64, u64))| {
        let number = Direct::open(&event, Mode::User).ok()?.rdpmc_number(0);
        let is_new = !numbers.contains(&number);
        numbers.push(number);
        is_new.then_some(Named { name, event, number, least, most })
    };
    general.chain(pinned).filter_map(granted).collect()
}

/// Returns the spelling of an event, a name or `cpu/…/`, on a general counter.
pub fn on_counter(event: &str, counter: u8) -> String {
    let terms = event.strip_prefix("cpu/").map_or(event, |terms| terms.trim_end_matches('/'));
    format!("cpu/{terms},counter={counter}/")
}

/// Checks the counters of this CPU.
pub fn all(cpu: u32) -> Vec<Counter> {
    let named = counters();
    let list: Vec<&str> = named.iter().map(|it| it.event.as_str()).collect();
    let together = counted(&list.join(","), list.len());
    let check = |(index, it): (usize, &Named)| {
        let mut of = Counter {
            cpu,
            counter: it.name.clone(),
            least: it.least,
            most: it.most,
            alone: counted(&it.event, 1).first().copied().unwrap_or(0),
            together: together.get(index).copied().unwrap_or(0),
            ..Counter::default()
        };
        // If the session cannot be opened, nothing is known about it.
        of.session = by_kernel(it).ok();
        let _ = overflows(it, &mut of);
        of
    };
    named.iter().enumerate().map(check).collect()
}

/// Returns the count of each event of a list over the loop; empty if the list is refused.
fn counted(list: &str, events: usize) -> Vec<u64> {
    let Ok(direct) = Direct::open(list, Mode::User) else { return Vec::new() };
    (0..events).map(|event| difference(&direct, event, TURNS)).collect()
}

/// Returns the count of a direct-mode list's event over a loop.
fn difference(direct: &Direct, event: usize, turns: u64) -> u64 {
    let before = direct.read(event);
    spin(turns);
    direct.read(event).wrapping_sub(before)
}

/// Returns the first event's count, as the kernel reads it.
fn count(session: &Session) -> Result<u64, Error> {
    Ok(session.read()?.first().map_or(0, |reading| match reading.value {
        Value::Exact { count } => count,
        Value::Estimated { estimate, .. } => estimate,
        _ => 0,
    }))
}

/// Returns a configuration whose slices do not end within the check.
fn config() -> SessionConfig {
    let slice = Slice::Cycles(session::MAX_SLICE);
    SessionConfig { slice, budget_ppm: session::NO_BUDGET_PPM, ..SessionConfig::default() }
}

/// Number of thresholds that fired, and the count at each.
static FIRED: AtomicUsize = AtomicUsize::new(0);
static COUNTS: [AtomicU64; OVERFLOWS] = [const { AtomicU64::new(0) }; OVERFLOWS];

extern "C" fn note(_: usize, count: u64) {
    let index = FIRED.fetch_add(1, Relaxed);
    if let Some(place) = COUNTS.get(index) {
        place.store(count, Relaxed);
    }
}

/// Returns the difference of the kernel's readings before and after a loop.
pub fn between_readings(session: &Session, turns: u64) -> Result<u64, Error> {
    let before = count(session)?;
    spin(turns);
    Ok(count(session)?.saturating_sub(before))
}

fn open(counter: &Named) -> Result<Session, Error> {
    Session::open(&counter.event, config()).map_err(|refused| refused.error)
}

/// Returns a session's count of the loop. The session has no bank: with a bank, a reading publishes
/// errors in steps, and a SYSCALL that enters the kernel again for the next step is counted again.
fn by_kernel(counter: &Named) -> Result<u64, Error> {
    let session = open(counter)?;
    session.start()?;
    // Readings around both loops, minus those of one turn.
    let [one, all] = [1, TURNS + 1].map(|turns| between_readings(&session, turns));
    Ok(all?.saturating_sub(one?))
}

/// Lets the counter of a session overflow some times, and stops it.
fn overflows(counter: &Named, of: &mut Counter) -> Result<(), Error> {
    let session = open(counter)?;
    let bank = session.map()?;
    session.start()?;
    let skid = overflow(&session, &bank, |value| of.width_bits = width(value), counter.number)?;
    session.stop()?;
    let before = rdpmc(counter.number);
    spin(TURNS);
    of.stopped = Some(rdpmc(counter.number).wrapping_sub(before));
    let stats = session.stats()?;
    (of.raised, of.arrived) = (OVERFLOWS as u64, skid.len() as u64);
    of.interrupts = stats.overflow_interrupts();
    if let [least, .., most] = skid[..] {
        of.skid = vec![least, skid[skid.len() / 2], most];
    }
    Ok(())
}

/// Lets the counter of a session's only event overflow some times. Returns the delay of each
/// interrupt that came, in order. `show` gets the counter's value before the first overflow.
fn overflow(
    session: &Session,
    bank: &Bank<'_>,
    show: impl FnOnce(u64),
    number: u32,
) -> Result<Vec<u64>, Error> {
    let mut show = Some(show);
    let mut skid = Vec::new();
    FIRED.store(0, Relaxed);
    for (overflow, count) in COUNTS.iter().enumerate() {
        let at = bank.counter(0).map_or(0, |counter| counter.read()) + PERIOD;
        // SAFETY: the handler works on atomics.
        unsafe { session.set_threshold_handler(0, at, note)? };
        if let Some(show) = show.take() {
            show(rdpmc(number));
        }
        // Long enough for cycles too, and shorter than a turn of the scheduler.
        spin(4 * PERIOD);
        if FIRED.load(Relaxed) > overflow {
            skid.push(count.load(Relaxed).saturating_sub(at));
        } else {
            session.clear_threshold(0)?;
            FIRED.store(overflow + 1, Relaxed);
        }
    }
    skid.sort_unstable();
    Ok(skid)
}

/// Returns the width of a counter that is set to some thousands below its overflow: its highest bit
/// is set.
fn width(value: u64) -> Option<u8> {
    (value != 0).then_some((u64::BITS - value.leading_zeros()) as u8)
}

/// Reads a counter.
fn rdpmc(number: u32) -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: the program has a bank, which names the counter.
    unsafe {
        asm!("rdpmc", in("ecx") number, out("rax") low, out("rdx") high, options(nostack));
    }
    high << 32 | low
}
