//! The multiplexer: gives each group its slice, in the overflow interrupt.
//!
//! One per CPU; it owns that CPU's PMU driver. All its methods run on that CPU with the overflow
//! interrupt held off, or in it.
//!
//! While a session counts, no counter is rewritten but the slice timer and those that are preloaded for
//! thresholds: what a slice counted is the difference between two readings, or between what was written
//! and a reading. The timer is set to minus the slice's length, so that its own overrun, the
//! cycles between overflow and interrupt, is in the difference too and no cycle is lost.

use tally_abi::trace::End;

use crate::{
    Clock, CounterMask, Counts, Direct, Pinned, Pmu, Session, Sink,
    session::{SliceStart, exposed::Timestamp},
};

/// One CPU's side of the engine.
#[derive(Debug)]
pub struct Multiplexer<P: Pmu> {
    pmu: P,
    cpu: u16,
    /// MSR accesses that the kernel adds to each overflow interrupt, to unmask it and to end it.
    other_msr_accesses: u64,
    /// The driver's count of MSR accesses, and the session's of interrupts, up to which the session
    /// was charged.
    charged: Charged,
    /// Whose counts are in the counters: sessions are numbered from 1.
    last_session: u32,
    /// Whether the program that runs looks after the counters itself.
    direct: bool,
    /// Overflows that found counters at work whose owner nobody knew.
    stray_overflows: u64,
    /// What the counters showed when they were last credited.
    base: Counts,
    /// What they showed when they were last read.
    raw: Counts,
    /// What was counted in between.
    counted: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Charged {
    msr_accesses: u64,
    interrupts: u64,
}

impl<P: Pmu> Multiplexer<P> {
    /// Takes the PMU of CPU number `cpu`, on which nothing counts yet. `other_msr_accesses` are
    /// those that the kernel adds to each overflow interrupt, to unmask it and to end it.
    pub fn new(pmu: P, cpu: u16, other_msr_accesses: u64) -> Self {
        Multiplexer {
            pmu,
            cpu,
            other_msr_accesses,
            charged: Charged::default(),
            last_session: 0,
            direct: false,
            stray_overflows: 0,
            base: Counts::default(),
            raw: Counts::default(),
            counted: Counts::default(),
        }
    }

    /// The driver, for what it tells of itself.
    pub fn pmu(&self) -> &P {
        &self.pmu
    }

    /// Counts for `session` on this CPU from here on: it was started, or its address space enters.
    /// No other session may be running on this CPU, nor this one on another.
    pub fn resume(&mut self, session: &mut Session, clock: &impl Clock, sink: &mut impl Sink) {
        debug_assert!(!session.is_running());
        session.enter(clock.tsc());
        if session.has_bank() && self.last_session != session.id() {
            self.pmu.scrub();
        }
        // What this one counts, it may see later, when others have counted too.
        self.last_session = if session.has_bank() { session.id() } else { 0 };
        self.base = self.pmu.read(session.set());
        // What others counted is nowhere in it, not even in what this session does not have read.
        self.raw = self.base;
        self.program(session);
        self.charged = self.so_far(session);
        self.enable(session, clock.tsc(), sink);
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
        self.charge(session);
        self.pmu.stop();
        let tsc = clock.tsc();
        let end = if self.credit(session, tsc) { End::Stopped } else { end };
        self.end(session, end, tsc, sink);
    }

    /// Takes the slice under way, whose counts were credited, off this CPU.
    fn end(&mut self, session: &mut Session, end: End, tsc: u64, sink: &mut impl Sink) {
        let slice = session.slice_start();
        session.leave(self.cpu, end, tsc, sink);
        self.publish(session, slice, false, tsc, sink);
    }

    /// Whether the slice timer has overflowed.
    fn is_over(&mut self, session: &Session) -> bool {
        let width = self.pmu.widths().pinned;
        let shown = self.pmu.read(CounterMask::default())[session.setup().timer];
        shown & (width ^ width >> 1) == 0
    }

    /// From a state in which nothing counts, gets ready for what is left of the slice under way, whose
    /// counts were credited.
    fn program(&mut self, session: &mut Session) {
        let left = session.left().max(1);
        let (group, setup) = (session.group(), session.setup());
        self.pmu.program(group, &setup, left);
        self.note_timer_start(setup.timer, left);
    }

    /// Counts what [`Self::program`] got ready for; what was counted before is told.
    fn enable(&mut self, session: &mut Session, tsc: u64, sink: &mut impl Sink) {
        self.publish(session, session.slice_start(), true, tsc, sink);
        self.prepare(session);
        // Last: where ring 0 is counted, counters count from here on.
        self.pmu.enable();
    }

