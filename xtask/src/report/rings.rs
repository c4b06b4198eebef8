//! The rings whose cycles are broken down.

use clap::ValueEnum;
use tally_breakdown::Stack;

/// The rings of `--breakdown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Rings {
    /// User mode: ring 3
    #[default]
    User,
    /// User mode and ring 0, each apart
    Both,
}

impl Rings {
    /// What is behind the names of the events of user mode, and of ring 0.
    pub(super) fn suffixes(self) -> [Option<&'static str>; 2] {
        match self {
            Rings::User => [Some(""), None],
            Rings::Both => [Some(":u"), Some(":k")],
        }
    }

    /// The list of events for a stack.
    pub fn list(self, stack: &Stack) -> String {
        let list = stack.list(&stack.events());
        let behind = |suffix: &str| {
            let named = |word: &str| match word.strip_suffix('}') {
                Some(event) => format!("{event}{suffix}}}"),
                None => format!("{word}{suffix}"),
            };
            list.split(',').map(named).collect::<Vec<_>>().join(",")
        };
        self.suffixes().into_iter().flatten().map(behind).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ring_has_all_events_and_the_same_braces() {
        let stack = tally_breakdown::stack_of(0x606a6).unwrap();
        let (user, both) = (Rings::User.list(stack), Rings::Both.list(stack));
        assert_eq!(user, stack.list(&stack.events()));
        let words = |list: &str| list.split(',').count();
        assert_eq!(words(&both), 2 * words(&user));
        assert_eq!(both.matches('}').count(), 2 * user.matches('}').count());
        assert!(both.contains("CYCLE_ACTIVITY.STALLS_L3_MISS:u}"), "{both}");
        assert!(both.ends_with(":k") || both.ends_with(":k}"), "{both}");
    }
}
