//! The floating-point unit's registers. The kernel uses none of them, so on the way through it they are
//! the program's that runs.

use core::arch::asm;

/// Where MXCSR and the mask of its bits that exist stand in the area (Intel SDM volume 1, "Layout of the
/// FXSAVE and FXRSTOR Memory Region").
const MXCSR: usize = 24;
const MXCSR_MASK: usize = 28;
/// The mask where the processor gives none (same manual, "Guidelines for Writing to the MXCSR Register").
const DEFAULT_MXCSR_MASK: u32 = 0xffbf;

/// Six exceptions have a bit each.
const EXCEPTIONS: u32 = 0x3f;

/// Bytes of the registers in memory.
pub const FPU_BYTES: usize = 512;

/// FPU and SSE registers, as FXSAVE64 stores them.
#[derive(Clone)]
#[repr(C, align(16))]
pub struct FpuState([u8; FPU_BYTES]);

impl FpuState {
    /// The state at a program's start: System V ABI for AMD64, section 3.4.1.
    pub fn initial() -> Self {
        let mut state = FpuState([0; FPU_BYTES]);
        state.0[0..2].copy_from_slice(&0x037f_u16.to_le_bytes());
        state.0[MXCSR..MXCSR + 4].copy_from_slice(&0x1f80_u32.to_le_bytes());
        state
    }

    /// The registers as they are.
    pub fn now() -> Self {
        let mut state = FpuState([0; FPU_BYTES]);
        state.save();
        state
    }

    /// What a program says that its registers were: bits that this processor does not have, which would
    /// be a fault in ring 0, are left out.
    pub fn claimed(bytes: [u8; FPU_BYTES]) -> Self {
        let mask = match FpuState::now().word(MXCSR_MASK) {
            0 => DEFAULT_MXCSR_MASK,
            mask => mask,
        };
        let mut state = FpuState(bytes);
        let mxcsr = state.word(MXCSR) & mask;
        state.0[MXCSR..MXCSR + 4].copy_from_slice(&mxcsr.to_le_bytes());
        state
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(core::array::from_fn(|index| self.0[at + index]))
    }

    /// The x87 unit's exceptions that are not masked, as the low bits of its status word have them.
    pub fn x87_exceptions(&self) -> u32 {
        let (control, status) = (self.word(0) & 0xffff, self.word(0) >> 16);
        status & !control & EXCEPTIONS
    }

    /// The same of SSE's, as the low bits of MXCSR have them.
    pub fn sse_exceptions(&self) -> u32 {
        let mxcsr = self.word(MXCSR);
        mxcsr & !(mxcsr >> 7) & EXCEPTIONS
    }

    /// The bytes, for the program's memory.
    pub fn bytes(&self) -> &[u8; FPU_BYTES] {
        &self.0
    }

    /// Keeps the FPU's registers.
    pub fn save(&mut self) {
        // SAFETY: the area is 512 bytes, aligned to 16, as the instruction wants.
        unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut *self, options(nostack)) };
    }

    /// Puts the FPU's registers back.
    pub fn restore(&self) {
        // SAFETY: the area was made by `fxsave64`, `initial` or `claimed`, so no reserved bit of MXCSR
        // is set; nothing else in it can be a fault.
        unsafe { asm!("fxrstor64 [{}]", in(reg) &raw const *self, options(nostack)) };
    }
}
