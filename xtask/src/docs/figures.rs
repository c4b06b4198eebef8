//! Figures that pages quote. Each is followed by a line with the command and the commit that gave
//! it:
//!
//! ```text
//! Measured: `cargo xtask bench switch` at commit 26e8bd6
//! ```
//!
//! A fenced block before that line is a *sample*: lines printed by a `cargo xtask run`, with `…`
//! for lines left out. Some numbers move a little with the kernel's layout, so a sample is compared
//! with a new run by tolerances.

use std::{iter, ops::Range};

/// The start of the line after a figure.
pub const MARK: &str = "Measured:";
/// The mark of a fenced block's first and last line.
pub const FENCE: &str = "```";
/// The beginning of a sample's command. The output of a study takes too long to be renewed.
const RUN: &str = "cargo xtask run";
/// The line of a sample that stands for lines left out.
pub const OMITTED: &str = "…";

/// The largest relative difference of a number in a sample.
const TOLERANCE: f64 = 0.05;
/// The largest relative difference of a truth.
const TRUTH_TOLERANCE: f64 = 0.01;
/// The largest difference of an estimate, in half widths of the new one.
const HALF_WIDTHS: f64 = 2.0;
/// The largest quotient of two half widths.
const WIDTH_QUOTIENT: f64 = 2.0;

/// A figure of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The line of its mark, from 0.
    pub line: usize,
    /// The command that gave it.
    pub command: String,
    /// The commit at which the command ran.
    pub commit: String,
    /// The sample's lines, without the fences, if it is the output of a run.
    pub sample: Option<Range<usize>>,
}

impl Figure {
    /// The figures of `page`, in order.
    ///
    /// # Errors
    /// The first line that begins with [`MARK`] and has another form.
    pub fn all(page: &str) -> Result<Vec<Figure>, String> {
        let lines: Vec<&str> = page.lines().collect();
        let marked = lines.iter().enumerate().filter(|(_, text)| text.starts_with(MARK));
        let figure = |(line, text): (usize, &&str)| {
            let (command, commit) = source(text).ok_or_else(|| format!("{}: {text}", line + 1))?;
            let (command, commit) = (command.to_owned(), commit.to_owned());
            let sample = sample_before(&lines[..line]).filter(|_| command.starts_with(RUN));
            Ok(Figure { line, command, commit, sample })
        };
        marked.map(figure).collect()
    }

    /// The lines of the sample in `page` that a run's `output` does not confirm.
    pub fn stale<'a>(&self, page: &'a str, output: &str) -> Vec<&'a str> {
        let lines = self.sample.clone().into_iter().flat_map(|of| lines_of(page, of));
        lines.filter(|line| !is_confirmed(line, output)).collect()
    }

    /// Returns `page` with the sample's lines taken from `output`, measured at `commit`.
    ///
    /// # Errors
    /// The first line of the sample that has no counterpart in `output`.
    pub fn renewed(&self, page: &str, output: &str, commit: &str) -> Result<String, String> {
        let sample = self.sample.clone().unwrap_or_default();
        let renew = |(index, line): (usize, &str)| {
            if index == self.line {
                return Ok(format!("{MARK} `{}` at commit {commit}\n", self.command));
            }
            let is_sampled = sample.contains(&index) && line != OMITTED;
            let new = if is_sampled { counterpart(line, output) } else { Some(line) };
            new.map(|new| format!("{new}\n")).ok_or_else(|| line.to_owned())
        };
        page.lines().enumerate().map(renew).collect()
    }
}

/// The command and the commit of a line with a mark; `None` if the line has another form.
fn source(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix(MARK)?.strip_prefix(" `")?;
    let (command, commit) = rest.split_once("` at commit ")?;
    let is_commit = commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit());
    is_commit.then_some((command, commit))
}

