//! The table of programs: their states, the run queue, and the programs that are off the CPUs.
//!
//! A program that has not ended is owned by the CPU that runs it or by this table. Under the
//! table's lock a call may use the memory and the context of a program that the table owns.
//! [`ProgramTable::inspect`] returns the CPU of a running program and requests that the program be
//! parked in the table at its next preemption.
//!
//! The lock is never taken in the overflow path, and no holder of it waits for another CPU.

use alloc::{boxed::Box, collections::BTreeMap, collections::VecDeque, vec::Vec};

use spin::{Mutex, MutexGuard};
use tally_abi::usage::Usage;

use super::watch::{Watch, Watched};
use crate::{
    cpu::Cpu,
    machine::clock::{self, SECOND_NS},
    measure::{Contexts, Subject},
    task::Process,
};

/// Time for which a program stays parked for an inspection, in nanoseconds: longer than the
/// inspecting program usually waits for its next turn. Most programs inspect at the start of that
/// turn, but a signal or another of their threads can delay them.
const INSPECTION_NS: u64 = SECOND_NS;

static TABLE: Mutex<ProgramTable> = Mutex::new(ProgramTable {
    run_queue: VecDeque::new(),
    programs: BTreeMap::new(),
    sessions: BTreeMap::new(),
    last: 0,
});

/// Locks the table.
pub fn lock() -> MutexGuard<'static, ProgramTable> {
    TABLE.lock()
}

/// All programs, and all sessions on programs that others opened.
pub struct ProgramTable {
    /// Runnable programs, first in, first out.
    run_queue: VecDeque<u32>,
    pub(super) programs: BTreeMap<u32, ProgramEntry>,
    pub(super) sessions: BTreeMap<u32, Watch>,
    /// Highest number given to a program or thread.
    last: u32,
}

pub(super) struct ProgramEntry {
    /// The program that loaded it; `None` for the command line's programs, and after that program's
    /// end.
    pub(super) parent: Option<u32>,
    /// Identity of the program, for sessions on it.
    subject: Subject,
    pub(super) state: RunState,
    /// The program itself, unless a CPU owns it or it has ended.
    pub(super) process: Option<Box<Process>>,
    /// Usage of the program, after its end.
    pub(super) usage: Usage,
    /// Usage of the programs that it has loaded and waited for.
    pub(super) children: Usage,
}

#[derive(Clone, Copy)]
pub(super) enum RunState {
    /// Created, but not started.
    New,
    /// In the run queue.
    Runnable,
    /// All threads are blocked; with the first timeout of their waits, in nanoseconds, if there is
    /// one.
    Blocked(Option<u64>),
    /// Preempted because another program wants to inspect it; stays off the CPUs until the
    /// inspection or until this time, in nanoseconds.
    ParkedForInspection(u64),
    /// Running on the CPU with this APIC ID. `wanted`: another program waits to inspect it.
    Running { lapic: u32, wanted: bool },
    /// Ended with this status; its parent has not waited for it yet.
    Ended(u8),
}

/// Result of inspecting a program through the table.
pub enum Lookup<T> {
    /// The program is off the CPUs: the inspection's result.
    Parked(T),
    /// The program runs on the CPU with this APIC ID, which has to park it first.
    Running(u32),
    /// The program has ended.
    Ended,
    /// The program does not exist.
    Unknown,
}

impl<T> Lookup<T> {
    /// Converts the inspection's result.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Lookup::Parked(result) => Lookup::Parked(convert(result)),
            Lookup::Running(lapic) => Lookup::Running(lapic),
            Lookup::Ended => Lookup::Ended,
            Lookup::Unknown => Lookup::Unknown,
        }
    }
}

/// Remains of an ended program, to be freed after the table is unlocked.
#[derive(Default)]
pub struct Remains {
    /// Programs that it loaded and never started; no other program can start them.
    pub orphans: Vec<Process>,
    /// Contexts that it opened on programs that ended earlier.
    pub contexts: Contexts,
    /// Whether it was the last program.
    pub is_last: bool,
}

/// The state of a program that is off the CPUs.
fn state_of(process: &mut Process) -> RunState {
    process.find_deadlock();
    match process.threads.next_affinity() {
        Some(_) => RunState::Runnable,
        None => RunState::Blocked(process.deadline()),
    }
}

impl ProgramTable {
    /// Allocates an unused number for a program or thread; `None` if all are used up.
    pub fn allocate_number(&mut self) -> Option<u32> {
        self.last = self.last.checked_add(1)?;
        Some(self.last)
    }

