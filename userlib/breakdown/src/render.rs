//! A breakdown as text of 80 columns.

use alloc::string::String;
use core::fmt;

use tally_abi::text::{Grouped, percent};

use super::{cycles::Breakdown, tree::CyclePart};

/// Columns of a name.
const NAME: usize = 40;
/// Columns of a line of text.
const LINE: usize = 80;

impl fmt::Display for Breakdown {
    /// Writes the column of the truth if any part has one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breakdown { cycles, instructions, parts, missing, .. } = self;
        let cpi = *cycles as f64 / (*instructions).max(1) as f64;
        let (grouped, instructions) = (Grouped(*cycles), Grouped(*instructions));
        writeln!(f, "{instructions} instructions in {grouped} cycles: {cpi:.3} cycles each")?;
        let has_truth = parts.iter().any(|part| part.truth.is_some());
        let (share, bar) = ("share", "± 95 %");
        let truth = if has_truth { "    truth" } else { "" };
        writeln!(f, "{:<NAME$} {:>7} {share:>8} {bar:>8}{truth}", "cycles in", "CPI")?;
        for part in parts {
            self.write_part(part, has_truth, f)?;
        }
        if let Some(losses) = self.losses() {
            writeln!(f, "most are lost to: {losses}")?;
        }
        writeln!(f, "{}\n", wrapped(&alloc::format!("not told apart here: {missing}")))
    }
}

/// Breaks a text into lines of at most 80 columns, between words.
pub fn wrapped(text: &str) -> String {
    let (mut whole, mut columns) = (String::new(), 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if columns > 0 && columns + 1 + length > LINE {
            whole += "\n";
            columns = 0;
        } else if columns > 0 {
            whole += " ";
            columns += 1;
        }
        whole += word;
        columns += length;
    }
    whole
}

impl Breakdown {
    /// All cycles by the truth, which the parts of the first level divide. Where ring 0 shares
    /// counters, they are not the estimated ones.
    pub fn true_cycles(&self) -> f64 {
        let first = self.parts.iter().filter(|part| part.level <= 1);
        first.filter_map(|part| part.truth).sum()
    }

    /// Writes a row. `!` marks a truth outside of the interval.
    fn write_part(
        &self,
        part: &CyclePart,
        has_truth: bool,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let CyclePart { name, cpi, share, half_width_95, truth, level, of_cycles, .. } = part;
        let indent = usize::from(2 * level.saturating_sub(1));
        let of = if *of_cycles { " (of cycles)" } else { "" };
        let room = NAME - indent - of.len();
        let of_all = |cycles: f64| cycles / self.cycles.max(1) as f64;
        let [share, bar] = [*share, of_all(*half_width_95)].map(|share| percent(share, false));
        let rest = room.saturating_sub(name.chars().count());
        write!(f, "{:indent$}{name}{of}{:rest$}", "", "")?;
        write!(f, " {cpi:>7.3} {share:>8} {bar:>8}")?;
        if has_truth {
            let mark = if truth.is_some_and(|truth| !part.contains(truth)) { "!" } else { "" };
            match truth {
                Some(truth) => {
                    let share = truth / self.true_cycles().max(1.0);
                    write!(f, " {:>8}{mark}", percent(share, false))?;
                }
                None => write!(f, " {:>8}", "-")?,
            }
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_between_words() {
        let text = wrapped(&"word ".repeat(40));
        assert!(text.lines().all(|line| line.len() <= LINE), "{text}");
        assert_eq!((text.lines().count(), text.replace('\n', " ")), (3, "word ".repeat(40)));
        assert_eq!(wrapped("two words\nand two"), "two words\nand two");
    }
}
