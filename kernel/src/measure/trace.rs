//! The engine's sink in this kernel: writes trace records to the CPU's ring, and raises upcalls for
//! thresholds. Also runs in the overflow path.

use tally_abi::{
    boot::Tracing,
    branches::{BRANCH_WORDS, Branch},
    registers::Frame,
    trace::{
        AccessRecord, BRANCH_RECORD_WORDS, BranchesRecord, MapRecord, PhaseRecord, RegistersRecord,
        STACK_WORDS, SampleRecord, SignalRecord, SliceRecord, StackRecord, SwitchRecord,
        SyscallRecord, ThreadNameRecord, ThresholdRecord,
    },
};
use tally_engine::{Clock, Sink};

use super::{
    settings::settings,
    stream,
    trace_ring::{self, ProcessorClock, TraceRing, write},
};
use crate::arch::{frame::InterruptFrame, lapic::Lapic, vectors};

/// A CPU's sink: writes records to the CPU's ring, if there is a trace.
pub(super) struct TraceSink {
    ring: Option<&'static TraceRing>,
    cpu: u16,
    /// Whether records are sent to the host while programs run, not only at the end.
    streams: bool,
    /// Whether programs wait for the host when the ring is half full.
    halts: bool,
    lapic: Lapic,
    /// The program and the thread on the CPU; 0 for the idle loop.
    running: (u32, u32),
    /// The sample whose stack must be copied.
    stack: Option<SampledStack>,
}

/// A sample of a thread in ring 3 whose stack must be copied.
#[derive(Clone, Copy, Debug)]
pub struct SampledStack {
    /// Number of its session.
    session: u32,
    /// Time stamp of the sample.
    tsc: u64,
    /// The thread's next instruction.
    address: u64,
    /// Bytes to copy.
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

    fn branches(&mut self, session: u32, sample_tsc: u64, branches: &[Branch]) {
        let Some(ring) = self.ring else { return };
        let words = [0; BRANCH_RECORD_WORDS];
        let (tsc, cpu, valid) = (sample_tsc, self.cpu, 0);
        let mut record = BranchesRecord { tsc, session, cpu, first: 0, sample_tsc, valid, words };
        for part in branches.chunks(BRANCH_RECORD_WORDS / BRANCH_WORDS) {
            for (words, branch) in record.words.chunks_exact_mut(BRANCH_WORDS).zip(part) {
                words.copy_from_slice(&branch.to_words());
            }
            record.valid = (part.len() * BRANCH_WORDS) as u8;
            write(ring, BranchesRecord::KIND, || sample_tsc, &record.head(), record.tail());
            record.first += part.len() as u8;
        }
    }

    fn sample(&mut self, record: SampleRecord) {
        if let Some(ring) = self.ring {
            let (_, thread) = self.running;
            let record = SampleRecord { thread, ..record };
            write(ring, SampleRecord::KIND, || record.tsc, &record.head(), record.tail());
        }
    }

    fn access(&mut self, record: AccessRecord) {
        if let Some(ring) = self.ring {
            write(ring, AccessRecord::KIND, || record.tsc, &record.head(), &[]);
        }
    }
}

/// The sink in the overflow interrupt, with the interrupted address.
pub(super) struct AtInterrupt<'a> {
    pub(super) trace: &'a mut TraceSink,
    pub(super) interrupted: &'a InterruptFrame,
    /// Bytes of the stack to copy with each sample.
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

    fn branches(&mut self, session: u32, sample_tsc: u64, branches: &[Branch]) {
        self.trace.branches(session, sample_tsc, branches);
        self.wait_soon();
    }

    fn sample(&mut self, record: SampleRecord) {
        let SampleRecord { session, tsc, .. } = record;
        self.trace.sample(record);
        self.wait_soon();
        if self.interrupted.is_user() && *self.stack_bytes > 0 && self.trace.is_on() {
            // The stack is the interrupt's, also of a precise sample.
            let address = self.interrupted.rip;
            self.trace.stack =
                Some(SampledStack { session, tsc, address, bytes: *self.stack_bytes });
            self.trace.lapic.interrupt_self(vectors::STACK);
        }
    }

    fn access(&mut self, record: AccessRecord) {
        self.trace.access(record);
        self.wait_soon();
    }
}

impl AtInterrupt<'_> {
    /// Makes the CPU wait for the host after this interrupt, if necessary.
    #[inline]
    fn wait_soon(&mut self) {
        if self.trace.has_to_wait() {
            self.fold_soon();
        }
    }
}

impl TraceSink {
    /// Number of the sink's CPU.
    pub(super) fn cpu(&self) -> u16 {
        self.cpu
    }

    /// Makes the sink of CPU number `cpu`, once, and the CPU's ring if a trace is `wanted`.
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

    /// Writes a record of the kernel's work for a program, with the present time.
    fn write_now<const HEAD: usize>(&self, kind: u8, head: &[u64; HEAD]) {
        if let Some(ring) = self.ring {
            write(ring, kind, || ProcessorClock.tsc(), head, &[]);
        }
    }

    /// Writes a record of a system call, stamped with the present time.
    pub(super) fn syscall(&self, record: SyscallRecord) {
        self.write_now(SyscallRecord::KIND, &record.head());
    }

    /// Writes a record of a mapped file, stamped with the present time.
    pub(super) fn map(&self, record: MapRecord) {
        let record = MapRecord { cpu: self.cpu, ..record };
        self.write_now(MapRecord::KIND, &record.head());
    }

    /// Writes a record of a thread's name, stamped with the present time.
    pub(super) fn name(&self, record: ThreadNameRecord) {
        let record = ThreadNameRecord { cpu: self.cpu, ..record };
        self.write_now(ThreadNameRecord::KIND, &record.head());
    }

    /// Writes a record of a signal, stamped with the present time.
    pub(super) fn signal(&self, record: SignalRecord) {
        self.write_now(SignalRecord::KIND, &record.head());
    }

    /// Records which thread is on the CPU from now on. If context switches `are_recorded`, writes a
    /// record, unless the same thread continues.
    pub(super) fn switch(&mut self, program: u32, thread: u32, are_recorded: bool) {
        let (from_program, from_thread) = core::mem::replace(&mut self.running, (program, thread));
        if are_recorded && (from_program, from_thread) != (program, thread) {
            let cpu = self.cpu;
            let record = SwitchRecord { tsc: 0, cpu, from_program, from_thread, program, thread };
            self.write_now(SwitchRecord::KIND, &record.head());
        }
    }

    /// Takes the sample whose stack must be copied, if its thread, in `frame`, has executed nothing
    /// since.
    pub(super) fn take_stack(&mut self, frame: &Frame) -> Option<SampledStack> {
        self.stack.take().filter(|of| of.address == frame.rip)
    }

    /// Writes the records of a sample's stack; `read` reads the stack's words into a record's room
    /// and returns those that exist.
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

    /// Returns whether the CPU must wait for the host: its ring is half full.
    fn has_to_wait(&self) -> bool {
        self.halts && self.ring.is_some_and(TraceRing::is_half_full)
    }

    /// Sends the records of a half-full ring to the host, if they are sent while programs run: slow
    /// instructions and short slices can fill a ring between two ticks of the timer. If programs
    /// wait for the host, waits until it has all records. Not in the overflow interrupt.
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
