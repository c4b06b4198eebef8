//! Extended state: the registers of x87, SSE, AVX and AVX-512, which XSAVE saves by components.
//!
//! Every CPU enables the same components before a program runs there, and ring 3 cannot change
//! them: XSETBV is privileged. A processor without XSAVE has x87 and SSE, which FXSAVE saves.
//! Components that are not enabled, of AMX, MPX and protection keys, are an invalid instruction.

use core::arch::{asm, x86_64::__cpuid_count};

use raw_cpuid::CpuId;
use spin::Once;
use x86_64::registers::xcontrol::{XCr0, XCr0Flags};

/// Bytes of x87's and SSE's part of an area, and all that FXSAVE saves.
pub const LEGACY_BYTES: usize = 512;
/// Bytes of an area's header, behind that part (Intel SDM volume 1, "XSAVE Header").
pub const HEADER_BYTES: usize = 64;
/// Offset of the mask of MXCSR's bits (Intel SDM volume 1, "FXSAVE Area").
const MXCSR_MASK: usize = 28;
/// The mask if the processor stores 0 (same manual, "Guidelines for Writing to the MXCSR
/// Register").
const DEFAULT_MXCSR_MASK: u32 = 0xffbf;
/// CPUID's leaf of extended state.
const LEAF: u32 = 0xd;

/// The extended state that programs have, on every CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedState {
    /// The components: XCR0's value. 0 if the processor has no XSAVE.
    pub components: u64,
    /// Bytes of an area that holds all of it, in XSAVE's standard format or FXSAVE's.
    pub bytes: usize,
    /// Whether the processor has XSAVEOPT.
    pub has_xsaveopt: bool,
    /// The bits of MXCSR that the processor has: others are a fault.
    pub mxcsr_mask: u32,
}

static STATE: Once<ExtendedState> = Once::new();

impl ExtendedState {
    /// Returns whether XSAVE saves it.
    pub fn has_xsave(self) -> bool {
        self.components != 0
    }
}

/// The state that programs have.
///
/// # Panics
/// No CPU has run [`enable`].
pub fn get() -> &'static ExtendedState {
    STATE.get().expect("the first CPU enables the extended state")
}

/// Returns whether this CPU has the components that the first CPU enabled.
pub fn is_as_on_first() -> bool {
    get().components == components().bits()
}

/// Enables the components on this CPU; on the first CPU, determines them. CR4 enables SSE and,
/// where the processor has it, XSAVE.
pub fn enable() {
    let components = components();
    if !components.is_empty() {
        // SAFETY: (1) the processor has these components; (2) CR4 enables XSAVE; (3) `task` saves
        // and restores all of them with a thread.
        unsafe { XCr0::write_raw(components.bits()) };
    }
    STATE.call_once(|| describe(components));
}

/// The components that the processor has and `task` can hold; none without XSAVE.
fn components() -> XCr0Flags {
    if !has_xsave() {
        return XCr0Flags::empty();
    }
    let leaf = __cpuid_count(LEAF, 0);
    let has = XCr0Flags::from_bits_truncate(u64::from(leaf.edx) << 32 | u64::from(leaf.eax));
    let mut components = XCr0Flags::X87 | XCr0Flags::SSE;
    let avx512 = XCr0Flags::OPMASK | XCr0Flags::ZMM_HI256 | XCr0Flags::HI16_ZMM;
    // AVX-512's registers are AVX's, wider.
    for more in [XCr0Flags::AVX, XCr0Flags::AVX | avx512] {
        if has.contains(more) {
            components |= more;
        }
    }
    components
}

/// Returns whether the processor has XSAVE.
pub fn has_xsave() -> bool {
    CpuId::new().get_feature_info().is_some_and(|features| features.has_xsave())
}

/// Returns whether the processor has AVX-512's foundation, and whether it is enabled.
pub fn has_avx512() -> bool {
    get().components & XCr0Flags::ZMM_HI256.bits() != 0
}

/// Returns whether AVX is enabled.
pub fn has_avx() -> bool {
    get().components & XCr0Flags::AVX.bits() != 0
}

/// Describes these components, which are enabled, by this CPU.
fn describe(components: XCr0Flags) -> ExtendedState {
    let components = components.bits();
    let (bytes, has_xsaveopt) = if components == 0 {
        (LEGACY_BYTES, false)
    } else {
        // EBX of subleaf 0 is the size for the components that XCR0 enables.
        let bytes = __cpuid_count(LEAF, 0).ebx as usize;
        (bytes.max(LEGACY_BYTES + HEADER_BYTES), __cpuid_count(LEAF, 1).eax & 1 != 0)
    };
    ExtendedState { components, bytes, has_xsaveopt, mxcsr_mask: mxcsr_mask() }
}

/// The bits of MXCSR that the processor has.
fn mxcsr_mask() -> u32 {
    #[repr(C, align(16))]
    struct Area([u8; LEGACY_BYTES]);
    let mut area = Area([0; LEGACY_BYTES]);
    // SAFETY: the area is 512 bytes, aligned to 16, as the instruction wants.
    unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut area, options(nostack)) };
    match u32::from_le_bytes(core::array::from_fn(|index| area.0[MXCSR_MASK + index])) {
        0 => DEFAULT_MXCSR_MASK,
        mask => mask,
    }
}
