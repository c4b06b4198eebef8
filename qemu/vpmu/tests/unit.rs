//! The counter unit on random programs: its counts against the model's sums, and its thresholds
//! against the events at which they must fire.

#[path = "../../model/tests/common/mod.rs"]
mod common;
#[path = "unit/driver.rs"]
mod driver;
#[path = "unit/machine.rs"]
mod machine;

use std::collections::VecDeque;

use common::Random;
use machine::{Machine, Selected, profiles};
use proptest::prelude::*;
use tally_vpmu::Profile;

/// Instructions of a program's second part, which runs one by one.
const STEPS: usize = 2_000;

/// Asserts that the counts of all 256 counters are the sums of their inputs.
fn assert_equal(machine: &mut Machine, selected: &[Selected], expected: &[u64]) {
    for (index, (input, expected)) in selected.iter().zip(expected).enumerate() {
        let read = machine.count(index as u32);
        assert_eq!(read, *expected, "counter {index}: {input:?}");
    }
}

/// Runs one program: parts of random lengths, in which the unit runs or not. At the end of each
/// part some counters are read, and at the end of the program all.
fn counts_are_sums(machine: &mut Machine, random: &mut Random) {
    let all = Selected::all(machine.profile());
    let selected: Vec<Selected> =
        (0..256).map(|_| all[random.below(all.len() as u64) as usize].clone()).collect();
    for (index, input) in selected.iter().enumerate() {
        assert!(machine.program(index as u32, input.config()), "{input:?}");
    }
    let mut expected = vec![0; 256];
    for part in 0..40 {
        let runs = part % 4 != 3;
        machine.run_unit(runs);
        let before: Vec<u64> = selected.iter().map(|input| machine.sum(input)).collect();
        machine.run(1 + random.below(2_000) as usize, |_| random.below(30) == 0);
        if random.below(2) == 0 {
            machine.sync();
        }
        for (index, input) in selected.iter().enumerate().filter(|_| runs) {
            expected[index] += machine.sum(input) - before[index];
        }
        let index = random.below(256) as usize;
        assert_eq!(machine.count(index as u32), expected[index], "{:?}", selected[index]);
    }
    assert_equal(machine, &selected, &expected);
    assert!(expected.iter().any(|count| *count > 2 * 4096));
}

/// A counter with a threshold, and the value at which the threshold must fire.
struct Threshold {
    input: Selected,
    fires_at: u64,
    is_over: bool,
}

/// A random program: the CPU before it, and 256 thresholds at counts of its second part, which
/// begins after `bulk` instructions.
fn thresholds(
    profile: Profile,
    seed: u64,
    bulk: usize,
    random: &mut Random,
) -> (Machine, Vec<Threshold>) {
    let mut before = Machine::new(profile, seed);
    let all = Selected::all(&profile);
    before.run(bulk, |_| false);
    let from: Vec<u64> = all.iter().map(|input| before.sum(input)).collect();
    before.run(STEPS, |_| true);
    let to: Vec<u64> = all.iter().map(|input| before.sum(input)).collect();
    let grow: Vec<usize> = (0..all.len()).filter(|input| to[*input] > from[*input]).collect();
    let any = |_| {
        let input = grow[random.below(grow.len() as u64) as usize];
        let fires_at = from[input] + 1 + random.below(to[input] - from[input]);
        Threshold { fires_at, input: all[input].clone(), is_over: false }
    };
    let thresholds = (0..256).map(any).collect();
    (Machine::new(profile, seed), thresholds)
}

/// Programs the thresholds before the program begins: 4096 n + m events by a threshold of 4096 n
/// and a preload of 4096 − m (section 5 of the paper).
fn program(machine: &mut Machine, thresholds: &[Threshold]) {
    for (index, threshold) in thresholds.iter().enumerate() {
        let (n, m) = (threshold.fires_at / 4096, threshold.fires_at % 4096);
        machine.program_threshold(index as u32, threshold.input.config(), n << 12, 4096 - m);
    }
    machine.run_unit(true);
}

/// Marks the thresholds that the program has passed; returns whether there are new ones.
fn mark(machine: &Machine, thresholds: &mut [Threshold]) -> bool {
    let mut is_new = false;
    for threshold in thresholds.iter_mut().filter(|threshold| !threshold.is_over) {
        threshold.is_over = machine.sum(&threshold.input) >= threshold.fires_at;
        is_new |= threshold.is_over;
    }
    is_new
}

