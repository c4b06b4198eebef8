//! Findings of CPUs about their counters, made as they start, for a report.
//!
//! CPUs start one after the other, and the first CPU sends the findings of all.

use alloc::{format, string::String, vec::Vec};

use spin::Mutex;
use tally_abi::{boot::CounterCheck, wire::Message};
use tally_pmu::{AccessCosts, InitError};

use super::settings::settings;
use crate::machine::serial;

static CHECKED: Mutex<Vec<Checked>> = Mutex::new(Vec::new());

/// Findings of a CPU.
#[derive(Default)]
struct Checked {
    cpu: u16,
    failure: Option<String>,
    overcount: u64,
    costs: AccessCosts,
}

/// Returns whether a failure is only reported and does not prevent counting.
pub(super) fn is_reported() -> bool {
    settings().check_counters == Some(CounterCheck::Report)
}

/// Keeps a failure that is only reported; returns it otherwise.
pub(super) fn report_failure(cpu: u16, reason: InitError) -> Result<(), InitError> {
    if !is_reported() {
        return Err(reason);
    }
    log::warn!("CPU {cpu}: {reason}");
    with(cpu, |of| of.failure = Some(format!("{reason}")));
    Ok(())
}

pub(super) fn report_overcount(cpu: u16, overcount: u64) {
    if is_reported() {
        with(cpu, |of| of.overcount = overcount);
    }
}

pub(super) fn report_costs(cpu: u16, costs: AccessCosts) {
    with(cpu, |of| of.costs = costs);
}

/// Changes the findings of a CPU.
fn with(cpu: u16, change: impl FnMut(&mut Checked)) {
    let mut all = CHECKED.lock();
    if !all.iter().any(|of| of.cpu == cpu) {
        all.push(Checked { cpu, ..Checked::default() });
    }
    all.iter_mut().find(|of| of.cpu == cpu).into_iter().for_each(change);
}

/// Sends the findings of all CPUs, if requested. Call it when all have started.
pub fn send() {
    for Checked { cpu, failure, overcount, costs } in CHECKED.lock().iter() {
        serial::send(&Message::Checked {
            cpu: *cpu,
            failure: failure.as_deref(),
            overcount: *overcount,
            access_centicycles: [costs.read_centicycles, costs.write_centicycles],
        });
    }
}
