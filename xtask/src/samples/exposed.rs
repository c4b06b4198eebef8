//! Time by instruction, from precise samples: the known bias of a processor's samples of cycles,
//! corrected.
//!
//! A precise sample of cycles is at the oldest instruction of those that retire next. So the other
//! instructions of a group that retires in one cycle get nothing, and the cycles in which a
//! mispredicted branch left the pipeline empty go to the instruction behind it. In fact a cycle
//! belongs to all instructions that retire in it, and those cycles to the branch (Gottschall,
//! Eeckhout and Jahre, "TIP: Time-Proportional Instruction Profiling", MICRO 2021, section 2).
//!
//! - *Branches* of a sample (`record -b`): if the last one was mispredicted and leads to the
//!   sample's address, the cycles are the branch's. Branches that were not taken are not recorded.
//!   AMD's interrupt comes some branches behind the op that was tagged, so the branch that led to
//!   the sample's address is looked for among those of the sample.
//! - *Executions*, from precise samples of instructions in the same recording: an execution has one
//!   cycle if the instruction is the oldest that retires in it, so an instruction with cycles *c*
//!   and executions *e* was the oldest with probability p = min(c, e) / e. What exceeds e was
//!   waiting, and stays. The rest, c = p·e, is shared with the instructions that retired behind it
//!   in the same cycle: i of them with the probability that the next i − 1 were not the oldest and
//!   the one behind them was.
//!
//! `cargo xtask study precise` judges both by an oracle.

use std::collections::BTreeSet;

use tally_abi::{branches::Branch, trace::SampleRecord};

use super::code::Step;
use crate::recording::Recording;

/// The most instructions that retire in one cycle: pairs of 8 micro-operations.
const GROUP: usize = 16;
/// Bytes of code without a taken branch, at most, behind the last branch that is recorded.
const STRAIGHT: u64 = 1 << 10;
/// The probability below which a longer group is left out.
const NEGLIGIBLE: f64 = 1e-4;

/// An instruction of a function, with the cycles and executions that its samples stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    pub(super) step: Step,
    pub(super) cycles: f64,
    pub(super) executions: f64,
}

/// The address of the instruction that a sample of cycles belongs to: that of a mispredicted branch
/// that led to it, or its own.
pub(super) fn place(of: &Recording, sample: &SampleRecord) -> u64 {
    let branches = of.branches.of_sample(sample);
    let led = led_to(branches, sample.address).filter(|_| sample.precise);
    let wrong = led.filter(|it| it.mispredicted() == Some(true) && it.to == sample.address);
    wrong.map_or(sample.address, |branch| branch.from)
}

/// The branch behind which an address was executed last. The processor freezes its records with a
/// sample of PEBS, and some branches later with one of IBS.
fn led_to(branches: &[Branch], address: u64) -> Option<&Branch> {
    let mut until = branches.first()?.to.saturating_add(STRAIGHT);
    branches.iter().find(|branch| {
        let executed = branch.to..=until;
        until = branch.from;
        executed.contains(&address)
    })
}

/// Returns whether an event with modifiers, as in a recording, counts cycles.
pub(super) fn is_cycles(event: &str) -> bool {
    let name = event.split(':').next().unwrap_or_default();
    ["cycles", "cpu-cycles"].contains(&name) || name.starts_with("CPU_CLK_UNHALTED.THREAD")
}

/// The event among `sampled` whose precise samples count executions of instructions, if any.
pub(super) fn executions<'a>(mut sampled: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    sampled.find(|event| {
        let (name, modifiers) = event.split_once(':').unwrap_or((event, ""));
        modifiers.contains('p') && ["instructions", "INST_RETIRED.ANY"].contains(&name)
    })
}

/// The cycles that each instruction of a function exposes, in the same order; they add up to the
/// sampled cycles. The list is in the order of addresses.
pub(super) fn exposed(of: &[Sampled]) -> Vec<f64> {
    let executions = smoothed(of);
    let first: Vec<f64> = of.iter().zip(&executions).map(|(it, of)| it.cycles.min(*of)).collect();
    let probability = |at: usize| match executions[at] {
        executions if executions > 0.0 => first[at] / executions,
        _ => 1.0,
    };
    let mut times: Vec<f64> = of.iter().zip(&first).map(|(it, of)| it.cycles - of).collect();
    for (start, cycles) in first.iter().enumerate().filter(|(_, cycles)| **cycles > 0.0) {
        let (mut group, mut left) = (vec![start], 1.0);
        while left > NEGLIGIBLE {
            let last = group[group.len() - 1];
            let next = successor(of, &executions, last).filter(|_| group.len() < GROUP);
            let ends = next.map_or(1.0, probability);
            let share = cycles * left * ends / group.len() as f64;
            group.iter().for_each(|at| times[*at] += share);
            left *= 1.0 - ends;
            let Some(next) = next else { break };
            group.push(next);
        }
        let share = cycles * left / group.len() as f64;
        group.iter().for_each(|at| times[*at] += share);
    }
    times
}

