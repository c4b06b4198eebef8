//! Where a program's cycles went, by cause.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{
    closing::close,
    count::{Counts, SumError, square},
    slots::{SlotPart, slot_parts},
    stacks::{Part, Stack},
};

/// The most parts that are named as what most cycles may be lost to.
const MOST_LOSSES: usize = 2;

/// Where the cycles of a session went, in the modes that it counted.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Breakdown {
    /// Core cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// The parts, the largest first, work among them. Their cycles sum to `cycles`.
    pub parts: Vec<CyclePart>,
    /// The share of the cycles in which the divider was busy, 0 to 1, if they were counted. They
    /// are in other parts too.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub divider_busy: Option<f64>,
    /// What this processor does not tell apart.
    pub not_told_apart: Cow<'static, str>,
    /// The shares of the slots of dispatch, as a tree; none of a first level.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub slots: Vec<SlotPart>,
    /// What is missing of the vendor's tree, if there is one.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "str::is_empty"))]
    pub slots_missing: Cow<'static, str>,
}

/// A part of the cycles.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct CyclePart {
    /// What the cycles went to.
    pub name: Cow<'static, str>,
    /// In cycles.
    pub cycles: f64,
    /// Of all cycles, 0 to 1.
    pub share: f64,
    /// Cycles an instruction.
    pub cpi: f64,
    /// Half the width of the 95 % interval, in cycles. It takes the errors of its events as
    /// independent, unless the caller knew better; those of events of one group, of which one
    /// contains the other, are smaller.
    pub half_width_95: f64,
    /// The lower end of the interval, in cycles; not below 0.
    pub low_95: f64,
    /// The upper end of the interval, in cycles; not above all cycles.
    pub high_95: f64,
    /// The virtual PMU's, in cycles.
    pub truth: Option<f64>,
}

/// A part before the parts are closed.
struct Sum {
    name: &'static str,
    /// In cycles; below 0 by the errors of the events.
    cycles: f64,
    /// The squared half width.
    square: f64,
    truth: Option<f64>,
}

impl Sum {
    fn of(counts: Counts<'_>, errors: SumError<'_>, part: &Part) -> Sum {
        let mut sum = Sum { name: part.name, cycles: 0.0, square: 0.0, truth: Some(0.0) };
        let terms = part.terms();
        sum.square = square(counts, errors, &terms);
        for (name, sign) in terms {
            let Some(count) = counts(name) else { continue };
            sum.cycles += sign * count.estimate;
            sum.truth = sum.truth.zip(count.truth).map(|(sum, truth)| sum + sign * truth);
        }
        sum
    }

    fn part(self, cycles: u64, instructions: u64) -> CyclePart {
        let half_width_95 = libm::sqrt(self.square);
        CyclePart {
            name: self.name.into(),
            cycles: self.cycles,
            share: self.cycles / cycles.max(1) as f64,
            cpi: self.cycles / instructions.max(1) as f64,
            half_width_95,
            low_95: (self.cycles - half_width_95).max(0.0),
            high_95: (self.cycles + half_width_95).min(cycles as f64),
            truth: self.truth,
        }
    }
}

/// The breakdown of a session that counted the stack's events.
///
/// # Errors
/// The names of the events that were not measured.
pub fn break_down(
    counts: Counts<'_>,
    errors: SumError<'_>,
    stack: &Stack,
) -> Result<Breakdown, Vec<&'static str>> {
    let missing = stack.events().into_iter().filter(|name| counts(name).is_none());
    let missing: Vec<&'static str> = missing.collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    let count = |name: &str| counts(name).unwrap_or_default().estimate;
    let [cycles, instructions] = [stack.cycles, stack.instructions].map(|name| count(name) as u64);
    let mut parts = cycle_parts(counts, errors, stack);
    parts.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    Ok(Breakdown {
        cycles,
        instructions,
        parts,
        divider_busy: stack.divider.map(|name| count(name) / cycles.max(1) as f64),
        not_told_apart: stack.together.into(),
        slots: slot_parts(counts, errors, stack),
        slots_missing: stack.slots.missing.into(),
    })
}

