//! The multiplexer: gives each event group its time slice, in the overflow interrupt.
//!
//! A multiplexer belongs to one CPU and owns that CPU's PMU driver. All its methods run on that CPU
//! with the overflow interrupt masked, or in its handler.
//!
//! While a session counts, only the slice timer and counters that are preloaded for thresholds are
//! written. The count of a slice is the difference between two readings, or between the value
//! written and a reading. The timer is set to minus the slice's length, so that the difference
//! includes the cycles between the overflow and the interrupt and no cycle is lost.

mod branches;
mod log;
mod recovery;

use core::mem::take;

use tally_abi::trace::End;

use crate::{
    Clock, Counts, Direct, KernelEntries, Pinned, Pmu, Session, Sink,
    bank::PreloadPlan,
    rows::Rows,
    session::{SliceStart, Timestamp},
};

/// The engine's part on one CPU. The fields that the overflow path needs come first, in as few
/// cache lines as possible.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Multiplexer<P: Pmu> {
    /// TSC ticks of the overflow interrupts that stored rows and are not charged to the session
    /// yet.
    engine_ticks: u64,
    /// Slices that overflow interrupts ended and that are not folded yet into the running session.
    rows: Rows,
    /// Whether the counters as programmed last count ring 0.
    counts_kernel: bool,
    /// Whether the running program is in direct mode.
    direct: bool,
    cpu: u16,
    /// The session whose counts are in the counters; sessions are numbered from 1.
    last_session: u32,
    pmu: P,
    /// MSR accesses of the kernel in each overflow interrupt, to unmask it and to signal its end.
    other_msr_accesses: u64,
    /// The driver's count of MSR accesses, and the session's count of interrupts, at the last
    /// charge.
    charged: Charged,
    /// Overflow interrupts with counters enabled that no session owns.
    stray_overflows: u64,
    entries: KernelEntries,
    /// The counters' values at the last fold or credit.
    base: Counts,
    /// Counts since then, or between two rows.
    counted: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Charged {
    msr_accesses: u64,
    interrupts: u64,
}

impl<P: Pmu> Multiplexer<P> {
    /// Takes the PMU of CPU number `cpu`, with no counter enabled. `other_msr_accesses` are those
    /// of the kernel in each overflow interrupt, to unmask it and to signal its end.
    pub fn new(pmu: P, cpu: u16, other_msr_accesses: u64) -> Self {
        Multiplexer {
            pmu,
            cpu,
            other_msr_accesses,
            charged: Charged::default(),
            last_session: 0,
            direct: false,
            counts_kernel: false,
            stray_overflows: 0,
            entries: KernelEntries::default(),
            rows: Rows::default(),
            engine_ticks: 0,
            base: Counts::default(),
            counted: Counts::default(),
        }
    }

    /// The count of kernel entries on this CPU, which the kernel keeps. The engine measures the
    /// cost of a group switch in slices without such an entry; if the kernel counts none, it takes
    /// the lowest cost.
    pub fn entries(&self) -> KernelEntries {
        self.entries.clone()
    }

    /// The driver, for its statistics.
    pub fn pmu(&self) -> &P {
        &self.pmu
    }

    /// The driver, for checks of its registers.
    pub fn pmu_mut(&mut self) -> &mut P {
        &mut self.pmu
    }

    /// Starts counting for `session` on this CPU: the session was started, or its program was
    /// switched in. No other session may be running on this CPU, nor this session on another CPU.
    pub fn resume(&mut self, session: &mut Session, clock: &impl Clock, sink: &mut impl Sink) {
        debug_assert!(!session.is_running() && self.rows.is_empty());
        session.switch_in(clock.tsc());
        if session.is_exposed() && self.last_session != session.id() {
            self.pmu.scrub();
        }
        // A session without a bank may get one later, after others have counted.
        self.last_session = if session.is_exposed() { session.id() } else { 0 };
        if !session.knows_switch_cycles() {
            self.rows.search();
        }
        self.clear_branches(session);
        self.base = self.pmu.read(session.set());
        self.program(session);
        self.charged = self.so_far(session);
        self.enable(session, clock.tsc(), sink);
    }

    /// Stops counting for `session` on this CPU: the session was stopped, or its program is
    /// switched out.
    pub fn suspend(
        &mut self,
        session: &mut Session,
        end: End,
        clock: &impl Clock,
        sink: &mut impl Sink,
    ) {
        debug_assert!(session.is_running());
        self.pmu.stop();
        self.fold(session, clock, sink);
        self.charge(session);
        let tsc = clock.tsc();
        let end = if self.credit(session, tsc) { End::Stopped } else { end };
        self.end(session, end, tsc, sink);
        self.entries.set_deadline(None);
        session.end_interval(Timestamp { cpu: self.cpu, tsc }, sink);
    }

    /// Ends the current slice, which is credited, and switches the session out.
    fn end(&mut self, session: &mut Session, end: End, tsc: u64, sink: &mut impl Sink) {
        let slice = session.slice_start();
        session.switch_out(self.cpu, end, tsc, sink);
        self.publish(session, slice, false, tsc, sink);
    }

