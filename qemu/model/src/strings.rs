//! Repeated string instructions: their kinds, and the time of their elements.
//!
//! The microcode of such an instruction starts, then passes elements. MOVS and STOS are fast
//! strings: they pass a part of a line in a cycle, whatever the elements' size. The others take
//! some cycles for each element. A line that the L1 lacks comes while others are on their way, so
//! it takes its level's latency divided by the fill buffers (Little's law), and passing elements
//! overlaps with it: what takes longer counts.

use crate::cost::PARTS;

/// Bytes of a line.
const LINE_BYTES: u32 = 64;
/// Bytes that a micro-operation of a fast string loads or stores.
const UOP_BYTES: u32 = 32;

/// Kind of a repeated string instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringKind {
    /// MOVS: loads and stores each element.
    Move,
    /// STOS: stores each element.
    Fill,
    /// SCAS and all other kinds: one access for each element.
    Scan,
    /// CMPS: two loads for each element.
    Compare,
}

impl StringKind {
    pub(crate) fn is_fast(self) -> bool {
        matches!(self, StringKind::Move | StringKind::Fill)
    }

    /// Accesses for each element.
    pub(crate) fn accesses(self) -> u32 {
        match self {
            StringKind::Move | StringKind::Compare => 2,
            StringKind::Fill | StringKind::Scan => 1,
        }
    }
}

/// The time of repeated string instructions whose data is in the L1.
#[derive(Clone, Copy, Debug)]
pub struct StringShape {
    /// Cycles of the microcode before the first element.
    pub start_cycles: u8,
    /// Cycles more before MOVS and STOS go beyond their first line.
    pub fast_start_cycles: u8,
    /// Bytes that MOVS and STOS pass in a cycle.
    pub fast_bytes: u8,
    /// Cycles for each element of the other instructions.
    pub element_cycles: u8,
    /// Micro-operations of such an element.
    pub element_uops: u8,
}

/// Time of a part of an instruction, and its micro-operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passing {
    /// In parts of a cycle.
    pub(crate) parts: u32,
    pub(crate) uops: u32,
}

impl StringShape {
    /// Starts before new line `ordinal`, counted from 1 over both streams of a move.
    pub(crate) fn start(&self, kind: StringKind, ordinal: u32) -> Passing {
        let cycles = if ordinal == 1 {
            self.start_cycles
        } else if kind.is_fast() && ordinal == kind.accesses() + 1 {
            self.fast_start_cycles
        } else {
            0
        };
        Passing { parts: u32::from(cycles) * PARTS, uops: 0 }
    }

    /// Passes the elements of a line that is touched for the first time, if `kind` is fast, and the
    /// `accesses` since the last such line otherwise.
    pub(crate) fn pass(&self, kind: StringKind, accesses: u32) -> Passing {
        if kind.is_fast() {
            let parts = LINE_BYTES * PARTS / u32::from(self.fast_bytes) / kind.accesses();
            return Passing { parts, uops: LINE_BYTES / UOP_BYTES };
        }
        let each = |of_element: u8| accesses * u32::from(of_element) / kind.accesses();
        Passing { parts: each(self.element_cycles) * PARTS, uops: each(self.element_uops) }
    }

    /// Passes the `accesses` behind the last touch of a new line.
    pub(crate) fn finish(&self, kind: StringKind, accesses: u32) -> Passing {
        if kind.is_fast() { Passing::default() } else { self.pass(kind, accesses) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: StringShape = StringShape {
        start_cycles: 15,
        fast_start_cycles: 20,
        fast_bytes: 32,
        element_cycles: 2,
        element_uops: 6,
    };

    #[test]
    fn fast_strings_start_again_beyond_their_first_line() {
        let cycles = |kind| [1, 2, 3, 4].map(|ordinal| SHAPE.start(kind, ordinal).parts / PARTS);
        assert_eq!(cycles(StringKind::Fill), [15, 20, 0, 0]);
        assert_eq!(cycles(StringKind::Move), [15, 0, 20, 0]);
        assert_eq!(cycles(StringKind::Compare), [15, 0, 0, 0]);
    }

    #[test]
    fn fast_strings_take_time_by_lines_and_others_by_elements() {
        let passing = |parts, uops| Passing { parts, uops };
        // 64 bytes are a line of a fill, and half of the lines of a move.
        assert_eq!(SHAPE.pass(StringKind::Fill, 64), passing(2 * PARTS, 2));
        assert_eq!(SHAPE.pass(StringKind::Move, 128), passing(PARTS, 2));
        assert_eq!(SHAPE.pass(StringKind::Scan, 64), passing(128 * PARTS, 384));
        assert_eq!(SHAPE.pass(StringKind::Compare, 128), passing(128 * PARTS, 384));
        assert_eq!(SHAPE.finish(StringKind::Fill, 9), passing(0, 0));
        assert_eq!(SHAPE.finish(StringKind::Scan, 9), passing(18 * PARTS, 54));
    }
}
