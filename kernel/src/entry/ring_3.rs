//! A loop in ring 3 for checks of counters there, before any program exists.

use core::{arch::asm, mem::replace};

use x86_64::instructions::interrupts;

use crate::{
    arch::{
        frame::{self, Frame},
        lapic::Lapic,
        vectors,
    },
    cpu::Cpu,
    memory::{
        frames::FRAME_BYTES,
        kernel,
        space::{AddressSpace, PageAccess, SpaceError, UserRange},
    },
};

/// Address of the loop, in the lower half.
const CODE: u64 = 0x40_0000;
/// `xor eax, eax; again: inc rax; cmp rax, rbx; jb again; ud2`.
const LOOP: [u8; 12] = [0x31, 0xc0, 0x48, 0xff, 0xc0, 0x48, 0x39, 0xd8, 0x72, 0xf8, 0x0f, 0x0b];
/// Instructions before the loop, and in a turn of it. UD2 does not retire.
const BEFORE_LOOP: u64 = 1;
const IN_A_TURN: u64 = 3;
/// Turns after which the loop ends without an interrupt: a part of a second.
const MAX_TURNS: u64 = 1 << 26;
/// Time until the interrupt, in ticks of the APIC's clock: 20 µs to a millisecond.
const TICKS: u32 = 20_000;

/// The loop, in an address space of its own.
pub struct Ring3Loop {
    space: AddressSpace,
}

impl Ring3Loop {
    /// Maps the loop.
    ///
    /// # Panics
    /// Out of memory.
    pub fn new() -> Ring3Loop {
        let space = AddressSpace::for_program(kernel::space());
        let mut space = space.expect("there is memory for page tables");
        let mut map = || -> Result<(), SpaceError> {
            space.map_zeroed(UserRange::new(CODE, FRAME_BYTES)?, PageAccess::Execute)?;
            space.fill(CODE, &LOOP)
        };
        map().expect("there is memory for a page");
        Ring3Loop { space }
    }

    /// Runs the loop on this CPU until an interrupt of its timer, or for one turn without one; an
    /// exception ends it. Returns the number of instructions retired in ring 3.
    pub fn run(&self, lapic: &Lapic, until_interrupt: bool) -> u64 {
        // SAFETY: the kernel's half is in it, and this function activates the kernel's own again.
        unsafe { self.space.activate() };
        if until_interrupt {
            lapic.interrupt_after(TICKS);
        }
        let turns: u64;
        // SAFETY: (1) the vector has a stub, which saves all registers, and `handle` returns here
        // with the turns in RAX and the other registers as they are now; (2) no reference to the
        // CPU's state is live here.
        unsafe {
            asm!(
                "xchg rbx, {limit}", "int {vector}", "xchg rbx, {limit}",
                limit = inout(reg) if until_interrupt { MAX_TURNS } else { 1 } => _,
                vector = const vectors::RING_3_LOOP,
                out("rax") turns,
            );
        }
        lapic.stop_timer();
        kernel::activate_space();
        BEFORE_LOOP + IN_A_TURN * turns
    }
}

/// Handles an interrupt or exception while the loop runs, or the one that starts it.
///
/// # Panics
/// An exception other than the loop's own.
pub fn handle(cpu: &mut Cpu, frame: &mut Frame) {
    const INVALID_OPCODE: u64 = 6;
    let is = |vector: u8| frame.vector == u64::from(vector);
    if is(vectors::RING_3_LOOP) {
        let start = Frame { rbx: frame.rbx, ..frame::user(CODE, 0) };
        cpu.checks_ring_3 = Some(replace(frame, start));
    } else if frame.vector == INVALID_OPCODE {
        let back = cpu.checks_ring_3.take().expect("the loop has been started");
        *frame = Frame { rax: frame.rax, ..back };
    } else if is(vectors::TIMER) {
        cpu.lapic.end_of_interrupt();
        frame.rbx = 0;
    } else {
        panic!("{} in the check of ring 3", vectors::exception_name(frame.vector));
    }
}

/// Takes the pending interrupts.
pub fn take_pending_interrupts() {
    interrupts::enable();
    x86_64::instructions::nop();
    interrupts::disable();
}
