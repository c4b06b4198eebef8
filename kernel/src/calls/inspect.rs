//! Calls that inspect a program running on another CPU.

use crate::{
    arch::{frame::Frame, vectors},
    cpu::Cpu,
    sched,
    task::handler,
};

/// Restarts the call when the CPU with the APIC ID `lapic` has parked the program that the call
/// inspects: preempts that CPU, and yields this one.
pub(super) fn preempt_and_restart(cpu: &mut Cpu, frame: &mut Frame, lapic: u32) {
    cpu.lapic.interrupt(lapic, vectors::PREEMPT_IPI);
    handler::repeat_call(frame);
    sched::yield_cpu(cpu, frame);
}
