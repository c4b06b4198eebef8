//! Instances of a context: threads that it counts apart.

use alloc::vec::Vec;

use tally_abi::{Instance, Reading, usage::Usage};

use super::Context;
use crate::measure::{instances::ThreadTurn, readings::vouched};

impl Context {
    /// A thread's turn begins. The session is on no counter.
    pub(in crate::measure) fn switch_thread(&mut self, turn: ThreadTurn) {
        if let Some(instances) = &mut self.instances {
            instances.switch(&mut self.session, turn, self.started);
        }
    }

    /// Counts what the program uses from here on: it has used `usage`.
    pub fn begin_usage(&mut self, usage: Usage) {
        if let Some(instances) = &mut self.instances {
            instances.begin(usage);
        }
    }

    /// The program has used `usage` up to now.
    pub fn credit_usage(&mut self, usage: Usage) {
        if let Some(instances) = &mut self.instances {
            instances.credit(usage);
        }
    }

    /// How many instances there are, if it counts any apart.
    pub fn instances(&self) -> Option<usize> {
        self.instances.as_ref().map(|instances| instances.count())
    }

    /// The instance at `index` and its values, if there is one.
    pub fn instance(&mut self, index: usize) -> Option<(Instance, Vec<Reading>)> {
        let (of, session) = self.instances.as_mut()?.get_mut(&mut self.session, index)?;
        Some((of, vouched(session.readings())))
    }
}
