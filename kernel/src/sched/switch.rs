//! Context switches: switching programs in and out, and switching threads.

use alloc::boxed::Box;
use core::mem::take;

use log::Level;

use super::table;
use crate::{
    arch::frame::{self, Frame},
    cpu::Cpu,
    measure,
    memory::kernel,
    task::Process,
};

/// Switches the CPU, which runs no program, to the next runnable program, or to its idle loop.
pub fn schedule(cpu: &mut Cpu, frame: &mut Frame) {
    let next = table::lock().next(cpu);
    match next {
        Some(process) => switch_in(cpu, frame, process),
        None if frame::is_user(frame) => {
            kernel::activate_space();
            *frame = cpu.idle_frame();
            trace(cpu);
        }
        // The frame is already the idle loop's.
        None => {}
    }
}

fn switch_in(cpu: &mut Cpu, frame: &mut Frame, mut process: Box<Process>) {
    // SAFETY: a process is dropped in `exit::end` alone, after the kernel's own space is activated.
    unsafe { process.memory.space.activate() };
    let has_run = process.switches.context_switches() > 0;
    process.switches.migrations += u64::from(has_run && process.cpu != cpu.index);
    process.cpu = cpu.index;
    process.threads.run_next(frame);
    process.threads.frequency.begin();
    let mut slot = take(&mut process.slot);
    cpu.measure.lock().enter(&mut slot, || process.turn());
    cpu.current = Some(process);
    cpu.serve();
    trace(cpu);
}

/// Records in the trace, if there is one, which thread the CPU runs from now on.
fn trace(cpu: &mut Cpu) {
    if !measure::is_tracing() && !log::log_enabled!(Level::Trace) {
        return;
    }
    let running = cpu.current.as_deref_mut();
    let running = running.map(|process| (process.pid, process.threads.running().tid));
    let (program, thread) = running.unwrap_or_default();
    log::trace!("CPU {}: runs program {program}, thread {thread}", cpu.index);
    if measure::is_tracing() {
        let are_recorded = measure::trace_events().switches;
        cpu.measure.lock().trace_switch(program, thread, are_recorded);
    }
}

/// Switches the program out; none of its threads may be running any more.
pub(super) fn deschedule(cpu: &mut Cpu) -> Box<Process> {
    let mut process = cpu.current.take().expect("a program runs on this CPU");
    let mut slot = take(&mut process.slot);
    cpu.measure.lock().leave(&mut slot, || process.usage());
    process.slot = slot;
    process.threads.frequency.end();
    cpu.measure.lock().drain();
    process
}

/// Switches to the next thread of this CPU's program, or to another program.
pub fn run_next_thread(cpu: &mut Cpu, frame: &mut Frame) {
    let (here, measure) = (usize::from(cpu.index), cpu.measure);
    let process = cpu.process();
    let next = process.threads.next_affinity().map(|affinity| affinity.contains(here));
    match next {
        Some(true) => {
            process.threads.run_next(frame);
            measure.lock().run_thread(|| process.turn());
            // A threshold may have fired while the previous thread ran a handler, which delays its
            // upcall. The next thread gets it as an interrupt, after its own signals: a restarted
            // call does not belong to the handler.
            measure.lock().repost_upcall();
            trace(cpu);
        }
        Some(false) | None => {
            let process = deschedule(cpu);
            let mut table = table::lock();
            match next {
                Some(_) => table.park_or_enqueue(process),
                None => table.block(process),
            }
            drop(table);
            schedule(cpu, frame);
        }
    }
}
