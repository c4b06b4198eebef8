//! What a C program needs that is linked without a C library: its entry point, and the functions
//! that compilers call (`memcpy`, `memset`, …).
//!
//! A program with a C library does not link this archive. If it does, the linker takes nothing from
//! it, because the C library defines the same symbols.

#![no_std]

// Linked for its entry point alone.
extern crate tally as _;
