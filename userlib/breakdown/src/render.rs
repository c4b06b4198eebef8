//! A breakdown as text of 80 columns.

use alloc::format;
use core::fmt;

use tally_abi::text::{Grouped, percent};

use super::cycles::{Breakdown, CyclePart};

/// The least share of the cycles of which it is said that the divider was busy.
const LEAST_BUSY: f64 = 0.01;

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_cycles(f)?;
        self.write_slots(f)
    }
}

impl Breakdown {
    /// Where the cycles went. The column of the truth is there if any part has one.
    fn write_cycles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breakdown { cycles, instructions, parts, divider_busy, not_told_apart, .. } = self;
        let cpi = *cycles as f64 / (*instructions).max(1) as f64;
        let (grouped, instructions) = (Grouped(*cycles), Grouped(*instructions));
        writeln!(f, "{instructions} instructions in {grouped} cycles: {cpi:.3} cycles each")?;
        let has_truth = parts.iter().any(|part| part.truth.is_some());
        let (share, bar, truth) = ("share", "± 95 %", Truth::heading(has_truth));
        writeln!(f, "{:<32} {:>8} {share:>8} {bar:>8}{truth}", "cycles in", "CPI")?;
        let of_all = |part: f64| part / (*cycles).max(1) as f64;
        for part in parts {
            let CyclePart { name, cpi, share, half_width_95, truth, .. } = part;
            let is_outside = truth.is_some_and(|truth| !part.contains(truth));
            let truth = Truth { has_truth, share: truth.map(of_all), is_outside };
            let [share, bar] = [*share, of_all(*half_width_95)].map(|share| percent(share, false));
            writeln!(f, "{name:<32} {cpi:>8.3} {share:>8} {bar:>8}{truth}")?;
        }
        if let Some(busy) = divider_busy.filter(|busy| *busy >= LEAST_BUSY) {
            writeln!(f, "the divider was busy in {} of the cycles", percent(busy, false))?;
        }
        if let Some(losses) = self.losses() {
            writeln!(f, "most are lost to: {losses}")?;
        }
        writeln!(f, "not told apart here: {not_told_apart}\n")
    }

    /// Where the slots of dispatch went, if they are divided.
    fn write_slots(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.slots.is_empty() {
            return Ok(());
        }
        let has_truth = self.slots.iter().any(|part| part.truth.is_some());
        let (name, share, bar) = ("slots of dispatch", "share", "± 95 %");
        writeln!(f, "{name:<41} {share:>8} {bar:>8}{}", Truth::heading(has_truth))?;
        for part in &self.slots {
            let is_outside = part.truth.is_some_and(|truth| !part.contains(truth));
            let truth = Truth { has_truth, share: part.truth, is_outside };
            let [share, bar] = [part.share, part.half_width_95].map(|share| percent(share, false));
            let of = if part.of_cycles { " (of cycles)" } else { "" };
            let name = format!("{:1$}{2}{of}", "", usize::from(2 * part.level - 2), part.name);
            writeln!(f, "{name:<41} {share:>8} {bar:>8}{truth}")?;
        }
        writeln!(f, "missing here: {}\n", self.slots_missing)
    }
}

/// The cell of a part's truth: `!` marks what the interval does not contain.
struct Truth {
    has_truth: bool,
    share: Option<f64>,
    is_outside: bool,
}

impl Truth {
    fn heading(has_truth: bool) -> &'static str {
        if has_truth { "    truth" } else { "" }
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.has_truth {
            return Ok(());
        }
        let mark = if self.is_outside { "!" } else { "" };
        let share = self.share.map_or_else(|| "-".into(), |share| percent(share, false));
        write!(f, " {share:>8}{mark}")
    }
}
