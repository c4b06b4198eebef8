//! The report of a kernel that stops because of an exception in ring 0 or a failed check of its
//! own.
//!
//! The log gets the message, the registers and the addresses on the stack that may be return
//! addresses; the host gets the registers and the stack, and reconstructs the backtrace. Nothing
//! here uses the CPU's state or the heap, which may be broken.

use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use tally_abi::{
    ExitStatus,
    registers::Registers,
    text::FixedText,
    wire::{MAX_OUTPUT_BYTES, Message},
};
use x86_64::instructions::{hlt, interrupts};

use crate::{
    arch::{control, frame::Frame},
    machine::{exit, serial},
    memory::stacks,
};

/// Registers in a line of the log.
const REGISTERS_A_LINE: usize = 4;
/// Maximum number of stack addresses in the log.
const MAX_ADDRESSES: usize = 32;
const WORD_BYTES: usize = size_of::<u64>();

/// The reporting CPU's APIC ID plus 1; 0 while no CPU reports.
static REPORTER: AtomicU64 = AtomicU64::new(0);

/// Reports `message` and the processor's registers, and ends the machine.
pub fn report(message: fmt::Arguments, frame: &Frame) -> ! {
    interrupts::disable();
    let registers = control::registers(frame);
    claim(registers.apic_id);
    serial::unlock_for_panic();
    let message = FixedText::<512>::of(message);
    log::error!("kernel panic: {}", message.as_str());
    log_registers(&registers);
    log_addresses(registers.frame.rsp);
    send_stack(registers.frame.rsp);
    stop(message.as_str(), registers)
}

/// Makes this CPU the reporting one. On another CPU, waits for the machine's end; on the reporting
/// CPU itself, the report has failed, and the machine ends at once.
fn claim(apic_id: u64) {
    let me = apic_id + 1;
    // Acquire and release order: no part of the report moves before the exchange.
    match REPORTER.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {}
        Err(first) if first == me => {
            serial::unlock_for_panic();
            stop("an exception came while a panic was reported", Registers::default())
        }
        Err(_) => loop {
            hlt();
        },
    }
}

fn stop(message: &str, registers: Registers) -> ! {
    serial::send(&Message::Panicked { message, registers });
    exit::stop(ExitStatus::KernelPanic.into())
}

fn log_registers(registers: &Registers) {
    let mut named = registers.named().peekable();
    while named.peek().is_some() {
        let mut line = FixedText::<160>::of(format_args!(""));
        for (name, value) in named.by_ref().take(REGISTERS_A_LINE) {
            // The lines fit the buffer.
            let _ = fmt::Write::write_fmt(&mut line, format_args!(" {name:>7} {value:016x}"));
        }
        log::error!("{}", line.as_str());
    }
}

/// Logs the words on the stack that are addresses of the kernel's code: return addresses, and
/// remnants of older calls.
fn log_addresses(rsp: u64) {
    let code = control::code();
    let words = stacks::words(rsp).filter(|(_, word)| code.contains(word));
    for (at, address) in words.take(MAX_ADDRESSES) {
        log::error!("  on the stack at {at:#x}: {address:#x}");
    }
}

fn send_stack(rsp: u64) {
    let mut words = stacks::words(rsp).peekable();
    while let Some((address, _)) = words.peek().copied() {
        let mut bytes = [0; MAX_OUTPUT_BYTES];
        let mut length = 0;
        for (place, (_, word)) in bytes.chunks_exact_mut(WORD_BYTES).zip(&mut words) {
            place.copy_from_slice(&word.to_le_bytes());
            length += WORD_BYTES;
        }
        serial::send(&Message::Stack { address, bytes: &bytes[..length] });
    }
}
