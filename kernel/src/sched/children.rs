//! The table's view for parents: their children's state, usage and end.

use alloc::vec::Vec;

use tally_abi::{Error, usage::Usage};

use super::table::{self, Lookup, ProgramTable, RunState};
use crate::{
    cpu::Cpu,
    task::{
        Process,
        send::SendError,
        signal::{BY_PROGRAM, Pending, SIGKILL},
    },
};

/// Maximum number of programs that a program has loaded and not waited for.
const MAX_CHILDREN: usize = 32;

/// State of a child, for a parent that waits for its end.
pub enum ChildState {
    /// Ended with this status, and removed from the table.
    Ended(u8),
    /// Running, runnable or blocked.
    Alive,
    /// Not started yet.
    New,
    /// Not a child of the parent.
    Unknown,
}

impl ProgramTable {
    /// Reports a child's state, like `waitpid`: an ended child is removed, and its usage is added
    /// to that of the parent's children.
    pub fn child_state(&mut self, pid: u32, parent: u32) -> ChildState {
        let entry = self.programs.get(&pid).filter(|entry| entry.parent == Some(parent));
        match entry.map(|entry| (entry.state, entry.usage)) {
            None => ChildState::Unknown,
            Some((RunState::New, _)) => ChildState::New,
            Some((RunState::Ended(status), usage)) => {
                self.programs.remove(&pid);
                if let Some(parent) = self.programs.get_mut(&parent) {
                    parent.children = parent.children.with(usage);
                }
                ChildState::Ended(status)
            }
            Some(_) => ChildState::Alive,
        }
    }

    /// Wakes the threads of `process` that wait for children which have ended.
    pub fn wake_child_waiters(&mut self, process: &mut Process) {
        let pid = process.pid;
        process.threads.wake_child_waiters(|child| match self.child_state(child, pid) {
            ChildState::Ended(status) => Some(status.into()),
            ChildState::Alive | ChildState::New => None,
            // Another thread has taken the child's status.
            ChildState::Unknown => Some(Error::NoProgram.to_return() as u64),
        });
    }

    /// Returns whether `parent` loaded the program.
    pub fn is_child(&self, pid: u32, parent: u32) -> bool {
        self.parent(pid) == Some(parent)
    }

    /// Returns whether `parent` may load another program. Ended programs that it has not waited for
    /// count too.
    pub fn may_load(&self, parent: u32) -> bool {
        let children = self.programs.values().filter(|entry| entry.parent == Some(parent));
        children.count() < MAX_CHILDREN
    }

    /// Usage of the programs that `pid` has loaded and waited for.
    pub fn children_usage(&self, pid: u32) -> Usage {
        self.programs.get(&pid).map_or(Usage::default(), |entry| entry.children)
    }

    /// Records the usage of a program that ends.
    pub(super) fn set_usage(&mut self, pid: u32, usage: Usage) {
        if let Some(entry) = self.programs.get_mut(&pid) {
            entry.usage = usage;
        }
    }

    /// The usage of a program, which may have ended.
    pub fn usage(&mut self, pid: u32) -> Lookup<Usage> {
        match self.inspect(pid, |process| process.usage()) {
            Lookup::Ended => match self.programs.get(&pid) {
                Some(entry) => Lookup::Parked(entry.usage),
                None => Lookup::Unknown,
            },
            other => other,
        }
    }

    /// Returns whether a program has loaded others, which it may measure.
    fn is_parent(&self, pid: u32) -> bool {
        let has_child = || self.programs.values().any(|entry| entry.parent == Some(pid));
        self.children_usage(pid) != Usage::default() || has_child()
    }

    /// Sends `SIGKILL` to the programs off the CPUs that have loaded no others.
    fn kill_parked(&mut self) {
        let parked = self.programs.iter().filter(|(_, entry)| entry.process.is_some());
        let started = parked.filter(|(_, entry)| !matches!(entry.state, RunState::New));
        let pids = started.map(|(pid, _)| *pid).filter(|pid| !self.is_parent(*pid));
        for pid in pids.collect::<Vec<u32>>() {
            // A program that cannot take the signal now gets the next tick's.
            let _ = self.kill(pid, 0);
        }
    }

    /// Sends `SIGKILL` to a program of `parent`.
    pub fn kill(&mut self, pid: u32, parent: u32) -> Lookup<Result<(), SendError>> {
        let signal = Pending::sent(SIGKILL, BY_PROGRAM, parent);
        let found = self.inspect(pid, |process| process.send_signal(None, signal));
        let is_woken = self.programs.get(&pid).is_some_and(|entry| {
            let process = entry.process.as_deref();
            let may_run = process.is_some_and(|it| it.threads.next_affinity().is_some());
            matches!(entry.state, RunState::Blocked(_)) && may_run
        });
        if is_woken {
            self.make_runnable(pid);
        }
        found
    }
}

/// Sends `SIGKILL` to the programs that have loaded no others: this CPU's and those off the CPUs.
/// One that has loaded others prints what it has measured when they have ended. Each tick of a
/// machine whose host has asked for the end does it, until there are none.
pub fn kill_all(cpu: &mut Cpu) {
    let mut table = table::lock();
    table.kill_parked();
    let running = cpu.current.as_deref_mut();
    if let Some(process) = running.filter(|process| !table.is_parent(process.pid)) {
        // As above.
        let _ = process.send_signal(None, Pending::sent(SIGKILL, BY_PROGRAM, 0));
    }
}