    /// Adds a new program. A program with a parent starts with [`Self::start`], a program of the
    /// command line at once.
    pub fn add(&mut self, process: Box<Process>, parent: Option<u32>) {
        let (pid, subject) = (process.pid, process.subject());
        let (usage, children) = (Usage::default(), Usage::default());
        let (state, process) = (RunState::New, Some(process));
        let entry = ProgramEntry { parent, subject, state, process, usage, children };
        self.programs.insert(pid, entry);
        if parent.is_none() {
            self.make_runnable(pid);
        }
    }

    pub(super) fn make_runnable(&mut self, pid: u32) {
        self.set_state(pid, RunState::Runnable);
        self.run_queue.push_back(pid);
    }

    fn set_state(&mut self, pid: u32, state: RunState) {
        if let Some(entry) = self.programs.get_mut(&pid) {
            entry.state = state;
        }
    }

    /// Takes back a program that was on a CPU.
    fn take_in(&mut self, process: Box<Process>, state: RunState) {
        let pid = process.pid;
        if let Some(entry) = self.programs.get_mut(&pid) {
            entry.process = Some(process);
        }
        match state {
            RunState::Runnable => self.make_runnable(pid),
            _ => self.set_state(pid, state),
        }
    }

    /// Returns whether any program has not ended.
    pub fn any_live(&self) -> bool {
        self.programs.values().any(|entry| !matches!(entry.state, RunState::Ended(_)))
    }

    /// Returns whether the running program `pid` must leave its CPU at the end of its turn: another
    /// is runnable, or waits to inspect it.
    pub fn is_due(&mut self, pid: u32) -> bool {
        self.wake();
        !self.run_queue.is_empty() || self.is_wanted(pid)
    }

    fn is_wanted(&self, pid: u32) -> bool {
        let state = self.programs.get(&pid).map(|entry| entry.state);
        matches!(state, Some(RunState::Running { wanted: true, .. }))
    }

    /// Takes the next program for a CPU from the run queue: the first whose next thread may run
    /// there.
    pub fn next(&mut self, cpu: &Cpu) -> Option<Box<Process>> {
        self.wake();
        let programs = &self.programs;
        let may_run = |pid: &u32| {
            let process = programs.get(pid).and_then(|entry| entry.process.as_deref());
            let affinity = process.and_then(|process| process.threads.next_affinity());
            affinity.is_some_and(|affinity| cpu.is_in(affinity))
        };
        let index = self.run_queue.iter().position(may_run)?;
        let entry = self.programs.get_mut(&self.run_queue.remove(index)?)?;
        entry.state = RunState::Running { lapic: cpu.lapic.id(), wanted: false };
        entry.process.take()
    }

    /// Takes a preempted program: parks it if another waits to inspect it, or enqueues it.
    pub fn park_or_enqueue(&mut self, process: Box<Process>) {
        let state = if self.is_wanted(process.pid) {
            RunState::ParkedForInspection(clock::now_ns() + INSPECTION_NS)
        } else {
            RunState::Runnable
        };
        self.take_in(process, state);
    }

    /// Takes a program that yielded its CPU, and enqueues it.
    pub fn enqueue(&mut self, process: Box<Process>) {
        self.take_in(process, RunState::Runnable);
    }

    /// Takes a program whose threads are all blocked. A child for which one of them waits may just
    /// have ended.
    pub fn block(&mut self, mut process: Box<Process>) {
        self.wake_child_waiters(&mut process);
        let state = state_of(&mut process);
        self.take_in(process, state);
    }

    /// Wakes the programs with a wait that has timed out, and unparks those whose inspection did
    /// not happen in time.
    fn wake(&mut self) {
        let now = clock::now_ns();
        for (pid, entry) in &mut self.programs {
            let (RunState::Blocked(Some(until)) | RunState::ParkedForInspection(until)) =
                entry.state
            else {
                continue;
            };
            let Some(process) = entry.process.as_deref_mut().filter(|_| until <= now) else {
                continue;
            };
            process.expire();
            entry.state = state_of(process);
            if let RunState::Runnable = entry.state {
                self.run_queue.push_back(*pid);
            }
        }
    }

    /// Starts a new program of `parent`. Returns whether one has this number.
    pub fn start(&mut self, pid: u32, parent: u32) -> bool {
        let entry = self.programs.get(&pid).filter(|entry| entry.parent == Some(parent));
        let is_new = entry.is_some_and(|entry| matches!(entry.state, RunState::New));
        if is_new {
            self.make_runnable(pid);
        }
        is_new
    }

