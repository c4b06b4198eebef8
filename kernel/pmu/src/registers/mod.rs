//! One type per MSR: its address, its documented bits, what to do about the others.
//!
//! The virtual PMU and the kernel take layouts from here too, so nothing here is unsafe or does
//! anything: a value is made here, and written by whoever holds a [`crate::Bus`].
//!
//! Reserved bits: each type's `VALID` holds every bit that software may set. Writing another raises
//! #GP on Intel's processors; on AMD's they must be zero. The drivers never set one, and as they
//! own every register they write, they have none to preserve.

pub mod amd;
pub mod intel;
pub mod unit;

/// An MSR, or a row of equal ones.
pub trait Register: Copy {
    /// As the vendor's manual calls it.
    const NAME: &'static str;
    /// Its address, or that of the first of a row.
    const FIRST: u32;
    /// From one address in the row to the next.
    const STRIDE: u32 = 1;
    /// The bits that may be set.
    const VALID: u64;

    /// The value as the processor holds it.
    fn raw(self) -> u64;
    /// The other way; bits that are not documented are kept.
    fn from_raw(bits: u64) -> Self;

    /// The address of the register of this index in its row.
    fn address(index: u8) -> u32 {
        Self::FIRST + Self::STRIDE * u32::from(index)
    }
}

/// Makes a [`Register`] of a type that `bitflags` made, or of a newtype of `u64`.
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
/// Makes a [`Register`] that holds a count of at most 48 bits.
macro_rules! counter {
    ($(#[$doc:meta])* $type:ident, $name:literal, $first:literal $(, stride $stride:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $type(pub u64);
        impl $crate::registers::Register for $type {
            const NAME: &'static str = $name;
            const FIRST: u32 = $first;
            $(const STRIDE: u32 = $stride;)?
            const VALID: u64 = (1 << 48) - 1;
            fn raw(self) -> u64 {
                self.0
            }
            fn from_raw(bits: u64) -> Self {
                Self(bits)
            }
        }
    };
}
pub(crate) use {counter, register};
