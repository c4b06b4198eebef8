//! The cost of the end of an interval if phases are tracked: from the first instruction of
//! `Session::end_interval` to its return, outside of the overflow interrupt.

use std::fmt;

use serde::Serialize;
use tally_abi::{ExitStatus, PhaseConfig};
use xtask::{
    Failure, Result,
    machine::{Artefacts, Pmu, virtual_pmu_of},
    phases,
};

use super::{
    handlers::Recorded,
    record::{Recording, record},
    steps::KernelCode,
};

/// Instructions of an interval, and cycles of its slices.
const INTERVAL: u64 = 2_000_000;
const SLICE: u64 = 20_000;
/// Length of the longest call instruction.
const CALL_BYTES: u64 = 7;

/// Instructions of the ends of intervals: minimum, median, maximum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct IntervalEnds {
    /// Number of intervals that were measured.
    pub(super) intervals: usize,
    pub(super) instructions: [usize; 3],
}

impl fmt::Display for IntervalEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IntervalEnds { intervals, instructions: [least, median, most] } = self;
        write!(
            f,
            "the end of an interval of phases: {median} instructions ({least} to {most}, \
             {intervals} intervals)"
        )
    }
}

/// Measures the ends of intervals on a machine.
///
/// # Errors
/// The machine fails, or no interval ends.
pub(super) fn measure(artefacts: &Artefacts, pmu: Pmu) -> Result<IntervalEnds> {
    let code = KernelCode::read(&artefacts.symbols)?;
    let function = |owner, name| {
        let why = || Failure::new(ExitStatus::HostError, format!("the kernel has no {name}"));
        code.function(owner, name).ok_or_else(why)
    };
    let entry = function("", "pmi_entry")?;
    let (end, evaluated) = (function("Session", "end_interval")?, function("Sums", "costs")?);
    let events = phases::events(&virtual_pmu_of(pmu, &[])?)?.join(",");
    let config = PhaseConfig { interval_instructions: INTERVAL, ..PhaseConfig::default() };
    let line = format!("seed=1 wire -- events={events} slice={SLICE} phases={config} deflate");
    let recording = record(artefacts, pmu, line)?;
    let offset = recording.entry.wrapping_sub(entry);
    let [end, evaluated] = [end, evaluated].map(|address| address.wrapping_add(offset));
    ends(&recording, end, evaluated)
        .ok_or_else(|| Failure::new(ExitStatus::MachineFailed, "no interval ended"))
}

/// The calls of the function at `end` that called the one at `evaluated`.
fn ends(recording: &Recording, end: u64, evaluated: u64) -> Option<IntervalEnds> {
    let (mut all, mut last) = (Vec::new(), 0);
    // The call that is followed: its caller, its instructions up to now, whether it evaluates.
    let mut call: Option<(u64, usize, bool)> = None;
    for event in &recording.events {
        let Recorded::Instruction { address, .. } = *event else { continue };
        let is_back = |from| (from + 1..=from + CALL_BYTES).contains(&address);
        match &mut call {
            Some((from, instructions, evaluates)) if is_back(*from) => {
                all.extend(evaluates.then_some(*instructions));
                call = None;
            }
            // The rest of the call was not recorded.
            Some(_) if address == recording.entry => call = None,
            Some((_, instructions, evaluates)) => {
                *instructions += 1;
                *evaluates |= address == evaluated;
            }
            None if address == end => call = Some((last, 1, false)),
            None => {}
        }
        last = address;
    }
    all.sort_unstable();
    let (least, most) = (*all.first()?, *all.last()?);
    let instructions = [least, all[all.len() / 2], most];
    Some(IntervalEnds { intervals: all.len(), instructions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_evaluate_an_interval_are_counted_to_their_return() {
        // Two calls from 0x10, one of which evaluates at 0x200, and one that is cut short.
        let text = "f0 12\n10 12\n100 12\n101 12\n200 12\n102 12\n15 12\n\
                    10 12\n100 12\n102 12\n15 12\n10 12\n100 12\n200 12\nf0 12\n15 12";
        let events = text.lines().filter_map(Recorded::parse).collect();
        let recording = Recording { entry: 0xf0, events, output: String::new() };
        let expected = IntervalEnds { intervals: 1, instructions: [4, 4, 4] };
        assert_eq!(ends(&recording, 0x100, 0x200), Some(expected));
        assert_eq!(ends(&recording, 0x300, 0x200), None);
    }
}
