//! Readings of a session with many events, which a system call computes in steps (decision 21).

use alloc::{boxed::Box, vec::Vec};

use tally_abi::{Error, Reading, reading::Reason};
use tally_engine::{Session, Snapshot};

use super::settings::has_failed;
use crate::memory::frames::{self, Claim};

/// Removes the values of readings if a counter has failed.
pub(super) fn vouched(readings: Vec<Reading>) -> Vec<Reading> {
    if !has_failed() {
        return readings;
    }
    readings.into_iter().map(|reading| reading.without_value(Reason::CounterFailed)).collect()
}

/// Events in one step. The kernel has no floating-point unit: an event takes some 15,000
/// instructions.
pub(in crate::measure) const EVENTS_A_STEP: usize = 64;

/// The readings of a session at one moment, as far as they are computed.
#[derive(Debug)]
pub struct PendingReadings {
    pub(super) snapshot: Snapshot,
    pub(super) readings: Vec<Reading>,
    /// Whether the readings are by cycles alone.
    by_cycles: bool,
    /// Claim on the heap's growth for snapshot and readings.
    _claim: Claim,
}

impl PendingReadings {
    /// Starts the readings of this moment. `None` if the session has so few events that one step
    /// computes them without a snapshot.
    ///
    /// # Errors
    /// No memory is left.
    pub(super) fn begin(session: &Session, by_cycles: bool) -> Result<Option<Box<Self>>, Error> {
        if session.events() <= EVENTS_A_STEP {
            return Ok(None);
        }
        let claim = frames::claim(session.snapshot_bytes() as u64).ok_or(Error::NoMemory)?;
        Ok(Some(Box::new(PendingReadings {
            snapshot: session.snapshot(),
            readings: Vec::with_capacity(session.events()),
            by_cycles,
            _claim: claim,
        })))
    }

    /// Computes the readings of the next events. Returns whether there were any left.
    pub fn step(&mut self) -> bool {
        let first = self.readings.len();
        let end = self.snapshot.events().min(first + EVENTS_A_STEP);
        let reading = if self.by_cycles { Snapshot::reading_by_cycles } else { Snapshot::reading };
        self.readings.extend((first..end).map(|event| reading(&self.snapshot, event)));
        first < end
    }

    /// Completes the readings of `session`; all steps are done.
    pub(super) fn complete(self, session: &mut Session) -> Vec<Reading> {
        if self.by_cycles {
            session.complete_by_cycles(self.readings)
        } else {
            session.complete(&self.snapshot, self.readings)
        }
    }
}