    /// The driver gets ready for the end of the slice under way.
    #[inline(always)]
    fn prepare(&mut self, session: &Session) {
        let (set, next) = session.turn();
        self.pmu.prepare(set, next, session.next_length());
    }

    /// The program of `session`, which is not running, may look at the counters from here on: they show
    /// nothing that others counted.
    pub fn scrub_counters(&mut self, session: &Session) {
        if self.last_session != session.id() {
            self.pmu.scrub();
            self.last_session = session.id();
        }
    }

    /// Whether programs can look after the counters themselves here.
    pub fn can_restore_direct(&self) -> bool {
        self.pmu.can_restore()
    }

    /// A program comes onto this CPU that looks after its counters itself. No session is running.
    pub fn restore_direct(&mut self, direct: &Direct) {
        self.pmu.restore(&direct.group, direct.mode, &direct.values);
        self.direct = true;
    }

    /// It leaves this CPU, and its counters are kept.
    pub fn save_direct(&mut self, direct: &mut Direct) {
        self.pmu.stop();
        self.direct = false;
        direct.values = self.pmu.read(direct.set());
        // What they show is not to be seen by whoever comes next.
        self.last_session = 0;
    }

    /// Credits what the running slice has counted so far, so that [`Session::reading`] is up to
    /// date while the session runs. If the program has stopped its counters by its own word, this
    /// ends counting.
    pub fn sync(&mut self, session: &mut Session, clock: &impl Clock, sink: &mut impl Sink) {
        if !session.is_running() {
            return;
        }
        self.charge(session);
        let tsc = clock.tsc();
        if session.setup().kernel && (session.is_watched() || self.is_over(session)) {
            // Where a counter is set, what ring 0 counts meanwhile would be lost. That of the timer has to
            // be: ring 0 goes on counting when the overflow interrupt has let go and not ended, an
            // overflow in between is lost, and no other would come.
            return self.rearm_mid_slice(session, tsc, sink);
        }
        if self.credit(session, tsc) {
            self.pmu.stop();
            return self.end(session, End::Stopped, tsc, sink);
        }
        let preloaded = self.publish(session, session.slice_start(), true, tsc, sink);
        self.prepare(session);
        if preloaded {
            self.pmu.ack_and_resume();
        }
    }

    /// The overflow interrupt. `session` is the one that is current on this CPU, if any.
    ///
    /// The work is bounded. It neither allocates nor locks, has no floating point, and indexes nothing that
    /// could be out of range. With n = [`crate::MAX_GENERAL`] counters:
    ///
    /// - *A session without a bank.* At most n counters and those that always count are read and credited;
    ///   the next group is known and the one after it drawn in constant time; one record is written. The
    ///   driver writes at most n selectors, [`crate::MAX_EXTRA`] values of extra registers, the timer's
    ///   reload, the acknowledgement and, where counting has to be stopped for it, two more. Without global
    ///   registers (AMD) a selector is two writes, or stopping and going on n each.
    /// - *A session with a bank.* Beside that, each event of the list that is in the group is told, in constant
    ///   time: n of them, more only where the list names one event several times, at most
    ///   [`tally_abi::session::MAX_EVENTS`]. That takes at most two divisions together, and one for each event
    ///   of a group whose share has just changed.
    /// - *With thresholds* each event that has one is compared where its group's slice ends, and has its
    ///   distance divided where it begins; at most eight thresholds are on events that always count. Each one
    ///   that is reached writes a record. The driver lets go of what was preloaded, n selectors and the fixed
    ///   counters' control, and preloads anew, two writes for each of [`tally_abi::bank::SLOTS`] at most; AMD's
    ///   stops counting for that. Where it was a preloaded counter that overflowed, and not the timer, counting
    ///   stops and starts instead of a switch: n selectors again, and five writes.
    ///
    /// First the counters are read, changed and armed, then what they showed is logged:
    /// `cargo xtask bench switch` tells the two apart.
    #[inline(always)]
    pub fn overflow(
        &mut self,
        session: Option<&mut Session>,
        clock: &impl Clock,
        sink: &mut impl Sink,
    ) {
        let start_tsc = clock.tsc();
        let Some(session) = session.filter(|session| session.is_running()) else {
            return self.handle_stray_overflow();
        };
        if self.pmu.switch(&mut self.raw) {
            if session.has_bank() {
                self.log_exposed(session, start_tsc, sink);
            } else {
                self.log(session, start_tsc, sink);
                self.pmu.ack_and_resume();
            }
        } else {
            session.stats_mut().spurious_pmis += 1;
            if session.is_watched() {
                self.rearm_mid_slice(session, start_tsc, sink);
            }
        }
        session.stats_mut().engine_ticks += clock.tsc().wrapping_sub(start_tsc);
    }