/// The lines of the fenced block at the end of `lines`, without trailing blank lines.
fn sample_before(lines: &[&str]) -> Option<Range<usize>> {
    let end = lines.iter().rposition(|line| !line.trim().is_empty())?;
    let is_fence = |line: &&str| line.starts_with(FENCE);
    is_fence(&lines[end]).then_some(())?;
    let start = lines[..end].iter().rposition(is_fence)?;
    Some(start + 1..end)
}

fn lines_of(page: &str, range: Range<usize>) -> impl Iterator<Item = &str> {
    page.lines().skip(range.start).take(range.len()).filter(|line| *line != OMITTED)
}

/// Splits a line into its words and its numbers.
fn words_and_numbers(line: &str) -> (Vec<&str>, Vec<f64>) {
    let number = |word: &str| {
        let digits = word.trim_end_matches('!').trim_end_matches('%').replace(',', "");
        digits.parse::<f64>().ok()
    };
    let (numbers, words): (Vec<&str>, _) =
        line.split_whitespace().partition(|word| number(word).is_some());
    (words, numbers.into_iter().filter_map(number).collect())
}

/// The line of `output` with the same words as a sample's `line` and as many numbers.
pub fn counterpart<'a>(line: &str, output: &'a str) -> Option<&'a str> {
    let (words, numbers) = words_and_numbers(line);
    output.lines().find(|other| {
        let (of_other, found) = words_and_numbers(other);
        of_other == words && found.len() == numbers.len()
    })
}

/// Returns whether the last three words of a line are shares.
fn has_shares(line: &str) -> bool {
    line.split_whitespace().rev().take(3).all(|word| word.trim_end_matches('!').ends_with('%'))
}

