//! Exits of the running thread from the CPU: preemption, blocking, yielding, ending.

use super::{
    exit::{end_deadlocked, exit},
    switch::{deschedule, run_next_thread, schedule},
    table,
};
use crate::{arch::frame::Frame, cpu::Cpu, task::thread::Wait};

/// Ends the running thread's turn, if another thread is runnable, and its program's turn, if
/// another program is runnable or waits to inspect it.
pub fn preempt(cpu: &mut Cpu, frame: &mut Frame) {
    let process = cpu.process();
    process.expire();
    let mut table = table::lock();
    table.wake_child_waiters(process);
    let is_due = table.is_due(process.pid);
    drop(table);
    let has_next = process.threads.next_affinity().is_some();
    if is_due || has_next {
        process.switches.preemptions += 1;
        process.threads.enqueue_running(frame);
    }
    if is_due {
        let process = deschedule(cpu);
        table::lock().park_or_enqueue(process);
        schedule(cpu, frame);
    } else if has_next {
        run_next_thread(cpu, frame);
    }
}

/// Enqueues the running program, which is inspecting another running program: its call is restarted
/// in its next turn. The program is not parked for an inspection itself: two programs that inspect
/// each other would both stay parked until the timeout.
pub fn yield_cpu(cpu: &mut Cpu, frame: &mut Frame) {
    let process = cpu.process();
    process.switches.preemptions += 1;
    process.threads.enqueue_running(frame);
    let process = deschedule(cpu);
    table::lock().enqueue(process);
    schedule(cpu, frame);
}

/// Blocks the running thread. The code that wakes it writes the call's result to its frame. Ends
/// the program if nothing can wake any of its threads.
pub fn block(cpu: &mut Cpu, frame: &mut Frame, on: Wait) {
    let process = cpu.process();
    if !on.ends_by_itself() && process.is_stuck() {
        return end_deadlocked(cpu, frame);
    }
    process.switches.waits += 1;
    process.threads.block_running(frame, on);
    process.expire();
    run_next_thread(cpu, frame);
}

/// Ends the running thread with `status`, and the program with its last thread.
pub fn end_thread(cpu: &mut Cpu, frame: &mut Frame, status: i32) {
    let measure = cpu.measure;
    let process = cpu.process();
    let tid = process.threads.running().tid;
    if tid == process.pid {
        process.status = status;
    }
    if process.threads.len() == 1 {
        let status = process.status;
        return exit(cpu, status);
    }
    process.release_robust_mutexes();
    process.hand_over_held_mutexes();
    let word = process.threads.end_running().clear_tid;
    measure.lock().end_thread(tid);
    // No thread can wait at an address outside the program's memory.
    if word != 0 && process.memory.write(word, &[0; 4]).is_ok() {
        process.threads.wake_futex(word, u32::MAX, 1);
    }
    process.expire();
    // If all other threads wait for each other, the table detects it.
    run_next_thread(cpu, frame);
}
