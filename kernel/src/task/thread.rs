//! The threads of one program. They take turns on the CPU that the program is on: one at a time, first
//! come, first served, so that the address space and its counters are one CPU's (decision 16).
//!
//! A thread that waits gets what its call returns from whoever ends its waiting, and is ready then.

use alloc::{boxed::Box, collections::VecDeque};

use tally_abi::syscall::errno::{EAGAIN, ETIMEDOUT};
use x86_64::{VirtAddr, registers::model_specific::FsBase};

use super::{fpu::FpuState, signal::ThreadSignals};
use crate::arch::frame::Frame;

/// The most threads of one program: each takes some kilobytes of the kernel's memory.
pub const MAX_THREADS: usize = 1024;

/// One line of execution.
pub struct Thread {
    /// Its number; the first one's is the program's.
    pub tid: u32,
    /// Where its thread-local data is: the base of FS.
    pub fs_base: u64,
    /// The word that is cleared, and whose waiters are woken, when it ends; 0: none.
    pub clear_tid: u64,
    /// The CPUs that it may run on: a bit for each.
    pub affinity: u64,
    /// What it blocks, and what waits for it.
    pub signals: ThreadSignals,
    /// Its registers while it does not run.
    frame: Frame,
    fpu: FpuState,
}

impl Thread {
    /// A program's first.
    pub fn first(tid: u32, frame: Frame) -> Self {
        Thread {
            tid,
            fs_base: 0,
            clear_tid: 0,
            affinity: u64::MAX,
            signals: ThreadSignals::default(),
            frame,
            fpu: FpuState::initial(),
        }
    }

    /// A new one that begins as the running one is now, with the registers of `frame`.
    pub fn like(&self, tid: u32, frame: Frame) -> Self {
        Thread {
            tid,
            fs_base: self.fs_base,
            clear_tid: 0,
            affinity: self.affinity,
            signals: self.signals.inherited(),
            frame,
            fpu: FpuState::now(),
        }
    }
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// A wake-up at the futex at this address, by somebody with a bit of these, or a time of
    /// [`crate::machine::clock`]'s, in nanoseconds.
    Futex { address: u64, bits: u32, until: Option<u64> },
    /// A time; where what is left of it is written if a signal comes before, or 0.
    Sleep { until: u64, left: u64 },
    /// The end of this program, which the thread's program made.
    Child(u32),
    /// A signal of these, which is not handled but told, by number and at this address, or a time.
    Signal { set: u64, info: u64, until: Option<u64> },
}

impl Wait {
    /// For a signal that is handled, which ends any waiting, and for nothing else.
    pub const HANDLER: Wait = Wait::Signal { set: 0, info: 0, until: None };

    /// Whether it comes to an end without another thread.
    pub fn ends_by_itself(&self) -> bool {
        matches!(self, Wait::Child(_)) || self.until().is_some()
    }

    /// When it ends by itself, and what the call returns then.
    fn until(&self) -> Option<(u64, i64)> {
        match *self {
            Wait::Futex { until, .. } => Some((until?, -ETIMEDOUT)),
            Wait::Sleep { until, .. } => Some((until, 0)),
            Wait::Child(_) => None,
            Wait::Signal { until, .. } => Some((until?, -EAGAIN)),
        }
    }
}

struct Waiting {
    thread: Box<Thread>,
    on: Wait,
}

/// All of a program's.
pub struct Threads {
    /// The one that runs: there is one whenever the program is on a CPU.
    running: Option<Box<Thread>>,
    ready: VecDeque<Box<Thread>>,
    waiting: VecDeque<Waiting>,
}

impl Threads {
    /// A program's at its start.
    pub fn new(first: Thread) -> Self {
        Threads {
            running: None,
            ready: VecDeque::from([Box::new(first)]),
            waiting: VecDeque::new(),
        }
    }

