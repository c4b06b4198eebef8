//! Judging streams: other programs, with other shapes, noise and seeds than those used for tuning.

use tally_abi::phase::{Classifier, Predictor};

use crate::stream::{Found, Interval, Noise, Phase, Random, TERMS, intervals};

type Stream = (Vec<Interval>, Vec<(usize, usize)>);

/// Makes a loop nest: a few phases that repeat in the same order, with nearly the same lengths.
fn nest(random: &mut Random) -> Stream {
    let phases = of_kernels(3 + random.below(3), random);
    let lengths: Vec<usize> = phases.iter().map(|_| 6 + random.below(20)).collect();
    let mut runs = Vec::new();
    for _ in 0..8 {
        for (phase, length) in lengths.iter().enumerate() {
            runs.push((phase, length + random.below(2)));
        }
    }
    let noise = Noise { spread: 0.01 + 0.03 * random.uniform(), error: 0.03 };
    (intervals(&phases, &runs, noise, random), runs)
}

/// Makes a start, a long loop, and an end.
fn long(random: &mut Random) -> Stream {
    let phases = of_kernels(3, random);
    let runs = vec![(0, 10 + random.below(30)), (1, 300), (2, 10 + random.below(30))];
    let noise = Noise { spread: 0.005 + 0.045 * random.uniform(), error: 0.01 };
    (intervals(&phases, &runs, noise, random), runs)
}

/// Makes two phases in turns, shorter than a history.
fn turns(random: &mut Random) -> Stream {
    let phases = of_kernels(2, random);
    let runs: Vec<_> = (0..200).map(|run| (run % 2, 2)).collect();
    (intervals(&phases, &runs, Noise { spread: 0.01, error: 0.01 }, random), runs)
}

/// Makes phases like those of compute kernels: bound by a level of the memory, the branches, or the
/// front end, by which neighbours differ by at least a quarter of their time.
fn of_kernels(number: usize, random: &mut Random) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    while phases.len() < number {
        let weights: [f64; TERMS.len()] = std::array::from_fn(|_| random.uniform().powi(4));
        let sum: f64 = weights.iter().sum();
        let cost = 150.0 + 1500.0 * random.uniform();
        let rates =
            std::array::from_fn(|index| weights[index] / sum * cost / f64::from(TERMS[index].1));
        let new = Phase { rates, base_cpi: 0.25 + random.uniform() };
        if phases.iter().all(|other| difference(&new, other) > 400.0) {
            phases.push(new);
        }
    }
    phases
}

/// Returns the cycles per 1,000 instructions by which the costs of two phases differ.
fn difference(one: &Phase, other: &Phase) -> f64 {
    let cost = |phase: &Phase, index: usize| phase.rates[index] * f64::from(TERMS[index].1);
    (0..TERMS.len()).map(|index| (cost(one, index) - cost(other, index)).abs()).sum()
}

fn judged(of: fn(&mut Random) -> Stream, classifier: Classifier) -> Found {
    let mut found = Found::default();
    for seed in 0..100 {
        let (stream, runs) = of(&mut Random::new(77_000 + seed));
        found.add(&stream, &runs, classifier);
    }
    found
}

#[test]
fn changes_are_found_and_few_others() {
    let (nest, long) = (judged(nest, Classifier::Centroid), judged(long, Classifier::Centroid));
    for (what, found) in [("nest", &nest), ("long", &long)] {
        found.print(what);
        assert!(Found::share(found.found, found.changes) >= 90.0, "{what}");
        assert!(found.false_alarms * 1_000 <= found.intervals, "{what}: {}", found.false_alarms);
    }
}

#[test]
fn sure_classes_are_those_of_the_truth() {
    for classifier in Classifier::ALL {
        for of in [nest, long, turns] {
            let found = judged(of, classifier);
            found.print(classifier.word());
            assert!(found.sure > 0);
            assert!(Found::share(found.same, found.sure) >= 95.0, "{classifier:?}");
        }
    }
}

#[test]
fn the_best_predictor_is_not_worse_than_the_last_value() {
    for of in [nest, long, turns] {
        let found = judged(of, Classifier::Centroid);
        let right = |choice: Predictor| {
            Found::share(found.predicted_right[choice as usize], found.predicted)
        };
        assert!(right(Predictor::Best) >= right(Predictor::Last) - 1.0, "{found:?}");
    }
    let found = judged(turns, Classifier::Centroid);
    let right = |choice: Predictor| found.predicted_right[choice as usize];
    assert!(right(Predictor::Best) > right(Predictor::Last) + found.predicted / 10, "{found:?}");
}
