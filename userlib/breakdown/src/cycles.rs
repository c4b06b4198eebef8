//! Breakdown of a program's cycles, and the main causes of lost cycles.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{
    count::{Counts, SumError},
    formulas::REFILL,
    stacks::{Node, Stack, leaves_of},
    tree::{CyclePart, tree_parts},
};

/// Name of the part at the second level that is lost to branches.
const MISPREDICTED: &str = "mispredicted branches";
/// Maximum number of parts that are named as possible largest losses.
const MOST_LOSSES: usize = 2;
/// Mean cycles of a misprediction from which on branches are called late: the refill takes about
/// twenty, and the remainder is a wait for operands.
const LATE_CYCLES: f64 = 45.0;
/// Smallest share of the cycles of a memory level for the level to be named as the reason of such a
/// wait.
const LEAST_WAIT: f64 = 0.05;

/// Breakdown of the cycles of a session, in the modes that it counted.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Breakdown {
    /// Core cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Parts as a tree, each after its parent. The parts at level 1 add up to all cycles, and the
    /// parts of slots below a part to that part.
    pub parts: Vec<CyclePart>,
    /// Mean cost of a mispredicted branch in cycles, if its events were counted.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub cycles_a_misprediction: Option<f64>,
    /// Distinctions that this processor does not make, and parts missing from the vendor's tree.
    pub missing: Cow<'static, str>,
}

/// Cycles lost to a cause.
#[derive(Clone, Copy)]
struct Loss<'a> {
    part: &'a CyclePart,
    /// Cycles of the part and of other parts with the same cause.
    cycles: f64,
    /// Square of half the width of their 95 % interval.
    square: f64,
}

/// Breakdown of a session that counted the events of the stack.
///
/// # Errors
/// Names of the events that were not measured.
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
    let parts = tree_parts(counts, errors, stack);
    let lost = parts.iter().find(|part| part.name == MISPREDICTED);
    let refill = parts.iter().find(|part| part.name == REFILL).map_or(0.0, |part| part.cycles);
    let each = |name| lost.map(|part| (part.cycles + refill) / count(name).max(1.0));
    Ok(Breakdown {
        cycles: count(stack.cycles) as u64,
        instructions: count(stack.instructions) as u64,
        cycles_a_misprediction: stack.mispredictions.and_then(each),
        parts,
        missing: stack.missing().into(),
    })
}

impl Breakdown {
    /// Parts that divide all cycles once: the parts of slots without children, and retiring.
    pub fn leaves(&self) -> impl Iterator<Item = &CyclePart> {
        let node = |part: &CyclePart| Node {
            level: part.level,
            is_slots: !part.of_cycles,
            is_work: part.is_work(),
        };
        let tree: Vec<Node> = self.parts.iter().map(node).collect();
        leaves_of(&tree).into_iter().map(|at| &self.parts[at])
    }

    /// Part with the largest loss of cycles.
    pub fn largest_loss(&self) -> Option<&CyclePart> {
        losses_of(self.leaves()).first().map(|loss| loss.part)
    }

    /// Parts that are named as the largest loss; empty if too many are possible.
    pub fn named_losses(&self) -> Vec<&CyclePart> {
        let largest = self.largest_losses();
        let largest = if largest.len() <= MOST_LOSSES { &largest[..] } else { &[] };
        largest.iter().map(|loss| loss.part).collect()
    }

