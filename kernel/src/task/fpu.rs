//! The FPU and SSE registers. The kernel does not use them, so while it runs they hold the running
//! thread's values.

use core::arch::asm;

/// Offsets of MXCSR and of the mask of its implemented bits in the save area (Intel SDM volume 1,
/// "Layout of the FXSAVE and FXRSTOR Memory Region").
const MXCSR: usize = 24;
const MXCSR_MASK: usize = 28;
/// Mask to use if the processor stores 0 (same manual, "Guidelines for Writing to the MXCSR
/// Register").
const DEFAULT_MXCSR_MASK: u32 = 0xffbf;

/// The bits of the six exceptions.
const EXCEPTIONS: u32 = 0x3f;

/// Bytes of the save area.
pub const FPU_BYTES: usize = 512;

/// FPU and SSE registers, as FXSAVE64 stores them.
#[derive(Clone)]
#[repr(C, align(16))]
pub struct FpuState([u8; FPU_BYTES]);

impl FpuState {
    /// The state of a new program: System V ABI for AMD64, section 3.4.1.
    pub fn initial() -> Self {
        let mut state = FpuState([0; FPU_BYTES]);
        state.0[0..2].copy_from_slice(&0x037f_u16.to_le_bytes());
        state.0[MXCSR..MXCSR + 4].copy_from_slice(&0x1f80_u32.to_le_bytes());
        state
    }

    /// The registers' current values.
    pub fn now() -> Self {
        let mut state = FpuState([0; FPU_BYTES]);
        state.save();
        state
    }

    /// Sanitizes a state that a program wrote: clears the bits of MXCSR that this processor lacks,
    /// because restoring them would fault in ring 0.
    pub fn sanitized(bytes: [u8; FPU_BYTES]) -> Self {
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

    /// The x87 unit's unmasked exceptions, as the low bits of its status word.
    pub fn x87_exceptions(&self) -> u32 {
        let (control, status) = (self.word(0) & 0xffff, self.word(0) >> 16);
        status & !control & EXCEPTIONS
    }

    /// SSE's unmasked exceptions, as the low bits of MXCSR.
    pub fn sse_exceptions(&self) -> u32 {
        let mxcsr = self.word(MXCSR);
        mxcsr & !(mxcsr >> 7) & EXCEPTIONS
    }

    /// The save area, for the program's memory.
    pub fn bytes(&self) -> &[u8; FPU_BYTES] {
        &self.0
    }

    /// Saves the registers.
    pub fn save(&mut self) {
        // SAFETY: the area is 512 bytes, aligned to 16, as the instruction wants.
        unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut *self, options(nostack)) };
    }

    /// Restores the registers.
    pub fn restore(&self) {
        // SAFETY: the area was made by `fxsave64`, `initial` or `sanitized`, so no reserved bit of
        // MXCSR is set; nothing else in it can be a fault.
        unsafe { asm!("fxrstor64 [{}]", in(reg) &raw const *self, options(nostack)) };
    }
}
