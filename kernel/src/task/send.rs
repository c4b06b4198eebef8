//! Sending signals to a process, timing out its threads' waits, and detecting deadlocks.

use alloc::vec::Vec;

use tally_abi::syscall;

use super::{
    process::Process,
    signal::{MAX_PENDING, Pending, SIGALRM, bit},
    thread::{Thread, Wait},
};
use crate::machine::clock;

/// Calls on descriptors that are restarted after a handler with `SA_RESTART`.
pub(super) const RESTARTED: [u64; 8] = [
    syscall::READ,
    syscall::READV,
    syscall::WRITE,
    syscall::WRITEV,
    syscall::RECVFROM,
    syscall::SENDTO,
    syscall::FCNTL,
    syscall::FLOCK,
];

/// Reason why a signal was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The thread does not exist.
    NoThread,
    /// Too many signals are pending.
    Full,
}

impl Process {
    /// Returns whether the maximum number of signals is pending.
    fn has_many_signals(&mut self) -> bool {
        let own = self.signals.pending.len();
        own + self.threads.all().map(|thread| thread.signals.pending.len()).sum::<usize>()
            >= MAX_PENDING
    }

    /// Sends a signal to the thread `to`, or to the first thread that does not block it. A signal
    /// that every thread blocks stays pending for the program.
    ///
    /// # Errors
    /// The thread does not exist, or too many signals are pending.
    pub fn send_signal(&mut self, to: Option<u32>, new: Pending) -> Result<(), SendError> {
        if to.is_some_and(|tid| self.threads.all().all(|thread| thread.tid != tid)) {
            return Err(SendError::NoThread);
        }
        let bit = bit(new.signal);
        if let Some((tid, info)) = self.threads.signal_waiter(bit, to) {
            self.write_signal_info(new, info);
            self.threads.wake(tid, new.signal.into());
            self.note_overruns(new);
            return Ok(());
        }
        let is_full = self.has_many_signals();
        let takes = |thread: &mut Thread| match to {
            Some(tid) => thread.tid == tid,
            None => thread.signals.mask & bit == 0,
        };
        let ignores = self.signals.ignores(new.signal);
        let Some(thread) = self.threads.all().find_map(|thread| takes(thread).then_some(thread))
        else {
            let is_sent = self.signals.pending.add(new, is_full);
            // Waiting threads may read the signal from a descriptor.
            self.threads.wake_retrying();
            return is_sent.then_some(()).ok_or(SendError::Full);
        };
        let blocks = thread.signals.mask & bit != 0;
        if !blocks && ignores {
            return Ok(());
        }
        if !thread.signals.pending.add(new, is_full) {
            return Err(SendError::Full);
        }
        let tid = thread.tid;
        if blocks {
            self.threads.wake_retrying();
        } else {
            self.interrupt(tid);
        }
        Ok(())
    }

    /// Interrupts the wait of a blocked thread because of a signal.
    fn interrupt(&mut self, tid: u32) {
        let Some(on) = self.threads.wait_of(tid) else { return };
        let restart = match on {
            Wait::Futex { until: None, .. } => Some(syscall::FUTEX),
            Wait::Child(_, None) => Some(syscall::PROGRAM_WAIT),
            Wait::Retry { number, .. } if RESTARTED.contains(&number) => Some(number),
            _ => None,
        };
        let deadline =
            self.threads.blocked_thread(tid).and_then(|thread| thread.call.retried.take());
        if let Wait::Retry { left, .. } = on
            && left != 0
        {
            let rest = deadline.flatten().map_or(0, |at| at.saturating_sub(clock::now_ns()));
            let _ = self.memory.write_words(left, clock::to_timespec(rest));
        }
        if let Wait::Sleep { until, left } = on
            && left != 0
        {
            // As under Linux, an address that the program cannot write is no error here.
            let rest = until.saturating_sub(clock::now_ns());
            let _ = self.memory.write_words(left, clock::to_timespec(rest));
        }
        // A transfer that is partly done ends with that part.
        let done = self.threads.blocked_thread(tid).and_then(|thread| thread.call.progress.take());
        let answer = done.map_or(-syscall::errno::EINTR, |progress| progress.at as i64);
        if let Some(thread) = self.threads.wake(tid, answer as u64) {
            thread.signals.restart = restart.filter(|_| answer < 0);
        }
    }

    /// Returns whether a signal is pending that the running thread does not block or ignore.
    pub fn has_signal(&mut self) -> bool {
        let signals = &self.threads.running().signals;
        let set = (signals.pending.set() | self.signals.pending.set()) & !signals.mask;
        self.signals.any_acts(set)
    }

    /// The signals pending for the running thread, a bit for each.
    pub fn pending_signals(&self) -> u64 {
        let own = self.threads.running_if_any().map_or(0, |thread| thread.signals.pending.set());
        own | self.signals.pending.set()
    }

    /// Takes a pending signal of `set`, from the running thread or the program.
    pub fn take_signal(&mut self, set: u64) -> Option<Pending> {
        let own = self.threads.running().signals.pending.take(set);
        let taken = own.or_else(|| self.signals.pending.take(set))?;
        self.note_overruns(taken);
        Some(taken)
    }

    /// Records the overruns of a delivered signal, if it is a timer's.
    fn note_overruns(&mut self, delivered: Pending) {
        let timer = delivered.timer.and_then(|number| self.timers.get(number.into()));
        if let Some(timer) = timer {
            timer.overruns = (delivered.words[0] >> 32) as u32;
        }
    }

