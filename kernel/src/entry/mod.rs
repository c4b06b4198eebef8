//! The entries to the kernel: assembly stubs, the IDT, trap handlers, and the start of CPUs.
//!
//! The top layer except for `main`: leads interrupts to the scheduler and system calls to `calls`.

mod idt;
mod panic;
mod ring_3;
pub mod smp;
mod start;
mod stubs;
mod trap;

pub use start::start_cpu;
