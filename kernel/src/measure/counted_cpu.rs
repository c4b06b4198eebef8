//! The CPU that a context counts, and what programs use there.

use tally_abi::{Instance, usage::Usage};

/// The CPU of a context.
#[derive(Clone, Copy, Debug)]
pub struct CountedCpu {
    /// The number of the session that the context is a part of.
    pub(super) session: u32,
    /// The CPU's number.
    pub(super) cpu: u16,
    /// What the running program had used when the CPU switched to it, or counting began; none
    /// while nothing is counted.
    since: Option<Usage>,
    /// What programs used on this CPU before.
    used: Usage,
}

impl CountedCpu {
    /// A CPU, for a session that has not counted yet.
    pub fn new(session: u32, cpu: u16) -> CountedCpu {
        CountedCpu { session, cpu, since: None, used: Usage::default() }
    }

    /// The CPU runs a program from here on, which has used `usage` before.
    pub fn begin(&mut self, usage: Usage) {
        self.since = Some(usage);
    }

    /// The running program has used `usage` up to now.
    pub fn credit(&mut self, usage: Usage) {
        if let Some(since) = self.since.replace(usage) {
            self.used = self.used.with(usage.since(since));
        }
    }

    /// The CPU runs the program no more.
    pub fn end(&mut self) {
        self.since = None;
    }

    /// The CPU as an instance of its session.
    pub fn instance(&self) -> Instance {
        Instance { number: self.cpu.into(), usage: self.used, ..Instance::default() }
    }
}
