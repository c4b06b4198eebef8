//! Counting that a program looks after itself: its events stay on the counters, which nobody switches,
//! and it reads them by RDPMC. What is left to do is to keep them for it while it is off the CPU.

use alloc::vec::Vec;

use tally_abi::Mode;

use crate::{
    CounterMask, Counts, Demand, Group, Layout, PlanError,
    plan::{CounterAssignment, plan},
};

/// A program's events, and what their counters show when it goes on.
#[derive(Debug)]
pub struct Direct {
    pub(crate) mode: Mode,
    pub(crate) group: Group,
    pub(crate) values: Counts,
    reference: bool,
    assignments: Vec<CounterAssignment>,
}

impl Direct {
    /// Finds a counter for each of `demands`, all at the same time; they begin at 0.
    ///
    /// # Errors
    /// [`PlanError::NotTogether`] where they do not fit the counters at once; else as
    /// [`plan()`](crate::plan()).
    pub fn open(demands: &[Demand], mode: Mode, layout: &Layout) -> Result<Direct, PlanError> {
        let plan = plan(demands, layout)?;
        match *plan.groups {
            [group] => Ok(Direct {
                mode,
                group,
                values: Counts::default(),
                reference: layout.reference,
                assignments: plan.assignments,
            }),
            _ => Err(PlanError::NotTogether { groups: plan.groups.len() }),
        }
    }

    /// Where each event is counted, in the order of the demands.
    pub fn assignments(&self) -> &[CounterAssignment] {
        &self.assignments
    }

    /// The counters to keep.
    pub(crate) fn set(&self) -> CounterMask {
        CounterMask { general: self.group.used, reference: self.reference }
    }
}
