//! The functions of `papi.h`, by subject. Each takes C's arguments apart, calls the state, and
//! turns its answer into PAPI's number.

mod clocks;
mod count;
mod events;
mod library;
mod machine;
mod options;
mod overflow;
mod rates;
mod regions;
mod sets;
mod threads;
