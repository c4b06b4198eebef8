//! Programs: loading them, sharing the CPUs among them, ending them.
//!
//! Programs that wait stand in one queue, first come, first served; the timer ends a program's
//! turn if another waits. A CPU that takes a program owns it until it gives it back. The threads of a
//! program take turns in its turns: one that waits gives way to the next, and so does one that the timer
//! interrupts. A program may start others and wait for their end. When the last program has ended, the
//! machine stops.

pub mod divert;
mod fault;
mod fpu;
mod loader;
pub mod process;
pub mod signal;
pub mod table;
pub mod thread;

use alloc::{boxed::Box, vec::Vec};
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use spin::Once;
use tally_abi::{
    ExitStatus,
    boot::{BadOption, CommandLine, Program},
    wire::{MAX_OUTPUT_BYTES, Message},
};
use x86_64::{PhysAddr, VirtAddr};

use self::{fault::Fault, thread::Wait};
pub use self::{
    loader::{MAX_ARGUMENT_BYTES, STACK_BYTES},
    process::Process,
};

use crate::{
    cpu::{Cpu, entry::Frame},
    machine::{exit, serial},
    measure::{self, Context},
    memory::{region, space::AddressSpace, stacks},
};

/// What a program has done whose threads all wait, so that nobody is left to end that: others cannot.
const DEADLOCK: &str = "deadlock: every thread waits for another";

static KERNEL_SPACE: Once<AddressSpace> = Once::new();
/// The first status other than 0.
static STATUS: AtomicU8 = AtomicU8::new(0);
/// CPUs that tell the last values of a program that has ended.
static TELLING: AtomicU32 = AtomicU32::new(0);

/// Makes the kernel's own page tables the ones in use, and keeps them for idle CPUs.
pub fn init(kernel: AddressSpace) {
    region::init(PhysAddr::new(kernel.id()));
    KERNEL_SPACE.call_once(|| kernel);
    activate_kernel_space();
}

/// The kernel's own page tables.
pub fn kernel_space() -> &'static AddressSpace {
    KERNEL_SPACE.get().expect("task::init runs first")
}

