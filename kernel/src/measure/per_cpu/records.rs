//! The records that the kernel adds to a CPU's trace.

use tally_abi::trace::{SignalRecord, SyscallRecord};
use tally_engine::Multiplexer;

use super::Measure;

impl Measure {
    /// Writes a record of a system call to the trace, with the time of now.
    pub fn trace_syscall(&mut self, record: SyscallRecord) {
        self.fold_before_record();
        self.trace.syscall(record);
    }

    /// Writes a record of a signal to the trace, with the time of now.
    pub fn trace_signal(&mut self, record: SignalRecord) {
        self.fold_before_record();
        self.trace.signal(record);
    }

    /// Writes a record of a context switch to the trace: this thread is on the CPU from now on, or,
    /// by the number 0, the idle loop.
    pub fn trace_switch(&mut self, program: u32, thread: u32) {
        self.fold_before_record();
        self.trace.switch(program, thread);
    }

    /// If there is a trace, folds what overflow interrupts have stored, so that records are in the
    /// order of time.
    fn fold_before_record(&mut self) {
        if self.trace.is_on() {
            self.fold();
        }
    }

    /// Sends this CPU's trace records to the host.
    pub fn drain(&mut self) {
        let strays = self.multiplexer.as_ref().map_or(0, Multiplexer::stray_overflows);
        assert!(strays == 0, "stray PMI: counters enabled without an owner");
        self.trace.drain();
    }
}
