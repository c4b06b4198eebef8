//! Instances of a context: the threads that it counts separately.

use alloc::vec::Vec;

use tally_abi::{Instance, Reading, usage::Usage};

use super::Context;
use crate::measure::{instances::ThreadTurn, readings::vouched};

impl Context {
    /// Starts a thread's turn. The session is on no counter.
    pub(in crate::measure) fn switch_thread(&mut self, turn: ThreadTurn) {
        if let Some(instances) = &mut self.instances {
            instances.switch(&mut self.session, turn, self.started);
        }
    }

    /// Counts the program's usage from now on; it has used `usage`.
    pub fn begin_usage(&mut self, usage: Usage) {
        if let Some(instances) = &mut self.instances {
            instances.begin(usage);
        }
    }

    /// Credits the program's usage up to now, which is `usage`.
    pub fn credit_usage(&mut self, usage: Usage) {
        if let Some(instances) = &mut self.instances {
            instances.credit(usage);
        }
    }

    /// Number of instances; `None` if it counts none separately.
    pub fn instances(&self) -> Option<usize> {
        self.instances.as_ref().map(|instances| instances.count())
    }

    /// The instance at `index` and its values; `None` if there is none.
    pub fn instance(&mut self, index: usize) -> Option<(Instance, Vec<Reading>)> {
        let (of, session) = self.instances.as_mut()?.get_mut(&mut self.session, index)?;
        Some((of, vouched(session.readings())))
    }
}
