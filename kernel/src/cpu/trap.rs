//! What the kernel does about each interrupt and exception.
//!
//! An exception in ring 3 is the program's; in ring 0, and whatever the machine itself complains of
//! (NMI, double fault, machine check), it is the kernel's end.

use tally_abi::{text::FixedText, wire::Message};

use super::{Cpu, entry::Frame, vectors};
use crate::{machine::serial, task};

/// Handles one entry by interrupt or exception; what it leaves in `frame` is returned to.
pub fn handle(cpu: &mut Cpu, frame: &mut Frame) {
    match frame.vector {
        vector if vector < 32 => task::fault(cpu, frame),
        vector if vector == u64::from(vectors::TIMER) => {
            cpu.lapic.end_of_interrupt();
            cpu.measure.hold().drain();
            cpu.measure.hold().tick();
            if frame.is_user() {
                task::preempt(cpu, frame);
            }
        }
        vector if vector == u64::from(vectors::COME) => {
            cpu.lapic.end_of_interrupt();
            if frame.is_user() {
                task::preempt(cpu, frame);
            }
        }
        vector if vector == u64::from(vectors::UPCALL) => {
            cpu.lapic.end_of_interrupt();
            task::divert::to_threshold(cpu, frame);
        }
        vector if vector == u64::from(vectors::RESCHEDULE) => task::schedule(cpu, frame),
        // The controller gives this vector when there is nothing to end.
        vector if vector == u64::from(vectors::SPURIOUS) => {}
        vector => {
            log::warn!("interrupt {vector:#x} has no handler");
            cpu.lapic.end_of_interrupt();
        }
    }
    if frame.is_user() {
        task::signal::deliver(cpu, frame);
    }
}

/// An exception in ring 0 is a mistake of the kernel's own, or a broken machine. Needs nothing of
/// the CPU's state, which may be what is broken.
pub fn kernel_fault(frame: &Frame) -> ! {
    let address = x86_64::registers::control::Cr2::read_raw();
    panic!(
        "{} in the kernel at {:#x}, error code {:#x}, last fault address {address:#x}",
        vectors::exception_name(frame.vector),
        frame.rip,
        frame.error,
    );
}

/// The kernel found a mistake of its own: says so on every channel and ends the machine.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    x86_64::instructions::interrupts::disable();
    let (file, line) = info.location().map_or(("?", 0), |place| (place.file(), place.line()));
    let text = FixedText::<512>::of(format_args!("{} ({file}:{line})", info.message()));
    serial::unlock_for_panic();
    log::error!("kernel panic: {}", text.as_str());
    serial::send(&Message::Panicked { message: text.as_str() });
    crate::machine::exit::stop(tally_abi::ExitStatus::KernelPanic.into())
}