/// The executions of each instruction: the mean of its basic block, whose instructions run equally
/// often.
fn smoothed(of: &[Sampled]) -> Vec<f64> {
    let targets: BTreeSet<u64> = of.iter().filter_map(|it| it.step.jumps).collect();
    let begins = |at: &usize| {
        *at == 0 || !of[at - 1].step.goes_on() || targets.contains(&of[*at].step.address)
    };
    let starts: Vec<usize> = (0..of.len()).filter(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([of.len()]);
    let mean = |block: &[Sampled]| {
        let sum: f64 = block.iter().map(|it| it.executions).sum();
        vec![sum / block.len() as f64; block.len()]
    };
    starts.iter().zip(ends).flat_map(|(start, end)| mean(&of[*start..end])).collect()
}

/// The index of the instruction that most often runs next, in the same function.
fn successor(of: &[Sampled], executions: &[f64], at: usize) -> Option<usize> {
    let Step { jumps, falls_through, .. } = of[at].step;
    let below = falls_through.then_some(at + 1).filter(|next| *next < of.len());
    let find = |address| of.binary_search_by_key(&address, |it| it.step.address).ok();
    let target = jumps.and_then(find);
    match (below, target) {
        (Some(below), Some(target)) if executions[target] > executions[below] => Some(target),
        (below, target) => below.or(target),
    }
    .filter(|next| *next != at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(address: u64, cycles: f64, executions: f64) -> Sampled {
        let step = Step { falls_through: true, ..Step::at(address) };
        Sampled { step, cycles, executions }
    }

    #[test]
    fn the_branch_that_led_to_an_address_may_not_be_the_last() {
        let branch = |from, to| Branch { from, to, info: 0 };
        // 10…20, 50…70, 30…40, then on from 60.
        let branches = [branch(40, 60), branch(70, 30), branch(20, 50)];
        let led = |address| led_to(&branches, address).map(|it| it.to);
        assert_eq!([60, 65, 35, 55, 15].map(led), [Some(60), Some(60), Some(30), Some(50), None]);
    }

    #[test]
    fn a_group_that_retires_together_shares_its_cycle() {
        let of = [insn(0, 100.0, 100.0), insn(4, 0.0, 100.0), insn(8, 0.0, 100.0)];
        let of: Vec<Sampled> = of.into_iter().chain([insn(12, 100.0, 100.0)]).collect();
        let times = exposed(&of);
        assert!(times[..3].iter().all(|time| (time - 100.0 / 3.0).abs() < 1e-9), "{times:?}");
        assert!((times[3] - 100.0).abs() < 1e-9);
    }

    #[test]
    fn waiting_stays_where_it_is() {
        // A load that waits 50 cycles, and an addition that retires with it.
        let of = [insn(0, 5_100.0, 100.0), insn(4, 0.0, 100.0), insn(8, 100.0, 100.0)];
        let times = exposed(&of);
        assert!((times[0] - 5_050.0).abs() < 1e-9 && (times[1] - 50.0).abs() < 1e-9, "{times:?}");
    }

    #[test]
    fn nothing_is_lost_or_made_whatever_the_samples_are() {
        let mut seed = 1u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 40) as f64
        };
        let mut of: Vec<Sampled> = (0..200).map(|at| insn(4 * at, next(), next())).collect();
        for at in (7..200).step_by(13) {
            (of[at].executions, of[at].step.jumps) = (0.0, Some(4 * (at as u64 - 5)));
            of[at].step.falls_through = at % 2 == 0;
        }
        let (before, after) = (of.iter().map(|it| it.cycles).sum::<f64>(), exposed(&of));
        assert!((after.iter().sum::<f64>() / before - 1.0).abs() < 1e-9);
        assert!(after.iter().all(|time| *time >= 0.0));
    }

    #[test]
    fn the_executions_of_a_block_are_its_mean() {
        let mut of =
            vec![insn(0, 0.0, 90.0), insn(4, 0.0, 110.0), insn(8, 0.0, 4.0), insn(12, 0.0, 2.0)];
        of[1].step.jumps = Some(12);
        assert_eq!(smoothed(&of), [100.0, 100.0, 4.0, 2.0]);
    }
}
