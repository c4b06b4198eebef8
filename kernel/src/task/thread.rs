//! The threads of one program. One of them runs at a time, on the program's CPU, first in, first
//! out, so that the address space and its counters stay on one CPU (decision 16).
//!
//! The code that wakes a blocked thread determines the result of its system call.

use alloc::{boxed::Box, collections::VecDeque};

use tally_abi::{
    CpuSet,
    syscall::{FUTEX, errno::EINTR},
};
use x86_64::{VirtAddr, registers::model_specific::FsBase};

pub use super::wait::Wait;
use super::{
    call::CallState,
    fpu::FpuState,
    frequency::Frequency,
    scheduling::Scheduling,
    signal::ThreadSignals,
    times::{Stopwatch, Times},
};
use crate::arch::frame::{self, Frame};

/// Maximum number of threads of a program: each takes some kilobytes of the kernel's memory.
pub const MAX_THREADS: usize = 1024;

/// A thread.
pub struct Thread {
    /// The thread's number; the first thread's is the program's.
    pub tid: u32,
    /// Base of FS: the address of its thread-local data.
    pub fs_base: u64,
    /// Address of the word that is cleared at the thread's end, and whose waiters are woken; 0 for
    /// none.
    pub clear_tid: u64,
    /// Address of its list of robust mutexes; 0 for none.
    pub robust_list: u64,
    /// The CPUs on which it may run.
    pub affinity: CpuSet,
    /// Policy, priority and nice value.
    pub scheduling: Scheduling,
    /// The thread's name, ended by a zero byte.
    pub name: [u8; 16],
    /// Blocked and pending signals.
    pub signals: ThreadSignals,
    /// State of its last system call.
    pub call: CallState,
    /// Times before the present turn.
    ran: Times,
    /// Registers while the thread does not run.
    frame: Frame,
    /// The extended state while the thread does not run; while it does, an area to copy that by.
    pub(super) fpu: FpuState,
}

impl Thread {
    /// Makes a program's first thread.
    pub fn first(tid: u32, frame: Frame) -> Self {
        Thread {
            tid,
            fs_base: 0,
            clear_tid: 0,
            robust_list: 0,
            affinity: CpuSet::ALL,
            scheduling: Scheduling::default(),
            name: [0; 16],
            signals: ThreadSignals::default(),
            call: CallState::default(),
            ran: Times::default(),
            frame,
            fpu: FpuState::initial(),
        }
    }

    /// Makes a thread with the state of this one, which runs, and the registers of `frame`.
    pub fn fork(&self, tid: u32, frame: Frame) -> Self {
        Thread {
            tid,
            fs_base: self.fs_base,
            clear_tid: 0,
            robust_list: 0,
            affinity: self.affinity,
            scheduling: self.scheduling.inherited(),
            name: self.name,
            signals: self.signals.inherited(),
            call: CallState::default(),
            ran: Times::default(),
            frame,
            fpu: FpuState::now(),
        }
    }
}

struct Blocked {
    thread: Box<Thread>,
    on: Wait,
}

/// The threads of a program.
pub struct Threads {
    /// The running thread's turn.
    turn: Stopwatch,
    /// Frequency of the cores in the program's turns.
    pub frequency: Frequency,
    /// The times of all threads, without the present turn.
    ran: Times,
    /// The running thread, present while the program is on a CPU.
    running: Option<Box<Thread>>,
    runnable: VecDeque<Box<Thread>>,
    blocked: VecDeque<Blocked>,
}

impl Threads {
    /// Makes the threads of a new program.
    pub fn new(first: Thread) -> Self {
        Threads {
            turn: Stopwatch::default(),
            frequency: Frequency::default(),
            ran: Times::default(),
            running: None,
            runnable: VecDeque::from([Box::new(first)]),
            blocked: VecDeque::new(),
        }
    }

    /// The running thread.
    ///
    /// # Panics
    /// The program is on no CPU.
    pub fn running(&mut self) -> &mut Thread {
        self.running.as_mut().expect("a program on a CPU has a running thread")
    }

    /// The running thread, if the program is on a CPU.
    pub fn running_if_any(&self) -> Option<&Thread> {
        self.running.as_deref()
    }

    /// Number of threads.
    pub fn len(&self) -> usize {
        usize::from(self.running.is_some()) + self.runnable.len() + self.blocked.len()
    }