    /// Writes the description of a signal to the program's memory, if `info` is not 0.
    pub fn write_signal_info(&mut self, signal: Pending, info: u64) {
        if info != 0 {
            // An address that the program cannot write is no error: the signal is consumed.
            let _ = self.memory.write_words(info, signal.info());
        }
    }

    /// Wakes the threads whose waits have timed out, and sends the timer's signal if it is due.
    pub fn expire(&mut self) {
        let now = clock::now_ns();
        self.threads.expire(now);
        if let Some((due, interval)) = self.signals.timer.filter(|(due, _)| *due <= now) {
            let missed = (now - due).checked_div(interval).unwrap_or(0);
            let next = due.saturating_add((missed + 1).saturating_mul(interval));
            self.signals.timer = (interval > 0).then_some((next, interval));
            let _ = self.send_signal(None, Pending::of_kernel(SIGALRM));
        }
        // Each timer once: a timer of a nanosecond has expired again when it is next examined.
        let mut from = 0;
        while let Some((number, signal, count, to)) = self.timers.expire(from, &self.threads) {
            from = number + 1;
            self.send_of_timer(signal, count, to);
        }
        for signal in self.timers.expire_intervals(&self.threads).into_iter().flatten() {
            let _ = self.send_signal(None, signal);
        }
    }

    /// Sends the signal of a timer that has expired `count` times, or adds the expiries to the
    /// overruns of its pending signal.
    fn send_of_timer(&mut self, signal: Pending, count: u32, to: Option<u32>) {
        let Some(number) = signal.timer else { return };
        if let Some(before) = self.pending_of_timer(number) {
            let overruns = (before.words[0] >> 32) as u32;
            let overruns = overruns.saturating_add(count).min(i32::MAX as u32);
            before.words[0] = u64::from(overruns) << 32 | u64::from(number);
            return;
        }
        let words = [u64::from(count - 1) << 32 | signal.words[0], signal.words[1]];
        // The signal's thread may have ended.
        let _ = self.send_signal(to, Pending { words, ..signal });
    }

    /// The pending signal of a timer.
    fn pending_of_timer(&mut self, number: u32) -> Option<&mut Pending> {
        let threads = self.threads.all().map(|thread| &mut thread.signals.pending);
        threads.chain([&mut self.signals.pending]).find_map(|set| set.of_timer(number))
    }

    /// Deletes a timer. Its pending signal is detached from it: the next timer with this number
    /// sends its own. Returns whether the timer existed.
    pub fn delete_timer(&mut self, number: u64) -> bool {
        let Some(number) = self.timers.remove(number) else { return false };
        if let Some(pending) = self.pending_of_timer(number) {
            pending.timer = None;
        }
        true
    }

    /// Returns whether every thread except the running one waits for another thread.
    pub fn is_stuck(&self) -> bool {
        self.timer_deadline().is_none() && self.threads.are_stuck()
    }

    /// Returns whether the signal of one of its timers will wake a thread.
    fn timer_wakes(&mut self) -> bool {
        let alarm = self.signals.timer.map(|_| (SIGALRM, None));
        let signals = self.timers.signals().chain(alarm);
        let all: Vec<(u32, Option<u32>)> = signals.collect();
        all.into_iter().any(|(signal, to)| self.signal_wakes(signal, to))
    }

    /// Returns whether a signal to the thread `to`, or to any thread, will wake a thread: one that
    /// takes the signal, or one that reads it from a descriptor while it is pending.
    fn signal_wakes(&mut self, signal: u32, to: Option<u32>) -> bool {
        let bit = bit(signal);
        let mut sets = self.threads.all().map(|thread| thread.signals.pending.set());
        let is_pending = self.signals.pending.set() & bit != 0 || sets.any(|set| set & bit != 0);
        drop(sets);
        let gets = |thread: &&mut Thread| to.is_none_or(|to| to == thread.tid);
        let takes = |thread: &mut Thread| thread.signals.mask & bit == 0;
        let is_taken = self.threads.all().filter(gets).any(takes);
        self.threads.signal_waiter(bit, to).is_some()
            || is_taken && !self.signals.ignores(signal)
            || !is_taken && !is_pending && self.files.takes_signal(bit) && self.threads.retries()
    }

    /// Time at which its interval timer or another of its timers is due, in nanoseconds.
    fn timer_deadline(&self) -> Option<u64> {
        let alarm = self.signals.timer.map(|(due, _)| due);
        alarm.into_iter().chain(self.timers.deadline()).min()
    }

    /// Marks the process as deadlocked if nothing can wake a blocked thread any more, and wakes its
    /// first thread, so that the process is switched in once more and ends there
    /// (`sched::deliver`). A deadlock arises when the program's timer, the last event that could
    /// wake a thread, was cancelled or its signal woke none.
    pub fn find_deadlock(&mut self) {
        let first = self.threads.all().next().map(|thread| thread.tid);
        if self.threads.are_stuck()
            && !self.timer_wakes()
            && let Some(tid) = first
        {
            self.is_deadlocked = self.threads.wake(tid, -syscall::errno::EINTR as u64).is_some();
        }
    }

    /// Time at which a wait times out or the timer is due, in nanoseconds, while all threads are
    /// blocked.
    pub fn deadline(&self) -> Option<u64> {
        self.threads.deadline().into_iter().chain(self.timer_deadline()).min()
    }
}
