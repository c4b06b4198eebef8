//! Delivery of signals, upcalls and faults to the running thread.

use alloc::format;

use tally_abi::{
    exit::OUT_OF_MEMORY,
    trace::{Delivered, SignalRecord},
};

use super::exit::{crash, end_deadlocked, exit, go_on_ending};
use crate::{
    arch::frame::{self, Frame},
    cpu::Cpu,
    measure::{self, cpus::upcalls},
    memory::space::SpaceError,
    task::{
        fault::{CODE_BYTES, Fault},
        handler,
        signal::{DEFAULT, SIGILL},
        signal_frame,
    },
};

/// Added to a signal's number for the exit status of a program that the signal ended, as in shells.
const SIGNALLED: i32 = 128;

/// Delivers the pending signals of the thread to which the CPU returns, if there is one; signals
/// stay pending while the thread continues a system call. Continues the end of a program that is
/// ending. Every entry from ring 3 calls this function last.
pub fn deliver(cpu: &mut Cpu, frame: &mut Frame) {
    while let Some(process) = cpu.current.as_deref_mut() {
        if process.ending.is_some() {
            if !go_on_ending(cpu, frame) {
                return;
            }
            continue;
        }
        if process.is_deadlocked {
            end_deadlocked(cpu, frame);
            continue;
        }
        let running = process.threads.running();
        if running.call.continues(frame) {
            return;
        }
        let mask = running.signals.mask;
        let Some(pending) = process.take_signal(!mask) else {
            return handler::finish_delivery(process, frame);
        };
        if process.signals.ignores(pending.signal) {
            continue;
        }
        let address = frame.rip;
        if process.signals.action(pending.signal).handler == DEFAULT {
            trace(cpu, pending.signal, None, address);
            exit(cpu, SIGNALLED + pending.signal as i32);
            continue;
        }
        let info = pending.info();
        match handler::call(process, frame, pending.signal, info, &Fault::default()) {
            Ok(()) => trace(cpu, pending.signal, Some(frame.rip), address),
            Err(fault) => crash(cpu, frame, fault),
        }
    }
}

/// Writes the record of a signal to the running thread, which was interrupted at `address`: its
/// handler runs, or the signal ends the program if there is none.
fn trace(cpu: &mut Cpu, signal: u32, handler: Option<u64>, address: u64) {
    let Some(process) = cpu.current.as_deref_mut() else { return };
    let (program, thread) = (process.pid, process.threads.running().tid);
    log::debug!(
        "program {program}, thread {thread}: signal {signal} at {address:#x}, handler {:#x}",
        handler.unwrap_or_default()
    );
    if measure::trace_events().signals {
        let action = if handler.is_some() { Delivered::Handled } else { Delivered::Ended };
        cpu.measure.lock().trace_signal(SignalRecord {
            tsc: 0,
            cpu: cpu.index,
            signal: signal as u8,
            action,
            program,
            thread,
            handler: handler.unwrap_or_default(),
            address,
        });
    }
}

/// Delivers a fired threshold: calls its handler in the running thread, if `frame` is a thread's,
/// and the thread neither runs such a handler nor continues a system call. Otherwise the threshold
/// stays pending. A threshold of a session on CPUs is delivered where its owner runs.
pub fn upcall(cpu: &mut Cpu, frame: &mut Frame) {
    let measure = cpu.measure;
    if measure.lock().post_upcalls() {
        cpu.ask_others();
    }
    let Some(process) = cpu.current.as_deref_mut().filter(|_| frame::is_user(frame)) else {
        return;
    };
    let running = process.threads.running();
    if running.signals.in_upcall || running.call.continues(frame) {
        return;
    }
    let own = measure.lock().take_upcall();
    let Some(upcall) = own.or_else(|| upcalls::take(process.pid)) else { return };
    if let Err(fault) = signal_frame::enter_upcall(process, frame, upcall) {
        crash(cpu, frame, fault);
    }
}

/// Copies the stack of the thread in `frame` to the trace, if it was just sampled.
pub fn trace_stack(cpu: &mut Cpu, frame: &Frame) {
    if let Some(process) = cpu.current.as_deref_mut().filter(|_| frame::is_user(frame)) {
        cpu.measure.lock().trace_stack(frame, &mut process.memory);
    }
}

/// Handles an exception in ring 3: allocates the touched page, or sends the signal to the program's
/// handler, or ends the program.
pub fn fault(cpu: &mut Cpu, frame: &mut Frame) {
    let mut fault = Fault::of_exception(frame);
    let mut process = cpu.current.as_deref_mut();
    let mut code = [0; CODE_BYTES];
    if fault.signal == SIGILL
        && process.as_deref_mut().is_some_and(|it| it.memory.read(frame.rip, &mut code).is_ok())
    {
        fault = fault.of_code(code);
    }
    if let Some(((address, touch), process)) = fault.touch().zip(process) {
        match process.memory.page_in(address, touch) {
            Ok(()) => return,
            Err(SpaceError::OutOfMemory) => {
                return crash(cpu, frame, Fault::of_kind(OUT_OF_MEMORY, Some(address)));
            }
            Err(SpaceError::BehindFile) => fault = fault.behind_file(),
            Err(SpaceError::BadAddress | SpaceError::Overlap) => {
                if process.memory.is_in_area(address) {
                    fault = fault.in_area();
                }
                if process.memory.is_overflow(address, frame.rsp) {
                    fault.what = format!("stack overflow: {}", fault.what).into();
                }
            }
        }
    }
    raise(cpu, frame, fault);
}

/// Raises a fault of the running thread: sends the signal to the program's handler, or ends the
/// program.
pub fn raise(cpu: &mut Cpu, frame: &mut Frame, fault: Fault) {
    let (process, address) = (cpu.current.as_deref_mut(), frame.rip);
    match process.and_then(|process| handler::catch(process, frame, &fault)) {
        Some(Ok(())) => trace(cpu, fault.signal, Some(frame.rip), address),
        Some(Err(stack)) => crash(cpu, frame, stack),
        None => {
            trace(cpu, fault.signal, None, address);
            crash(cpu, frame, fault);
        }
    }
}
