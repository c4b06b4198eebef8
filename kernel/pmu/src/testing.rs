//! A model of PMU registers that tests drive.
