//! The table's programs as those that loaded them see them: their state, what they used, their end.

use tally_abi::{Error, usage::Usage};

use super::table::{Lookup, ProgramTable, RunState};
use crate::task::{
    Process,
    send::SendError,
    signal::{BY_PROGRAM, Pending, SIGKILL},
};

/// The most programs that one program has loaded and not waited for.
const MAX_CHILDREN: usize = 32;

/// The state of a program, as its parent waits for its end.
pub enum ChildState {
    /// It has ended with this status, and is removed from the table.
    Ended(u8),
    /// It runs, or is runnable or blocked.
    Alive,
    /// It was not started yet.
    New,
    /// There is no such child.
    Unknown,
}

impl ProgramTable {
    /// The state of a child of `parent`'s; one that has ended is removed, and what it used is added
    /// to what the parent's children used.
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
            // Another thread has got its status.
            ChildState::Unknown => Some(Error::NoProgram.to_return() as u64),
        });
    }

    /// Returns whether `parent` loaded the program.
    pub fn is_child(&self, pid: u32, parent: u32) -> bool {
        self.parent(pid) == Some(parent)
    }

    /// Returns whether `parent` may load one more program: those that have ended and that it has
    /// not waited for count too.
    pub fn may_load(&self, parent: u32) -> bool {
        let children = self.programs.values().filter(|entry| entry.parent == Some(parent));
        children.count() < MAX_CHILDREN
    }

    /// What the programs used that `pid` loaded and waited for.
    pub fn children_usage(&self, pid: u32) -> Usage {
        self.programs.get(&pid).map_or(Usage::default(), |entry| entry.children)
    }

    /// Notes what a program used that ends.
    pub(super) fn set_usage(&mut self, pid: u32, usage: Usage) {
        if let Some(entry) = self.programs.get_mut(&pid) {
            entry.usage = usage;
        }
    }

    /// What a program used, which may have ended.
    pub fn usage(&mut self, pid: u32) -> Lookup<Usage> {
        match self.inspect(pid, |process| process.usage()) {
            Lookup::Ended => match self.programs.get(&pid) {
                Some(entry) => Lookup::Parked(entry.usage),
                None => Lookup::Unknown,
            },
            other => other,
        }
    }

    /// Sends `SIGKILL` to a program of `parent`'s.
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
