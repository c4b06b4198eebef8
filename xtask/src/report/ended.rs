//! How a run's programs ended, and its kernel if that stopped.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{machine::Outcome, symbols::StackFrame};

/// A program that ended by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExitReport {
    /// Its name.
    pub program: String,
    /// Its status; 128 and the signal's number, if a signal ended it.
    pub status: i32,
}

impl ExitReport {
    pub(super) fn of((program, status): &(String, i32)) -> ExitReport {
        ExitReport { program: program.clone(), status: *status }
    }
}

/// A panic of the kernel.
#[derive(Clone, Debug, Serialize)]
pub struct PanicReport {
    /// Message and place.
    pub message: String,
    /// The processor's registers there, in hexadecimal.
    pub registers: BTreeMap<&'static str, String>,
    /// Where the kernel stopped, and its callers, innermost first.
    pub backtrace: Vec<StackFrame>,
}

impl PanicReport {
    pub(super) fn of(outcome: &Outcome) -> Option<PanicReport> {
        let Outcome::Panicked { message, registers, backtrace } = outcome else { return None };
        let named = registers.named().map(|(name, value)| (name, format!("{value:#x}")));
        let registers = named.collect();
        Some(PanicReport { message: message.clone(), registers, backtrace: backtrace.clone() })
    }
}
