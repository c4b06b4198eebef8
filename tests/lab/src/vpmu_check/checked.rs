//! The results of a check guest, read from its log.

/// The results of a guest and of the host's comparisons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Lines, one per check.
    pub lines: Vec<String>,
    /// Number of checks that passed.
    pub held: usize,
    /// Number of checks that failed.
    pub failed: usize,
    /// Whether the guest printed its summary.
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

    /// Adds a check of the host: `got` must equal `want`.
    pub(super) fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, got: T, want: T) {
        let holds = got == want;
        self.lines.push(if holds {
            format!("ok   {what}")
        } else {
            format!("FAIL {what}: {got:?}, want {want:?}")
        });
        self.held += usize::from(holds);
        self.failed += usize::from(!holds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_summary_are_read() {
        let log = "ok   a\r\nFAIL b: 1, want 2\r\nnoise\r\n2 checks, 1 failed\r\n";
        let checked = Checked::read(log);
        assert_eq!((checked.held, checked.failed, checked.complete), (1, 1, true));
        assert_eq!(checked.lines, ["ok   a", "FAIL b: 1, want 2"]);
        assert!(!Checked::read("ok   a\r\n").complete);
    }
}
