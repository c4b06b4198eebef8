//! The end of programs, and of the machine when the last job's programs have ended.

use alloc::format;
use core::sync::atomic::{AtomicU32, Ordering};

use tally_abi::{ExitStatus, wire::Message};

use super::{jobs::begin_job, sent_files, status, switch::schedule, table};
use crate::{
    arch::frame::Frame,
    cpu::Cpu,
    machine::{
        exit::{show_results, stop},
        nmi, serial,
    },
    measure::{self, Closing, cpus},
    memory::kernel,
    task::fault::Fault,
};

/// The fault of a program whose threads all wait for each other.
const DEADLOCK: &str = "deadlock: every thread waits for another";

/// Number of CPUs that are reporting the last values of an ended program. [`finish`] waits for
/// them.
static REPORTING: AtomicU32 = AtomicU32::new(0);

/// Starts the end of the running program with `status`; [`go_on_ending`] follows before it would
/// run again.
pub fn exit(cpu: &mut Cpu, status: i32) {
    let process = cpu.process();
    serial::send(&Message::Exited { pid: process.pid, program: &process.name, status });
    log::info!("program {} ended with status {status}", process.name);
    begin_end(cpu, status as u8);
}

/// Ends the running program, whose threads all wait for each other.
pub(super) fn end_deadlocked(cpu: &mut Cpu, frame: &mut Frame) {
    crash(cpu, frame, Fault::of_kind(DEADLOCK, None));
}

/// Ends the running program because of a fault of the running thread.
pub(super) fn crash(cpu: &mut Cpu, frame: &mut Frame, fault: Fault) {
    let Fault { what, touched, .. } = fault;
    let Some(process) = cpu.current.as_deref() else {
        panic!("{what} in ring 3 at {:#x}, but no program is running", frame.rip);
    };
    log::error!(
        "program {} crashed: {what}, address {:#x}, instruction {:#x}",
        process.name,
        touched.unwrap_or_default(),
        frame.rip
    );
    serial::send(&Message::Faulted {
        pid: process.pid,
        program: &process.name,
        fault: &what,
        address: touched,
        instruction: frame.rip,
    });
    begin_end(cpu, ExitStatus::of_fault(&what).into());
}

/// Stops the running program's counting, and its other threads.
fn begin_end(cpu: &mut Cpu, status: u8) {
    let measure = cpu.measure;
    let process = cpu.process();
    if let Some(calls) = process.refused.describe() {
        log::warn!("{}: refused system calls: {calls}", process.name);
        serial::send(&Message::RefusedCalls { program: &process.name, calls: &calls });
    }
    if status != 0 {
        for path in process.missing.paths() {
            serial::send(&Message::NotFound { program: &process.name, path });
        }
    }
    process.threads.end_others();
    process.ending = Some(status);
    measure.lock().end(process.usage());
    if let Some(tag) = process.region.take() {
        measure::close_region(tag);
    }
    close_cpu_sessions(cpu);
}

/// Makes the steps of the running program's end, which report the last values of its sessions, so
/// that they delay no other program (decision 21). Returns whether the program has ended; otherwise
/// its turn is over, and the interrupt that ends the turn comes before the instruction at which the
/// program stopped.
pub(super) fn go_on_ending(cpu: &mut Cpu, frame: &mut Frame) -> bool {
    while cpu.process().closing.step() || take_unwatched(cpu) {
        if cpu.is_preempted() {
            return false;
        }
    }
    end(cpu, frame);
    true
}

/// Takes the sessions that end with the running program: those on it that no other program has
/// open, and those that it has open on programs that have ended. Returns whether there are any.
fn take_unwatched(cpu: &mut Cpu) -> bool {
    let measure = cpu.measure;
    let process = cpu.process();
    let (mut contexts, watched) = table::lock().take_last_sessions(process.pid);
    contexts.extend(measure.lock().take_unwatched(&mut process.memory, &watched));
    let are_any = !contexts.is_empty();
    contexts.into_iter().for_each(|context| process.closing.push(context));
    are_any
}

/// Frees the running program, whose sessions are reported, and runs the next.
fn end(cpu: &mut Cpu, frame: &mut Frame) {
    let Some(mut process) = cpu.current.take() else { return };
    process.threads.frequency.end();
    if let Some([core, reference]) = process.threads.frequency.cycles() {
        serial::send(&Message::Frequency { pid: process.pid, core, reference });
    }
    let (pid, status) = (process.pid, process.ending.unwrap_or_default());
    let usage = process.usage();
    let contexts = cpu.measure.lock().release(usage);
    cpu.measure.lock().drain();
    if table::lock().has_no_parent(pid) {
        status::record(status);
    }
    table::lock().set_usage(pid, usage);
    kernel::activate_space();
    REPORTING.fetch_add(1, Ordering::SeqCst);
    let remains = table::lock().end(pid, status, contexts);
    drop(process);
    // Contexts on programs that ended after `take_unwatched`.
    let mut closing = Closing::default();
    remains.contexts.into_iter().for_each(|context| closing.push(context));
    while closing.step() {}
    drop(remains.orphans);
    REPORTING.fetch_sub(1, Ordering::SeqCst);
    if remains.is_last {
        // The other CPUs' programs have ended, but may not be reported yet.
        while REPORTING.load(Ordering::SeqCst) != 0 {
            core::hint::spin_loop();
        }
        if !begin_job() {
            finish();
        }
    }
    schedule(cpu, frame);
}

/// Closes the ending program's sessions on whole CPUs. Other CPUs return their parts as soon as
/// they take interrupts; a CPU that also waits here carries out requests in the meantime.
fn close_cpu_sessions(cpu: &mut Cpu) {
    let owner = cpu.process().pid;
    while let Some(id) = cpus::of_owner(owner) {
        // A session that is not started needs no stop.
        let _ = cpus::want(id, owner, false);
        cpu.ask_others();
        while cpus::is_settled(id, owner) == Ok(false) {
            cpu.serve();
            core::hint::spin_loop();
        }
        let process = cpu.process();
        while let Ok(Some(mut context)) = cpus::remove(id, owner) {
            context.unmap(&mut process.memory);
            process.closing.push(context);
        }
    }
}

/// Ends the machine: no program is left to run, or none could be started.
pub fn finish() -> ! {
    measure::finish();
    if measure::overflows_are_nmis()
        && let Some(reason) = nmi::reason()
    {
        log::warn!("the machine raised an NMI, which is counted as a spurious interrupt: {reason}");
    }
    if let Some(failure) = measure::late_failure() {
        status::refuse("counters", ExitStatus::CounterFailed, &format!("{failure}"));
    }
    sent_files::send();
    let status = status::get();
    log::info!("all programs ended, status {status}");
    serial::send(&Message::Done { status });
    show_results();
    stop(status)
}
