//! Upcalls: a program is diverted to a handler of its own, and goes on where it was.
//!
//! All that the interrupted program had in registers stays with the kernel, so nothing is written to
//! its memory, and what its stack pointer is does not matter. There is one upcall at a time: what
//! fires meanwhile waits until the handler ends.

use alloc::boxed::Box;

use super::process::FpuState;
use crate::cpu::{Cpu, entry::Frame};

/// Bytes below the stack pointer that belong to the program: System V ABI for AMD64, section 3.2.2.
const RED_ZONE_BYTES: u64 = 128;

/// Where a program wants to hear of something.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    /// Its first instruction, an address of the program's.
    pub entry: u64,
    /// A word of the program's for it.
    pub data: u64,
}

/// A program's upcall.
#[derive(Default)]
pub struct Upcall {
    /// The program as it was interrupted, while a handler runs.
    interrupted: Option<Frame>,
    /// Its FPU registers then; there from [`Self::prepare`] on.
    fpu: Option<Box<FpuState>>,
}

impl Upcall {
    /// Makes room for what is kept: delivery allocates nothing.
    pub fn prepare(&mut self) {
        self.fpu.get_or_insert_with(FpuState::initial);
    }
}

/// A threshold has fired: diverts the program whose `frame` this is, if it is one of this CPU's own
/// and no handler runs. What cannot be delivered now waits.
pub fn deliver(cpu: &mut Cpu, frame: &mut Frame) {
    let Cpu { current, measure, .. } = cpu;
    let Some(process) = current.as_deref_mut().filter(|_| frame.is_user()) else { return };
    let upcall = &mut process.upcall;
    let Some(fpu) = upcall.fpu.as_deref_mut().filter(|_| upcall.interrupted.is_none()) else {
        return;
    };
    let Some((handler, event, count)) = measure.hold().take_upcall() else { return };
    fpu.save();
    upcall.interrupted = Some(*frame);
    let stack = frame.rsp.wrapping_sub(RED_ZONE_BYTES) & !15;
    let entered = Frame::user(handler.entry, stack);
    *frame = Frame { rdi: event, rsi: count, rdx: handler.data, ..entered };
}

/// The handler of the running program has ended: whether there was one, and `frame` is again the
/// program's, or another handler's.
pub fn finish(cpu: &mut Cpu, frame: &mut Frame) -> bool {
    let process = cpu.current.as_deref_mut().expect("a system call comes from a program");
    let Some(interrupted) = process.upcall.interrupted.take() else { return false };
    *frame = interrupted;
    if let Some(fpu) = &process.upcall.fpu {
        fpu.restore();
    }
    deliver(cpu, frame);
    true
}
