//! Instances of a session ([`Scope`]): each thread of a program or each CPU, counted separately.
//! `SESSION_INSTANCE` writes [`Instance`] before the readings.

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// Maximum number of events of a session that counts instances separately.
pub const MAX_INSTANCE_EVENTS: usize = 64;

/// Division of a session's counts into instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// No division: one program is counted as a whole.
    #[default]
    Program,
    /// Each thread of one program is an instance of the session ([`Instance`]).
    Threads,
    /// Each of several CPUs is an instance, whichever program it runs.
    Cpus,
}

/// An [`Instance`] as it crosses the system-call boundary.
pub type InstanceWords = [u64; 9];

/// The thread or CPU that an instance counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    /// The CPU's number, or the thread's; 0 stands for all threads for which the kernel had no
    /// memory left.
    pub number: u32,
    /// The thread's name, ended by zeros; only zeros if the thread has its program's name, and for
    /// a CPU.
    pub name: [u8; 16],
    /// Usage of the thread, or of programs on the CPU while it was counted.
    pub usage: Usage,
}

impl Instance {
    /// The name, if the instance has one.
    pub fn name(&self) -> Option<&str> {
        let name = self.name.split(|byte| *byte == 0).next()?;
        core::str::from_utf8(name).ok().filter(|name| !name.is_empty())
    }

    /// Encodes it: number, name, usage.
    pub fn to_words(self) -> InstanceWords {
        let name = u128::from_le_bytes(self.name);
        let [user, system, faults, waits, preemptions, migrations] = self.usage.to_words();
        let (low, high) = (name as u64, (name >> 64) as u64);
        [self.number.into(), low, high, user, system, faults, waits, preemptions, migrations]
    }

    /// Decodes it.
    pub fn from_words([number, low, high, usage @ ..]: InstanceWords) -> Instance {
        let name = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
        Instance { number: number as u32, name, usage: Usage::from_words(usage) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_round_trip() {
        let usage = Usage::from_words([1, 2, 3, 4, 5, 6]);
        let named = Instance { number: 7, name: *b"worker\0\0\0\0\0\0\0\0\0\0", usage };
        assert_eq!(Instance::from_words(named.to_words()), named);
        assert_eq!(named.name(), Some("worker"));
        assert_eq!(Instance::default().name(), None);
    }
}
