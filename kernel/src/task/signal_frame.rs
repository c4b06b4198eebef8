//! Signal frames: entering a handler of the program in the running thread, and returning from it,
//! for signals and for thresholds.
//!
//! The kernel pushes the thread's registers on its stack in Linux's form (`struct rt_sigframe`),
//! where the handler may read and change them. What the kernel restores from there is checked: of
//! the flags only those that ring 3 may set, no segment, an instruction pointer in the program's
//! half, no extended state that would be a fault ([`extended_frame`]).

use super::{
    extended_frame,
    fault::Fault,
    fpu,
    process::Process,
    signal::{Action, INFO_WORDS, SignalInfo, ThreadSignals, blockable},
};
use crate::{
    arch::{
        frame::{self, Frame},
        segments,
    },
    measure::UpcallHandler,
    memory::space::USER_END,
};

/// Bytes below the stack pointer that belong to the program: System V ABI for AMD64, section 3.2.2.
const RED_ZONE_BYTES: u64 = 128;
/// `SA_RESTORER`: the action has the handler's return address.
const HAS_RESTORER: u64 = 0x0400_0000;
/// Carry, parity, adjust, zero, sign, trap, direction, overflow and alignment check.
const USER_FLAGS: u64 = 0x4_0dd5;
const INTERRUPT_FLAG: u64 = 1 << 9;

/// The fault of a program whose handler cannot be called.
const NO_ROOM: &str = "no room on the stack for a signal frame";

// Words of the frame: the handler's return address, the context, the signal.
const RESTORER: usize = 0;
const CONTEXT: usize = 1;
const FLAGS: usize = CONTEXT;
const STACK: usize = CONTEXT + 2;
const REGISTERS: usize = CONTEXT + 5;
const RIP: usize = REGISTERS + 16;
const RFLAGS: usize = REGISTERS + 17;
const SEGMENTS: usize = REGISTERS + 18;
const ERROR: usize = REGISTERS + 19;
const EXTENDED: usize = REGISTERS + 23;
const MASK: usize = REGISTERS + 32;
const INFO: usize = MASK + 1;
const WORDS: usize = INFO + INFO_WORDS;
const BYTES: u64 = 8 * WORDS as u64;
/// `UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS`: as Linux has it for 64-bit programs, beside
/// [`extended_frame::context_flag`].
const CONTEXT_FLAGS: u64 = 6;
const STACK_DISABLED: u64 = 2;

const _: () =
    assert!(BYTES == extended_frame::CONTEXT_BYTES, "a frame is as Linux's C libraries expect it");

/// The top of the free stack of an interrupted thread.
pub fn below_red_zone(rsp: u64) -> u64 {
    rsp.wrapping_sub(RED_ZONE_BYTES)
}

/// Enters the program's handler of a signal in the running thread; the handler's stack ends at
/// `top`.
///
/// # Errors
/// The program cannot write to the stack, the action has no restorer, or the handler's address is
/// impossible for a program.
pub fn enter_handler(
    process: &mut Process,
    frame: &mut Frame,
    top: u64,
    action: &Action,
    signal: u32,
    info: SignalInfo,
    fault: &Fault,
) -> Result<(), Fault> {
    // A return to an address outside the program's half would fault in ring 0.
    if action.handler >= USER_END {
        let what = "signal handler outside the program's addresses";
        return Err(Fault::of_kind(what, Some(action.handler)));
    }
    if action.flags & HAS_RESTORER == 0 {
        return Err(Fault::of_kind("signal handler without a restorer (SA_RESTORER)", None));
    }
    let at = push_signal_frame(process, frame, top, action.restorer, info, fault)?;
    let [info, context] = [INFO, CONTEXT].map(|word| at + 8 * word as u64);
    let entered = frame::user(action.handler, at);
    *frame = Frame { rdi: signal.into(), rsi: info, rdx: context, ..entered };
    Ok(())
}

/// Enters the handler of a threshold in the running thread, with the event and the count.
///
/// # Errors
/// The program cannot write to the stack.
pub fn enter_upcall(
    process: &mut Process,
    frame: &mut Frame,
    (handler, event, count): (UpcallHandler, u64, u64),
) -> Result<(), Fault> {
    let top = below_red_zone(frame.rsp);
    let at = push_signal_frame(process, frame, top, 0, SignalInfo::default(), &Fault::default())?;
    process.threads.running().signals.in_upcall = true;
    let entered = frame::user(handler.entry, at - 8);
    *frame = Frame { rdi: event, rsi: count, rdx: handler.data, ..entered };
    Ok(())
}

