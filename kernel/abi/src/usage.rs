//! The resources that a program has used so far, as `PROGRAM_USAGE` writes them.

/// A [`Usage`] as it crosses the system-call boundary.
pub type UsageWords = [u64; 6];

/// Resources that a program has used. All numbers are exact, and only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Nanoseconds for which its threads were on CPUs in ring 3, overflow interrupts included.
    pub user_ns: u64,
    /// Nanoseconds of the kernel's work for it.
    pub system_ns: u64,
    /// Pages that the program touched for the first time: each took a fault, or a system call.
    pub page_faults: u64,
    /// Number of times that a thread left the CPU to wait.
    pub waits: u64,
    /// Number of times that a thread left the CPU for another thread or program.
    pub preemptions: u64,
    /// Number of times that it went on on another CPU than before.
    pub migrations: u64,
}

impl Usage {
    /// Nanoseconds for which its threads were on CPUs.
    pub fn ran_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }

    /// Number of times that a thread left the CPU.
    pub fn context_switches(&self) -> u64 {
        self.waits + self.preemptions
    }

    /// Usage since `before`.
    pub fn since(self, before: Usage) -> Usage {
        self.each(before, u64::saturating_sub)
    }

    /// Sum of two usages.
    pub fn with(self, other: Usage) -> Usage {
        self.each(other, u64::saturating_add)
    }

    fn each(self, other: Usage, of: fn(u64, u64) -> u64) -> Usage {
        let (a, b) = (self.to_words(), other.to_words());
        Usage::from_words(core::array::from_fn(|word| of(a[word], b[word])))
    }

    /// Encodes it.
    pub fn to_words(self) -> UsageWords {
        let Usage { user_ns, system_ns, page_faults, waits, preemptions, migrations } = self;
        [user_ns, system_ns, page_faults, waits, preemptions, migrations]
    }

    /// Decodes it.
    pub fn from_words(words: UsageWords) -> Usage {
        let [user_ns, system_ns, page_faults, waits, preemptions, migrations] = words;
        Usage { user_ns, system_ns, page_faults, waits, preemptions, migrations }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_adds_up() {
        let all = Usage::from_words([10, 5, 2, 3, 4, 6]);
        let first = Usage::from_words([7, 1, 2, 1, 0, 5]);
        assert_eq!(all.since(first), Usage::from_words([3, 4, 0, 2, 4, 1]));
        assert_eq!(all.since(first).with(first), all);
        assert_eq!((all.ran_ns(), first.ran_ns()), (15, 8));
        assert_eq!((all.context_switches(), Usage::from_words(all.to_words())), (7, all));
    }
}
