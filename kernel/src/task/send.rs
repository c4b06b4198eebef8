//! Sending signals to a process, and what wakes its threads.

use tally_abi::syscall;

use super::{
    process::Process,
    signal::{self, FROM_KERNEL, Pending, SIGALRM, bit},
    thread::{Thread, Wait},
};
use crate::machine::clock;

impl Process {
    /// Sends a signal to the thread `to`, or to whichever takes it; whether there is such a thread.
    pub fn send_signal(&mut self, to: Option<u32>, new: Pending) -> bool {
        if to.is_some_and(|tid| self.threads.all().all(|thread| thread.tid != tid)) {
            return false;
        }
        let bit = bit(new.signal);
        if let Some((tid, info)) = self.threads.awaits_signal(bit, to) {
            self.write_signal_info(new, info);
            self.threads.rouse(tid, new.signal.into());
            return true;
        }
        let takes = |thread: &mut Thread| match to {
            Some(tid) => thread.tid == tid,
            None => thread.signals.mask & bit == 0,
        };
        let ignores = self.signals.ignores(new.signal);
        let Some(thread) = self.threads.all().find_map(|thread| takes(thread).then_some(thread))
        else {
            self.signals.pending.note(new);
            return true;
        };
        let blocks = thread.signals.mask & bit != 0;
        if blocks || !ignores {
            thread.signals.pending.note(new);
        }
        let tid = thread.tid;
        if !blocks && !ignores {
            self.interrupt(tid);
        }
        true
    }

    /// Ends what a thread waits for, if it does, because of a signal.
    fn interrupt(&mut self, tid: u32) {
        let Some(on) = self.threads.waits(tid) else { return };
        let restart = match on {
            Wait::Futex { until: None, .. } => Some(syscall::FUTEX),
            Wait::Child(_) => Some(syscall::PROGRAM_WAIT),
            _ => None,
        };
        if let Wait::Sleep { until, left } = on
            && left != 0
        {
            // Where that is no memory of the program's, nobody will miss it.
            let rest = until.saturating_sub(clock::now_ns());
            let _ = self.memory.space.write_words(left, clock::to_timespec(rest));
        }
        let answer = -syscall::errno::EINTR;
        if let Some(thread) = self.threads.rouse(tid, answer as u64) {
            thread.signals.restart = restart;
        }
    }

    /// Takes a signal of `set` out that waits for the running thread or its program.
    pub fn take_signal(&mut self, set: u64) -> Option<Pending> {
        let own = self.threads.running().signals.pending.take(set);
        own.or_else(|| self.signals.pending.take(set))
    }

    /// Writes what is known of a signal to the program's memory, if `info` is not 0.
    pub fn write_signal_info(&mut self, signal: Pending, info: u64) {
        if info != 0 {
            // Where that is no memory of the program's, nobody will miss it.
            let _ = self.memory.space.write_words(info, signal::sender(self.pid, signal));
        }
    }

    /// Lets those go on whose time has come, and sends the timer's signal.
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

    /// Whether none of its threads but the running one will go on by itself.
    pub fn is_stuck(&self) -> bool {
        self.signals.timer.is_none() && self.threads.are_stuck()
    }

    /// Whether its timer's signal, when it comes, ends what a thread waits for.
    fn heeds_timer(&mut self) -> bool {
        let alarm = bit(SIGALRM);
        self.signals.timer.is_some()
            && (self.threads.awaits_signal(alarm, None).is_some()
                || !self.signals.ignores(SIGALRM)
                    && self.threads.all().any(|thread| thread.signals.mask & alarm == 0))
    }

    /// Where none of its threads will ever go on, as it was its timer that they were left, or that can do nothing
    /// for them: the first comes onto a CPU once more, and the program ends there ([`deliver`]).
    pub fn find_deadlock(&mut self) {
        let first = self.threads.all().next().map(|thread| thread.tid);
        if self.threads.are_stuck()
            && !self.heeds_timer()
            && let Some(tid) = first
        {
            self.is_deadlocked = self.threads.rouse(tid, -syscall::errno::EINTR as u64).is_some();
        }
    }

    /// When anything of it happens by itself, while all of its threads wait.
    pub fn deadline(&self) -> Option<u64> {
        let timer = self.signals.timer.map(|(due, _)| due);
        self.threads.deadline().into_iter().chain(timer).min()
    }
}
