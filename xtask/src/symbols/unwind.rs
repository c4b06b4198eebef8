//! Unwinds a stack of the kernel or of a program: from a thread's registers and a copy of its stack
//! to the return addresses.
//!
//! The kernel has no frame pointers, which would cost the overflow path some 25 instructions per
//! switch, and most programs have none, so the unwind information of the files finds the callers
//! ([`super::frames`]). The kernel sends the stack, and the host unwinds it.

use addr2line::gimli::X86_64;
use serde::Serialize;
use tally_abi::registers::Frame;

use super::{
    frames::{Caller, Known, UnwindInfo},
    stack::Stack,
};

/// Method of finding the callers of a program's function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CallGraph {
    /// By the file's unwind information, as the compiler writes it.
    #[default]
    Dwarf,
    /// By the chain of frame pointers of a program that was compiled with them.
    Fp,
}

/// An address at a level of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StackAddress {
    /// The return address, or the address of the instruction at which the thread was stopped or
    /// interrupted by a signal.
    pub address: u64,
    /// Whether it is a return address.
    #[serde(skip)]
    pub is_return: bool,
}

impl StackAddress {
    /// An address of the instruction that calls, or that was interrupted. A return address may be
    /// behind its function's last instruction; the byte before belongs to the call.
    pub fn in_instruction(self) -> u64 {
        self.address.saturating_sub(self.is_return.into())
    }
}

/// The address at which the thread stopped, then those of its callers, innermost first, `most` at
/// most. `code` finds the code with an address.
pub(super) fn addresses<'a>(
    code: &dyn Fn(u64) -> Option<&'a UnwindInfo>,
    registers: &Frame,
    stack: &Stack,
    by: CallGraph,
    most: usize,
) -> Vec<StackAddress> {
    let mut known = numbered(registers);
    let mut last = StackAddress { address: registers.rip, is_return: false };
    let mut addresses = Vec::new();
    while addresses.len() < most {
        let caller = match by {
            CallGraph::Fp => caller_by_frame_pointer(&known, stack),
            CallGraph::Dwarf => code(last.in_instruction())
                .and_then(|of| of.caller(&known, last.is_return.into(), stack)),
        };
        let Some(Caller { registers, address, is_interrupted }) = caller else { break };
        // The kernel has written the address of the code that returns from a handler as the
        // handler's return address. No instruction before it calls the handler.
        last.is_return &= !is_interrupted;
        let next = StackAddress { address, is_return: !is_interrupted };
        // The entry point of the kernel or a program has no caller.
        if address == 0 || code(next.in_instruction()).is_none() {
            break;
        }
        addresses.push(last);
        (known, last) = (registers, next);
    }
    addresses.push(last);
    addresses.truncate(most);
    addresses
}

/// The caller by frame pointers: RBP has the address of the caller's RBP, and the return address
/// follows it. The caller's other registers are unknown, and not needed.
fn caller_by_frame_pointer(known: &Known, stack: &Stack) -> Option<Caller> {
    const WORD: u64 = size_of::<u64>() as u64;
    let frame = *known.get(&X86_64::RBP.0)?;
    let (saved, address) = (stack.word(frame)?, stack.word(frame.checked_add(WORD)?)?);
    let registers = Known::from([(X86_64::RBP.0, saved)]);
    // Frames of callers are at higher addresses: any other value is no frame pointer.
    (saved > frame || saved == 0).then_some(Caller { registers, address, is_interrupted: false })
}

fn numbered(r: &Frame) -> Known {
    let general = [
        r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15, r.rip,
    ];
    (0..).zip(general).collect()
}
