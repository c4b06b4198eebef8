//! The timers of `timer_create`, and those of `setitimer` for CPU time: each sends the program a
//! signal when it expires. Timers of CPU time expire at the scheduler's ticks, and wake no thread,
//! because their clocks stand still while a program waits.
//!
//! A timer has at most one pending signal. Its expiries while the signal is pending are its
//! overruns.

use alloc::collections::BTreeMap;

use super::{
    signal::{BY_TIMER, Pending, SIGPROF, SIGVTALRM},
    thread::Threads,
};
use crate::{files::expiry::Expiry, machine::clock};

/// Maximum number of timers of a program.
const MAX_TIMERS: usize = 64;

/// Quantity that a timer measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Time, by this clock of Linux.
    Time(u64),
    /// The CPU time of the program.
    Program,
    /// The CPU time of a thread.
    Thread(u32),
}

impl Measured {
    /// The present value in nanoseconds; for time, since boot. `None` if the thread has ended.
    pub fn now_ns(self, threads: &Threads) -> Option<u64> {
        match self {
            Measured::Time(_) => Some(clock::now_ns()),
            Measured::Program => Some(threads.ran(None)?.all_ns()),
            Measured::Thread(tid) => Some(threads.ran(Some(tid))?.all_ns()),
        }
    }

    fn is_time(self) -> bool {
        matches!(self, Measured::Time(_))
    }
}

/// A timer.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// Quantity that the timer measures.
    pub of: Measured,
    /// The signal that it sends, if any, its value, and the thread that gets it; `None` as the
    /// thread if any thread may take it.
    pub sends: Option<(u32, u64, Option<u32>)>,
    /// The next expiry.
    pub due: Option<Expiry>,
    /// Overruns of the last delivered signal.
    pub overruns: u32,
}

impl Timer {
    /// The remaining time until the expiry, and the interval; 0 if the timer is not set.
    pub fn rest(&self, threads: &Threads) -> (u64, u64) {
        let rest = |due: Expiry| Some(due.rest(self.of.now_ns(threads)?));
        self.due.and_then(rest).unwrap_or_default()
    }
}

/// The timers of a program, by number.
#[derive(Default)]
pub struct Timers {
    all: BTreeMap<u32, Timer>,
    /// `ITIMER_VIRTUAL`, by the program's time in ring 3, and `ITIMER_PROF`, by all its CPU time.
    pub intervals: [Option<Expiry>; 2],
}

impl Timers {
    /// Adds a timer. Returns its number, the lowest free one; `None` if there are too many.
    pub fn add(&mut self, timer: Timer) -> Option<u32> {
        let number = (0..MAX_TIMERS as u32).find(|number| !self.all.contains_key(number))?;
        self.all.insert(number, timer);
        Some(number)
    }

    /// The timer with this number.
    pub fn get(&mut self, number: u64) -> Option<&mut Timer> {
        self.all.get_mut(&u32::try_from(number).ok()?)
    }

    /// Removes a timer. Returns its number; `None` if it does not exist.
    pub(super) fn remove(&mut self, number: u64) -> Option<u32> {
        let number = u32::try_from(number).ok()?;
        self.all.remove(&number).map(|_| number)
    }

    /// Time of the first expiry of a timer that measures time and sends a signal.
    pub fn deadline(&self) -> Option<u64> {
        let sending = self.all.values().filter(|timer| timer.sends.is_some() && timer.of.is_time());
        sending.filter_map(|timer| Some(timer.due?.at_ns)).min()
    }

    /// The signals of the set timers that measure time.
    pub fn signals(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        let set = self.all.values().filter(|timer| timer.due.is_some() && timer.of.is_time());
        set.filter_map(|timer| timer.sends).map(|(signal, _, thread)| (signal, thread))
    }

    /// The first expired timer with a number of at least `from`: its number, its signal, its number
    /// of expiries, and the thread that gets the signal. Sets the timer to its next expiry.
    pub fn expire(
        &mut self,
        from: u32,
        threads: &Threads,
    ) -> Option<(u32, Pending, u32, Option<u32>)> {
        let count = |timer: &Timer| Some(timer.due?.count(timer.of.now_ns(threads)?));
        let expirations = |timer: &Timer| count(timer).unwrap_or(0);
        let is_due = |timer: &Timer| timer.sends.is_some() && expirations(timer) > 0;
        let (number, timer) = self.all.range_mut(from..).find(|(_, timer)| is_due(timer))?;
        let count = expirations(timer);
        timer.due = timer.due.and_then(|due| due.after(count));
        let (signal, value, thread) = timer.sends?;
        let (words, timer) = ([u64::from(*number), value], Some(*number));
        let pending = Pending { signal, code: BY_TIMER, words, timer };
        Some((*number, pending, count.min(i32::MAX as u64) as u32, thread))
    }

    /// The signals of the expired interval timers. Sets these to their next expiry.
    pub fn expire_intervals(&mut self, threads: &Threads) -> [Option<Pending>; 2] {
        let Some(ran) = threads.ran(None) else { return [None; 2] };
        let mut signals = [Some(SIGVTALRM), Some(SIGPROF)];
        let timers = self.intervals.iter_mut().zip([ran.user_ns(), ran.all_ns()]);
        for ((timer, ran), signal) in timers.zip(&mut signals) {
            match timer.filter(|due| due.count(ran) > 0) {
                Some(due) => *timer = due.after(due.count(ran)),
                None => *signal = None,
            }
        }
        signals.map(|signal| signal.map(Pending::of_kernel))
    }
}
