//! The latency of a threshold of a pinned event: the instructions from the crossing to the first
//! instruction of its handler in the program.

use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    machine::{Artefacts, Pmu},
};

use super::{
    handlers::Recorded,
    record::{Recording, record},
};

/// Calls of the handler.
const CALLS: usize = 200;

/// The latency, in instructions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Latency {
    /// Number of calls that were measured.
    pub(super) calls: usize,
    /// Instructions in ring 0, from the overflow interrupt's first instruction on: minimum, median,
    /// maximum.
    pub(super) kernel: [usize; 3],
    /// Instructions in ring 3, from the crossing to the interrupt: the maximum.
    pub(super) user: u64,
}

/// Measures the latency on a machine.
///
/// # Errors
/// The machine fails, or its program calls no handler.
pub(super) fn measure(artefacts: &Artefacts, pmu: Pmu) -> Result<Latency> {
    let event = match pmu {
        Pmu::Amd => "RETIRED_INSTRUCTIONS",
        _ => "INST_RETIRED.ANY",
    };
    let line = format!("seed=1 wire -- upcalls {event} {CALLS}");
    latency(&record(artefacts, pmu, line)?).ok_or_else(|| {
        Failure::new(ExitStatus::MachineFailed, "the run of thresholds called no handler")
    })
}

/// The latency of the calls in a recording of `upcalls`.
fn latency(recording: &Recording) -> Option<Latency> {
    let word = |name: &str| {
        recording.output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
    };
    let handler = u64::from_str_radix(word("handler")?.strip_prefix("0x")?, 16).ok()?;
    let mut kernel = kernel_instructions(&recording.events, recording.entry, handler);
    kernel.sort_unstable();
    let (least, most) = (*kernel.first()?, *kernel.last()?);
    let kernel_of = [least, kernel[kernel.len() / 2], most];
    Some(Latency { calls: kernel.len(), kernel: kernel_of, user: word("late")?.parse().ok()? })
}

/// The instructions from a PMI handler's `entry` to `handler`, for each entry after which `handler`
/// comes next.
fn kernel_instructions(events: &[Recorded], entry: u64, handler: u64) -> Vec<usize> {
    let (mut of_calls, mut since) = (Vec::new(), 0);
    for event in events {
        let Recorded::Instruction { address, .. } = event else { continue };
        match *address {
            address if address == entry => since = 1,
            address if address == handler => of_calls.push(since),
            _ => since += 1,
        }
    }
    of_calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_from_the_interrupt_to_the_handler_are_counted() {
        // A call, an interrupt after which the program goes on, and another call.
        let text = "f100 12\n 10 8 12\nf101 12\nf200 12\n40 12\n\
                    f100 12\nf101 12\n44 12\n\
                    f100 12\nf101 12\nf200 12\nf201 12\n40 12";
        let recording = Recording {
            entry: 0xf100,
            events: text.lines().filter_map(Recorded::parse).collect(),
            output: "handler 0x40\nlate 3\n".to_owned(),
        };
        let expected = Latency { calls: 2, kernel: [3, 4, 4], user: 3 };
        assert_eq!(latency(&recording), Some(expected));
        assert_eq!(latency(&Recording { output: String::new(), ..recording }), None);
    }
}
