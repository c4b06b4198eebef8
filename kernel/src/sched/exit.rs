//! The end of programs, and of the machine when the last job's programs have ended.

use alloc::{boxed::Box, format};
use core::sync::atomic::{AtomicU32, Ordering};

use tally_abi::{ExitStatus, wire::Message};

use super::{jobs::begin_job, sent_files, status, switch::schedule, table};
use crate::{
    arch::frame::Frame,
    cpu::Cpu,
    machine::{
        exit::{show_results, stop},
        serial,
    },
    measure::{self, cpus},
    memory::{kernel, user::UserMemory},
    task::{Process, fault::Fault},
};

/// The fault of a program whose threads all wait for each other.
const DEADLOCK: &str = "deadlock: every thread waits for another";

/// CPUs that report the last values of a program that has ended. [`finish`] waits for them.
static REPORTING: AtomicU32 = AtomicU32::new(0);

/// Ends the running program with `status`.
pub fn exit(cpu: &mut Cpu, frame: &mut Frame, status: i32) {
    let Some(process) = cpu.current.take() else { return };
    serial::send(&Message::Exited { pid: process.pid, program: &process.name, status });
    log::info!("program {} ended with status {status}", process.name);
    end(cpu, frame, process, status as u8);
}

/// Ends the running program, whose threads all wait for each other.
pub(super) fn end_deadlocked(cpu: &mut Cpu, frame: &mut Frame) {
    crash(cpu, frame, Fault::of_kind(DEADLOCK, None));
}

/// Ends the running program because of a fault of the running thread.
pub(super) fn crash(cpu: &mut Cpu, frame: &mut Frame, fault: Fault) {
    let Fault { what, touched, .. } = fault;
    let Some(process) = cpu.current.take() else {
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
    end(cpu, frame, process, ExitStatus::ProgramFault.into());
}

fn end(cpu: &mut Cpu, frame: &mut Frame, mut process: Box<Process>, status: u8) {
    if let Some(calls) = process.refused.describe() {
        log::warn!("{}: refused system calls: {calls}", process.name);
        serial::send(&Message::RefusedCalls { program: &process.name, calls: &calls });
    }
    let usage = process.usage();
    let contexts = cpu.measure.lock().end(&mut process.memory, usage);
    close_cpu_sessions(cpu, process.pid, &mut process.memory);
    cpu.measure.lock().drain();
    if let Some(tag) = process.region {
        measure::close_region(tag);
    }
    if table::lock().has_no_parent(process.pid) {
        status::record(status);
    }
    table::lock().set_usage(process.pid, usage);
    kernel::activate_space();
    REPORTING.fetch_add(1, Ordering::SeqCst);
    let remains = table::lock().end(process.pid, status, contexts);
    drop(process);
    remains.contexts.into_iter().for_each(|context| context.close(None));
    drop(remains.orphans);
    REPORTING.fetch_sub(1, Ordering::SeqCst);
    if remains.is_last {
        // The other CPUs' programs ended before, but may not be reported yet.
        while REPORTING.load(Ordering::SeqCst) != 0 {
            core::hint::spin_loop();
        }
        if !begin_job() {
            finish();
        }
    }
    schedule(cpu, frame);
}

/// Closes the sessions on whole CPUs of a program that has ended. Other CPUs return their parts as
/// soon as they take interrupts; one that waits here as well does what is asked of it meanwhile.
/// `memory` is the program's.
fn close_cpu_sessions(cpu: &mut Cpu, owner: u32, memory: &mut UserMemory) {
    while let Some(id) = cpus::of_owner(owner) {
        // A session that is not started needs no stop.
        let _ = cpus::want(id, owner, false);
        cpu.ask_others();
        while cpus::is_settled(id, owner) == Ok(false) {
            cpu.serve();
            core::hint::spin_loop();
        }
        while let Ok(Some(context)) = cpus::remove(id, owner) {
            context.close(Some(memory));
        }
    }
}

/// Ends the machine: no program is left to run, or none could be started.
pub fn finish() -> ! {
    measure::finish();
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
