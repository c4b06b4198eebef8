//! Trace options of the command line.

/// Destination of trace records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracing {
    /// To the host while programs run. Records that the host does not read in time are lost.
    Stream,
    /// To the host while programs run. When a ring is half full, its CPU runs no program until the
    /// host has read the whole ring: no record is lost as long as the host reads (paper 003,
    /// section 3).
    Halt,
    /// To the host after all programs have ended; each ring keeps the last records of its CPU: a
    /// flight recorder.
    Last,
}

impl Tracing {
    /// Returns whether a ring may have `pages` pages.
    pub(super) fn can_have(self, pages: usize) -> bool {
        match self {
            Tracing::Stream => pages >= 2,
            Tracing::Halt => pages >= MIN_HALTING_PAGES,
            Tracing::Last => false,
        }
    }
}

/// Minimum number of pages of a ring with [`Tracing::Halt`]: half of them have room for the records
/// that are written before the CPU can wait.
pub const MIN_HALTING_PAGES: usize = 16;

/// Optional kinds of trace records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceEvents {
    /// [`crate::trace::SyscallRecord`].
    pub syscalls: bool,
    /// [`crate::trace::SwitchRecord`].
    pub switches: bool,
    /// [`crate::trace::SignalRecord`].
    pub signals: bool,
}

impl TraceEvents {
    /// Parses a list of kinds, separated by commas.
    pub fn parse(list: &str) -> Option<TraceEvents> {
        let mut events = TraceEvents::default();
        for name in list.split(',') {
            match name {
                "syscalls" => events.syscalls = true,
                "switches" => events.switches = true,
                "signals" => events.signals = true,
                _ => return None,
            }
        }
        Some(events)
    }
}
