//! The floating-point unit's registers. The kernel uses none of them, so on the way through it they are
//! the program's that runs.

use core::arch::asm;

/// Where MXCSR and the mask of its bits that exist stand in the area (Intel SDM volume 1, "Layout of the
/// FXSAVE and FXRSTOR Memory Region").
const MXCSR: usize = 24;
const MXCSR_MASK: usize = 28;
/// The mask where the processor gives none (same manual, "Guidelines for Writing to the MXCSR Register").
const DEFAULT_MXCSR_MASK: u32 = 0xffbf;

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
        let word = |bytes: &[u8; FPU_BYTES], at| {
            u32::from_le_bytes(core::array::from_fn(|index| bytes[at + index]))
        };
        let mask = match word(&FpuState::now().0, MXCSR_MASK) {
            0 => DEFAULT_MXCSR_MASK,
            mask => mask,
        };
        let mxcsr = word(&bytes, MXCSR) & mask;
        let mut state = FpuState(bytes);
        state.0[MXCSR..MXCSR + 4].copy_from_slice(&mxcsr.to_le_bytes());
        state
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
