//! Costs of counting on a CPU, and counts that interrupts add.

use alloc::{format, string::String, vec::Vec};

use tally::{Direct, Mode, OpenError, Session, SessionConfig, SessionStats, Slice, session};
use tally_abi::check::Cost;

use super::{
    counters::{between_readings, on_counter},
    loops::SPIN_INSTRUCTIONS,
};

/// Length of a slice in cycles; each slice ends by an interrupt.
const SLICE: Slice = Slice::Cycles(20_000);
/// Turns of the loop in which slices end.
const TURNS: u64 = 2_000_000;
/// Number of RDPMCs that are timed.
const RDPMCS: u64 = 1_000;

/// Measures this CPU.
///
/// # Errors
/// Instructions cannot be counted.
pub fn measure(cpu: u32) -> Result<Cost, OpenError> {
    let (stats, overcount) = run("instructions")?;
    let switched = run(&two_groups()).ok();
    let known = |cycles: u64| (cycles > 0).then_some(cycles);
    Ok(Cost {
        cpu,
        rdpmc_centicycles: rdpmc(),
        interrupt_cycles: known(stats.switch_cycles),
        switch_cycles: switched.and_then(|(stats, _)| known(stats.switch_cycles)),
        interrupts: stats.pmis + stats.interruptions,
        overcount,
        lost: stats.lost_pmis,
    })
}

/// Counts a list, whose first event is instructions, on a loop. Returns the session's statistics,
/// and the number of instructions counted in excess of those of the loop.
fn run(events: &str) -> Result<(SessionStats, u64), OpenError> {
    let budget_ppm = session::NO_BUDGET_PPM;
    let config = SessionConfig { slice: SLICE, budget_ppm, ..SessionConfig::default() };
    let session = Session::open(events, config)?;
    session.start()?;
    // The overhead around the loop is the same both times.
    let [one, all] = [1, TURNS + 1].map(|turns| between_readings(&session, turns));
    let overcount = all?.saturating_sub(one? + SPIN_INSTRUCTIONS * TURNS);
    session.stop()?;
    Ok((session.stats()?, overcount))
}

/// Returns instructions, and two events for each general counter: every switch replaces all of
/// them.
fn two_groups() -> String {
    let granted =
        |counter: &u8| Direct::open(&on_counter("cpu/event=0xc0/", *counter), Mode::User).is_ok();
    let branches = if is_intel() { "cpu/event=0xc4/" } else { "cpu/event=0xc2/" };
    let of = |counter| {
        let [first, second] = ["cpu/event=0xc0/", branches].map(|of| on_counter(of, counter));
        format!("{first},{second}")
    };
    let lists: Vec<String> = (0..8_u8).filter(granted).map(of).collect();
    format!("instructions,{}", lists.join(","))
}

/// Returns the cost of each RDPMC in hundredths of a cycle, with the few instructions around it.
fn rdpmc() -> Option<u64> {
    let direct = Direct::open("cycles", Mode::User).ok()?;
    let before = direct.read(0);
    let last = (0..RDPMCS).fold(before, |_, _| direct.read(0));
    let cycles = last.wrapping_sub(before);
    (cycles > 0).then_some(100 * cycles / RDPMCS)
}

fn is_intel() -> bool {
    // "Genu", the beginning of "GenuineIntel".
    core::arch::x86_64::__cpuid(0).ebx == u32::from_le_bytes(*b"Genu")
}
