//! The study's measurements.

use serde::Serialize;
use xtask::report::EventReport;

/// An event of the table on both CPUs, in their order.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) cpus: [EventReport; 2],
}

/// The table of a machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Table {
    pub(super) pmu: &'static str,
    pub(super) rows: Vec<Row>,
}

/// The figure's data for one way to compile the program.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Bar {
    pub(super) program: &'static str,
    /// Options of the compiler.
    pub(super) options: String,
    pub(super) events: Vec<EventReport>,
}

/// The results of all parts.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Results {
    pub(super) table_1: Vec<Table>,
    pub(super) figure_7: Vec<Bar>,
}
