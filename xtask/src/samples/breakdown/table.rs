//! The breakdown by code as text of 80 columns.

use std::fmt::{self, Write as _};

use tally_abi::text::Grouped;

use tally_breakdown::{CyclePart, wrapped};

use super::{ByCode, Code, Skid};
use crate::samples::short_functions;

/// Smallest share of all cycles with which a part is printed separately.
const LEAST_PART: f64 = 0.005;
/// Smallest share of all cycles with which a piece of code is printed separately.
const LEAST_CODE: f64 = 0.001;
/// Maximum pieces of code that are printed with their parts.
const SHOWN: usize = 10;
/// Columns of a name.
const COLUMNS: usize = 46;

impl fmt::Display for ByCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (samples, cycles) = (Grouped(self.samples), Grouped(self.cycles as u64));
        let program = self.name.rsplit('/').next().unwrap_or(&self.name);
        writeln!(f, "where {cycles} cycles of {program} go, by {samples} samples")?;
        match self.skid {
            Some(skid) => writeln!(f, "{skid}")?,
            None => writeln!(f, "skid: not known, there are no samples of instructions")?,
        }
        let has_truth = self.code.iter().any(|code| code.truth.is_some());
        let truth = if has_truth { "   truth" } else { "" };
        writeln!(f, "{:<COLUMNS$}   share  ± 95 %     CPI{truth}", "code")?;
        let (shown, rest) = self.shown();
        for (code, name) in shown.iter().zip(self.names(shown)) {
            code.write(f, &name, self.cycles, has_truth)?;
        }
        if !rest.is_empty() {
            let share: f64 = rest.iter().map(|code| code.share).sum();
            let name = format!("{} others", rest.len());
            writeln!(f, "{name:<COLUMNS$} {}", percent(share))?;
        }
        if shown.iter().any(|code| code.largest_loss.is_some()) {
            writeln!(f, "* marks what most of its cycles are lost to; ? where another can be it")?;
        }
        writeln!(f, "{}", wrapped(&format!("not told apart here: {}", self.not_told_apart)))
    }
}

impl ByCode {
    /// The pieces that are shown one by one, and the rest.
    pub fn shown(&self) -> (&[Code], &[Code]) {
        let large = self.code.iter().take_while(|code| code.share >= LEAST_CODE).count();
        self.code.split_at(large.clamp(1, SHOWN).min(self.code.len()))
    }
}

impl ByCode {
    /// The names of pieces of code in the columns for them: of a line its beginning.
    fn names(&self, shown: &[Code]) -> Vec<String> {
        let names: Vec<&str> = shown.iter().map(|code| &*code.name).collect();
        if !self.is_by_line {
            return short_functions(&names, COLUMNS);
        }
        let beginning = |name: &&str| match name.char_indices().nth(COLUMNS) {
            Some(_) => name.chars().take(COLUMNS - 1).chain(['…']).collect(),
            None => (*name).to_owned(),
        };
        names.iter().map(beginning).collect()
    }
}

impl fmt::Display for Skid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Skid { instructions: [half, most], cycles: [half_cycles, most_cycles] } = self;
        write!(
            f,
            "skid: a sample is {half} instructions and {half_cycles} cycles late in the median,\n\
             95 % are within {most} instructions and {most_cycles} cycles",
        )
    }
}

impl Code {
    /// The piece by this name, and its parts as shares of all `cycles`.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        cycles: f64,
        has_truth: bool,
    ) -> fmt::Result {
        let mut line = format!("{name:<COLUMNS$}");
        // Writing to a string does not fail.
        let _ = write!(line, " {} {}", percent(self.share), percent(self.half_width_95));
        let cpi = self.cpi.map_or_else(|| "-".into(), |cpi| format!("{cpi:.3}"));
        let _ = write!(line, " {cpi:>7}");
        if has_truth {
            line += &truth_cell(self.truth, self.share, self.half_width_95);
        }
        writeln!(f, "{}", line.trim_end())?;
        let all = cycles.max(1.0);
        let (shown, rest) = self.shown(all);
        for part in shown {
            let share = part.cycles / all;
            let is_most = self.largest_loss.as_deref() == Some(&*part.name);
            let mark = match (is_most, self.is_told_apart) {
                (true, true) => "* ",
                (true, false) => "? ",
                _ => "  ",
            };
            let mut line = format!("{:<COLUMNS$}", format!("  {mark}{}", part.name));
            let half_width = part.half_width_95 / all;
            let _ = write!(line, " {} {}", percent(share), percent(half_width));
            if has_truth {
                let truth = part.truth.map(|truth| truth / all);
                let _ = write!(line, "        {}", truth_cell(truth, share, half_width));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        if rest > 0.0 {
            writeln!(f, "{:<COLUMNS$} {}", "    the rest", percent(rest))?;
        }
        Ok(())
    }
}

impl Code {
    /// The parts that are shown one by one, and the share of the others in all `cycles`.
    pub(crate) fn shown(&self, cycles: f64) -> (impl Iterator<Item = &CyclePart>, f64) {
        let shares = self.parts.iter().map(|part| part.cycles / cycles);
        let rest = shares.filter(|share| *share < LEAST_PART).sum();
        (self.parts.iter().filter(move |part| part.cycles / cycles >= LEAST_PART), rest)
    }
}

/// The cell of a truth: `!` marks a truth outside the interval.
fn truth_cell(truth: Option<f64>, share: f64, half_width: f64) -> String {
    let Some(truth) = truth else { return "       -".into() };
    let mark = if (truth - share).abs() > half_width + 1e-5 { "!" } else { "" };
    format!(" {}{mark}", percent(truth))
}

/// A share as text of 7 columns.
fn percent(share: f64) -> String {
    format!("{:>6.2}%", 100.0 * share)
}
