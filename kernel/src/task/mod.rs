//! Programs: loading them, sharing the CPUs among them, ending them.
//!
//! Programs that wait stand in one queue, first come, first served; the timer ends a program's
//! turn if another waits. A CPU that takes a program owns it until it gives it back. A program may
//! start others and wait for their end. When the last program has ended, the machine stops.

mod loader;
pub mod process;
pub mod table;
pub mod upcall;

use alloc::{boxed::Box, format, vec::Vec};
use core::sync::atomic::{AtomicU8, Ordering};

use spin::Once;
use tally_abi::{
    ExitStatus,
    boot::{BadOption, CommandLine, Program},
    wire::Message,
};
use x86_64::{
    PhysAddr, VirtAddr,
    registers::{control::Cr2, model_specific::FsBase},
};

pub use loader::{MAX_ARGUMENT_BYTES, STACK_BYTES};
pub use process::Process;

use crate::{
    cpu::{Cpu, entry::Frame, vectors},
    machine::{exit, serial},
    measure::{self, Context},
    memory::{space::AddressSpace, stacks},
};

static KERNEL_SPACE: Once<AddressSpace> = Once::new();
/// The first status other than 0.
static STATUS: AtomicU8 = AtomicU8::new(0);

/// Makes the kernel's own page tables the ones in use, and keeps them for idle CPUs.
pub fn init(kernel: AddressSpace) {
    KERNEL_SPACE.call_once(|| kernel);
    activate_kernel_space();
}

/// The kernel's own page tables.
pub fn kernel_space() -> &'static AddressSpace {
    KERNEL_SPACE.get().expect("task::init runs first")
}

/// A new stack for the kernel, for ever: the address just above it.
pub fn kernel_stack() -> VirtAddr {
    stacks::allocate(PhysAddr::new(kernel_space().id()))
        .expect("there is memory for a CPU's stacks")
}

/// Leaves whatever program's page tables are in use.
pub fn activate_kernel_space() {
    // SAFETY: the kernel's own space is never dropped.
    unsafe { kernel_space().activate() };
}

/// Loads the programs of the command line. Those that cannot be loaded are reported.
pub fn load_all(line: &CommandLine) {
    for program in line.programs() {
        let Program { measure, words } = match program {
            Ok(program) => program,
            Err(BadOption(option)) => {
                refuse(option, ExitStatus::Usage, "an option of a program cannot be read");
                continue;
            }
        };
        let words: Vec<&str> = words.collect();
        let pid = table::lock().number();
        match Process::load(pid, &words, kernel_space()) {
            Ok(mut process) => {
                let measured =
                    measure.map(|(list, config)| Context::around(&process, list, config));
                match measured.transpose() {
                    Ok(context) => process.context = context,
                    Err(refused) => {
                        refuse(words[0], refused.error.exit_status(), &refused.detail);
                        continue;
                    }
                }
                table::lock().add(Box::new(process), 0);
            }
            Err((status, why)) => refuse(words.first().copied().unwrap_or_default(), status, why),
        }
    }
}

/// Reports something that could not be started.
pub fn refuse(program: &str, status: ExitStatus, why: &str) {
    log::error!("{program}: {why}");
    serial::send(&Message::Refused { program, status: status.into(), why });
    note_status(status.into());
}

/// Whether any program is left to run.
pub fn any_live() -> bool {
    table::lock().any_live()
}

fn note_status(status: u8) {
    // Only the first counts, so a failed exchange is as it should be.
    let _ = STATUS.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
}

/// Gives the CPU, which has no program, the next one that waits; or lets it go on waiting.
pub fn schedule(cpu: &mut Cpu, frame: &mut Frame) {
    let next = table::lock().next(cpu.lapic.id());
    match next {
        Some(process) => resume(cpu, frame, process),
        None if frame.is_user() => {
            activate_kernel_space();
            *frame = cpu.idle_frame();
        }
        None => {}
    }
}

/// Ends the running program's turn, if another waits or somebody wants to look at it.
pub fn preempt(cpu: &mut Cpu, frame: &mut Frame) {
    let current = cpu.current.as_ref().expect("only a program is preempted").pid;
    if table::lock().is_due(current) {
        let process = take_off(cpu, frame);
        table::lock().give_back(process);
        schedule(cpu, frame);
    }
}