/// The parts of the cycles, in the order of the pipeline, if the stack's events are measured.
pub fn cycle_parts(counts: Counts<'_>, errors: SumError<'_>, stack: &Stack) -> Vec<CyclePart> {
    let [cycles, instructions] = [stack.cycles, stack.instructions]
        .map(|name| counts(name).unwrap_or_default().estimate as u64);
    let sum = |part| Sum::of(counts, errors, part);
    let mut sums: Vec<Sum> = stack.parts.iter().map(sum).collect();
    close_all(&mut sums);
    sums.into_iter().map(|sum| sum.part(cycles, instructions)).collect()
}

/// Closes the parts. The truth's differences can be below 0 too: cycles of dispatch are subtracted
/// from cycles of retirement.
fn close_all(parts: &mut [Sum]) {
    let squares: Vec<f64> = parts.iter().map(|part| part.square).collect();
    let mut cycles: Vec<f64> = parts.iter().map(|part| part.cycles).collect();
    let whole = cycles.iter().sum();
    close(&mut cycles, &squares, whole);
    let truths: Option<Vec<f64>> = parts.iter().map(|part| part.truth).collect();
    let truths = truths.map(|mut truths| {
        let whole = truths.iter().sum();
        close(&mut truths, &squares, whole);
        truths
    });
    for (index, part) in parts.iter_mut().enumerate() {
        part.cycles = cycles[index];
        part.truth = truths.as_ref().map(|truths| truths[index]);
    }
}

impl CyclePart {
    /// Returns whether this many cycles are in the 95 % interval, to half a cycle.
    pub fn contains(&self, truth: f64) -> bool {
        (self.low_95 - 0.5..=self.high_95 + 0.5).contains(&truth)
    }
}

impl Breakdown {
    /// The part with the most cycles, work aside.
    pub fn largest_loss(&self) -> Option<&CyclePart> {
        self.parts.iter().find(|part| part.name != "work")
    }

