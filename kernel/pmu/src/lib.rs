//! Performance monitoring units.
#![no_std]
