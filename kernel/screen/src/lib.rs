//! Output of a machine without a serial port: text, and the results as QR codes.
//!
//! Pure: it draws into a slice of bytes, so that the host can test the kernel's output. [`Console`]
//! uses no heap, because it also shows the report of a kernel panic.

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
