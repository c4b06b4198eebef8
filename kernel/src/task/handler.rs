//! Calls of a program's signal handlers, and restarts of the system calls that signals interrupt.

use core::mem::take;

use tally_abi::syscall::errno::EINTR;

use super::{
    fault::Fault,
    process::Process,
    send::RESTARTED,
    signal::{DEFAULT, IGNORE, NO_DEFER, ON_STACK, ONCE, RESTART, SignalInfo, bit, blockable},
    signal_frame,
};
use crate::arch::frame::{Frame, end_call, restart_call};

/// Completes the delivery of signals to the running thread: restores its mask, and restarts a call
/// that a signal interrupted.
pub fn finish_delivery(process: &mut Process, frame: &mut Frame) {
    let signals = &mut process.threads.running().signals;
    signals.mask = signals.mask_after.take().unwrap_or(signals.mask);
    if let Some(number) = take(&mut signals.restart) {
        restart_call(frame, number);
    }
}

/// Restarts the system call from which the frame returns, with the number in RAX.
pub fn repeat_call(frame: &mut Frame) {
    restart_call(frame, frame.rax);
}

/// Calls the handler of a fault's signal in the running thread; `None` if the signal is blocked or
/// has no handler.
///
/// # Errors
/// The handler cannot be entered; the error is the fault that ends the program.
pub fn catch(process: &mut Process, frame: &mut Frame, fault: &Fault) -> Option<Result<(), Fault>> {
    let signal = fault.signal;
    let blocked = process.threads.running().signals.mask & bit(signal) != 0;
    if blocked || process.signals.action(signal).handler <= IGNORE {
        return None;
    }
    Some(call(process, frame, signal, fault.info(), fault))
}

/// Calls the program's handler of a signal in the running thread.
///
/// # Errors
/// The handler cannot be entered; the error is the fault that ends the program.
pub fn call(
    process: &mut Process,
    frame: &mut Frame,
    signal: u32,
    info: SignalInfo,
    fault: &Fault,
) -> Result<(), Fault> {
    let action = *process.signals.action(signal);
    let thread = process.threads.running();
    let retried = thread.call.interrupt(frame);
    let signals = &mut thread.signals;
    if let Some(number) = retried {
        // The awaited event may have occurred, but the call has not seen it.
        end_call(frame, -EINTR);
        signals.restart = Some(number).filter(|number| RESTARTED.contains(number));
    }
    if let Some(number) = take(&mut signals.restart)
        && action.flags & RESTART != 0
    {
        restart_call(frame, number);
    }
    let wants_stack = action.flags & ON_STACK != 0 && signals.stack.1 > 0;
    let top = if wants_stack && !signals.on_stack(frame.rsp) {
        signals.stack.0.wrapping_add(signals.stack.1)
    } else {
        signal_frame::below_red_zone(frame.rsp)
    };
    signal_frame::enter_handler(process, frame, top, &action, signal, info, fault)?;
    let signals = &mut process.threads.running().signals;
    signals.mask |= blockable(action.mask);
    if action.flags & NO_DEFER == 0 {
        signals.mask |= blockable(bit(signal));
    }
    if action.flags & ONCE != 0 {
        process.signals.action(signal).handler = DEFAULT;
    }
    Ok(())
}
