//! What a machine without a serial port shows: text, and the results as QR codes.
//!
//! Pure: it draws into a slice of bytes that it is given, so that the host tests what the kernel
//! shows. [`Console`] uses no heap, because it shows the report of a kernel that panics too.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod console;
mod font;
mod part;
mod sheet;
mod surface;

pub use self::{
    console::Console,
    font::{Font, Ink},
    part::{NotAPart, Part, Parts, Unpacked, unpack},
    sheet::Sheet,
    surface::{Layout, Surface},
};