/// The running program asks for another one, which is running too: it lets others go first, and asks
/// again then. It is not kept for whoever wants to look at it: two that ask for each other would be kept
/// for ever.
pub fn give_way(cpu: &mut Cpu, frame: &mut Frame) {
    let process = take_off(cpu, frame);
    table::lock().queue(process);
    schedule(cpu, frame);
}

/// The running program waits for the end of `child`, which it made and which has not ended.
pub fn wait(cpu: &mut Cpu, frame: &mut Frame, child: u32) {
    let process = take_off(cpu, frame);
    table::lock().park(process, child);
    schedule(cpu, frame);
}

/// The running program goes on at a time of [`crate::machine::clock`]'s.
pub fn sleep(cpu: &mut Cpu, frame: &mut Frame, until_ns: u64) {
    let process = take_off(cpu, frame);
    table::lock().put_to_sleep(process, until_ns);
    schedule(cpu, frame);
}

fn take_off(cpu: &mut Cpu, frame: &Frame) -> Box<Process> {
    let mut process = cpu.current.take().expect("only a program is taken off its CPU");
    process.frame = *frame;
    process.save_fpu();
    cpu.measure.hold().leave(&mut process);
    cpu.measure.hold().drain();
    process
}

fn resume(cpu: &mut Cpu, frame: &mut Frame, mut process: Box<Process>) {
    *frame = process.frame;
    process.restore_fpu();
    FsBase::write(VirtAddr::new(process.fs_base));
    // SAFETY: a process is dropped only in `end`, after the kernel's own space is activated.
    unsafe { process.space.activate() };
    cpu.measure.hold().enter(&mut process);
    cpu.current = Some(process);
}

/// The running program ends with `status`.
pub fn exit(cpu: &mut Cpu, frame: &mut Frame, status: i32) {
    let Some(process) = cpu.current.take() else { return };
    serial::send(&Message::Exited { pid: process.pid, program: &process.name, status });
    log::info!("program {} ended with status {status}", process.name);
    end(cpu, frame, process, status as u8);
}

/// An exception in ring 3: the program's mistake, which ends it and nothing else.
pub fn fault(cpu: &mut Cpu, frame: &mut Frame) {
    let address = (frame.vector == 14).then(Cr2::read_raw);
    let name = vectors::exception_name(frame.vector);
    let fault = match frame.vector {
        14 => format!("{name}: {}", page_fault_cause(frame.error)),
        _ => name.into(),
    };
    let Some(process) = cpu.current.take() else {
        panic!("{fault} in ring 3 at {:#x}, but no program is running", frame.rip);
    };
    log::error!(
        "program {} crashed: {fault}, address {:#x}, instruction {:#x}",
        process.name,
        address.unwrap_or_default(),
        frame.rip
    );
    serial::send(&Message::Faulted {
        pid: process.pid,
        program: &process.name,
        fault: &fault,
        address,
        instruction: frame.rip,
    });
    end(cpu, frame, process, ExitStatus::ProgramFault.into());
}

/// What a page fault's error code says (Intel SDM volume 3, "Page-Fault Exceptions").
fn page_fault_cause(error: u64) -> &'static str {
    match (error & 1 != 0, error & 16 != 0, error & 2 != 0) {
        (false, true, _) => "execution of memory that is not mapped",
        (false, false, true) => "write to memory that is not mapped",
        (false, false, false) => "read of memory that is not mapped",
        (true, true, _) => "execution of memory that is not the program's to execute",
        (true, false, true) => "write to memory that is not the program's to write",
        (true, false, false) => "read of memory that is not the program's to read",
    }
}

fn end(cpu: &mut Cpu, frame: &mut Frame, mut process: Box<Process>, status: u8) {
    let context = cpu.measure.hold().end(&mut process);
    cpu.measure.hold().drain();
    if table::lock().is_child(process.pid, 0) {
        note_status(status);
    }
    activate_kernel_space();
    let remains = table::lock().end(process.pid, status, context);
    drop(process);
    remains.contexts.into_iter().for_each(|context| context.close(None));
    drop(remains.orphans);
    if remains.is_last {
        finish();
    }
    schedule(cpu, frame);
}

/// Nothing is left to run, or nothing could be: the last words, and the end of the machine.
pub fn finish() -> ! {
    measure::report_rings();
    let status = STATUS.load(Ordering::Relaxed);
    log::info!("all programs have ended, status {status}");
    serial::send(&Message::Done { status });
    exit::stop(status)
}
