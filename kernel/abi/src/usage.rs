//! What a program used of the machine so far: what `PROGRAM_USAGE` writes.

/// A [`Usage`] as it crosses the system-call boundary.
pub type UsageWords = [u64; 4];

/// What a program used. All numbers are exact, and only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Nanoseconds for which its threads were on CPUs, the kernel's work for it included.
    pub ran_ns: u64,
    /// Pages that it touched for the first time: each took a fault, or a system call.
    pub page_faults: u64,
    /// How often a thread left the CPU to wait.
    pub waits: u64,
    /// How often a thread left the CPU for another thread or program.
    pub preemptions: u64,
}

impl Usage {
    /// How often a thread left the CPU.
    pub fn context_switches(&self) -> u64 {
        self.waits + self.preemptions
    }

    /// What was used since `before`.
    pub fn since(self, before: Usage) -> Usage {
        self.each(before, u64::saturating_sub)
    }

    /// What both used.
    pub fn with(self, other: Usage) -> Usage {
        self.each(other, u64::saturating_add)
    }

    fn each(self, other: Usage, of: fn(u64, u64) -> u64) -> Usage {
        let (a, b) = (self.to_words(), other.to_words());
        Usage::from_words([0, 1, 2, 3].map(|word| of(a[word], b[word])))
    }

    /// Encodes it.
    pub fn to_words(self) -> UsageWords {
        [self.ran_ns, self.page_faults, self.waits, self.preemptions]
    }

    /// Decodes it.
    pub fn from_words([ran_ns, page_faults, waits, preemptions]: UsageWords) -> Usage {
        Usage { ran_ns, page_faults, waits, preemptions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_adds_up() {
        let all = Usage::from_words([10, 2, 3, 4]);
        let first = Usage::from_words([7, 2, 1, 0]);
        assert_eq!(all.since(first), Usage::from_words([3, 0, 2, 4]));
        assert_eq!(all.since(first).with(first), all);
        assert_eq!((all.context_switches(), Usage::from_words(all.to_words())), (7, all));
    }
}
