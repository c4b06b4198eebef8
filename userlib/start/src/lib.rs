//! Runtime of a C program that is linked without a C library: its entry point, and the functions
//! that compilers call (`memcpy`, `memset`, …).
//!
//! A program with a C library does not link this archive. If it does, the linker uses nothing of
//! it, because the C library defines the same symbols.

#![no_std]

// Linked for its entry point alone.
extern crate tally as _;
