//! Diverting a thread to a handler of its program, and back: for signals and for thresholds.
//!
//! All that the thread had in registers is written to its stack in the form that Linux gives it
//! (`struct rt_sigframe`), where the handler may read and change it. What is read back from there is the
//! program's word and no more: of the flags only those that ring 3 may set, never a segment, an instruction
//! pointer in the program's half alone, no bit of the FPU's that would be a fault.

use super::{
    fault::Fault,
    fpu::{FPU_BYTES, FpuState},
    process::Process,
    signal::{Action, INFO_WORDS, Info, blockable},
};
use crate::{
    arch::{frame::Frame, segments},
    measure::UpcallHandler,
    memory::space::USER_END,
};

/// Bytes below the stack pointer that belong to the program: System V ABI for AMD64, section 3.2.2.
const RED_ZONE_BYTES: u64 = 128;
/// `SA_RESTORER`: the action says where its handler returns to.
const HAS_RESTORER: u64 = 0x0400_0000;
/// Carry, parity, adjust, zero, sign, trap, direction, overflow and alignment check.
const USER_FLAGS: u64 = 0x4_0dd5;
const INTERRUPT_FLAG: u64 = 1 << 9;

/// What a program has done whose handler cannot be called.
const NO_ROOM: &str = "no room on the stack for a handler";

// The words of the frame: where the handler returns to, the context, the signal.
const RESTORER: usize = 0;
const CONTEXT: usize = 1;
const FLAGS: usize = CONTEXT;
const STACK: usize = CONTEXT + 2;
const REGISTERS: usize = CONTEXT + 5;
const RIP: usize = REGISTERS + 16;
const RFLAGS: usize = REGISTERS + 17;
const SEGMENTS: usize = REGISTERS + 18;
const ERROR: usize = REGISTERS + 19;
const FPU: usize = REGISTERS + 23;
const MASK: usize = REGISTERS + 32;
const INFO: usize = MASK + 1;
const WORDS: usize = INFO + INFO_WORDS;
const BYTES: u64 = 8 * WORDS as u64;
/// `UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS`: as Linux has it for 64-bit programs.
const CONTEXT_FLAGS: u64 = 6;
const STACK_DISABLED: u64 = 2;

const _: () = assert!(BYTES == 440, "a frame is as Linux's C libraries expect it");

/// The first address that an interrupted thread does not use.
pub fn below_red_zone(rsp: u64) -> u64 {
    rsp.wrapping_sub(RED_ZONE_BYTES)
}

/// Diverts the running thread to its program's handler of a signal; the handler's stack ends at `top`.
///
/// # Errors
/// The stack is not the program's to write, there is nowhere to return to, or the handler is nowhere.
pub fn to_signal(
    process: &mut Process,
    frame: &mut Frame,
    top: u64,
    action: &Action,
    signal: u32,
    info: Info,
    fault: &Fault,
) -> Result<(), Fault> {
    // A return to an address that no program can have would be a fault of the kernel's own.
    if action.handler >= USER_END {
        return Err(Fault::of_kind(
            "a signal's handler that no program can have",
            Some(action.handler),
        ));
    }
    if action.flags & HAS_RESTORER == 0 {
        return Err(Fault::of_kind("a signal's handler with nowhere to return to", None));
    }
    let at = push_signal_frame(process, frame, top, action.restorer, info, fault)?;
    let [info, context] = [INFO, CONTEXT].map(|word| at + 8 * word as u64);
    let entered = Frame::user(action.handler, at);
    *frame = Frame { rdi: signal.into(), rsi: info, rdx: context, ..entered };
    Ok(())
}

/// Calls the handler of a threshold in the running thread: `handler` with the event and the count.
///
/// # Errors
/// The stack is not the program's to write.
pub fn to_upcall(
    process: &mut Process,
    frame: &mut Frame,
    (handler, event, count): (UpcallHandler, u64, u64),
) -> Result<(), Fault> {
    let top = below_red_zone(frame.rsp);
    let at = push_signal_frame(process, frame, top, 0, Info::default(), &Fault::default())?;
    process.threads.running().signals.in_upcall = true;
    let entered = Frame::user(handler.entry, at - 8);
    *frame = Frame { rdi: event, rsi: count, rdx: handler.data, ..entered };
    Ok(())
}

