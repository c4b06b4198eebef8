//! A thread's extended state: the registers of x87, SSE, AVX and AVX-512. The kernel uses none of
//! them, so while it runs they hold the running thread's values.
//!
//! A state is an area in XSAVE's standard format, or FXSAVE's on a processor without XSAVE. It is
//! zeroed when it is allocated, and whatever the kernel restores from it either came from the
//! processor or was checked ([`FpuState::accept`]), so that restoring is no fault in ring 0 and
//! shows a thread no other thread's registers.

use alloc::{boxed::Box, vec};
use core::arch::asm;

use spin::Once;

use crate::arch::extended_state::{self, HEADER_BYTES, LEGACY_BYTES};

/// Offset of MXCSR in an area (Intel SDM volume 1, "FXSAVE Area").
const MXCSR: usize = 24;
const INITIAL_MXCSR: u32 = 0x1f80;
/// Words of an area's header: the components that are not in their initial state, the format, and
/// the first of six that are reserved (same volume, "XSAVE Header").
const PRESENT: usize = LEGACY_BYTES / 8;
const FORMAT: usize = PRESENT + 1;
const RESERVED: usize = PRESENT + 2;
/// x87 and SSE: the components of FXSAVE's area.
pub const LEGACY: u64 = 3;
const SSE: u64 = 2;

/// The bits of the six exceptions.
const EXCEPTIONS: u32 = 0x3f;

/// All of XCR0's components, which XRSTOR restores and XSAVE saves.
const ALL: u32 = u32::MAX;

const LINE_WORDS: usize = 8;

/// The alignment that XSAVE wants.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; LINE_WORDS]);

/// An area with a value of the extended state.
#[derive(Clone)]
pub struct FpuState(Box<[Line]>);

/// Why a state that a program wrote is not restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

static INITIAL: Once<FpuState> = Once::new();

impl FpuState {
    fn zeroed() -> Self {
        let lines = extended_state::get().bytes.div_ceil(size_of::<Line>());
        FpuState(vec![Line([0; LINE_WORDS]); lines].into_boxed_slice())
    }

    /// The state of a new program: System V ABI for AMD64, section 3.4.1. In XSAVE's format every
    /// component is in its initial state, which is the same.
    pub fn initial() -> Self {
        let mut state = FpuState::zeroed();
        state.bytes_mut()[0..2].copy_from_slice(&0x037f_u16.to_le_bytes());
        state.bytes_mut()[MXCSR..MXCSR + 4].copy_from_slice(&INITIAL_MXCSR.to_le_bytes());
        state
    }

    /// The registers' current values.
    pub fn now() -> Self {
        let mut state = FpuState::zeroed();
        state.save_whole();
        state
    }

    /// The area.
    pub fn bytes(&self) -> &[u8] {
        let bytes = extended_state::get().bytes;
        // SAFETY: the lines are plain words, without padding, and at least so many bytes.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), bytes) }
    }

