//! The PVH entry of guests that QEMU's `-kernel` starts: an ELF note names a 32-bit entry point, so
//! that no firmware has to find, read and start them.
//!
//! A guest links with `link.ld` and defines `extern "C" fn pvh_main(&'static StartInfo) -> !`. The
//! entry calls it in 64-bit mode, with interrupts off and the first 4 GiB identity-mapped.
//! Source: Xen's `docs/misc/pvh.pandoc` and `xen/include/public/arch-x86/hvm/start_info.h`.

#![no_std]

mod entry;
mod start_info;

pub use start_info::{MemoryEntry, StartInfo};