    /// Largest loss, and the losses that may be larger within the errors of both.
    fn largest_losses(&self) -> Vec<Loss<'_>> {
        let mut losses = losses_of(self.leaves());
        let Some(&largest) = losses.first() else { return losses };
        losses
            .retain(|loss| square_of(largest.cycles - loss.cycles) <= largest.square + loss.square);
        losses
    }

    /// Text that names the main cause of lost cycles.
    pub fn losses(&self) -> Option<String> {
        let mut names: Vec<&str> =
            self.largest_losses().iter().map(|loss| &*loss.part.name).collect();
        let count = names.len();
        if count > MOST_LOSSES {
            let why = "parts overlap, run it for longer";
            return Some(format!("not known: the intervals of {count} {why}"));
        }
        let is_mispredicted = names.contains(&MISPREDICTED);
        let late = if is_mispredicted { self.lateness() } else { String::new() };
        if !late.is_empty() {
            // Last, so that it stands before what is said of it.
            names.sort_by_key(|name| *name == MISPREDICTED);
        }
        (count > 0).then(|| names.join(" or ") + &late)
    }

    /// Text stating that branches are resolved late, with the memory level that most cycles wait
    /// for, if one is known: operands are likely waited for there.
    fn lateness(&self) -> String {
        let Some(each) = self.cycles_a_misprediction.filter(|each| *each >= LATE_CYCLES) else {
            return String::new();
        };
        let levels = ["second-level cache", "last-level cache", "DRAM"];
        let waits = self.parts.iter().filter(|part| levels.contains(&&*part.name));
        let longest = waits.max_by(|a, b| a.share.total_cmp(&b.share));
        let by = longest.filter(|part| part.share >= LEAST_WAIT);
        let by = by.map_or_else(String::new, |part| format!(" by data of the {}", part.name));
        format!(", resolved late{by}: {each:.0} cycles each")
    }
}

/// Part with the largest loss, of parts that divide the cycles once, and whether the errors of both
/// tell it apart from each other loss.
pub fn largest_loss_of(parts: &[CyclePart]) -> Option<(&CyclePart, bool)> {
    let losses = losses_of(parts.iter());
    let largest = losses.first().filter(|loss| loss.cycles > 0.0)?;
    let is_apart =
        |other: &Loss<'_>| square_of(largest.cycles - other.cycles) > largest.square + other.square;
    Some((largest.part, losses[1..].iter().all(is_apart)))
}

/// Losses of parts that divide all cycles once, largest first. The refill after mispredictions is
/// added to the mispredictions.
fn losses_of<'a>(parts: impl Iterator<Item = &'a CyclePart>) -> Vec<Loss<'a>> {
    let parts: Vec<&CyclePart> = parts.collect();
    let refill = parts.iter().find(|part| part.name == REFILL);
    let loss = |part: &'a CyclePart| {
        let refill = refill.filter(|_| part.name == MISPREDICTED);
        let (cycles, half_width) =
            refill.map_or((0.0, 0.0), |refill| (refill.cycles, refill.half_width_95));
        let square = square_of(part.half_width_95) + square_of(half_width);
        Loss { part, cycles: part.cycles + cycles, square }
    };
    let lost = parts.iter().filter(|part| !part.is_work() && part.name != REFILL);
    let mut losses: Vec<Loss<'a>> = lost.map(|part| loss(part)).collect();
    losses.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    losses
}

