//! Memory: frames, address spaces, the kernel's heap.
//!
//! The upper half of every address space is the kernel's and the same everywhere; the lower half is
//! the program's. Physical memory is mapped once, in the upper half.

pub mod frames;
pub mod heap;
pub mod kernel;
pub mod region;
mod registers;
pub mod shared;
pub mod space;
mod stacks;
mod tables;
pub mod takeover;
pub mod user;
