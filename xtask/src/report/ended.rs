//! The ends of a run's programs, and of its kernel if that panicked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{machine::Outcome, symbols::StackFrame};

/// A program that ended by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExitReport {
    /// Name of the program.
    pub program: String,
    /// Exit status; 128 plus the signal's number, if a signal ended the program.
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
    /// Message and source line.
    pub message: String,
    /// The processor's registers, in hexadecimal.
    pub registers: BTreeMap<&'static str, String>,
    /// Address of the panic, and its callers, innermost first.
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