    /// Ends a running program with `status`. `contexts` belong to the sessions that others opened
    /// on it.
    pub fn end(&mut self, pid: u32, status: u8, contexts: Contexts) -> Remains {
        let mut remains = Remains::default();
        for context in contexts {
            match self.sessions.remove(&context.id()).and_then(|watch| watch.owner) {
                None => remains.contexts.push(context),
                owner => {
                    let id = context.id();
                    self.sessions.insert(id, Watch { owner, on: Watched::Ended(context) });
                }
            }
        }
        self.orphan_children(pid, &mut remains);
        self.notify_parent(pid, status);
        // The programs that waited to inspect others may have ended; one that has not can request
        // again.
        self.unpark_all();
        remains.is_last = !self.any_live();
        remains
    }

    /// Gives `status` to the parent of `pid`, if there is one, and wakes it if it is blocked: a
    /// parent that is runnable or running is woken when it blocks or its turn ends.
    fn notify_parent(&mut self, pid: u32, status: u8) {
        let parent = self.parent(pid).and_then(|parent| self.programs.get_mut(&parent));
        match parent {
            Some(ProgramEntry { state, process, .. }) => {
                let is_blocked = matches!(state, RunState::Blocked(_));
                let process = process.take_if(|_| is_blocked);
                self.set_state(pid, RunState::Ended(status));
                process.into_iter().for_each(|process| self.block(process));
            }
            None => {
                self.programs.remove(&pid);
            }
        }
    }

    /// Enqueues all programs that are parked for an inspection.
    fn unpark_all(&mut self) {
        let parked = |entry: &ProgramEntry| matches!(entry.state, RunState::ParkedForInspection(_));
        for (pid, entry) in self.programs.iter_mut().filter(|(_, entry)| parked(entry)) {
            entry.state = RunState::Runnable;
            self.run_queue.push_back(*pid);
        }
    }

    /// Removes `pid` as the parent of programs and as the owner of sessions.
    fn orphan_children(&mut self, pid: u32, remains: &mut Remains) {
        for entry in self.programs.values_mut().filter(|entry| entry.parent == Some(pid)) {
            entry.parent = None;
        }
        let orphaned = |_: &u32, entry: &mut ProgramEntry| {
            entry.parent.is_none() && matches!(entry.state, RunState::New | RunState::Ended(_))
        };
        for (_, entry) in self.programs.extract_if(.., orphaned) {
            remains.orphans.extend(entry.process.map(|process| *process));
        }
        for watch in self.sessions.values_mut().filter(|watch| watch.owner == Some(pid)) {
            watch.owner = None;
        }
        let over = |_: &u32, watch: &mut Watch| match watch.on {
            Watched::Ended(_) => watch.owner.is_none(),
            Watched::Program(on) => remains.orphans.iter().any(|process| process.pid == on),
        };
        for (_, watch) in self.sessions.extract_if(.., over) {
            if let Watched::Ended(context) = watch.on {
                remains.contexts.push(context);
            }
        }
    }

    /// Calls `inspect` with a program that is off the CPUs, and unparks it if it was parked for
    /// this. Marks a running program for parking at its next preemption.
    pub fn inspect<T>(&mut self, pid: u32, inspect: impl FnOnce(&mut Process) -> T) -> Lookup<T> {
        let Some(entry) = self.programs.get_mut(&pid) else { return Lookup::Unknown };
        if let RunState::Running { lapic, wanted } = &mut entry.state {
            *wanted = true;
            return Lookup::Running(*lapic);
        }
        let Some(process) = &mut entry.process else { return Lookup::Ended };
        let answer = inspect(process);
        if let RunState::ParkedForInspection(_) = entry.state {
            self.make_runnable(pid);
        }
        Lookup::Parked(answer)
    }

    /// The identity of a program that has not ended, for a session.
    pub fn subject(&self, pid: u32) -> Option<Subject> {
        let entry = self.programs.get(&pid)?;
        let has_ended = matches!(entry.state, RunState::Ended(_));
        (!has_ended).then(|| entry.subject.clone())
    }

    /// The program that loaded this one; `None` if that has ended.
    pub fn parent(&self, pid: u32) -> Option<u32> {
        self.programs.get(&pid)?.parent
    }

    /// Returns whether the program was loaded by the command line, or by a program that has ended.
    pub fn has_no_parent(&self, pid: u32) -> bool {
        self.programs.get(&pid).is_some_and(|entry| entry.parent.is_none())
    }
}