fn is_confirmed(line: &str, output: &str) -> bool {
    let Some(now) = counterpart(line, output) else { return false };
    let ((_, old), (words, new)) = (words_and_numbers(line), words_and_numbers(now));
    let near = |index: usize, tolerance: f64| {
        (old[index] - new[index]).abs() <= tolerance * f64::abs(new[index])
    };
    match *new {
        _ if words.contains(&"exact") => old == new,
        // A part of a breakdown: cycles per instruction, share, half width, truth.
        [_, share, width, _truth] if has_shares(now) => {
            let quotient = old[2] / width;
            (old[1] - share).abs() <= HALF_WIDTHS * width
                && (1.0 / WIDTH_QUOTIENT..=WIDTH_QUOTIENT).contains(&quotient)
                && near(3, TRUTH_TOLERANCE)
        }
        // An estimate: half width, share or the unit's count, truth, and possibly the error.
        [estimate, width, _, _truth] | [estimate, width, _, _truth, _] if now.contains('%') => {
            let half_width = estimate * width / 100.0;
            let quotient = old[1] / width;
            (old[0] - estimate).abs() <= HALF_WIDTHS * half_width
                && (1.0 / WIDTH_QUOTIENT..=WIDTH_QUOTIENT).contains(&quotient)
                && near(2, TOLERANCE)
                && near(3, TRUTH_TOLERANCE)
        }
        _ => iter::zip(0.., &new).all(|(index, _)| near(index, TOLERANCE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
Text.

```
event  estimate ± 95 % counted truth error
A           100  exact  100.0%   100 +0.00%
B         1,000   1.0%   20.0%   990 +1.01%
…
slices      200
```

Measured: `cargo xtask run` at commit d1545e9

| a | b |

Measured: `cargo xtask bench switch` at commit 26e8bd6
";

    fn figure() -> Figure {
        Figure::all(PAGE).unwrap().remove(0)
    }

    /// The output of a run, with these rows in place of those of `PAGE`.
    fn output(a: &str, b: &str, slices: u64) -> String {
        let head = "p: P, seed 1\nevent  estimate ± 95 % counted truth error";
        format!("{head}\n{a}\n{b}\nC  5  3.0%  20.0%  5 +0.00%\n\nslices  {slices}\nPMIs  199\n")
    }

    const A: &str = "A   100 exact 100.0% 100 +0.00%";

    #[test]
    fn figures_have_a_command_a_commit_and_a_sample() {
        let found = Figure::all(PAGE).unwrap();
        let commands: Vec<(&str, &str)> =
            found.iter().map(|figure| (&*figure.command, &*figure.commit)).collect();
        let switch = ("cargo xtask bench switch", "26e8bd6");
        assert_eq!(commands, [("cargo xtask run", "d1545e9"), switch]);
        assert_eq!((found[0].sample.clone(), found[1].sample.clone()), (Some(3..8), None));
        for bad in ["Measured: today", "Measured: `x` at commit HEAD", "Measured: `x`"] {
            assert_eq!(Figure::all(&format!("x\n{bad}\n")), Err(format!("2: {bad}")));
        }
    }

    #[test]
    fn an_estimate_beside_the_unit_is_judged_by_its_bar() {
        let line = "A 1,000 2.00% 990 990";
        assert!(is_confirmed(line, "A 1,020 1.50% 991 991"));
        assert!(!is_confirmed(line, "A 1,100 1.50% 991 991"));
        assert!(!is_confirmed(line, "A 1,000 2.00% 900 900"));
    }

    #[test]
    fn a_sample_is_stale_beyond_its_tolerances() {
        let stale = |a, b, slices| figure().stale(PAGE, &output(a, b, slices)).len();
        assert_eq!(stale(A, "B   1,009 0.9% 20.0% 985 +1.0%", 201), 0);
        assert_eq!(stale("A 101 exact 100.0% 101 +0.00%", "B 1,000 1.0% 20.0% 990 +1.0%", 200), 1);
        assert_eq!(stale("A 100 1.0% 100.0% 100 +0.00%", "B 1,000 1.0% 20.0% 990 +1.0%", 200), 1);
        assert_eq!(stale(A, "B 1,021 1.0% 20.0% 990 +3.13%!", 200), 1);
        assert_eq!(stale(A, "B 1,000 2.1% 20.0% 990 +1.01%", 200), 1);
        assert_eq!(stale(A, "B 1,000 1.0% 25.0% 990 +1.01%", 200), 1);
        assert_eq!(stale(A, "B 1,000 1.0% 20.0% 970 +3.09%", 200), 1);
        assert_eq!(stale(A, "D 1,000 1.0% 20.0% 990 +1.01%", 200), 1);
        assert_eq!(stale(A, "B 1,000 1.0% 20.0% 990 +1.01%", 220), 1);
    }

    #[test]
    fn a_part_of_a_breakdown_is_judged_by_its_bar() {
        let is_stale = |now| !is_confirmed("memory, caches  0.112  19.3%  0.82%  19.3%", now);
        assert!(!is_stale("memory, caches  0.105  18.0%  0.70%  19.4%!"));
        assert!(is_stale("memory, caches  0.105  18.0%  0.60%  19.3%"));
        assert!(is_stale("memory, caches  0.112  19.3%  0.40%  19.3%"));
        assert!(is_stale("memory, caches  0.112  19.3%  0.82%  19.9%"));
    }

    #[test]
    fn a_renewed_sample_is_not_stale() {
        let output = output("A 7 exact 100.0% 7 +0.00%", "B 9,000 4.0% 10.0% 9,000 +0.00%", 300);
        let page = figure().renewed(PAGE, &output, "abcdef0").unwrap();
        let figure = Figure::all(&page).unwrap().remove(0);
        assert_eq!((figure.stale(&page, &output), &*figure.commit), (vec![], "abcdef0"));
        assert!(page.contains("…\nslices  300\n```\n\nMeasured: `cargo xtask run` at commit abc"));
        assert_eq!(page.lines().count(), PAGE.lines().count());
        let error = super::Figure::renewed(&figure, &page, "", "abcdef0").unwrap_err();
        assert!(error.starts_with("event"), "{error}");
    }
}
