//! Memory: frames, address spaces, programs' mappings, the kernel's stacks and heap.
//!
//! The upper half of every address space is the kernel's, the same in all; the lower half is the
//! program's. All physical memory is mapped in the upper half.

mod access;
pub mod area;
mod areas;
pub mod audit;
mod bytes;
mod frame;
pub mod frames;
pub mod heap;
pub mod kernel;
pub mod lent;
pub mod lent_pages;
mod pool;
pub mod range;
mod records;
pub mod region;
mod registers;
pub mod remap;
pub mod shared;
pub mod space;
pub mod stacks;
mod tables;
pub mod takeover;
mod usable;
pub mod user;