/// Writes a frame below `top`; gives its address, 8 below a multiple of 16, as a call leaves the stack.
fn push_signal_frame(
    process: &mut Process,
    frame: &Frame,
    top: u64,
    restorer: u64,
    info: Info,
    fault: &Fault,
) -> Result<u64, Fault> {
    let fpu = top.wrapping_sub(FPU_BYTES as u64) & !63;
    let at = (fpu.wrapping_sub(BYTES) & !15).wrapping_sub(8);
    let signals = &mut process.threads.running().signals;
    let mut words = [0; WORDS];
    words[RESTORER] = restorer;
    words[FLAGS] = CONTEXT_FLAGS;
    // What lies below the alternative stack is not the handler's.
    if [frame.rsp, top].into_iter().any(|rsp| signals.on_stack(rsp)) && !signals.on_stack(at) {
        return Err(Fault::of_kind(NO_ROOM, Some(at)));
    }
    let (stack, bytes) = signals.stack;
    let stack_state = if bytes == 0 { STACK_DISABLED } else { signals.on_stack(frame.rsp).into() };
    words[STACK..STACK + 3].copy_from_slice(&[stack, stack_state, bytes]);
    words[REGISTERS..RIP].copy_from_slice(&registers(frame));
    words[RIP] = frame.rip;
    words[RFLAGS] = frame.rflags;
    words[SEGMENTS] = u64::from(segments::USER_CODE) | u64::from(segments::USER_DATA) << 48;
    let cr2 = fault.touched.unwrap_or_default();
    words[ERROR..ERROR + 4].copy_from_slice(&[fault.error, fault.vector, signals.mask, cr2]);
    words[FPU] = fpu;
    words[MASK] = signals.mask_after.take().unwrap_or(signals.mask);
    words[INFO..].copy_from_slice(&info);
    let space = &mut process.memory.space;
    let written =
        space.write(fpu, FpuState::now().bytes()).and_then(|()| space.write_words(at, words));
    match written {
        Ok(()) => {
            // As under Linux: a handler begins with none of what it interrupted, an exception that the x87 unit
            // has not told yet among it.
            FpuState::initial().restore();
            Ok(at)
        }
        Err(_) => Err(Fault::of_kind(NO_ROOM, Some(at))),
    }
}

/// The general registers in Linux's order.
fn registers(frame: &Frame) -> [u64; 16] {
    let Frame {
        r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, ..
    } = *frame;
    [r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp]
}

/// A signal's handler has ended: the running thread goes on as its frame says.
///
/// # Errors
/// There is no frame, or nothing can go on there.
pub fn from_signal(process: &mut Process, frame: &mut Frame) -> Result<(), Fault> {
    // The handler's return took the address off.
    restore_signal_frame(process, frame, frame.rsp.wrapping_sub(8))
}

/// A threshold's handler has ended: whether one ran, and the running thread goes on as its frame says.
///
/// # Errors
/// As [`from_signal`].
pub fn from_upcall(process: &mut Process, frame: &mut Frame) -> Result<bool, Fault> {
    let ran = core::mem::take(&mut process.threads.running().signals.in_upcall);
    if ran {
        restore_signal_frame(process, frame, frame.rsp.wrapping_add(8))?;
    }
    Ok(ran)
}

fn restore_signal_frame(process: &mut Process, frame: &mut Frame, at: u64) -> Result<(), Fault> {
    let no_frame = |_| Fault::of_kind("the end of a handler that has no frame", Some(at));
    let words: [u64; WORDS] = process.memory.space.read_words(at).map_err(no_frame)?;
    if words[RIP] >= USER_END {
        return Err(Fault::of_kind(
            "the end of a handler that would go on nowhere",
            Some(words[RIP]),
        ));
    }
    let fpu = match words[FPU] {
        0 => FpuState::initial(),
        fpu => {
            let mut bytes = [0; FPU_BYTES];
            process.memory.space.read(fpu, &mut bytes).map_err(no_frame)?;
            FpuState::claimed(bytes)
        }
    };
    fpu.restore();
    process.threads.running().signals.mask = blockable(words[MASK]);
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
        ..Frame::user(words[RIP], rsp)
    };
    Ok(())
}
