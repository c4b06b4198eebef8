//! Rates: calls that start one of the library's own sets and report the counts since then.

use alloc::{vec, vec::Vec};
use core::ffi::c_int;

use super::count;
use crate::{
    answer::{Answer, Code, OK, give},
    machine,
    pointers::Place,
    set::Set,
    state::{Rate, State, with},
};

const TOTAL_CYCLES: c_int = code(0x3b);
const INSTRUCTIONS: c_int = code(0x32);
const REFERENCE_CYCLES: c_int = code(0x6b);

const fn code(preset: u32) -> c_int {
    (0x8000_0000 | preset) as c_int
}

/// Result of a rate call, besides its own numbers.
struct Since {
    real_s: f32,
    thread_s: f32,
    /// Counts since the first call.
    totals: Vec<i64>,
    /// Counts since the last call.
    counts: Vec<i64>,
}

/// Starts the calling thread's rate.
fn begin(state: &mut State, events: &[c_int]) -> Result<Since, Code> {
    if state.level == 0 {
        state.initialize()?;
    }
    let mut set = Set::new(state.domain);
    for event in events {
        state.events.query(*event)?;
        set.add(*event)?;
    }
    let number = state.sets.len() as c_int;
    state.sets.push(Some(set));
    count::start(state, number).inspect_err(|_| drop(state.sets.pop()))?;
    let zeros = vec![0; events.len()];
    state.rates.push(Rate {
        thread: machine::thread(),
        set: number,
        real_ns: machine::real_ns(),
        thread_ns: machine::thread_ns(),
        totals: zeros.clone(),
    });
    Ok(Since { real_s: 0.0, thread_s: 0.0, totals: zeros.clone(), counts: zeros })
}

/// Starts the calling thread's rate, or returns its counts.
fn since(state: &mut State, events: &[c_int]) -> Result<Since, Code> {
    let thread = machine::thread();
    let Some(at) = state.rates.iter().position(|rate| rate.thread == thread) else {
        return begin(state, events);
    };
    let number = state.rates[at].set;
    let set = state.set(number)?;
    if set.events != events {
        return Err(Code::Inval);
    }
    let counts = set.values_now()?;
    set.reset()?;
    let rate = &mut state.rates[at];
    rate.totals.iter_mut().zip(&counts).for_each(|(total, count)| *total += count.max(&0));
    let seconds = |ns: i64| ns as f32 / 1e9;
    Ok(Since {
        real_s: seconds(machine::real_ns() - rate.real_ns),
        thread_s: seconds(machine::thread_ns() - rate.thread_ns),
        totals: rate.totals.clone(),
        counts,
    })
}

fn ratio(count: i64, of: i64) -> f32 {
    if of > 0 { count as f32 / of as f32 } else { 0.0 }
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_ipc(
    real: Place<f32>,
    thread: Place<f32>,
    instructions: Place<i64>,
    rate: Place<f32>,
) -> c_int {
    give(with(|state| {
        let since = since(state, &[INSTRUCTIONS, TOTAL_CYCLES])?;
        real.write(since.real_s)?;
        thread.write(since.thread_s)?;
        instructions.write(since.totals[0])?;
        rate.write(ratio(since.counts[0], since.counts[1])).and(OK)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_epc(
    event: c_int,
    real: Place<f32>,
    thread: Place<f32>,
    reference: Place<i64>,
    core: Place<i64>,
    events: Place<i64>,
    rate: Place<f32>,
) -> c_int {
    give(with(|state| {
        let event = if event == 0 { INSTRUCTIONS } else { event };
        let since = since(state, &[event, TOTAL_CYCLES, REFERENCE_CYCLES])?;
        real.write(since.real_s)?;
        thread.write(since.thread_s)?;
        reference.write(since.totals[2])?;
        core.write(since.totals[1])?;
        events.write(since.totals[0])?;
        rate.write(ratio(since.counts[0], since.counts[1])).and(OK)
    }))
}

/// Returns floating-point events per microsecond of the thread.
fn millions(event: c_int, [real, thread, rate]: [Place<f32>; 3], events: Place<i64>) -> Answer {
    with(|state| {
        let since = since(state, &[event, TOTAL_CYCLES])?;
        real.write(since.real_s)?;
        thread.write(since.thread_s)?;
        events.write(since.totals[0])?;
        let us = since.thread_s * 1e6;
        rate.write(if us > 0.0 { since.totals[0] as f32 / us } else { 0.0 }).and(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_flips_rate(
    event: c_int,
    real: Place<f32>,
    thread: Place<f32>,
    events: Place<i64>,
    rate: Place<f32>,
) -> c_int {
    give(millions(event, [real, thread, rate], events))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_flops_rate(
    event: c_int,
    real: Place<f32>,
    thread: Place<f32>,
    events: Place<i64>,
    rate: Place<f32>,
) -> c_int {
    give(millions(event, [real, thread, rate], events))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_rate_stop() -> c_int {
    give(with(|state| {
        let thread = machine::thread();
        let at = state.rates.iter().position(|rate| rate.thread == thread).ok_or(Code::Inval)?;
        let Rate { set, .. } = state.rates.remove(at);
        count::stop(state, set)?;
        state.sets[set as usize] = None;
        OK
    }))
}
