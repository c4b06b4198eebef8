//! What a check guest found: its lines, read from the log.

/// What a guest found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Every check's line.
    pub lines: Vec<String>,
    /// Checks that held.
    pub held: usize,
    /// Checks that did not.
    pub failed: usize,
    /// Whether the guest came to its end.
    pub complete: bool,
}

impl Checked {
    pub(super) fn read(log: &str) -> Checked {
        let mut checked = Checked::default();
        for line in log.lines().map(str::trim_end) {
            let held = line.starts_with("ok ");
            let failed = line.starts_with("FAIL ");
            if held || failed {
                checked.held += usize::from(held);
                checked.failed += usize::from(failed);
                checked.lines.push(line.to_owned());
            }
        }
        let sum = format!("{} checks, ", checked.held + checked.failed);
        checked.complete = log.lines().any(|line| line.starts_with(&sum));
        checked
    }

    /// A check of the host's own.
    pub(super) fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, got: T, want: T) {
        let holds = got == want;
        self.lines.push(match holds {
            true => format!("ok   {what}"),
            false => format!("FAIL {what}: {got:?}, want {want:?}"),
        });
        self.held += usize::from(holds);
        self.failed += usize::from(!holds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_the_end_is_seen() {
        let log = "ok   a\r\nFAIL b: 1, want 2\r\nnoise\r\n2 checks, 1 failed\r\n";
        let checked = Checked::read(log);
        assert_eq!((checked.held, checked.failed, checked.complete), (1, 1, true));
        assert_eq!(checked.lines, ["ok   a", "FAIL b: 1, want 2"]);
        assert!(!Checked::read("ok   a\r\n").complete);
    }
}