    /// The area, to write a program's bytes in: [`Self::accept`] or [`Self::save_whole`] follows.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = extended_state::get().bytes;
        // SAFETY: as above; every value of a byte is one of a word; the borrow is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), bytes) }
    }

    fn word(&mut self, index: usize) -> &mut u64 {
        &mut self.0[index / LINE_WORDS].0[index % LINE_WORDS]
    }

    fn mxcsr(&self) -> u32 {
        u32::from_le_bytes(core::array::from_fn(|index| self.bytes()[MXCSR + index]))
    }

    /// Checks an area that a program wrote, of which `components` are to be restored and the others
    /// to get their initial state. Conditions of XRSTOR's faults: Intel SDM volume 1, "Operation of
    /// XRSTOR"; of FXRSTOR's: volume 2.
    ///
    /// # Errors
    /// Restoring it would be a fault.
    pub fn accept(&mut self, components: u64) -> Result<(), Invalid> {
        let state = extended_state::get();
        // Checked even if SSE is not restored: XRSTOR loads it in any case.
        if self.mxcsr() & !state.mxcsr_mask != 0 {
            return Err(Invalid);
        }
        if !state.has_xsave() {
            return Ok(());
        }
        let [present, format, reserved] = [PRESENT, FORMAT, RESERVED].map(|at| *self.word(at));
        // The compacted format, whose bit is the highest of its word, is not the kernel's.
        if present & !state.components != 0 || format != 0 || reserved != 0 {
            return Err(Invalid);
        }
        // The processor ignores the other reserved words.
        self.clear_header();
        *self.word(PRESENT) = present & components;
        if components & SSE == 0 {
            self.bytes_mut()[MXCSR..MXCSR + 4].copy_from_slice(&INITIAL_MXCSR.to_le_bytes());
        }
        Ok(())
    }

    /// Makes an area of which a program wrote the first [`LEGACY_BYTES`] have those two components
    /// present, and the others in their initial state.
    pub fn make_legacy(&mut self) {
        if extended_state::get().has_xsave() {
            self.clear_header();
            *self.word(PRESENT) = LEGACY;
        }
    }

    /// Marks x87 and SSE as present, so that what a handler writes there is restored.
    pub fn mark_legacy(&mut self) {
        if extended_state::get().has_xsave() {
            *self.word(PRESENT) |= LEGACY;
        }
    }

    fn clear_header(&mut self) {
        self.bytes_mut()[LEGACY_BYTES..LEGACY_BYTES + HEADER_BYTES].fill(0);
    }

    /// Saves all registers, whatever the area has: XSAVE keeps what it does not write of a header.
    pub fn save_whole(&mut self) {
        let area = self.0.as_mut_ptr();
        if !extended_state::get().has_xsave() {
            // SAFETY: the area is 512 bytes, aligned to 16, as the instruction wants.
            return unsafe { asm!("fxsave64 [{}]", in(reg) area, options(nostack)) };
        }
        self.clear_header();
        // SAFETY: (1) the area is as long as CPUID says for XCR0's components, and aligned to 64;
        // (2) CR4 enables the instruction.
        unsafe {
            asm!("xsave64 [{}]", in(reg) area, in("eax") ALL, in("edx") ALL, options(nostack));
        }
    }

    /// Saves the registers of a thread that was restored from here and whose area is unchanged
    /// since, or written by [`Self::save_whole`].
    ///
    /// XSAVEOPT leaves out components that have not changed since this CPU's last XRSTOR if that
    /// was from this address. A thread is restored from its own area before it runs, on every CPU
    /// and in every place that the heap reuses, so what is left out is in the area.
    pub fn save(&mut self) {
        if !extended_state::get().has_xsaveopt {
            return self.save_whole();
        }
        let area = self.0.as_mut_ptr();
        // SAFETY: as of XSAVE above; the processor has the instruction.
        unsafe {
            asm!("xsaveopt64 [{}]", in(reg) area, in("eax") ALL, in("edx") ALL, options(nostack));
        }
    }

    /// Restores the registers.
    pub fn restore(&self) {
        let area = self.0.as_ptr();
        if !extended_state::get().has_xsave() {
            // SAFETY: the area was made by `fxsave64`, `initial` or `accept`, so no reserved bit of
            // MXCSR is set; nothing else in it can be a fault.
            return unsafe { asm!("fxrstor64 [{}]", in(reg) area, options(nostack)) };
        }
        // SAFETY: (1) the area was made by XSAVE, `initial` or `accept`, so nothing in its header
        // or in MXCSR is a fault; (2) it is as long as CPUID says, and aligned to 64; (3) CR4
        // enables the instruction.
        unsafe {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") ALL, in("edx") ALL, options(nostack));
        }
    }
}

/// Gives all registers their initial state.
pub fn reset() {
    INITIAL.call_once(FpuState::initial).restore();
}

/// The x87 unit's unmasked exceptions, as the low bits of its status word.
pub fn x87_exceptions() -> u32 {
    let (mut control, mut status) = (0_u16, 0_u16);
    // SAFETY: the instructions store two bytes each, and wait for no pending exception.
    unsafe {
        asm!("fnstcw [{}]", "fnstsw [{}]", in(reg) &raw mut control, in(reg) &raw mut status,
            options(nostack));
    }
    u32::from(status & !control) & EXCEPTIONS
}

/// SSE's unmasked exceptions, as the low bits of MXCSR.
pub fn sse_exceptions() -> u32 {
    let mut mxcsr = 0_u32;
    // SAFETY: the instruction stores four bytes.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack)) };
    mxcsr & !(mxcsr >> 7) & EXCEPTIONS
}