    /// What most cycles are lost to, in words: the largest loss, and those that may be larger by
    /// the errors of both. Work is no loss.
    pub fn losses(&self) -> Option<String> {
        let largest = self.largest_loss()?;
        let may_be = |part: &&CyclePart| {
            let square = |value: f64| value * value;
            let squares = square(largest.half_width_95) + square(part.half_width_95);
            part.name != "work" && square(largest.cycles - part.cycles) <= squares
        };
        let others = self.parts.iter().filter(|part| part.name != largest.name).filter(may_be);
        let names: Vec<&str> =
            [largest].into_iter().chain(others).map(|part| &*part.name).collect();
        Some(if names.len() <= MOST_LOSSES {
            names.join(" or ")
        } else {
            format!("not known: the intervals of {} parts overlap, run it for longer", names.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::{
        super::{
            count::{Count, INDEPENDENT},
            stacks,
        },
        *,
    };

    const NOT_COMPLETE: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU";
    const MISSING: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD";

    /// These cycles of the stack's events, each but the first two with a half width of 20; the
    /// others are 0.
    fn counted(stack: &'static Stack, counts: &[(&str, u64)]) -> impl Fn(&str) -> Option<Count> {
        move |name| {
            stack.events().contains(&name).then(|| {
                let count = counts.iter().find(|(other, _)| *other == name);
                let estimate = count.map_or(0, |count| count.1) as f64;
                let is_exact = name == stack.cycles || name == stack.instructions;
                let half_width_95 = if is_exact { 0.0 } else { 20.0 };
                Count { estimate, half_width_95, truth: Some(estimate) }
            })
        }
    }

    #[test]
    fn parts_are_differences_and_their_sum_is_all_cycles() {
        let counts = [
            ("CYCLES_NOT_IN_HALT", 1_000),
            ("RETIRED_INSTRUCTIONS", 500),
            ("CYCLES_NO_RETIRE.EMPTY", 100),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", 600),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", 450),
        ];
        let breakdown =
            break_down(&counted(&stacks::ZEN_4, &counts), INDEPENDENT, &stacks::ZEN_4).unwrap();
        let parts: Vec<(&str, f64)> =
            breakdown.parts.iter().map(|part| (&*part.name, part.cycles)).collect();
        assert_eq!(parts[..2], [("loads that missed the L1", 450.0), ("work", 300.0)]);
        assert_eq!(parts.iter().map(|(_, cycles)| cycles).sum::<f64>(), 1_000.0);
        let loads = &breakdown.parts[0];
        assert_eq!((loads.share, loads.cpi, loads.half_width_95), (0.45, 0.9, 20.0));
        assert!(breakdown.parts.iter().all(|part| part.contains(part.truth.unwrap())));
        assert_eq!(breakdown.largest_loss().unwrap().name, "loads that missed the L1");
        assert_eq!(breakdown.losses().unwrap(), "loads that missed the L1");
    }

    #[test]
    fn losses_whose_intervals_overlap_are_not_told_apart() {
        let losses = |half_width: f64| {
            let part = |name: &'static str, cycles: f64| Sum {
                name,
                cycles,
                square: half_width * half_width,
                truth: None,
            };
            let sums = [part("work", 500.0), part("a", 300.0), part("b", 280.0), part("c", 100.0)];
            let parts = sums.map(|sum| sum.part(1_180, 1_000)).into();
            let counts = [("CYCLES_NOT_IN_HALT", 1_180), ("RETIRED_INSTRUCTIONS", 1_000)];
            let whole =
                break_down(&counted(&stacks::ZEN_4, &counts), INDEPENDENT, &stacks::ZEN_4).unwrap();
            Breakdown { parts, ..whole }.losses().unwrap()
        };
        assert_eq!([losses(10.0), losses(20.0)], ["a", "a or b"]);
        assert!(losses(200.0).starts_with("not known: the intervals of 3 parts"));
    }

    #[test]
    fn a_part_is_never_below_0_and_the_others_make_up_for_it() {
        let counts = [
            ("CYCLES_NOT_IN_HALT", 1_000),
            ("RETIRED_INSTRUCTIONS", 500),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", 600),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", 630),
        ];
        let breakdown =
            break_down(&counted(&stacks::ZEN_4, &counts), INDEPENDENT, &stacks::ZEN_4).unwrap();
        assert!(breakdown.parts.iter().all(|part| part.cycles >= 0.0), "{breakdown:?}");
        let sum: f64 = breakdown.parts.iter().map(|part| part.cycles).sum();
        assert!((sum - 1_000.0).abs() < 1e-9, "{breakdown:?}");
    }

    #[test]
    fn a_sum_whose_error_is_known_has_that_error() {
        let counts = [("CYCLES_NOT_IN_HALT", 1_000), ("RETIRED_INSTRUCTIONS", 500)];
        let errors = |terms: &[(&'static str, f64)]| {
            let is_difference = terms == [(NOT_COMPLETE, 1.0), (MISSING, -1.0)];
            is_difference.then_some(5.0)
        };
        let parts = cycle_parts(&counted(&stacks::ZEN_4, &counts), &errors, &stacks::ZEN_4);
        let half_width = |name: &str| parts.iter().find(|part| part.name == name).unwrap();
        assert_eq!(half_width("execution units, L1, stores").half_width_95, 5.0);
        assert_eq!(half_width("loads that missed the L1").half_width_95, 20.0);
    }

    #[test]
    fn a_first_level_has_no_slots_and_does_not_know_of_the_divider() {
        let stack = stacks::short_of(0x606a6).unwrap();
        let counts = [
            ("CPU_CLK_UNHALTED.THREAD", 1_000),
            ("INST_RETIRED.ANY", 500),
            ("UOPS_RETIRED.STALL_CYCLES", 700),
            ("CYCLE_ACTIVITY.STALLS_MEM_ANY", 450),
        ];
        let breakdown = break_down(&counted(stack, &counts), INDEPENDENT, stack).unwrap();
        let parts: Vec<(&str, f64)> =
            breakdown.parts.iter().map(|part| (&*part.name, part.cycles)).collect();
        assert_eq!(parts[..2], [("memory, caches, TLB, stores", 450.0), ("work", 300.0)]);
        assert_eq!((breakdown.divider_busy, breakdown.slots.len()), (None, 0));
        let text = breakdown.to_string();
        assert!(!text.contains("slots") && !text.contains("missing here"), "{text}");
        assert!(text.contains("most are lost to: memory, caches, TLB, stores\n"), "{text}");
    }

    #[test]
    fn an_event_that_was_not_measured_is_named() {
        let all = counted(&stacks::ICE_LAKE, &[]);
        let counts = |name: &str| all(name).filter(|_| name != "ICACHE_TAG.STALLS");
        assert_eq!(
            break_down(&counts, INDEPENDENT, &stacks::ICE_LAKE).unwrap_err(),
            ["ICACHE_TAG.STALLS"]
        );
    }
}
