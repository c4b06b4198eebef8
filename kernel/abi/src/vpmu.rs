//! The virtual PMU's own CPUID leaf, by which a guest sends operations to the plugin.
//!
//! A program executes `CPUID` with `EAX` = [`LEAF`], `ECX` = an [`Op`] and, where the operation has
//! one, an argument in `EDX`. Without the virtual PMU the leaf is out of range and its answer is
//! undefined: send [`Op::Identify`] first and compare the answer with [`SIGNATURE`].

/// The leaf: in the range that Intel and AMD leave to software (4000_0000H to 4FFF_FFFFH).
pub const LEAF: u32 = 0x4f00_7a11;

/// The answer to [`Op::Identify`] in EBX, ECX, EDX, in this order, as CPUID's vendor strings are
/// encoded: the bytes of `TallyVirtPMU`, little-endian.
pub const SIGNATURE: [u32; 3] =
    [u32::from_le_bytes(*b"Tall"), u32::from_le_bytes(*b"yVir"), u32::from_le_bytes(*b"tPMU")];

/// Version of this leaf, the answer to [`Op::Identify`] in EAX.
pub const VERSION: u32 = 2;

/// An operation of the virtual PMU.
///
/// Regions that guest code marks and sessions of a kernel have tags of their own: region 1 and
/// session 1 are different regions of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// Answers [`VERSION`] and [`SIGNATURE`].
    Identify = 0,
    /// Opens the region with the tag in EDX: from here on, the truth also sums under that tag what
    /// happens in this address space, on any CPU. Opening an open region changes nothing; opening a
    /// closed one continues its sums. Answers EAX = 1.
    Open = 1,
    /// Closes the region with the tag in EDX. Answers EAX = 1, or 0 if it was not open.
    Close = 2,
    /// Raises an overflow interrupt on this CPU, as its local vector table says, when EDX more
    /// instructions have retired behind this one: the handler's frame contains the address of the
    /// next. Answers EAX = 1, or 0 while nothing is counted: no counter was started yet and no
    /// region opened.
    Interrupt = 3,
    /// Ends the truth of this CPU before the machine is switched off: no region and no row of the
    /// series contains what this CPU executes from here on. How far a CPU gets before QEMU has
    /// ended depends on the host's time and differs from run to run. Answers EAX = 1. Ring 0 only.
    End = 4,
    /// Opens the session with the tag in EDX, like [`Op::Open`]. Ring 0 only.
    OpenSession = 5,
    /// Closes the session with the tag in EDX, like [`Op::Close`]. Ring 0 only.
    CloseSession = 6,
}

/// Every operation.
const OPS: [Op; 7] =
    [Op::Identify, Op::Open, Op::Close, Op::Interrupt, Op::End, Op::OpenSession, Op::CloseSession];

impl Op {
    /// The operation with the number `ecx`.
    pub fn decode(ecx: u32) -> Option<Op> {
        OPS.into_iter().find(|op| *op as u32 == ecx)
    }

    /// Whether it has no effect outside ring 0, where it answers EAX = 0: what a program does must
    /// not change the truth by which a kernel's counts are judged.
    pub fn needs_ring_0(self) -> bool {
        matches!(self, Op::End | Op::OpenSession | Op::CloseSession)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_decoded_and_nothing_else() {
        for op in OPS {
            assert_eq!(Op::decode(op as u32), Some(op));
        }
        assert_eq!(Op::decode(OPS.len() as u32), None);
        assert_eq!(Op::decode(u32::MAX), None);
    }
}
