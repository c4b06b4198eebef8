//! Delivery of signals, upcalls and faults to the running thread.

use super::exit::{crash, end_deadlocked, exit};
use crate::{
    arch::frame::Frame,
    cpu::Cpu,
    task::{
        fault::Fault,
        handler,
        signal::{self, DEFAULT},
        signal_frame,
    },
};

/// The status of a program that a signal ended, as shells have it: this and the signal's number.
const SIGNALLED: i32 = 128;

/// Delivers the pending signals of the thread that the CPU returns to, if it returns to one. Every
/// entry from ring 3 ends with this.
pub fn deliver(cpu: &mut Cpu, frame: &mut Frame) {
    while let Some(process) = cpu.current.as_deref_mut() {
        if process.is_deadlocked {
            end_deadlocked(cpu, frame);
            continue;
        }
        let mask = process.threads.running().signals.mask;
        let Some(pending) = process.take_signal(!mask) else {
            return handler::finish_delivery(process, frame);
        };
        if process.signals.ignores(pending.signal) {
            continue;
        }
        if process.signals.action(pending.signal).handler == DEFAULT {
            exit(cpu, frame, SIGNALLED + pending.signal as i32);
            continue;
        }
        let info = signal::sender_info(process.pid, pending);
        let called = handler::call(process, frame, pending.signal, info, &Fault::default());
        if let Err(fault) = called {
            crash(cpu, frame, fault);
        }
    }
}

/// Delivers a threshold that has fired: calls its handler in the running thread, if `frame` is a
/// thread's and no handler of a threshold runs in it. Otherwise the threshold stays pending.
pub fn upcall(cpu: &mut Cpu, frame: &mut Frame) {
    let measure = cpu.measure;
    let Some(process) = cpu.current.as_deref_mut().filter(|_| frame.is_user()) else { return };
    if process.threads.running().signals.in_upcall {
        return;
    }
    let Some(upcall) = measure.lock().take_upcall() else { return };
    if let Err(fault) = signal_frame::enter_upcall(process, frame, upcall) {
        crash(cpu, frame, fault);
    }
}

/// Handles an exception in ring 3: the program's handler gets its signal, or the program ends.
pub fn fault(cpu: &mut Cpu, frame: &mut Frame) {
    raise(cpu, frame, Fault::of_exception(frame));
}

/// Raises a fault of the running thread: the program's handler gets its signal, or the program
/// ends.
pub fn raise(cpu: &mut Cpu, frame: &mut Frame, fault: Fault) {
    let process = cpu.current.as_deref_mut();
    match process.and_then(|process| handler::catch(process, frame, &fault)) {
        Some(Ok(())) => {}
        Some(Err(stack)) => crash(cpu, frame, stack),
        None => crash(cpu, frame, fault),
    }
}
