//! The machine's exit status, and reports of programs that could not be started.

use core::sync::atomic::{AtomicU8, Ordering};

use tally_abi::{
    ExitStatus,
    wire::{MAX_OUTPUT_BYTES, Message},
};

use crate::machine::serial;

/// The first status other than 0. Relaxed order is enough: every CPU takes the table's lock after
/// its write, and the last CPU takes it before its read.
static STATUS: AtomicU8 = AtomicU8::new(0);

/// Records a program's status; the first other than 0 becomes the machine's.
pub(super) fn record(status: u8) {
    // The exchange fails if a status is recorded already, which stays.
    let _ = STATUS.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
}

/// The machine's status.
pub(super) fn get() -> u8 {
    STATUS.load(Ordering::Relaxed)
}

/// Reports a refused program or option, with as much of its name and of the reason as fits a
/// message.
pub fn refuse(program: &str, status: ExitStatus, why: &str) {
    let program = &program[..program.floor_char_boundary(MAX_OUTPUT_BYTES / 2)];
    let why = &why[..why.floor_char_boundary(MAX_OUTPUT_BYTES)];
    log::error!("{program}: {why}");
    serial::send(&Message::Refused { program, status: status.into(), why });
    record(status.into());
}
