//! The virtual PMU's own CPUID leaf: how any guest, in any ring, speaks to the plugin.
//!
//! A program executes `CPUID` with `EAX` = [`LEAF`], `ECX` = an [`Op`] and, where the operation
//! takes one, an argument in `EDX`. Without the virtual PMU the leaf is out of range and answers
//! as the processor pleases, so ask [`Op::Identify`] first and compare with [`SIGNATURE`].

/// The leaf: in the range that Intel and AMD leave to software (4000_0000H to 4FFF_FFFFH).
pub const LEAF: u32 = 0x4f00_7a11;

/// What [`Op::Identify`] answers in EBX, ECX, EDX, in this order, as CPUID's vendor strings do in
/// theirs: the bytes of `TallyVirtPMU`, little-endian.
pub const SIGNATURE: [u32; 3] =
    [u32::from_le_bytes(*b"Tall"), u32::from_le_bytes(*b"yVir"), u32::from_le_bytes(*b"tPMU")];

/// Version of this leaf, answered by [`Op::Identify`] in EAX.
pub const VERSION: u32 = 1;

/// What a guest asks of the virtual PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// Answers [`VERSION`] and [`SIGNATURE`].
    Identify = 0,
    /// Opens the region with the tag in EDX: from here on, what happens in this address space, on
    /// any CPU, is also summed under that tag. Opening an open region changes nothing; opening a
    /// closed one goes on summing. Answers EAX = 1.
    Open = 1,
    /// Closes the region with the tag in EDX. Answers EAX = 1, or 0 if it was not open.
    Close = 2,
    /// Raises an overflow interrupt on this CPU, as its local vector table says, when EDX more
    /// instructions have retired behind this one: the handler's frame names the next. Answers
    /// EAX = 1, or 0 while nothing is counted: no counter was started yet and no region opened.
    Interrupt = 3,
    /// The machine is about to be switched off: what this CPU does from here on is in no region and
    /// in no row of the truth. How far a CPU gets before QEMU has ended is of the host's time, and
    /// differs from run to run. Answers EAX = 1.
    End = 4,
}

/// Every operation.
const OPS: [Op; 5] = [Op::Identify, Op::Open, Op::Close, Op::Interrupt, Op::End];

impl Op {
    /// The operation that `ecx` names.
    pub fn decode(ecx: u32) -> Option<Op> {
        OPS.into_iter().find(|op| *op as u32 == ecx)
    }
}
