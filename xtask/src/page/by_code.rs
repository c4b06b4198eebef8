//! Cycles of a program's functions by cause, on the page of its run.

use serde::Serialize;
use tally_breakdown::CyclePart;

use super::cycles::Share;
use crate::samples::breakdown::{ByCode, Code};

/// A breakdown by function as shown on a page.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Functions {
    program: String,
    cycles: f64,
    samples: u64,
    /// Delay of samples, in words.
    skid: Option<String>,
    not_told_apart: &'static str,
    functions: Vec<Function>,
    /// The number and the share of the other functions.
    others: (usize, f64),
}

/// A function. Shares are of all cycles.
#[derive(Clone, Debug, Serialize)]
struct Function {
    whole: Share<String>,
    parts: Vec<Share<String>>,
    largest_loss: Option<String>,
    is_told_apart: bool,
    /// The share of the parts that are not shown.
    rest: f64,
}

impl Functions {
    pub(super) fn of(by: &ByCode) -> Functions {
        let (shown, others) = by.shown();
        Functions {
            program: by.name.clone(),
            cycles: by.cycles,
            samples: by.samples,
            skid: by.skid.map(|skid| skid.to_string()),
            not_told_apart: by.not_told_apart,
            functions: shown.iter().map(|code| Function::of(code, by.cycles.max(1.0))).collect(),
            others: (others.len(), others.iter().map(|code| code.share).sum()),
        }
    }
}

impl Function {
    fn of(code: &Code, cycles: f64) -> Function {
        let (parts, rest) = code.shown(cycles);
        let part = |part: &CyclePart| {
            let of_all = |part: f64| part / cycles;
            let half_width = of_all(part.half_width_95);
            let share = [of_all(part.cycles), half_width];
            Share::around(part.name.to_string(), 2, share, part.truth.map(of_all))
        };
        let share = [code.share, code.half_width_95];
        let mut whole = Share::around(code.name.clone(), 1, share, code.truth);
        whole.cpi = code.cpi;
        Function {
            whole,
            parts: parts.map(part).collect(),
            largest_loss: code.largest_loss.clone(),
            is_told_apart: code.is_told_apart,
            rest,
        }
    }
}
