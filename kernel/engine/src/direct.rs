//! Direct mode: a program's events stay on the counters, nothing is multiplexed, and the program
//! reads them by RDPMC. The engine saves and restores the counters at context switches.

use alloc::vec::Vec;

use tally_abi::Mode;

use crate::{
    CounterMask, Counts, Demand, Group, Layout, PlanError,
    plan::{CounterAssignment, plan},
};

/// A direct-mode program's events, and the saved values of its counters.
#[derive(Debug)]
pub struct Direct {
    pub(crate) mode: Mode,
    pub(crate) group: Group,
    pub(crate) values: Counts,
    reference: bool,
    assignments: Vec<CounterAssignment>,
}

impl Direct {
    /// Assigns a counter to each of `demands`, all at the same time; counts begin at 0.
    ///
    /// # Errors
    /// [`PlanError::NotTogether`] if the events do not fit the counters at once; otherwise as for
    /// [`plan()`](crate::plan()).
    pub fn open(demands: &[Demand], mode: Mode, layout: &Layout) -> Result<Direct, PlanError> {
        if let Some(event) = demands.iter().position(|demand| demand.metric.is_some()) {
            return Err(PlanError::NoMetric { event });
        }
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

    /// The counter of each event, in the order of the demands.
    pub fn assignments(&self) -> &[CounterAssignment] {
        &self.assignments
    }

    /// The counters to save.
    pub(crate) fn set(&self) -> CounterMask {
        CounterMask { general: self.group.used, reference: self.reference }
    }
}
