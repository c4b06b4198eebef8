//! The engine's sink in this kernel: trace records to the CPU's ring, and upcalls for thresholds.
//! It runs in the overflow path too.

use tally_abi::{
    boot::Tracing,
    registers::Frame,
    trace::{
        PhaseRecord, RegistersRecord, STACK_WORDS, SampleRecord, SignalRecord, SliceRecord,
        StackRecord, SwitchRecord, SyscallRecord, ThresholdRecord,
    },
};
use tally_engine::{Clock, Sink};

use super::{
    settings::settings,
    stream,
    trace_ring::{self, ProcessorClock, TraceRing, write},
};
use crate::arch::{frame::InterruptFrame, lapic::Lapic, vectors};

/// A CPU's sink: it writes records to the CPU's ring, if there is a trace.
pub(super) struct TraceSink {
    ring: Option<&'static TraceRing>,
    cpu: u16,
    /// Whether records are sent to the host while programs run, not at the end alone.
    streams: bool,
    /// Whether programs wait for the host where the ring is half full.
    halts: bool,
    lapic: Lapic,
    /// The program and the thread that the CPU runs; 0: the idle loop.
    running: (u32, u32),
    /// The sample whose stack is to be copied.
    stack: Option<SampledStack>,
}

/// A sample of a thread in ring 3 whose stack is to be copied.
#[derive(Clone, Copy, Debug)]
pub struct SampledStack {
    /// Its session.
    session: u32,
    /// Its time stamp.
    tsc: u64,
    /// The thread's next instruction.
    address: u64,
    /// How many bytes.
    bytes: u64,
}

impl Sink for TraceSink {
    #[inline(always)]
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        if let Some(ring) = self.ring {
            let record = record();
            write(ring, SliceRecord::KIND, || record.end_tsc, &record.head(), record.tail());
        }
    }

    fn threshold(&mut self, record: ThresholdRecord) {
        if let Some(ring) = self.ring {
            write(ring, ThresholdRecord::KIND, || record.tsc, &record.head(), record.tail());
        }
        self.upcall();
    }

    fn phase(&mut self, record: impl FnOnce() -> PhaseRecord, changed: bool) {
        if let Some(ring) = self.ring {
            let record = record();
            write(ring, PhaseRecord::KIND, || record.tsc, &record.head(), record.tail());
        }
        if changed {
            self.upcall();
        }
    }

    fn sample(&mut self, record: SampleRecord) {
        if let Some(ring) = self.ring {
            let (_, thread) = self.running;
            let record = SampleRecord { thread, ..record };
            write(ring, SampleRecord::KIND, || record.tsc, &record.head(), record.tail());
        }
    }
}

/// The sink in the overflow interrupt, which knows what was interrupted.
pub(super) struct AtInterrupt<'a> {
    pub(super) trace: &'a mut TraceSink,
    pub(super) interrupted: &'a InterruptFrame,
    /// Bytes of the stack that are copied for a sample.
    pub(super) stack_bytes: &'a u64,
}

impl Sink for AtInterrupt<'_> {
    #[inline(always)]
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        self.trace.record(record);
        self.wait_soon();
    }

    fn fold_soon(&mut self) {
        self.trace.lapic.interrupt_self(vectors::FOLD);
    }

    fn threshold(&mut self, record: ThresholdRecord) {
        self.trace.threshold(record);
        self.wait_soon();
    }

    fn interrupted(&self) -> Option<(u64, bool)> {
        Some((self.interrupted.rip, self.interrupted.is_user()))
    }

    fn sample(&mut self, record: SampleRecord) {
        let SampleRecord { session, tsc, address, user, .. } = record;
        self.trace.sample(record);
        self.wait_soon();
        if user && *self.stack_bytes > 0 && self.trace.is_on() {
            self.trace.stack =
                Some(SampledStack { session, tsc, address, bytes: *self.stack_bytes });
            self.trace.lapic.interrupt_self(vectors::STACK);
        }
    }
}

impl AtInterrupt<'_> {
    /// Has the CPU wait for the host after this interrupt, if it has to.
    #[inline]
    fn wait_soon(&mut self) {
        if self.trace.has_to_wait() {
            self.fold_soon();
        }
    }
}

impl TraceSink {
    /// The number of its CPU.
    pub(super) fn cpu(&self) -> u16 {
        self.cpu
    }

