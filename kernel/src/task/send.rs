//! Sending signals to a process, timing out its threads' waits, and finding deadlocks.

use tally_abi::syscall;

use super::{
    process::Process,
    signal::{self, FROM_KERNEL, Pending, SIGALRM, bit},
    thread::{Thread, Wait},
};
use crate::machine::clock;

/// The calls on descriptors that a handler with `SA_RESTART` does not end.
const RESTARTED: [u64; 8] = [
    syscall::READ,
    syscall::READV,
    syscall::WRITE,
    syscall::WRITEV,
    syscall::RECVFROM,
    syscall::SENDTO,
    syscall::FCNTL,
    syscall::FLOCK,
];

impl Process {
    /// Sends a signal to the thread `to`, or to the first that does not block it. Returns whether
    /// there is such a thread; a signal that every thread blocks stays pending for the program.
    pub fn send_signal(&mut self, to: Option<u32>, new: Pending) -> bool {
        if to.is_some_and(|tid| self.threads.all().all(|thread| thread.tid != tid)) {
            return false;
        }
        let bit = bit(new.signal);
        if let Some((tid, info)) = self.threads.signal_waiter(bit, to) {
            self.write_signal_info(new, info);
            self.threads.wake(tid, new.signal.into());
            return true;
        }
        let takes = |thread: &mut Thread| match to {
            Some(tid) => thread.tid == tid,
            None => thread.signals.mask & bit == 0,
        };
        let ignores = self.signals.ignores(new.signal);
        let Some(thread) = self.threads.all().find_map(|thread| takes(thread).then_some(thread))
        else {
            self.signals.pending.add(new);
            return true;
        };
        let blocks = thread.signals.mask & bit != 0;
        if blocks || !ignores {
            thread.signals.pending.add(new);
        }
        let tid = thread.tid;
        if !blocks && !ignores {
            self.interrupt(tid);
        }
        true
    }

    /// Interrupts the wait of a thread, if it is blocked, because of a signal.
    fn interrupt(&mut self, tid: u32) {
        let Some(on) = self.threads.wait_of(tid) else { return };
        let restart = match on {
            Wait::Futex { until: None, .. } => Some(syscall::FUTEX),
            Wait::Child(_) => Some(syscall::PROGRAM_WAIT),
            Wait::Retry { number, .. } if RESTARTED.contains(&number) => Some(number),
            _ => None,
        };
        let deadline = self.threads.blocked_thread(tid).and_then(|thread| thread.retried.take());
        if let Wait::Retry { left, .. } = on
            && left != 0
        {
            let rest = deadline.flatten().map_or(0, |at| at.saturating_sub(clock::now_ns()));
            let _ = self.memory.write_words(left, clock::to_timespec(rest));
        }
        if let Wait::Sleep { until, left } = on
            && left != 0
        {
            // As under Linux, an address that is not the program's to write is no error here.
            let rest = until.saturating_sub(clock::now_ns());
            let _ = self.memory.write_words(left, clock::to_timespec(rest));
        }
        // A transfer that did a part of its work ends with that part.
        let done = self.threads.blocked_thread(tid).and_then(|thread| thread.progress.take());
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

    /// Takes a pending signal of `set`, the running thread's or the program's.
    pub fn take_signal(&mut self, set: u64) -> Option<Pending> {
        let own = self.threads.running().signals.pending.take(set);
        own.or_else(|| self.signals.pending.take(set))
    }

    /// Writes the description of a signal to the program's memory, if `info` is not 0.
    pub fn write_signal_info(&mut self, signal: Pending, info: u64) {
        if info != 0 {
            // An address that is not the program's to write is no error: the signal is consumed.
            let _ = self.memory.write_words(info, signal::sender_info(self.pid, signal));
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
            self.send_signal(None, Pending { signal: SIGALRM, code: FROM_KERNEL });
        }
    }

    /// Returns whether none of its threads but the running one will be woken without another
    /// thread.
    pub fn is_stuck(&self) -> bool {
        self.signals.timer.is_none() && self.threads.are_stuck()
    }

    /// Returns whether its timer's signal will wake a thread.
    fn timer_wakes(&mut self) -> bool {
        let alarm = bit(SIGALRM);
        self.signals.timer.is_some()
            && (self.threads.signal_waiter(alarm, None).is_some()
                || !self.signals.ignores(SIGALRM)
                    && self.threads.all().any(|thread| thread.signals.mask & alarm == 0))
    }

    /// If nothing can wake a blocked thread any more, marks the process deadlocked and wakes its
    /// first thread, so that the process is switched in once more and ends there
    /// (`sched::deliver`). That happens after the program's timer, the last event that could wake a
    /// thread, was cancelled or its signal woke none.
    pub fn find_deadlock(&mut self) {
        let first = self.threads.all().next().map(|thread| thread.tid);
        if self.threads.are_stuck()
            && !self.timer_wakes()
            && let Some(tid) = first
        {
            self.is_deadlocked = self.threads.wake(tid, -syscall::errno::EINTR as u64).is_some();
        }
    }

    /// When a wait times out or the timer is due, in nanoseconds, while all threads are blocked.
    pub fn deadline(&self) -> Option<u64> {
        let timer = self.signals.timer.map(|(due, _)| due);
        self.threads.deadline().into_iter().chain(timer).min()
    }
}
