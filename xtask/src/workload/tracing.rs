//! Options of a trace: its contents, and the destination of its records.

use clap::Args;
use tally_abi::{boot::MIN_HALTING_PAGES, trace::RING_PAGES};

use crate::job::trace_events;

/// Options of a trace.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TracingArgs {
    /// Keep only the last 128 KiB of each CPU's trace, sent when all programs have ended
    #[arg(long, requires = "trace")]
    trace_last: bool,
    /// Lose no record: while a CPU's ring is half full, it runs no program until the host has all
    /// of its records
    #[arg(long, requires = "trace", conflicts_with = "trace_last")]
    trace_halt: bool,
    /// The most pages of 2 KiB of each CPU's ring for records that the host does not have yet: 2 to
    /// 64, with --trace-halt 16 or more [default: 64]
    #[arg(long, value_name = "PAGES", requires = "trace", conflicts_with = "trace_last",
          value_parser = clap::value_parser!(u64).range(2..=RING_PAGES as u64))]
    trace_ring: Option<u64>,
    /// Kinds of records to trace beside slices, thresholds and samples: syscalls, switches and
    /// signals, any of them
    #[arg(long, value_name = "KINDS", requires = "trace", value_parser = trace_events)]
    trace_events: Option<String>,
}

impl TracingArgs {
    /// The error of an invalid combination of options, if any.
    pub(crate) fn error(&self) -> Option<String> {
        let pages = self.trace_ring.filter(|pages| *pages < MIN_HALTING_PAGES as u64)?;
        self.trace_halt.then(|| {
            format!(
                "--trace-ring {pages}: with --trace-halt {MIN_HALTING_PAGES} pages or more, for \
                 what is written before a CPU can wait"
            )
        })
    }

    /// The kernel's options of a trace, each after a blank.
    pub(crate) fn options(&self) -> String {
        let mut options = String::from(match self {
            TracingArgs { trace_last: true, .. } => " trace=last",
            TracingArgs { trace_halt: true, .. } => " trace=halt",
            _ => " trace",
        });
        if let Some(pages) = self.trace_ring {
            options += &format!(" trace-ring={pages}");
        }
        if let Some(events) = &self.trace_events {
            options += &format!(" trace-events={events}");
        }
        options
    }
}