/// Pushes a signal frame below `top`. Returns its address, 8 below a multiple of 16, as after a
/// call.
fn push_signal_frame(
    process: &mut Process,
    frame: &Frame,
    top: u64,
    restorer: u64,
    info: SignalInfo,
    fault: &Fault,
) -> Result<u64, Fault> {
    let extended = extended_frame::place(top);
    let at = (extended.wrapping_sub(BYTES) & !15).wrapping_sub(8);
    let thread = process.threads.running();
    let signals = &mut thread.signals;
    // A frame on the alternative stack must not reach below it.
    if [frame.rsp, top].into_iter().any(|rsp| signals.on_stack(rsp)) && !signals.on_stack(at) {
        return Err(Fault::of_kind(NO_ROOM, Some(at)));
    }
    let mut words = context_words(signals, frame, fault);
    words[RESTORER] = restorer;
    words[EXTENDED] = extended;
    words[INFO..].copy_from_slice(&info);
    let memory = &mut process.memory;
    let no_room = |()| Fault::of_kind(NO_ROOM, Some(at));
    extended_frame::push(memory, &mut thread.fpu, extended).map_err(no_room)?;
    memory.write_words(at, words).map_err(drop).map_err(no_room)?;
    // As under Linux, a handler starts with an initial FPU state: an x87 exception that is pending
    // in the interrupted code must not be raised in the handler.
    fpu::reset();
    Ok(at)
}

/// The frame's words for the interrupted thread: its registers, stack, fault and mask.
fn context_words(signals: &mut ThreadSignals, frame: &Frame, fault: &Fault) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    words[FLAGS] = CONTEXT_FLAGS | extended_frame::context_flag();
    let (stack, bytes) = signals.stack;
    let stack_state = if bytes == 0 { STACK_DISABLED } else { signals.on_stack(frame.rsp).into() };
    words[STACK..STACK + 3].copy_from_slice(&[stack, stack_state, bytes]);
    words[REGISTERS..RIP].copy_from_slice(&registers(frame));
    words[RIP] = frame.rip;
    words[RFLAGS] = frame.rflags;
    words[SEGMENTS] = u64::from(segments::USER_CODE) | u64::from(segments::USER_DATA) << 48;
    let cr2 = fault.touched.unwrap_or_default();
    words[ERROR..ERROR + 4].copy_from_slice(&[fault.error, fault.vector, signals.mask, cr2]);
    words[MASK] = signals.mask_after.take().unwrap_or(signals.mask);
    words
}

/// The general registers in Linux's order.
fn registers(frame: &Frame) -> [u64; 16] {
    let Frame {
        r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, ..
    } = *frame;
    [r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp]
}

/// Returns from the handler of a signal: restores the running thread from its signal frame.
///
/// # Errors
/// The frame does not exist, or its instruction pointer is outside the program's addresses.
pub fn leave_handler(process: &mut Process, frame: &mut Frame) -> Result<(), Fault> {
    // The handler's return popped the restorer's address.
    restore_signal_frame(process, frame, frame.rsp.wrapping_sub(8))
}

/// Returns from the handler of a threshold, if the running thread runs one. Returns whether it did.
///
/// # Errors
/// See [`leave_handler`].
pub fn leave_upcall(process: &mut Process, frame: &mut Frame) -> Result<bool, Fault> {
    let ran = core::mem::take(&mut process.threads.running().signals.in_upcall);
    if ran {
        restore_signal_frame(process, frame, frame.rsp.wrapping_add(8))?;
    }
    Ok(ran)
}

fn restore_signal_frame(process: &mut Process, frame: &mut Frame, at: u64) -> Result<(), Fault> {
    let no_frame = |_| Fault::of_kind("return from a handler without a signal frame", Some(at));
    let words: [u64; WORDS] = process.memory.read_words(at).map_err(no_frame)?;
    if words[RIP] >= USER_END {
        let what = "return from a handler to outside the program's addresses";
        return Err(Fault::of_kind(what, Some(words[RIP])));
    }
    let thread = process.threads.running();
    extended_frame::pop(&mut process.memory, &mut thread.fpu, words[EXTENDED])?;
    thread.signals.mask = blockable(words[MASK]);
    let [r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp] =
        core::array::from_fn(|index| words[REGISTERS + index]);
    *frame = Frame {
        r8,
        r9,
        r10,
        r11,
        r12,
        r13,
        r14,
        r15,
        rdi,
        rsi,
        rbp,
        rbx,
        rdx,
        rax,
        rcx,
        rflags: words[RFLAGS] & USER_FLAGS | INTERRUPT_FLAG,
        ..frame::user(words[RIP], rsp)
    };
    Ok(())
}
