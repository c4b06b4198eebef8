//! Tuning streams: the constants of the detector and of the classes were chosen on these. The tests
//! only check that the code runs; the results are printed.

use tally_abi::phase::Classifier;

use crate::stream::{Found, Noise, Phase, Random, TERMS, intervals};

/// Makes phases of random rates, each with one large cost.
fn random_phases(number: usize, random: &mut Random) -> Vec<Phase> {
    let phase = |_| {
        let mut rates = [0.0; TERMS.len()];
        rates.iter_mut().for_each(|rate| *rate = 0.5 * random.uniform());
        let large = random.below(TERMS.len());
        rates[large] = (200.0 + 800.0 * random.uniform()) / f64::from(TERMS[large].1);
        Phase { rates, base_cpi: 0.3 + 0.5 * random.uniform() }
    };
    (0..number).map(phase).collect()
}

#[test]
fn streams_that_were_tuned_on() {
    for classifier in Classifier::ALL {
        let mut found = Found::default();
        for seed in 0..40 {
            let random = &mut Random::new(1_000 + seed);
            let phases = random_phases(4, random);
            let mut runs = Vec::new();
            let mut last = 4;
            while runs.len() < 20 {
                let phase = random.below(4);
                if phase != last {
                    runs.push((phase, 8 + random.below(40)));
                    last = phase;
                }
            }
            let noise = Noise { spread: [0.005, 0.02, 0.05][seed as usize % 3], error: 0.02 };
            let stream = intervals(&phases, &runs, noise, random);
            found.add(&stream, &runs, classifier);
        }
        found.print(&format!("tuning, {}", classifier.word()));
        assert!(found.intervals > 10_000 && found.changes > 700);
    }
}
