//! The rings whose cycles are broken down.

use clap::ValueEnum;
use tally_breakdown::Stack;

/// Suffix of the names of ring 0's events.
pub(super) const RING_0: &str = ":k";

/// The rings of `--breakdown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Rings {
    /// User mode: ring 3
    #[default]
    User,
    /// User mode and ring 0, each apart
    Both,
    /// User mode, by completion stalls: cycles in which nothing retired, by what the oldest
    /// instruction waited for
    Stalls,
}

impl Rings {
    /// The suffixes of the names of the events of user mode, and of ring 0.
    pub(super) fn suffixes(self) -> [Option<&'static str>; 2] {
        match self {
            Rings::User | Rings::Stalls => [Some(""), None],
            Rings::Both => [Some(":u"), Some(RING_0)],
        }
    }

    /// The list of events for a stack.
    pub fn list(self, stack: &Stack) -> String {
        let events = stack.events();
        let of = |suffix| events.iter().map(move |event| format!("{event}{suffix}"));
        self.suffixes().into_iter().flatten().flat_map(of).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ring_has_all_events() {
        let stack = tally_breakdown::stack_of(0x606a6).unwrap();
        let (user, both) = (Rings::User.list(stack), Rings::Both.list(stack));
        assert_eq!(user, stack.events().join(","));
        let words = |list: &str| list.split(',').count();
        assert_eq!(words(&both), 2 * words(&user));
        assert!(both.contains("CYCLE_ACTIVITY.STALLS_L3_MISS:u,"), "{both}");
        assert!(both.ends_with(":k"), "{both}");
    }
}
