//! The virtual PMU's own CPUID leaf, with which a guest sends operations to the plugin.
//!
//! The guest executes `CPUID` with `EAX` = [`LEAF`], `ECX` = an [`Op`] and, if the operation has an
//! argument, `EDX` = the argument. Without the virtual PMU the leaf is out of range and its answer
//! is undefined: send [`Op::Identify`] first and compare the answer with [`SIGNATURE`].

/// The leaf: in the range that Intel and AMD leave to software (4000_0000H to 4FFF_FFFFH).
pub const LEAF: u32 = 0x4f00_7a11;

/// The answer to [`Op::Identify`] in EBX, ECX, EDX, in this order: the bytes of `TallyVirtPMU`,
/// little-endian, the encoding of CPUID's vendor strings.
pub const SIGNATURE: [u32; 3] =
    [u32::from_le_bytes(*b"Tall"), u32::from_le_bytes(*b"yVir"), u32::from_le_bytes(*b"tPMU")];

/// Version of this leaf, the answer to [`Op::Identify`] in EAX.
pub const VERSION: u32 = 3;

/// An operation of the virtual PMU.
///
/// Regions that guest code marks and sessions of a kernel have separate tags: region 1 and session
/// 1 are different regions of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// Answers [`VERSION`] and [`SIGNATURE`].
    Identify = 0,
    /// Opens the region with the tag in EDX. From here on the truth also counts, under that tag,
    /// the events in this address space on any CPU. Opening an open region has no effect; opening a
    /// closed region continues its counts. Answers EAX = 1.
    Open = 1,
    /// Closes the region with the tag in EDX. Answers EAX = 1, or 0 if it was not open.
    Close = 2,
    /// Raises an overflow interrupt on this CPU, by the entry of its local vector table, when EDX
    /// more instructions have retired after this one. The handler's frame has the address of the
    /// next instruction. Answers EAX = 1, or 0 if nothing is counted: no counter was enabled and no
    /// region opened so far.
    Interrupt = 3,
    /// Ends the truth of this CPU: no region and no row of the series contains what this CPU
    /// executes from here on. The kernel sends this operation before it switches the machine off,
    /// because the number of instructions until QEMU ends depends on the host and differs between
    /// runs. Answers EAX = 1. Ring 0 only.
    End = 4,
    /// Opens the session with the tag in EDX, like [`Op::Open`]. Ring 0 only.
    OpenSession = 5,
    /// Closes the session with the tag in EDX, like [`Op::Close`]. Ring 0 only.
    CloseSession = 6,
    /// Answers EAX = 1 if the virtual PMU models the event of the event select in RDX, with the
    /// value of RBX in the off-core response register, and 0 if a counter with it counts nothing.
    /// Privileges and enable bits do not matter.
    Models = 7,
    /// Answers EAX = the counters of this CPU's counter unit, whose registers `qemu/README.md`
    /// lists, or 0 without one.
    Unit = 8,
    /// Closes the region with the tag in EDX and opens the one with the next tag at the same
    /// moment, so that every instruction is in one of them. Answers EAX = 1, or 0 without effect if
    /// the region is not open.
    Next = 9,
}

/// Every operation.
const OPS: [Op; 10] = [
    Op::Identify,
    Op::Open,
    Op::Close,
    Op::Interrupt,
    Op::End,
    Op::OpenSession,
    Op::CloseSession,
    Op::Models,
    Op::Unit,
    Op::Next,
];

impl Op {
    /// The operation with the number `ecx`.
    pub fn decode(ecx: u32) -> Option<Op> {
        OPS.into_iter().find(|op| *op as u32 == ecx)
    }

    /// Returns whether the operation works only in ring 0; in other rings it has no effect and
    /// answers EAX = 0. A program must not change the truth with which the kernel's counts are
    /// compared.
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