/// Runs one program whose thresholds must fire at their events, and nowhere else.
fn thresholds_fire_at_their_events(profile: Profile, seed: u64) {
    let random = &mut Random(seed ^ 2);
    let bulk = 20_000 + random.below(40_000) as usize;
    let (mut machine, mut thresholds) = thresholds(profile, seed, bulk, random);
    program(&mut machine, &thresholds);
    machine.run(bulk, |_| false);
    machine.sync();
    assert!(!machine.take_interrupt(), "before any threshold");
    for step in 0..STEPS {
        machine.run(1, |_| true);
        machine.sync();
        let is_new = mark(&machine, &mut thresholds);
        assert_eq!(machine.take_interrupt(), is_new, "instruction {step}");
        if is_new {
            let mut over = [0; 4];
            for (index, threshold) in thresholds.iter().enumerate() {
                over[index / 64] |= u64::from(threshold.is_over) << (index % 64);
            }
            assert_eq!(machine.fired(), over, "instruction {step}");
        }
    }
    assert!(thresholds.iter().all(|threshold| threshold.is_over));
}

/// Runs one program in which the unit is updated only at its deadline, when a threshold can have
/// been reached, as the plugin does.
fn the_deadline_is_no_later_than_the_event(profile: Profile, seed: u64) {
    let (mut machine, mut thresholds) = thresholds(profile, seed, 0, &mut Random(seed ^ 3));
    program(&mut machine, &thresholds);
    let mut deadline = machine.deadline();
    let (mut fired, mut waits) = (0, false);
    for step in 0..STEPS {
        if machine.clock() >= deadline {
            machine.sync();
            deadline = machine.deadline();
        }
        let has_fired = machine.take_interrupt();
        assert!(has_fired || !waits, "instruction {step}: one instruction late and more");
        fired += usize::from(has_fired);
        machine.run(1, |_| true);
        waits = mark(&machine, &mut thresholds);
    }
    assert!(fired > 10);
}

/// Asserts that 4,096 events of a kind take at least the 256 cycles of a round, so that the machine
/// visits each counter between two carries.
fn events_are_slow_enough(profile: Profile, seed: u64) {
    let mut machine = Machine::new(profile, seed);
    let all = Selected::all(&profile);
    let at = |machine: &Machine| -> (u64, Vec<u64>) {
        (machine.cycle(), all.iter().map(|input| machine.sum(input)).collect())
    };
    let mut window = VecDeque::from([at(&machine)]);
    for _ in 0..STEPS {
        machine.run(1, |_| true);
        let (now, sums) = at(&machine);
        while window.front().is_some_and(|(then, _)| now - then >= 256) {
            window.pop_front();
        }
        if let Some((_, before)) = window.front() {
            let fast = sums.iter().zip(before).position(|(sum, before)| sum - before >= 4096);
            assert!(fast.is_none(), "{:?}", fast.map(|input| &all[input]));
        }
        window.push_back((now, sums));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    /// Counts on every profile and pipeline are sums.
    #[test]
    fn counts_are_the_model_s_sums(seed in any::<u64>()) {
        for profile in profiles() {
            counts_are_sums(&mut Machine::new(profile, seed), &mut Random(seed ^ 1));
        }
    }

    /// Events on every profile with the interval pipeline are slow enough.
    #[test]
    fn the_machine_visits_each_counter_between_two_carries(seed in any::<u64>()) {
        profiles().into_iter().step_by(2).for_each(|profile| events_are_slow_enough(profile, seed));
    }
}

proptest! {
    // 2 profiles and 20 programs with 256 thresholds each: 10,240 cases.
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// A threshold's interrupt is pending, and its bit set, exactly when the model has counted the
    /// event that carries out of the threshold's word.
    #[test]
    fn thresholds_fire_at_the_very_event(seed in any::<u64>()) {
        for profile in profiles().into_iter().skip(seed as usize % 4).step_by(4) {
            thresholds_fire_at_their_events(profile, seed);
        }
    }

    /// The plugin is at most one instruction late. With the out-of-order pipeline it can be later,
    /// as for the other counters, because slots of dispatch are charged ahead of its clock.
    #[test]
    fn thresholds_fire_when_the_plugin_looks(seed in any::<u64>()) {
        let all: Vec<Profile> = profiles().into_iter().step_by(2).collect();
        the_deadline_is_no_later_than_the_event(all[seed as usize % all.len()], seed);
    }
}