    /// Programs the PMU for the remainder of the current slice, which is credited. No counter is
    /// enabled.
    fn program(&mut self, session: &mut Session) {
        let left = session.left().max(1);
        let (group, setup) = (session.group(), session.setup());
        self.pmu.program(group, &setup, left);
        self.counts_kernel = setup.kernel;
        self.note_timer_start(setup.timer, left);
    }

    /// Publishes the counts so far, and enables the counters that [`Self::program`] set up.
    fn enable(&mut self, session: &mut Session, tsc: u64, sink: &mut impl Sink) {
        self.publish(session, session.slice_start(), true, tsc, sink);
        self.entries.set_deadline(session.deadline());
        // Must be last: if ring 0 is counted, counters count from here on.
        self.pmu.enable();
    }

    /// Scrubs counters that hold another session's counts, before the program of `session`, which
    /// is not running, gets the permission to use RDPMC.
    pub fn scrub_counters(&mut self, session: &Session) {
        if self.last_session != session.id() {
            self.pmu.scrub();
            self.last_session = session.id();
        }
    }

    /// Returns whether this PMU supports direct mode.
    pub fn can_restore_direct(&self) -> bool {
        self.pmu.can_restore()
    }

    /// Context-switch in: restores a direct-mode program's counters. No session is running.
    pub fn restore_direct(&mut self, direct: &Direct) {
        self.pmu.restore(&direct.group, direct.mode, &direct.values);
        self.direct = true;
    }

    /// Context-switch out: saves a direct-mode program's counters.
    pub fn save_direct(&mut self, direct: &mut Direct) {
        self.pmu.stop();
        self.direct = false;
        direct.values = self.pmu.read(direct.set());
        // Forces a scrub before the next program with a bank, which must not read these values.
        self.last_session = 0;
    }

    /// Credits what the running slice has counted so far, so that [`Session::reading`] is up to
    /// date while the session runs. Ends counting if the program has stopped its counters through
    /// its bank.
    pub fn sync(&mut self, session: &mut Session, clock: &impl Clock, sink: &mut impl Sink) {
        if !session.is_running() {
            return;
        }
        self.fold(session, clock, sink);
        self.charge(session);
        let tsc = clock.tsc();
        if session.setup().kernel && (session.is_watched() || self.is_over(session)) {
            // Writing a counter while ring 0 counts would lose what it counts meanwhile. If the
            // timer has overflowed, it must be written: ring 0 counts on after an overflow
            // interrupt that ended no slice, an overflow in between is lost, and no other would
            // follow.
            return self.rearm_mid_slice(session, tsc, clock, sink);
        }
        if self.credit(session, tsc) {
            self.pmu.stop();
            return self.end_stopped(session, tsc, sink);
        }
        let preloaded = self.publish(session, session.slice_start(), true, tsc, sink);
        if preloaded {
            self.pmu.ack_and_resume();
        }
    }

    /// Handles the overflow interrupt. `session` is the one that is current on this CPU, if any.
    ///
    /// The work is bounded. It does not allocate, lock or use floating point, and no index can be
    /// out of range. With n = [`crate::MAX_GENERAL`] counters:
    ///
    /// - *A session without a bank.* At most n counters and the pinned events' counters are read
    ///   into a row; the switch is already prepared. If the rows are full, all are folded
    ///   ([`Self::fold`]), and as many slices drawn. The driver writes at most n selectors,
    ///   [`crate::MAX_EXTRA`] values of extra registers, the timer's reload, the acknowledgement
    ///   and, if counting must be stopped for it, two more registers. Without global registers
    ///   (AMD) a selector takes two writes, or stopping and resuming n each.
    /// - *A session with a bank.* In addition the row is folded, a slice drawn, and, if the slice
    ///   multiplier changes, the lengths of coming slices set; each event of the list that is in
    ///   the group is published, in constant time, with one division each: n events, or more only
    ///   if the list names one event several times, at most [`tally_abi::session::MAX_EVENTS`].
    /// - *With thresholds* each event that has one is compared when its group's slice ends and when
    ///   it begins, and its distance may take a division there; at most eight thresholds of pinned
    ///   events fire at a time. Each one that fires writes a record. The driver disarms the
    ///   preloaded counters, n selectors and the fixed counters' control, and preloads again, at
    ///   most two writes for each of [`tally_abi::bank::SLOTS`]; AMD's driver stops counting for
    ///   that. If a preloaded counter overflowed instead of the timer, counting stops and starts
    ///   instead of a group switch: n selectors again, and five writes.
    ///
    /// `sink` is called at most once, if there is something to record. First the counters are read,
    /// switched and armed, then the row is logged: `cargo xtask bench switch` measures the two
    /// separately.
    #[inline(always)]
    pub fn overflow<S: Sink>(
        &mut self,
        session: Option<&mut Session>,
        clock: &impl Clock,
        sink: impl FnOnce() -> S,
    ) {
        let start_tsc = clock.tsc();
        let Some(session) = session.filter(|session| session.is_running()) else {
            return self.handle_stray_overflow();
        };
        let row = self.rows.next();
        row.tsc = start_tsc;
        if self.pmu.switch(session.next_switch(), &mut row.raw) {
            if session.folds_at_once() {
                if self.log_at_once(session, start_tsc, clock, &mut sink()) {
                    self.pmu.ack_and_resume();
                }
            } else {
                self.log(session, clock, sink);
                self.pmu.ack_and_resume();
                self.engine_ticks += clock.tsc().wrapping_sub(start_tsc);
                return;
            }
        } else {
            session.stats_mut().spurious_pmis += 1;
            if session.is_watched() {
                self.rearm_mid_slice(session, start_tsc, clock, &mut sink());
            }
        }
        session.stats_mut().engine_ticks += clock.tsc().wrapping_sub(start_tsc);
    }

