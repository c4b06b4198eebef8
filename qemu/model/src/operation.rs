//! The registers that an instruction waits for, and the unit that executes it.

use std::ops::{BitOr, BitOrAssign};

/// A set of architectural registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet(u64);

/// The number of registers that are modelled.
pub(crate) const REGISTERS: usize = 64;

impl RegisterSet {
    /// The empty set.
    pub const NONE: RegisterSet = RegisterSet(0);
    /// The arithmetic flags, as one.
    pub const FLAGS: RegisterSet = RegisterSet(1 << 16);
    /// The x87 stack, as one.
    pub const X87: RegisterSet = RegisterSet(1 << 49);

    /// The general register of this number, 0 to 15.
    pub const fn general(number: u8) -> RegisterSet {
        RegisterSet(1 << (number & 15))
    }

    /// The vector register of this number, 0 to 31.
    pub const fn vector(number: u8) -> RegisterSet {
        RegisterSet(1 << (17 + (number & 31)))
    }

    /// The MMX register of this number, 0 to 7.
    pub const fn mmx(number: u8) -> RegisterSet {
        RegisterSet(1 << (50 + (number & 7)))
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as a mask: bit `n` is the register of number `n`.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns whether the two sets have a register in common.
    pub const fn intersects(self, other: RegisterSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the set without the registers of `other`.
    #[must_use]
    pub const fn without(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 & !other.0)
    }

    /// The registers' numbers, below 64.
    #[inline]
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let number = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (number < REGISTERS).then_some(number)
        })
    }
}

impl BitOr for RegisterSet {
    type Output = RegisterSet;
    fn bitor(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 | other.0)
    }
}

impl BitOrAssign for RegisterSet {
    fn bitor_assign(&mut self, other: RegisterSet) {
        self.0 |= other.0;
    }
}

/// The kind of functional unit that executes an instruction, its loads and stores aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Unit {
    /// No unit: a plain move to or from memory, a no-operation, a zeroing idiom, an eliminated
    /// move.
    #[default]
    None,
    /// Integer arithmetic and logic.
    Integer,
    /// Shifts and rotations.
    Shift,
    /// Branches.
    Branch,
    /// Integer multiplication.
    Multiply,
    /// Integer division.
    Divide,
    /// Vector integer arithmetic and logic.
    Vector,
    /// Shuffles, and moves between register files.
    Shuffle,
    /// Floating-point addition and comparison.
    FpAdd,
    /// Floating-point multiplication, with or without a fused addition; x87.
    FpMultiply,
    /// Floating-point division and square root.
    FpDivide,
    /// Conversions between integers and floating point.
    Convert,
    /// Moves between general registers. Has no unit on cores whose renaming executes them.
    Move,
}

impl Unit {
    pub(crate) const COUNT: usize = 13;
}

/// An instruction's unit and registers, for the out-of-order pipeline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operation {
    /// The unit that executes the instruction.
    pub unit: Unit,
    /// The registers that form memory addresses.
    pub address: RegisterSet,
    /// The other registers that the instruction reads.
    pub reads: RegisterSet,
    /// The registers that the instruction writes.
    pub writes: RegisterSet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_has_its_own_number() {
        let all = (0..16)
            .map(RegisterSet::general)
            .chain((0..32).map(RegisterSet::vector))
            .chain((0..8).map(RegisterSet::mmx))
            .chain([RegisterSet::FLAGS, RegisterSet::X87]);
        let mut seen = RegisterSet::NONE;
        for register in all {
            assert!(!seen.intersects(register), "{register:?}");
            seen |= register;
        }
        assert_eq!(seen.numbers().count(), 58);
        assert_eq!(RegisterSet::NONE.numbers().count(), 0);
    }
}
