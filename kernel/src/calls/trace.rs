//! System calls in the trace (`trace-events=syscalls`) and in the log (`log=trace`).

use log::Level;
use tally_abi::{syscall, trace::SyscallRecord};

use crate::{arch::frame::Frame, cpu::Cpu, machine::clock, measure};

/// The record of a call in progress.
pub(super) struct Traced(SyscallRecord);

impl Traced {
    /// Starts the record of the call in `frame`; `None` if neither trace nor log records calls.
    pub(super) fn begin(cpu: &mut Cpu, frame: &Frame) -> Option<Traced> {
        if !measure::trace_events().syscalls && !log::log_enabled!(Level::Trace) {
            return None;
        }
        let start_tsc = clock::tsc();
        let index = cpu.index;
        let process = cpu.process();
        Some(Traced(SyscallRecord {
            tsc: 0,
            cpu: index,
            returned: false,
            program: process.pid,
            thread: process.threads.running().tid,
            call: frame.rax,
            rdi: frame.rdi,
            rsi: frame.rsi,
            rdx: frame.rdx,
            r10: frame.r10,
            r8: frame.r8,
            r9: frame.r9,
            result: 0,
            start_tsc,
        }))
    }

    /// Records the handled call, which was entered with the return address `rip`.
    pub(super) fn end(self, cpu: &mut Cpu, frame: &Frame, rip: u64) {
        // A program ends in steps, and its last call does not return.
        let running = cpu.current.as_deref_mut().filter(|process| process.ending.is_none());
        let running = running.map(|process| (process.pid, process.threads.running().tid));
        let Traced(record) = self;
        // A call that will be repeated returns to an earlier instruction.
        let returned = running == Some((record.program, record.thread)) && frame.rip == rip;
        let result = if returned { frame.rax } else { 0 };
        let record = SyscallRecord { returned, result, ..record };
        if measure::trace_events().syscalls {
            cpu.measure.lock().trace_syscall(record);
        }
        let SyscallRecord { program, thread, call, rdi, rsi, rdx, .. } = record;
        let name = syscall::name(call).unwrap_or("unknown call");
        log::trace!(
            "program {program}, thread {thread}: {name} ({call:#x}) {rdi:#x} {rsi:#x} {rdx:#x}: {:#x}{}",
            result as i64,
            if returned { "" } else { " (not returned)" }
        );
    }
}
