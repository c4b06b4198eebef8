//! Makes the event catalogues of tally-pmu from the vendors' tables.
fn main() {}
