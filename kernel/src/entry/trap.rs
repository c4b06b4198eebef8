//! Handlers of interrupts and exceptions.
//!
//! An exception in ring 3 is the program's fault. An exception in ring 0 ends the kernel, and so do
//! NMI, double fault and machine check in either ring.

use super::{panic, ring_3};
use crate::{
    arch::{
        frame::{self, Frame},
        vectors,
    },
    cpu::Cpu,
    machine::{nmi, serial},
    sched,
};

const NMI: u64 = 2;

/// Handles an interrupt or exception. The kernel returns to the frame's new contents.
pub fn handle(cpu: &mut Cpu, frame: &mut Frame) {
    if cpu.checks_ring_3.is_some() || frame.vector == u64::from(vectors::RING_3_LOOP) {
        return ring_3::handle(cpu, frame);
    }
    cpu.enter_kernel();
    if frame::is_user(frame) {
        cpu.measure.lock().note_interruption(&mut frame.rip);
    }
    handle_vector(cpu, frame);
    if frame::is_user(frame) {
        sched::deliver(cpu, frame);
    }
    cpu.leave_kernel();
}

fn handle_vector(cpu: &mut Cpu, frame: &mut Frame) {
    match frame.vector {
        vector if vector < 32 => sched::fault(cpu, frame),
        vector if vector == u64::from(vectors::TIMER) => {
            cpu.lapic.end_of_interrupt();
            cpu.lapic.restart_late_period();
            cpu.measure.lock().drain();
            cpu.measure.lock().tick();
            if serial::is_end_requested() {
                sched::kill_all(cpu);
            }
            end_turn(cpu, frame);
        }
        vector if vector == u64::from(vectors::PREEMPT_IPI) => {
            cpu.lapic.end_of_interrupt();
            end_turn(cpu, frame);
        }
        vector if vector == u64::from(vectors::UPCALL) => {
            cpu.lapic.end_of_interrupt();
            sched::upcall(cpu, frame);
        }
        vector if vector == u64::from(vectors::FOLD) => {
            cpu.lapic.end_of_interrupt();
            cpu.measure.lock().fold();
        }
        vector if vector == u64::from(vectors::STACK) => {
            cpu.lapic.end_of_interrupt();
            sched::trace_stack(cpu, frame);
        }
        vector if vector == u64::from(vectors::RESCHEDULE) => sched::schedule(cpu, frame),
        // A spurious interrupt is not in service, so it needs no end of interrupt.
        vector if vector == u64::from(vectors::SPURIOUS) => {}
        vector => {
            log::warn!("interrupt {vector:#x} has no handler");
            cpu.lapic.end_of_interrupt();
        }
    }
}

/// Does the work that other CPUs have requested, and ends the running thread's turn if it is due.
fn end_turn(cpu: &mut Cpu, frame: &mut Frame) {
    cpu.serve();
    if frame::is_user(frame) {
        sched::preempt(cpu, frame);
    }
}

/// Returns whether an exception is a fault of the kernel or of the machine.
pub fn is_kernel_fault(frame: &Frame) -> bool {
    const DOUBLE_FAULT: u64 = 8;
    const MACHINE_CHECK: u64 = 18;
    matches!(frame.vector, NMI | DOUBLE_FAULT | MACHINE_CHECK)
        || frame.vector < 32 && !frame::is_user(frame)
}

/// Continues after a fault of an access to an MSR that may not exist; returns whether it was one.
pub fn continue_after_access(frame: &mut Frame) -> bool {
    const GENERAL_PROTECTION: u64 = 13;
    let after = (frame.vector == GENERAL_PROTECTION && !frame::is_user(frame))
        .then(|| tally_pmu::bus::after_fault(frame.rip))
        .flatten();
    if let Some(rip) = after {
        frame.rip = rip;
    }
    after.is_some()
}

/// Ends the kernel because of an exception in ring 0. Does not use the CPU's state, which may be
/// broken.
pub fn kernel_fault(frame: &Frame) -> ! {
    let address = x86_64::registers::control::Cr2::read_raw();
    let reason = if frame.vector == NMI { nmi::reason() } else { None };
    let [before, reason] = reason.map_or([""; 2], |reason| ["; the machine reports ", reason]);
    panic::report(
        format_args!(
            "{} in the kernel at {:#x}, error code {:#x}, last fault address {address:#x}\
             {before}{reason}",
            vectors::exception_name(frame.vector),
            frame.rip,
            frame.error,
        ),
        frame,
    );
}

/// Handles a kernel bug: reports it in the log and to the host, and ends the machine.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    let frame = frame::here();
    let (file, line) = info.location().map_or(("?", 0), |place| (place.file(), place.line()));
    panic::report(format_args!("{} ({file}:{line})", info.message()), &frame)
}
