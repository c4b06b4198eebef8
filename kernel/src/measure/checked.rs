//! What CPUs find out about their counters as they start, for a report of it.
//!
//! CPUs start one after the other, and the first sends what all have found.

use alloc::{format, string::String, vec::Vec};

use spin::Mutex;
use tally_abi::{boot::CounterCheck, wire::Message};
use tally_pmu::{AccessCosts, InitError};

use super::settings::settings;
use crate::machine::serial;

static CHECKED: Mutex<Vec<Checked>> = Mutex::new(Vec::new());

/// What a CPU has found.
#[derive(Default)]
struct Checked {
    cpu: u16,
    failure: Option<String>,
    overcount: u64,
    costs: AccessCosts,
}

/// Returns whether what is found is reported, and does not keep the machine from counting.
pub(super) fn is_reported() -> bool {
    settings().check_counters == Some(CounterCheck::Report)
}

/// Takes a failure that is only reported; returns others.
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

/// Changes what is known of a CPU.
fn with(cpu: u16, change: impl FnMut(&mut Checked)) {
    let mut all = CHECKED.lock();
    if !all.iter().any(|of| of.cpu == cpu) {
        all.push(Checked { cpu, ..Checked::default() });
    }
    all.iter_mut().find(|of| of.cpu == cpu).into_iter().for_each(change);
}

/// Sends what CPUs have found, if that is asked for. Once all have started.
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
