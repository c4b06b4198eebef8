//! The entries to the kernel: assembly stubs, the IDT, trap handlers, and how CPUs start.
//!
//! The top layer but for `main`: it leads interrupts to the scheduler and system calls to `calls`.

mod idt;
mod panic;
mod ring_3;
pub mod smp;
mod start;
mod stubs;
mod trap;

pub use start::start_cpu;