    /// All threads: the running one, the runnable ones, the blocked ones.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Thread> {
        let blocked = self.blocked.iter_mut().map(|blocked| &mut *blocked.thread);
        let runnable = self.runnable.iter_mut().map(|thread| &mut **thread);
        self.running.iter_mut().map(|thread| &mut **thread).chain(runnable).chain(blocked)
    }

    /// Adds a new thread, and reserves its place in both queues, so that no later call allocates.
    pub fn add(&mut self, thread: Thread) {
        self.runnable.push_back(Box::new(thread));
        let all = self.len();
        self.runnable.reserve(all - self.runnable.len());
        self.blocked.reserve(all - self.blocked.len());
    }

    /// Saves the running thread, whose registers are in `frame`, and enqueues it.
    pub fn enqueue_running(&mut self, frame: &Frame) {
        let thread = self.save_running(frame);
        self.runnable.push_back(thread);
    }

    /// Saves the running thread, whose registers are in `frame`, and blocks it.
    pub fn block_running(&mut self, frame: &Frame, on: Wait) {
        let thread = self.save_running(frame);
        self.blocked.push_back(Blocked { thread, on });
    }

    fn save_running(&mut self, frame: &Frame) -> Box<Thread> {
        let mut thread = self.end_running();
        thread.frame = *frame;
        thread.fpu.save();
        thread
    }

    /// Removes the running thread.
    pub fn end_running(&mut self) -> Box<Thread> {
        let mut thread = self.running.take().expect("a program on a CPU has a running thread");
        let times = self.turn.times();
        thread.ran.add(times);
        self.ran.add(times);
        thread
    }

    /// The times of threads on CPUs so far: of all, or of the thread with this number. `None` if
    /// the thread does not exist.
    pub fn ran(&self, tid: Option<u32>) -> Option<Times> {
        let running = self.running.as_deref().filter(|it| tid.is_none_or(|tid| it.tid == tid));
        let before = match (tid, running) {
            (None, _) => self.ran,
            (_, Some(running)) => running.ran,
            (Some(tid), None) => {
                let blocked = self.blocked.iter().map(|blocked| &blocked.thread);
                let mut others = self.runnable.iter().chain(blocked);
                others.find(|thread| thread.tid == tid)?.ran
            }
        };
        let mut times = before;
        times.add(running.map_or(Times::default(), |_| self.turn.times()));
        Some(times)
    }

    /// The times of all threads before the running thread's turn.
    pub fn ran_before(&self) -> Times {
        self.ran
    }

    /// Records that the running thread has entered the kernel from ring 3.
    #[inline]
    pub fn enter_kernel(&mut self) {
        self.turn.enter_kernel();
    }

    /// Records that the running thread returns to ring 3.
    #[inline]
    pub fn leave_kernel(&mut self) {
        self.turn.leave_kernel();
    }

    /// Ends all threads except the running one.
    pub fn end_others(&mut self) {
        self.runnable.clear();
        self.blocked.clear();
    }

    /// The CPUs on which the next runnable thread may run; `None` if no thread is runnable.
    pub fn next_affinity(&self) -> Option<&CpuSet> {
        Some(&self.runnable.front()?.affinity)
    }

    /// Runs the next runnable thread: restores its registers to `frame` and to the CPU.
    pub fn run_next(&mut self, frame: &mut Frame) {
        let thread = self.runnable.pop_front().expect("the program is runnable");
        *frame = thread.frame;
        thread.fpu.restore();
        FsBase::write(VirtAddr::new(thread.fs_base));
        self.turn.start();
        self.running = Some(thread);
    }

    /// Wakes the blocked thread at `index`, whose call returns `answer`.
    fn wake_at(&mut self, index: usize, answer: u64) -> Option<&mut Thread> {
        let Blocked { mut thread, on } = self.blocked.remove(index)?;
        thread.frame.rax = answer;
        match on {
            Wait::Retry { number, .. } if answer == 0 => {
                frame::restart_call(&mut thread.frame, number);
            }
            // A signal interrupts the wait.
            Wait::Mutex { .. } if answer == -EINTR as u64 => {
                frame::restart_call(&mut thread.frame, FUTEX);
            }
            _ => {}
        }
        self.runnable.push_back(thread);
        self.runnable.back_mut().map(|thread| &mut **thread)
    }

    /// Wakes every blocked thread whose wait has an answer.
    fn wake_answered(&mut self, mut answer: impl FnMut(&Wait) -> Option<u64>) {
        let mut index = 0;
        while let Some(blocked) = self.blocked.get(index) {
            match answer(&blocked.on) {
                Some(answer) => _ = self.wake_at(index, answer),
                None => index += 1,
            }
        }
    }

    /// Wakes the threads whose waits have timed out.
    pub fn expire(&mut self, now_ns: u64) {
        let expired = |on: &Wait| on.timeout().filter(|(until, _)| *until <= now_ns);
        self.wake_answered(|on| expired(on).map(|(_, answer)| answer as u64));
    }

    /// Time at which the first wait times out, if any does.
    pub fn deadline(&self) -> Option<u64> {
        self.blocked.iter().filter_map(|blocked| Some(blocked.on.timeout()?.0)).min()
    }

    /// Returns whether no thread except the running one is runnable or will be woken without
    /// another thread.
    pub fn are_stuck(&self) -> bool {
        self.runnable.is_empty() && !self.blocked.iter().any(|blocked| blocked.on.ends_by_itself())
    }

    /// Returns whether a thread waits for the use of descriptors.
    pub fn retries(&self) -> bool {
        self.blocked.iter().any(|blocked| matches!(blocked.on, Wait::Retry { .. }))
    }

    /// Wakes the threads that wait for the use of descriptors.
    pub fn wake_retrying(&mut self) {
        self.wake_answered(|on| matches!(on, Wait::Retry { .. }).then_some(0));
    }

    /// Wakes each thread that waits for a child for which `answer` has a result.
    pub fn wake_child_waiters(&mut self, mut answer: impl FnMut(u32) -> Option<u64>) {
        self.wake_answered(|on| match on {
            Wait::Child(child, _) => answer(*child),
            _ => None,
        });
    }

    /// Wakes up to `most` threads that wait at a futex for one of `bits`. Returns how many.
    pub fn wake_futex(&mut self, futex: u64, bits: u32, most: u32) -> u32 {
        let mut woken = 0;
        self.wake_answered(|on| match on {
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

    /// Moves up to `most` threads that wait at a futex to another one. Returns how many.
    pub fn requeue_futex(&mut self, futex: u64, to: u64, most: u32) -> u32 {
        let mut moved = 0;
        for blocked in &mut self.blocked {
            if let Wait::Futex { address, .. } = &mut blocked.on
                && *address == futex
                && moved < most
            {
                *address = to;
                moved += 1;
            }
        }
        moved
    }

    /// The threads that wait for the mutex at `mutex`, longest first.
    pub fn waiting_for_mutex(&self, mutex: u64) -> impl Iterator<Item = u32> {
        let waits = move |on: &Wait| matches!(on, Wait::Mutex { address, .. } if *address == mutex);
        self.blocked.iter().filter(move |it| waits(&it.on)).map(|it| it.thread.tid)
    }

    /// Sets the owner of the mutex at `mutex` for those that wait for it.
    pub fn set_mutex_owner(&mut self, mutex: u64, new: u32) {
        for blocked in &mut self.blocked {
            if let Wait::Mutex { address, owner, .. } = &mut blocked.on
                && *address == mutex
            {
                *owner = new;
            }
        }
    }

    /// The lowest address, from `from` on, of a mutex of the thread `tid` for which threads wait.
    pub fn awaited_mutex_of(&self, tid: u32, from: u64) -> Option<u64> {
        let addresses = self.blocked.iter().filter_map(|it| match it.on {
            Wait::Mutex { address, owner, .. } if owner == tid => Some(address),
            _ => None,
        });
        addresses.filter(|address| *address >= from).min()
    }

    /// The thread `tid`, if it is blocked.
    pub fn blocked_thread(&mut self, tid: u32) -> Option<&mut Thread> {
        let mut blocked = self.blocked.iter_mut();
        Some(&mut blocked.find(|blocked| blocked.thread.tid == tid)?.thread)
    }

    /// The wait of the thread `tid`; `None` if it is not blocked.
    pub fn wait_of(&self, tid: u32) -> Option<Wait> {
        Some(self.blocked.iter().find(|blocked| blocked.thread.tid == tid)?.on)
    }

    /// The first thread that waits to consume the signal `bit`, the thread `only` or any, and the
    /// address for the signal's description.
    pub fn signal_waiter(&self, bit: u64, only: Option<u32>) -> Option<(u32, u64)> {
        self.blocked.iter().find_map(|blocked| match (blocked.on, blocked.thread.tid) {
            (Wait::Signal { set, info, .. }, tid)
                if set & bit != 0 && only.is_none_or(|only| only == tid) =>
            {
                Some((tid, info))
            }
            _ => None,
        })
    }

    /// Wakes the thread `tid`, whose call returns `answer`; `None` if it is not blocked.
    pub fn wake(&mut self, tid: u32, answer: u64) -> Option<&mut Thread> {
        let index = self.blocked.iter().position(|blocked| blocked.thread.tid == tid)?;
        self.wake_at(index, answer)
    }
}
