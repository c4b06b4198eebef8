//! The multiplexer: gives each group its slice, in the overflow interrupt.
//!
//! One per CPU; it owns that CPU's PMU driver. All its methods run on that CPU with the overflow
//! interrupt held off, or in it.
//!
//! Counters are never rewritten but for the slice timer: what a slice counted is the difference
//! between two readings. The timer is set to minus the slice's length, so that its own overrun, the
//! cycles between overflow and interrupt, is in the difference too and no cycle is lost.

use tally_abi::trace::End;

use crate::{Clock, Counts, Pmu, Session, Sink};

/// One CPU's side of the engine.
#[derive(Debug)]
pub struct Multiplexer<P: Pmu> {
    pmu: P,
    cpu: u16,
    /// What the counters showed when they were last credited.
    base: Counts,
}

impl<P: Pmu> Multiplexer<P> {
    /// Takes the PMU of CPU number `cpu`, on which nothing counts yet.
    pub fn new(pmu: P, cpu: u16) -> Self {
        Multiplexer { pmu, cpu, base: Counts::default() }
    }

    /// The driver, for what it tells of itself.
    pub fn pmu(&self) -> &P {
        &self.pmu
    }

    /// Counts for `session` on this CPU from here on: it was started, or its address space enters.
    /// No other session may be running on this CPU, nor this one on another.
    pub fn resume(&mut self, session: &mut Session, clock: &impl Clock) {
        debug_assert!(!session.is_running());
        let left = session.enter(clock.tsc());
        let group = session.group();
        self.base = self.pmu.read(group.used);
        self.arm(session, left);
        self.pmu.start(&group, &session.setup(), left);
    }

    /// Ends counting for `session` on this CPU: it was stopped, or its address space leaves.
    pub fn suspend(
        &mut self,
        session: &mut Session,
        end: End,
        clock: &impl Clock,
        sink: &mut impl Sink,
    ) {
        debug_assert!(session.is_running());
        self.pmu.stop();
        let tsc = clock.tsc();
        self.credit(session, tsc);
        self.record(session, end, tsc, sink);
        // An overflow that was pending is forgotten by the PMU; its slice is over all the same.
        if end == End::Stopped || session.left() == 0 {
            session.finish();
        }
        session.leave();
    }

    /// Credits what the running slice has counted so far, so that [`Session::reading`] is up to
    /// date while the session runs.
    pub fn sync(&mut self, session: &mut Session, clock: &impl Clock) {
        if session.is_running() {
            self.credit(session, clock.tsc());
        }
    }

    /// The overflow interrupt. `session` is the one that is current on this CPU, if any;
    /// `other_msr_accesses` are those that the kernel adds to each such interrupt, to unmask it and
    /// to end it.
    ///
    /// The work is bounded: at most [`crate::MAX_GENERAL`] counters are read, credited and given
    /// another event; the next group is drawn in constant time; one record is written. Per switch
    /// the driver makes at most 8 selector writes (16 where the processor wants a counter disabled
    /// before its event changes), the timer's reload, the acknowledgement and, where counting has to
    /// be stopped for it, two more. It neither allocates nor locks, has no floating point, and
    /// indexes nothing that could be out of range.
    pub fn overflow(
        &mut self,
        session: Option<&mut Session>,
        clock: &impl Clock,
        sink: &mut impl Sink,
        other_msr_accesses: u64,
    ) {
        let start_tsc = clock.tsc();
        let before = self.pmu.accesses();
        let overflowed = self.pmu.take_overflow();
        let Some(session) = session.filter(|session| session.is_running()) else {
            // Nobody owns what counts here, so nothing may count.
            if overflowed {
                self.pmu.stop();
            }
            return;
        };
        if overflowed {
            self.switch(session, start_tsc, clock, sink);
        }
        let after = self.pmu.accesses();
        let stats = session.stats_mut();
        stats.pmis += u64::from(overflowed);
        stats.spurious_pmis += u64::from(!overflowed);
        stats.msr_accesses += after.msr - before.msr + other_msr_accesses;
        stats.rdpmcs += after.rdpmc - before.rdpmc;
        stats.engine_ticks += clock.tsc().saturating_sub(start_tsc);
    }

    fn switch(
        &mut self,
        session: &mut Session,
        start_tsc: u64,
        clock: &impl Clock,
        sink: &mut impl Sink,
    ) {
        let ended = session.group();
        let next = session.next_group();
        // Counters of the next group are read with those of this one: that is where it begins.
        let raw = self.pmu.read(ended.used | next.used);
        session.credit(&raw.since(&self.base, self.pmu.widths()), start_tsc);
        self.base = raw;
        self.record(session, End::Overflow, start_tsc, sink);
        session.finish();
        let slice = session.enter(clock.tsc());
        self.arm(session, slice);
        self.pmu.switch(&next, slice);
    }

    fn credit(&mut self, session: &mut Session, tsc: u64) {
        let raw = self.pmu.read(session.group().used);
        session.credit(&raw.since(&self.base, self.pmu.widths()), tsc);
        self.base = raw;
    }

    /// Notes what the slice timer is about to be set to.
    fn arm(&mut self, session: &Session, slice: u64) {
        *self.base.timer_mut(session.setup().unit) =
            slice.wrapping_neg() & self.pmu.widths().always;
    }

    fn record(&self, session: &mut Session, end: End, tsc: u64, sink: &mut impl Sink) {
        if let Some(record) = session.record(self.cpu, end, tsc) {
            sink.record(&record);
        }
    }
}