    /// The one that runs.
    pub fn running(&mut self) -> &mut Thread {
        self.running.as_mut().expect("a program on a CPU has a thread that runs")
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.running.is_some()) + self.ready.len() + self.waiting.len()
    }

    /// Every one, the running one first, then those that are ready.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Thread> {
        let waiting = self.waiting.iter_mut().map(|waiting| &mut *waiting.thread);
        let ready = self.ready.iter_mut().map(|thread| &mut **thread);
        self.running.iter_mut().map(|thread| &mut **thread).chain(ready).chain(waiting)
    }

    /// Takes in a new one. Its place in either queue is made here, where somebody has asked for memory.
    pub fn add(&mut self, thread: Thread) {
        self.ready.push_back(Box::new(thread));
        let all = self.len();
        self.ready.reserve(all - self.ready.len());
        self.waiting.reserve(all - self.waiting.len());
    }

    /// The running one, whose registers are in `frame`, waits for its next turn.
    pub fn queue(&mut self, frame: &Frame) {
        let thread = self.save_running(frame);
        self.ready.push_back(thread);
    }

    /// The running one, whose registers are in `frame`, waits.
    pub fn wait(&mut self, frame: &Frame, on: Wait) {
        let thread = self.save_running(frame);
        self.waiting.push_back(Waiting { thread, on });
    }

    fn save_running(&mut self, frame: &Frame) -> Box<Thread> {
        let mut thread = self.running.take().expect("a program on a CPU has a thread that runs");
        thread.frame = *frame;
        thread.fpu.save();
        thread
    }

    /// The running one has ended.
    pub fn end(&mut self) -> Box<Thread> {
        self.running.take().expect("a program on a CPU has a thread that runs")
    }

    /// The CPUs that the next one may run on, if one is ready.
    pub fn next_affinity(&self) -> Option<u64> {
        Some(self.ready.front()?.affinity)
    }

    /// Puts the registers of the next one, which is ready, into the CPU and `frame`.
    pub fn run_next(&mut self, frame: &mut Frame) {
        let thread = self.ready.pop_front().expect("the program is ready");
        *frame = thread.frame;
        thread.fpu.restore();
        FsBase::write(VirtAddr::new(thread.fs_base));
        self.running = Some(thread);
    }

    /// Ends the waiting of the one at `index`, whose call returns `answer`.
    fn make_ready(&mut self, index: usize, answer: u64) -> Option<&mut Thread> {
        let mut thread = self.waiting.remove(index)?.thread;
        thread.frame.rax = answer;
        self.ready.push_back(thread);
        self.ready.back_mut().map(|thread| &mut **thread)
    }

    /// Ends the waiting of all for which there is an answer.
    fn answer(&mut self, mut answer: impl FnMut(&Wait) -> Option<u64>) {
        let mut index = 0;
        while let Some(waiting) = self.waiting.get(index) {
            match answer(&waiting.on) {
                Some(answer) => _ = self.make_ready(index, answer),
                None => index += 1,
            }
        }
    }

    /// Those whose time has come go on.
    pub fn expire(&mut self, now_ns: u64) {
        self.answer(|on| on.until().filter(|(until, _)| *until <= now_ns).map(|(_, a)| a as u64));
    }

    /// When the first goes on by itself, if any does.
    pub fn deadline(&self) -> Option<u64> {
        self.waiting.iter().filter_map(|waiting| Some(waiting.on.until()?.0)).min()
    }

    /// Whether none but the running one is ready, or waits for what comes without another thread.
    pub fn are_stuck(&self) -> bool {
        self.ready.is_empty() && !self.waiting.iter().any(|waiting| waiting.on.ends_by_itself())
    }

    /// Those that wait for programs of which there is an answer go on.
    pub fn wake_child_waiters(&mut self, mut answer: impl FnMut(u32) -> Option<u64>) {
        self.answer(|on| match on {
            Wait::Child(child) => answer(*child),
            _ => None,
        });
    }

    /// Wakes up to `most` that wait at a futex for one of `bits`: how many.
    pub fn wake(&mut self, futex: u64, bits: u32, most: u32) -> u32 {
        let mut woken = 0;
        self.answer(|on| match on {
            Wait::Futex { address, bits: wanted, .. }
                if *address == futex && wanted & bits != 0 && woken < most =>
            {
                woken += 1;
                Some(0)
            }
            _ => None,
        });
        woken
    }

    /// Lets up to `most` that wait at a futex wait at another one: how many.
    pub fn requeue(&mut self, futex: u64, to: u64, most: u32) -> u32 {
        let mut moved = 0;
        for waiting in &mut self.waiting {
            if let Wait::Futex { address, .. } = &mut waiting.on
                && *address == futex
                && moved < most
            {
                *address = to;
                moved += 1;
            }
        }
        moved
    }

    /// What the thread `tid` waits for, if it does.
    pub fn waits(&self, tid: u32) -> Option<Wait> {
        Some(self.waiting.iter().find(|waiting| waiting.thread.tid == tid)?.on)
    }

    /// The first that waits for such a signal to be told of, of the thread `only` or of all.
    pub fn awaits_signal(&self, bit: u64, only: Option<u32>) -> Option<(u32, u64)> {
        self.waiting.iter().find_map(|waiting| match (waiting.on, waiting.thread.tid) {
            (Wait::Signal { set, info, .. }, tid)
                if set & bit != 0 && only.is_none_or(|only| only == tid) =>
            {
                Some((tid, info))
            }
            _ => None,
        })
    }

    /// Ends the waiting of the thread `tid`, whose call returns `answer`; none if it does not wait.
    pub fn rouse(&mut self, tid: u32, answer: u64) -> Option<&mut Thread> {
        let index = self.waiting.iter().position(|waiting| waiting.thread.tid == tid)?;
        self.make_ready(index, answer)
    }
}
