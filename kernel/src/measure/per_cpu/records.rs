//! The records that the kernel adds to a CPU's trace.

use tally_abi::{
    registers::Frame,
    trace::{MapRecord, SignalRecord, SyscallRecord, ThreadNameRecord},
};
use tally_engine::{Began, Multiplexer};

use super::Measure;
use crate::{measure::trace_ring::ProcessorClock, memory::user::UserMemory};

impl Measure {
    /// Writes a record of a system call to the trace, with the present time.
    pub fn trace_syscall(&mut self, record: SyscallRecord) {
        self.fold_before_record();
        self.trace.syscall(record);
    }

    /// Writes a record of a mapped file to the trace, with the present time.
    pub fn trace_map(&mut self, record: MapRecord) {
        self.fold_before_record();
        self.trace.map(record);
    }

    /// Writes a record of a thread's name to the trace, with the present time.
    pub fn trace_name(&mut self, record: ThreadNameRecord) {
        self.fold_before_record();
        self.trace.name(record);
    }

    /// Writes a record of a signal to the trace, with the present time.
    pub fn trace_signal(&mut self, record: SignalRecord) {
        self.fold_before_record();
        self.trace.signal(record);
    }

    /// Sets the thread on this CPU for the trace's samples; the number 0 is the idle loop. If
    /// context switches `are_recorded`, writes a record of the switch.
    pub fn trace_switch(&mut self, program: u32, thread: u32, are_recorded: bool) {
        self.fold_before_record();
        self.trace.switch(program, thread, are_recorded);
    }

    /// Copies to the trace the stack of the sample that the overflow interrupt has just taken of
    /// the thread in `frame`. `memory` is the thread's.
    pub fn trace_stack(&mut self, frame: &Frame, memory: &mut UserMemory) {
        let Some(of) = self.trace.take_stack(frame) else { return };
        let folded = Began::now(&ProcessorClock);
        self.fold_before_record();
        let copied = Began::now(&ProcessorClock);
        self.trace.stack(of, frame, |address, words| memory.read_some(address, words));
        // A stack is long, and the ring must not be full before the scheduler's next tick.
        self.trace.drain();
        if let Some(context) = &mut self.slot.context {
            context.session.charge_stack([&folded, &copied], &ProcessorClock);
        }
    }

    /// Folds the rows of overflow interrupts if there is a trace, so that records are in the order
    /// of time.
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