    /// Overflow interrupts that found a counter at work and nobody whose it was. There are none if the
    /// engine and its kernel are right.
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

    /// Charges the session for what overflow interrupts did since it was charged last: all that the
    /// driver did since counting began. Not in the overflow path, which has enough to do.
    fn charge(&mut self, session: &mut Session) {
        let now = self.so_far(session);
        session.stats_mut().msr_accesses += now.msr_accesses - self.charged.msr_accesses
            + self.other_msr_accesses * (now.interrupts - self.charged.interrupts);
        self.charged = now;
    }

    /// An overflow that nobody owns, or one that was under way when counting ended: nothing may
    /// count here but what a program looks after itself, which raises no interrupt.
    #[cold]
    fn handle_stray_overflow(&mut self) {
        if !self.direct {
            self.stray_overflows += u64::from(self.pmu.is_counting());
            self.pmu.stop();
        }
    }

    /// What the slice that has ended counted goes to the session and the trace.
    #[inline(never)]
    fn log(&mut self, session: &mut Session, tsc: u64, sink: &mut impl Sink) {
        let (timer, slice) = (session.setup().timer, session.next_length());
        self.count(session);
        self.note_timer_start(timer, slice);
        session.turn_over(self.cpu, &self.counted, tsc, sink);
        self.prepare(session);
    }

    /// The same for a program that sees its logical counters, to which they are told; counting goes
    /// on, unless the program has stopped them by its own word.
    #[cold]
    #[inline(never)]
    fn log_exposed(&mut self, session: &mut Session, tsc: u64, sink: &mut impl Sink) {
        let (timer, slice) = (session.setup().timer, session.next_length());
        self.count(session);
        let stopped = session.discount(&mut self.counted);
        self.note_timer_start(timer, slice);
        let ended = session.slice_start();
        session.turn_over(self.cpu, &self.counted, tsc, sink);
        if stopped {
            session.mark_idle();
            self.pmu.stop();
        }
        self.publish(session, ended, !stopped, tsc, sink);
        if !stopped {
            self.prepare(session);
            self.pmu.ack_and_resume();
        }
    }

    /// Works out what was counted up to where the next group takes over.
    #[inline(always)]
    fn count(&mut self, session: &Session) {
        // Where the next group begins is read too.
        let (set, _) = session.turn();
        self.base.advance(&self.raw, set.general, self.pmu.widths(), &mut self.counted);
    }

    /// Stops in the middle of the slice under way, which is credited; thresholds fire, and counting goes
    /// on with what is left of it. In the overflow path too, where another counter than the timer has
    /// overflowed, one that was preloaded for a threshold.
    #[cold]
    fn rearm_mid_slice(&mut self, session: &mut Session, tsc: u64, sink: &mut impl Sink) {
        self.pmu.stop();
        if self.credit(session, tsc) {
            return self.end(session, End::Stopped, tsc, sink);
        }
        self.program(session);
        self.enable(session, tsc, sink);
    }

    /// Tells the program that sees its logical counters what was counted in the slice `of`,
    /// and whether the counters go on. See [`Session::publish`].
    #[inline]
    fn publish(
        &mut self,
        session: &mut Session,
        of: SliceStart,
        running: bool,
        tsc: u64,
        sink: &mut impl Sink,
    ) -> bool {
        let base = running.then_some(&mut self.base);
        let at = Timestamp { cpu: self.cpu, tsc };
        session.has_bank() && session.publish(of, base, at, &mut self.pmu, sink)
    }

    /// Whether the program has stopped its counters by its own word.
    fn credit(&mut self, session: &mut Session, tsc: u64) -> bool {
        let set = session.set();
        self.raw = self.pmu.read(set);
        self.base.advance(&self.raw, set.general, self.pmu.widths(), &mut self.counted);
        let stopped = session.discount(&mut self.counted);
        session.credit(&self.counted, tsc);
        stopped
    }

    /// Notes what the slice timer was set to.
    fn note_timer_start(&mut self, timer: Pinned, slice: u64) {
        self.base[timer] = slice.wrapping_neg() & self.pmu.widths().pinned;
    }
}
