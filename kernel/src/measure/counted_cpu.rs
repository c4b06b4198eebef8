//! The CPU that a context counts, and the usage of its programs there.

use tally_abi::{Instance, usage::Usage};

/// The CPU of a context.
#[derive(Clone, Copy, Debug)]
pub struct CountedCpu {
    /// The number of the session that the context is a part of.
    pub(super) session: u32,
    /// The CPU's number.
    pub(super) cpu: u16,
    /// The running program's usage when the CPU switched to it, or when counting started; `None`
    /// while nothing is counted.
    since: Option<Usage>,
    /// Usage of programs on this CPU before.
    used: Usage,
}

impl CountedCpu {
    /// Makes the record of a CPU, for a session that has not counted yet.
    pub fn new(session: u32, cpu: u16) -> CountedCpu {
        CountedCpu { session, cpu, since: None, used: Usage::default() }
    }

    /// Records that the CPU starts to run a program, which has used `usage` before.
    pub fn begin(&mut self, usage: Usage) {
        self.since = Some(usage);
    }

    /// Credits the running program's usage up to now, which is `usage`.
    pub fn credit(&mut self, usage: Usage) {
        if let Some(since) = self.since.replace(usage) {
            self.used = self.used.with(usage.since(since));
        }
    }

    /// Records that the CPU stops running the program.
    pub fn end(&mut self) {
        self.since = None;
    }

    /// Returns the CPU as an instance of its session.
    pub fn instance(&self) -> Instance {
        Instance { number: self.cpu.into(), usage: self.used, ..Instance::default() }
    }
}