    /// The sink of CPU number `cpu`, once. Makes the CPU's ring, if a trace is wanted.
    pub(super) fn new(cpu: u16, lapic: Lapic, wanted: Option<Tracing>) -> TraceSink {
        let ring = wanted.and_then(|tracing| {
            let ring = trace_ring::make(cpu, tracing, settings().trace_pages);
            if ring.is_none() {
                log::error!("CPU {cpu}: trace ring allocation failed; no trace");
            }
            ring
        });
        if let Some(ring) = ring {
            stream::add(cpu, ring);
        }
        TraceSink {
            ring,
            cpu,
            streams: matches!(wanted, Some(Tracing::Stream | Tracing::Halt)),
            halts: wanted == Some(Tracing::Halt),
            lapic,
            running: (0, 0),
            stack: None,
        }
    }

    /// Returns whether there is a trace.
    pub(super) fn is_on(&self) -> bool {
        self.ring.is_some()
    }

    /// Writes a record of what the kernel did for a program, with the time of now.
    fn write_now<const HEAD: usize>(&self, kind: u8, head: &[u64; HEAD]) {
        if let Some(ring) = self.ring {
            write(ring, kind, || ProcessorClock.tsc(), head, &[]);
        }
    }

    /// Writes a record of a system call; its time stamp is that of the writing.
    pub(super) fn syscall(&self, record: SyscallRecord) {
        self.write_now(SyscallRecord::KIND, &record.head());
    }

    /// Writes a record of a signal; its time stamp is that of the writing.
    pub(super) fn signal(&self, record: SignalRecord) {
        self.write_now(SignalRecord::KIND, &record.head());
    }

    /// Keeps which thread is on the CPU from now on. If context switches `are_recorded`, writes a
    /// record, unless the same thread goes on.
    pub(super) fn switch(&mut self, program: u32, thread: u32, are_recorded: bool) {
        let (from_program, from_thread) = core::mem::replace(&mut self.running, (program, thread));
        if are_recorded && (from_program, from_thread) != (program, thread) {
            let cpu = self.cpu;
            let record = SwitchRecord { tsc: 0, cpu, from_program, from_thread, program, thread };
            self.write_now(SwitchRecord::KIND, &record.head());
        }
    }

    /// Takes the sample whose stack is to be copied, if its thread, which is in `frame`, has
    /// executed nothing since.
    pub(super) fn take_stack(&mut self, frame: &Frame) -> Option<SampledStack> {
        self.stack.take().filter(|of| of.address == frame.rip)
    }

    /// Writes the records of a sample's stack; `read` returns words of it, as many as there are,
    /// and at most as many as a record takes.
    pub(super) fn stack(
        &self,
        of: SampledStack,
        frame: &Frame,
        mut read: impl FnMut(u64, &mut [u64; STACK_WORDS]) -> usize,
    ) {
        const WORD: u64 = size_of::<u64>() as u64;
        let (session, cpu) = (of.session, self.cpu);
        let record = RegistersRecord::of_frame(session, cpu, of.tsc, frame);
        self.write_now(RegistersRecord::KIND, &record.head());
        let mut record = StackRecord {
            tsc: 0,
            session,
            cpu,
            sample_tsc: of.tsc,
            address: frame.rsp,
            valid: 0,
            words: [0; STACK_WORDS],
        };
        let mut left = (of.bytes / WORD) as usize;
        while left > 0 {
            let room = left.min(STACK_WORDS);
            let read = read(record.address, &mut record.words).min(room);
            record.valid = read as u8;
            if let Some(ring) = self.ring.filter(|_| read > 0) {
                let clock = || ProcessorClock.tsc();
                write(ring, StackRecord::KIND, clock, &record.head(), record.tail());
            }
            if read < room {
                return;
            }
            left -= room;
            record.address += read as u64 * WORD;
        }
    }

    /// Sends the ring's records to the host, if they are sent while programs run.
    pub(super) fn drain(&self) {
        if self.ring.is_some() && self.streams {
            stream::drain(self.cpu);
        }
    }

    /// Returns whether the CPU has to wait for the host: its ring is half full.
    fn has_to_wait(&self) -> bool {
        self.halts && self.ring.is_some_and(TraceRing::is_half_full)
    }

    /// Sends the records of a ring that is half full to the host, if they are sent while programs
    /// run: between two ticks of the timer, slow instructions and short slices fill a ring. Where
    /// programs wait for the host, waits until it has all of them. Not in the overflow interrupt.
    pub(super) fn make_room(&self) {
        if !self.ring.is_some_and(TraceRing::is_half_full) {
            return;
        }
        if self.halts {
            stream::drain_whole(self.cpu);
        } else {
            self.drain();
        }
    }

    /// Raises the upcall interrupt on this CPU: a threshold of the running program has fired.
    pub(super) fn upcall(&self) {
        self.lapic.interrupt_self(vectors::UPCALL);
    }
}