fn square_of(value: f64) -> f64 {
    value * value
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::{
        super::{
            count::{Count, INDEPENDENT},
            stacks,
            tree::cycle_parts,
        },
        *,
    };

    const ICE_LAKE: u32 = 0x606a6;
    const ZEN_4: u32 = 0xa1_0f11;

    /// Breakdown of these counts of the stack's events, each but the first two with this half
    /// width. All other events are 0.
    fn counted(
        stack: &'static Stack,
        half_width: f64,
        counts: &[(&str, u64)],
    ) -> impl Fn(&str) -> Option<Count> {
        move |name| {
            stack.events().contains(&name).then(|| {
                let count = counts.iter().find(|(other, _)| *other == name);
                let estimate = count.map_or(0, |count| count.1) as f64;
                let is_exact = name == stack.cycles || name == stack.instructions;
                let half_width_95 = if is_exact { 0.0 } else { half_width };
                Count { estimate, half_width_95, truth: Some(estimate) }
            })
        }
    }

    /// Example: of 5,000 slots 2,000 retire, 500 wait for fetch, 1,500 for mispredictions, 1,000 in
    /// the back end, of which three quarters wait for memory.
    const COUNTS: [(&str, u64); 14] = [
        ("CPU_CLK_UNHALTED.THREAD", 1_000),
        ("INST_RETIRED.ANY", 500),
        ("UOPS_RETIRED.SLOTS", 2_000),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", 500),
        ("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 40),
        ("TOPDOWN.BACKEND_BOUND_SLOTS", 1_000),
        ("BR_MISP_RETIRED.ALL_BRANCHES", 5),
        ("CYCLE_ACTIVITY.STALLS_TOTAL", 100),
        ("EXE_ACTIVITY.1_PORTS_UTIL", 100),
        ("CYCLE_ACTIVITY.STALLS_MEM_ANY", 150),
        ("CYCLE_ACTIVITY.STALLS_L1D_MISS", 120),
        ("CYCLE_ACTIVITY.STALLS_L2_MISS", 20),
        ("CYCLE_ACTIVITY.STALLS_L3_MISS", 10),
        ("ARITH.DIVIDER_ACTIVE", 30),
    ];

    fn ice_lake(half_width: f64, counts: &[(&str, u64)]) -> Breakdown {
        let stack = stacks::of(ICE_LAKE).unwrap();
        break_down(&counted(stack, half_width, counts), INDEPENDENT, stack).unwrap()
    }

    #[test]
    fn parts_are_a_tree_whose_levels_close() {
        let breakdown = ice_lake(1.0, &COUNTS);
        let cycles = |name: &str| {
            let part = breakdown.parts.iter().find(|part| part.name == name).expect(name);
            (part.level, part.cycles.round() as u64)
        };
        for (name, level, expected) in [
            ("retiring", 1, 400),
            ("front end", 1, 100),
            ("fetch latency", 2, 40),
            ("bad speculation", 1, 300),
            ("mispredicted branches", 2, 300),
            ("back end", 1, 200),
            ("memory", 2, 150),
            ("second-level cache", 3, 100),
            ("core", 2, 50),
            ("divider", 3, 30),
        ] {
            assert_eq!(cycles(name), (level, expected), "{name}");
        }
        let sum = |parts: &[&CyclePart]| parts.iter().map(|part| part.cycles).sum::<f64>();
        let leaves: Vec<&CyclePart> = breakdown.leaves().collect();
        assert_eq!(leaves.len(), 7, "{leaves:?}");
        assert!((sum(&leaves) - 1_000.0).abs() < 1e-9);
        assert!(breakdown.parts.iter().all(|part| part.contains(part.truth.unwrap())));
        let retiring = &breakdown.parts[0];
        assert_eq!((retiring.share, retiring.cpi), (0.4, 0.8));
    }

    /// Cycles that a processor spends on a wrong path belong to the part of the branch.
    #[test]
    fn a_branch_that_waits_for_data_is_named_with_what_it_waits_for() {
        let late = ice_lake(1.0, &COUNTS);
        assert_eq!(late.cycles_a_misprediction.map(f64::round), Some(60.0));
        let said = "mispredicted branches, resolved late by data of the second-level cache";
        let said = std::format!("{said}: 60 cycles each");
        assert_eq!(late.losses().unwrap(), said);
        assert!(late.to_string().contains("most are lost to: mispredicted branches, resolved"));
        let counts = COUNTS.map(|(name, count)| match name {
            "BR_MISP_RETIRED.ALL_BRANCHES" => (name, 15),
            _ => (name, count),
        });
        assert_eq!(ice_lake(1.0, &counts).losses().unwrap(), "mispredicted branches");
    }

    /// Example: of 6,000 slots 2,000 retire, 900 are on wrong paths, 1,700 wait for fetch, of which
    /// 20 mispredictions take 13 cycles each, and 1,400 wait in the back end.
    #[test]
    fn the_refill_behind_mispredictions_is_lost_to_them() {
        let counts = [
            ("CYCLES_NOT_IN_HALT", 1_000),
            ("RETIRED_INSTRUCTIONS", 500),
            ("RETIRED_OPS", 2_000),
            ("OPS_SOURCE_DISPATCHED_FROM_DECODER:DECODER:OPCACHE:LOOP_BUFFER", 2_900),
            ("DISPATCH_STALLS_1.FE_NO_OPS", 1_700),
            ("DISPATCH_STALLS_1.FE_NO_OPS:c=6", 275),
            ("DISPATCH_STALLS_1.BE_STALLS", 1_400),
            ("RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", 20),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", 100),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", 100),
        ];
        let stack = stacks::of(ZEN_4).unwrap();
        let breakdown = break_down(&counted(stack, 1.0, &counts), INDEPENDENT, stack).unwrap();
        assert_eq!(breakdown.losses().unwrap(), "mispredicted branches");
        let lost = |name: &str| breakdown.parts.iter().find(|part| part.name == name).unwrap();
        assert_eq!(lost("mispredicted branches").cycles.round(), 150.0);
        assert_eq!(lost(REFILL).cycles.round(), 260.0);
        assert_eq!(lost("fetch latency").cycles.round(), 275.0);
        assert_eq!(breakdown.cycles_a_misprediction.map(f64::round), Some(21.0));
        let stack = stacks::short_of(ZEN_4).unwrap();
        let first = break_down(&counted(stack, 1.0, &counts), INDEPENDENT, stack).unwrap();
        assert_eq!(first.losses().unwrap(), "mispredicted branches, clears");
    }

    #[test]
    fn losses_whose_intervals_overlap_are_not_told_apart() {
        let more = COUNTS.map(|(name, count)| match name {
            "TOPDOWN.BACKEND_BOUND_SLOTS" => (name, 1_800),
            "UOPS_RETIRED.SLOTS" => (name, 1_300),
            _ => (name, count),
        });
        let losses = |half_width| ice_lake(half_width, &more).losses().unwrap();
        let late = "resolved late by data of the second-level cache: 56 cycles each";
        let both = format!("memory or mispredicted branches, {late}");
        assert_eq!((losses(1.0), losses(30.0)), (both.clone(), both));
        let early = more.map(|(name, count)| match name {
            "BR_MISP_RETIRED.ALL_BRANCHES" => (name, 15),
            _ => (name, count),
        });
        let said = ice_lake(1.0, &early).losses().unwrap();
        assert_eq!(said, "mispredicted branches or memory");
        assert!(losses(900.0).starts_with("not known: the intervals of "), "{}", losses(900.0));
    }

    #[test]
    fn a_part_is_never_below_0_and_the_others_make_up_for_it() {
        let stack = stacks::stalls_of(ZEN_4).unwrap();
        let counts = [
            ("CYCLES_NOT_IN_HALT", 1_000),
            ("RETIRED_INSTRUCTIONS", 500),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", 600),
            ("CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", 630),
        ];
        let breakdown = break_down(&counted(stack, 20.0, &counts), INDEPENDENT, stack).unwrap();
        assert!(breakdown.parts.iter().all(|part| part.cycles >= 0.0), "{breakdown:?}");
        let sum: f64 = breakdown.parts.iter().map(|part| part.cycles).sum();
        assert!((sum - 1_000.0).abs() < 1e-9, "{breakdown:?}");
    }

    #[test]
    fn a_sum_whose_error_is_known_has_that_error() {
        const NOT_COMPLETE: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU";
        const MISSING: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD";
        let stack = stacks::stalls_of(ZEN_4).unwrap();
        let counts = [("CYCLES_NOT_IN_HALT", 1_000), ("RETIRED_INSTRUCTIONS", 500)];
        let errors = |terms: &[(&'static str, f64)]| {
            let is_difference = terms.len() == 2
                && terms.iter().all(|(name, _)| [NOT_COMPLETE, MISSING].contains(name));
            is_difference.then_some(0.005)
        };
        let parts = cycle_parts(&counted(stack, 20.0, &counts), &errors, stack);
        let half_width =
            |name: &str| parts.iter().find(|part| part.name == name).unwrap().half_width_95.round();
        assert_eq!(half_width("execution units, L1, stores"), 5.0);
        assert_eq!(half_width("loads that missed the L1"), 20.0);
    }

    #[test]
    fn a_first_level_says_where_more_is() {
        let stack = stacks::short_of(ICE_LAKE).unwrap();
        let breakdown = break_down(&counted(stack, 1.0, &COUNTS), INDEPENDENT, stack).unwrap();
        let parts: Vec<(&str, f64)> =
            breakdown.parts.iter().map(|part| (&*part.name, part.cycles.round())).collect();
        let expected = [
            ("retiring", 400.0),
            ("front end", 100.0),
            ("mispredicted branches, clears", 300.0),
            ("memory, execution units", 200.0),
        ];
        assert_eq!(parts, expected);
        let text = breakdown.to_string();
        assert!(text.contains("most are lost to: mispredicted branches, clears\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn an_event_that_was_not_measured_is_named() {
        let stack = stacks::of(ICE_LAKE).unwrap();
        let all = counted(stack, 1.0, &[]);
        let counts = |name: &str| all(name).filter(|_| name != "ICACHE_TAG.STALLS");
        assert_eq!(break_down(&counts, INDEPENDENT, stack).unwrap_err(), ["ICACHE_TAG.STALLS"]);
    }
}