/// A new stack for the kernel, for ever: the address just above it.
pub fn kernel_stack() -> VirtAddr {
    stacks::allocate().expect("there is memory for a CPU's stacks")
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
        let pid = table::lock().number().expect("a command line has few programs");
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

/// Reports something that could not be started, by as much of its name and of the reason as a message holds.
pub fn refuse(program: &str, status: ExitStatus, why: &str) {
    let program = &program[..program.floor_char_boundary(MAX_OUTPUT_BYTES / 2)];
    let why = &why[..why.floor_char_boundary(MAX_OUTPUT_BYTES)];
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
    let next = table::lock().next(cpu);
    match next {
        Some(process) => resume(cpu, frame, process),
        None if frame.is_user() => {
            activate_kernel_space();
            *frame = cpu.idle_frame();
        }
        None => {}
    }
}

/// Ends the running thread's turn, if another waits, and its program's, if another waits or somebody wants
/// to look at it.
pub fn preempt(cpu: &mut Cpu, frame: &mut Frame) {
    let process = cpu.current.as_deref_mut().expect("only a program is preempted");
    process.expire();
    let mut table = table::lock();
    table.tell_ends(process);
    let is_due = table.is_due(process.pid);
    drop(table);
    let waits = process.threads.next_affinity();
    if is_due || waits.is_some() {
        process.threads.queue(frame);
    }
    if is_due {
        let process = take_off(cpu);
        table::lock().give_back(process);
        schedule(cpu, frame);
    } else if waits.is_some() {
        go_on(cpu, frame);
    }
}

/// The running program asks for another one, which is running too: it lets others go first, and asks
/// again then. It is not kept for whoever wants to look at it: two that ask for each other would be kept
/// for ever.
pub fn give_way(cpu: &mut Cpu, frame: &mut Frame) {
    let process = cpu.current.as_deref_mut().expect("a system call comes from a program");
    process.threads.queue(frame);
    let process = take_off(cpu);
    table::lock().queue(process);
    schedule(cpu, frame);
}

/// The running thread waits; what its call returns then is `frame`'s to be. Where no thread is left that
/// could go on, ever, the program ends.
pub fn wait(cpu: &mut Cpu, frame: &mut Frame, on: Wait) {
    let process = cpu.current.as_deref_mut().expect("a system call comes from a program");
    if !on.ends_by_itself() && process.is_stuck() {
        return crash(cpu, frame, Fault::of_kind(DEADLOCK, None));
    }
    process.threads.wait(frame, on);
    process.expire();
    go_on(cpu, frame);
}

/// The running thread ends with `status`, and the program with its last.
pub fn end_thread(cpu: &mut Cpu, frame: &mut Frame, status: i32) {
    let process = cpu.current.as_deref_mut().expect("a system call comes from a program");
    let tid = process.threads.running().tid;
    if tid == process.pid {
        process.status = status;
    }
    if process.threads.len() == 1 {
        let status = process.status;
        return exit(cpu, frame, status);
    }
    let word = process.threads.end().clear_tid;
    // Where that is no memory of the program's, nobody can wait there.
    if word != 0 && process.space.write(word, &[0; 4]).is_ok() {
        process.threads.wake(word, u32::MAX, 1);
    }
    if process.is_stuck() {
        return crash(cpu, frame, Fault::of_kind(DEADLOCK, None));
    }
    process.expire();
    go_on(cpu, frame);
}

/// Runs the next thread of the program that is on this CPU, or another program.
pub fn go_on(cpu: &mut Cpu, frame: &mut Frame) {
    let here = cpu.bit();
    let process = cpu.current.as_deref_mut().expect("a program is on this CPU");
    match process.threads.next_affinity() {
        Some(affinity) if affinity & here != 0 => {
            process.threads.run_next(frame);
            // What fired in a handler of the thread before waits for one that has none. It comes to that as an
            // interrupt, after the thread's own signals: a call that is made again is not the handler's.
            cpu.measure.hold().remind();
        }
        next => {
            let process = take_off(cpu);
            let mut table = table::lock();
            match next {
                Some(_) => table.give_back(process),
                None => table.park(process),
            }
            drop(table);
            schedule(cpu, frame);
        }
    }
}

/// Takes the program off its CPU, none of whose threads runs any more.
fn take_off(cpu: &mut Cpu) -> Box<Process> {
    let mut process = cpu.current.take().expect("only a program is taken off its CPU");
    process.end_turn();
    cpu.measure.hold().leave(&mut process);
    cpu.measure.hold().drain();
    process
}

fn resume(cpu: &mut Cpu, frame: &mut Frame, mut process: Box<Process>) {
    // SAFETY: a process is dropped only in `end`, after the kernel's own space is activated.
    unsafe { process.space.activate() };
    process.begin_turn();
    process.threads.run_next(frame);
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

/// An exception in ring 3: the program's mistake, which it handles or which ends it and nothing else.
pub fn fault(cpu: &mut Cpu, frame: &mut Frame) {
    raise(cpu, frame, Fault::of_exception(frame));
}

/// The running thread did something wrong: its program handles that, or ends.
pub fn raise(cpu: &mut Cpu, frame: &mut Frame, fault: Fault) {
    let caught =
        cpu.current.as_deref_mut().and_then(|process| signal::catch(process, frame, &fault));
    match caught {
        Some(Ok(())) => {}
        Some(Err(stack)) => crash(cpu, frame, stack),
        None => crash(cpu, frame, fault),
    }
}

/// The running program ends because of what a thread of it did.
pub fn crash(cpu: &mut Cpu, frame: &mut Frame, fault: Fault) {
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
    let context = cpu.measure.hold().end(&mut process);
    cpu.measure.hold().drain();
    if table::lock().is_child(process.pid, 0) {
        note_status(status);
    }
    activate_kernel_space();
    TELLING.fetch_add(1, Ordering::SeqCst);
    let remains = table::lock().end(process.pid, status, context);
    drop(process);
    remains.contexts.into_iter().for_each(|context| context.close(None));
    drop(remains.orphans);
    TELLING.fetch_sub(1, Ordering::SeqCst);
    if remains.is_last {
        // The others' programs had ended before, but not all of it may have been told.
        while TELLING.load(Ordering::SeqCst) != 0 {
            core::hint::spin_loop();
        }
        finish();
    }
    schedule(cpu, frame);
}

/// Nothing is left to run, or nothing could be: the last words, and the end of the machine.
pub fn finish() -> ! {
    measure::finish();
    let status = STATUS.load(Ordering::Relaxed);
    log::info!("all programs have ended, status {status}");
    serial::send(&Message::Done { status });
    exit::stop(status)
}
