//! Functions of `papi.h`, by subject. Each unpacks C's arguments, calls the state, and converts its
//! answer into PAPI's number.

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