    /// Returns whether a counter has overflowed while the overflow interrupt was masked, which no
    /// other interrupt reports. Call it when overflow interrupts have been unmasked; if it returns
    /// true, call [`Self::overflow`].
    #[inline(always)]
    pub fn has_lost_overflow(&mut self) -> bool {
        self.counts_kernel && self.pmu.has_lost_overflow()
    }

    /// Overflow interrupts that found counters enabled that no session owns: 0 if the engine and
    /// its kernel are correct.
    pub fn stray_overflows(&self) -> u64 {
        self.stray_overflows
    }

    fn so_far(&self, session: &mut Session) -> Charged {
        let stats = session.stats_mut();
        Charged {
            msr_accesses: self.pmu.msr_accesses(),
            interrupts: stats.pmis + stats.spurious_pmis,
        }
    }

    /// Charges the session for what the driver did in overflow interrupts since the last charge.
    /// Not in the overflow path, to keep that short.
    fn charge(&mut self, session: &mut Session) {
        let now = self.so_far(session);
        session.stats_mut().msr_accesses += now.msr_accesses - self.charged.msr_accesses
            + self.other_msr_accesses * (now.interrupts - self.charged.interrupts);
        self.charged = now;
    }

    /// Charges the session for the engine's time in overflow interrupts that stored rows.
    fn charge_ticks(&mut self, session: &mut Session) {
        session.stats_mut().engine_ticks += take(&mut self.engine_ticks);
    }

    /// Handles an overflow that no session owns, or one that was pending when counting ended. Only
    /// a direct-mode program may have counters enabled here, and its counters raise no interrupt.
    #[cold]
    fn handle_stray_overflow(&mut self) {
        if !self.direct {
            self.stray_overflows += u64::from(self.pmu.is_counting());
            self.pmu.stop();
        }
    }

    /// Stops counting in the middle of a slice, credits it, fires thresholds, and resumes with the
    /// remainder of the slice. Also runs in the overflow path, when a counter that was preloaded
    /// for a threshold has overflowed instead of the timer.
    #[cold]
    fn rearm_mid_slice(
        &mut self,
        session: &mut Session,
        tsc: u64,
        clock: &impl Clock,
        sink: &mut impl Sink,
    ) {
        self.pmu.stop();
        if self.credit(session, tsc) {
            return self.end_stopped(session, tsc, sink);
        }
        session.time_samples(|| self.entries.read(clock));
        self.program(session);
        self.enable(session, tsc, sink);
    }

    /// Publishes in the session's bank, if it has one, the counts of the slice `of` and, if
    /// counters keep `running`, the bases from which they count. Preloads counters that are near a
    /// threshold. Returns whether counters were preloaded: then [`Pmu::ack_and_resume`] has to
    /// follow.
    #[inline]
    fn publish(
        &mut self,
        session: &mut Session,
        of: SliceStart,
        running: bool,
        tsc: u64,
        sink: &mut impl Sink,
    ) -> bool {
        if !session.has_bank() {
            return false;
        }
        if session.setup().precise.is_some() {
            session.set_precise(self.pmu.take_precise());
        }
        let plan = session.publish(of, running, Timestamp { cpu: self.cpu, tsc }, sink);
        plan.iter().for_each(|plan| self.record_and_preload(session, plan, tsc, sink));
        session.publish_bases(running.then_some(&self.base));
        plan.is_some()
    }

    /// Replaces all preloads by the plan's.
    fn preload(&mut self, plan: &PreloadPlan) {
        self.pmu.disarm();
        self.pmu.store_records(plan.precise);
        for (slot, distance) in plan.distances() {
            if let Some(base) = self.base.slot_mut(slot) {
                *base = self.pmu.preload(slot, distance);
            }
        }
    }

    /// Credits the counters' values. Returns whether the program has stopped its counters through
    /// its bank.
    fn credit(&mut self, session: &mut Session, tsc: u64) -> bool {
        let set = session.set();
        let raw = self.pmu.read(set);
        self.base.advance(&raw, set.general, self.pmu.widths(), &mut self.counted);
        let stopped = session.deduct_stopped(set, &mut self.counted);
        session.credit(&self.counted, set.general, tsc);
        self.take_metrics(session);
        stopped
    }

    /// Records the value to which the slice timer was set.
    fn note_timer_start(&mut self, timer: Pinned, slice: u64) {
        self.base[timer] = slice.wrapping_neg() & self.pmu.widths().pinned;
    }
}
