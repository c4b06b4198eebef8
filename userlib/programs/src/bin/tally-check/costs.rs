//! What counting costs on a CPU, and what interrupts add to counts.

use alloc::{format, string::String, vec::Vec};

use tally::{Direct, Mode, OpenError, Session, SessionConfig, SessionStats, Slice, Value, session};
use tally_abi::check::Cost;

use super::{
    counters::on_counter,
    loops::{SPIN_INSTRUCTIONS, spin},
};

/// Cycles of a slice: each ends by an interrupt.
const SLICE: Slice = Slice::Cycles(20_000);
/// Turns of the loop in which slices end.
const TURNS: u64 = 2_000_000;
/// RDPMCs that are timed.
const RDPMCS: u64 = 1_000;

/// Measures this CPU.
///
/// # Errors
/// Instructions cannot be counted.
pub fn measure(cpu: u32) -> Result<Cost, OpenError> {
    let one = run("instructions", TURNS)?;
    let switched = run(&two_groups(), TURNS).ok();
    let known = |cycles: u64| (cycles > 0).then_some(cycles);
    Ok(Cost {
        cpu,
        rdpmc_centicycles: rdpmc(),
        interrupt_cycles: known(one.stats.switch_cycles),
        switch_cycles: switched.and_then(|it| known(it.stats.switch_cycles)),
        interrupts: one.stats.pmis + one.stats.interruptions,
        overcount: one.counted.saturating_sub(one.least),
        lost: one.stats.lost_pmis,
    })
}

/// A session's run.
struct Run {
    stats: SessionStats,
    /// Instructions that it counted.
    counted: u64,
    /// Instructions that retired.
    least: u64,
}

/// Counts a list, whose first event is instructions, on a loop.
fn run(events: &str, turns: u64) -> Result<Run, OpenError> {
    // What starting and stopping add.
    let (_, around) = session(events, 0)?;
    let (stats, counted) = session(events, turns)?;
    Ok(Run { stats, counted, least: around + SPIN_INSTRUCTIONS * (turns - 1) })
}

/// The statistics of a session on a loop of one turn more than 0, and its first event's count.
fn session(events: &str, turns: u64) -> Result<(SessionStats, u64), OpenError> {
    let config =
        SessionConfig { slice: SLICE, budget_ppm: session::NO_BUDGET_PPM, ..Default::default() };
    let session = Session::open(events, config)?;
    session.start()?;
    spin(turns.max(1));
    session.stop()?;
    let counted = session.read()?.first().map_or(0, |reading| match reading.value {
        Value::Exact { count } => count,
        Value::Estimated { estimate, .. } => estimate,
        _ => 0,
    });
    Ok((session.stats()?, counted))
}

/// Instructions, and two events for each general counter: every switch replaces all of them.
fn two_groups() -> String {
    let granted = |counter: &u8| {
        Direct::open(&on_counter("cpu/event=0xc0/", *counter), Mode::User).is_ok()
    };
    let branches = if is_intel() { "cpu/event=0xc4/" } else { "cpu/event=0xc2/" };
    let of = |counter| {
        let [first, second] = ["cpu/event=0xc0/", branches].map(|of| on_counter(of, counter));
        format!("{first},{second}")
    };
    let lists: Vec<String> = (0..8_u8).filter(granted).map(of).collect();
    format!("instructions,{}", lists.join(","))
}

/// Hundredths of a cycle for each RDPMC, with the few instructions around it.
fn rdpmc() -> Option<u64> {
    let direct = Direct::open("cycles", Mode::User).ok()?;
    let before = direct.read(0);
    let last = (0..RDPMCS).fold(before, |_, _| direct.read(0));
    let cycles = last.wrapping_sub(before);
    (cycles > 0).then_some(100 * cycles / RDPMCS)
}

fn is_intel() -> bool {
    // "Genu".
    core::arch::x86_64::__cpuid(0).ebx == u32::from_le_bytes(*b"Genu")
}
