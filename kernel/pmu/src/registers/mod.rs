//! Types of MSRs, one for each: its address, its documented bits, and its treatment of the others.
//!
//! The virtual PMU and the kernel use these layouts too. Therefore nothing here is unsafe or has
//! effects: this module makes values, and the holder of a [`crate::Bus`] writes them.
//!
//! Reserved bits: each type's `VALID` has every bit that software may set. Writing another one
//! raises #GP on Intel's processors; on AMD's reserved bits must be zero. The drivers never set
//! one, and as they own every register that they write, they have none to preserve.

pub mod amd;
pub mod architectural;
pub mod branches;
pub mod intel;
pub mod records;
pub mod unit;

/// An MSR, or a row of equal MSRs.
pub trait Register: Copy {
    /// Name in the vendor's manual.
    const NAME: &'static str;
    /// Address of the register, or of the first one of a row.
    const FIRST: u32;
    /// Distance between the addresses in a row.
    const STRIDE: u32 = 1;
    /// Bits that may be set.
    const VALID: u64;

    /// Returns the value as the processor holds it.
    fn raw(self) -> u64;
    /// Makes a register value from its bits; undocumented bits are kept.
    fn from_raw(bits: u64) -> Self;

    /// Returns the address of the register with this index in its row.
    fn address(index: u8) -> u32 {
        Self::FIRST + Self::STRIDE * u32::from(index)
    }
}

/// Implements [`Register`] for a type made by `bitflags`, or for a newtype of `u64`.
macro_rules! register {
    ($type:ty, $name:literal, $first:literal $(, stride $stride:literal)?) => {
        impl $crate::registers::Register for $type {
            const NAME: &'static str = $name;
            const FIRST: u32 = $first;
            $(const STRIDE: u32 = $stride;)?
            const VALID: u64 = <$type>::all().bits();
            fn raw(self) -> u64 {
                <$type>::bits(&self)
            }
            fn from_raw(bits: u64) -> Self {
                <$type>::from_bits_retain(bits)
            }
        }
    };
}
/// Defines a [`Register`] that holds a count of at most 48 bits.
macro_rules! counter {
    ($(#[$doc:meta])* $type:ident, $name:literal, $first:literal $(, stride $stride:literal)?) => {
        $crate::registers::word!(
            $(#[$doc])* $type, $name, $first $(, stride $stride)?, valid (1 << 48) - 1
        );
    };
}
/// Defines a [`Register`] that holds a number, of 64 bits unless it says which bits are valid.
macro_rules! word {
    (
        $(#[$doc:meta])* $type:ident, $name:literal, $first:literal $(, stride $stride:literal)?
    ) => {
        $crate::registers::word!(
            $(#[$doc])* $type, $name, $first $(, stride $stride)?, valid u64::MAX
        );
    };
    (
        $(#[$doc:meta])* $type:ident, $name:literal, $first:literal $(, stride $stride:literal)?,
        valid $valid:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $type(pub u64);
        impl $crate::registers::Register for $type {
            const NAME: &'static str = $name;
            const FIRST: u32 = $first;
            $(const STRIDE: u32 = $stride;)?
            const VALID: u64 = $valid;
            fn raw(self) -> u64 {
                self.0
            }
            fn from_raw(bits: u64) -> Self {
                Self(bits)
            }
        }
    };
}
pub(crate) use {counter, register, word};
