//! Do the 95 % intervals cover the truth, and are the estimates unbiased?
//!
//! Synthetic programs run on a simulated PMU under the real session and multiplexer, so that what
//! is judged is the whole of the engine: plan, random order, sums, estimate. Seeds are fixed.

mod fake;
mod simulation;

use simulation::{Kind, Outcome, study};

/// Runs of each program.
const RUNS: u64 = 200;

/// Groups and slices of each study.
const STUDIES: [(usize, usize); 6] =
    [(2, 60), (5, 100), (5, 600), (5, 2000), (10, 600), (10, 3000)];

fn print(outcomes: &[Outcome]) {
    println!("kind      groups slices coverage bias/s.e. error   error by time");
    for o in outcomes {
        let kind = format!("{:?}", o.kind);
        println!(
            "{kind:<10} {:>5} {:>6} {:>8.3} {:>8.2} {:>7.4} {:>7.4}",
            o.groups, o.slices, o.coverage, o.bias_z, o.relative_error, o.relative_error_by_time
        );
    }
}

fn mean_coverage<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> f64 {
    let (sum, n) = outcomes.fold((0.0, 0.0), |(sum, n), o| (sum + o.coverage, n + 1.0));
    sum / n
}

#[test]
fn intervals_cover_the_truth_and_estimates_are_unbiased() {
    let studies = STUDIES.iter().flat_map(|(groups, slices)| study(*groups, *slices, RUNS));
    let outcomes: Vec<Outcome> = studies.collect();
    print(&outcomes);
    let all = mean_coverage(outcomes.iter());
    println!("all {all:.3}");
    assert!((0.93..=0.97).contains(&all), "{all}");
    for kind in Kind::ALL {
        let coverage = mean_coverage(outcomes.iter().filter(|o| o.kind == kind));
        println!("{kind:?} {coverage:.3}");
        let least = match kind {
            // A burst that no slice has met cannot be in the error.
            Kind::Bursts => 0.88,
            _ => 0.93,
        };
        assert!(coverage >= least, "{kind:?} {coverage}");
        // Rare events are covered more often as counts are whole; drifts as strata are wide.
        let most = if matches!(kind, Kind::Rare | Kind::Few | Kind::Drift) { 1.0 } else { 0.97 };
        assert!(coverage <= most, "{kind:?} {coverage}");
    }
    // 48 means, each with a standard error of 1 and, for bursts, heavy tails.
    assert!(outcomes.iter().all(|o| o.bias_z.abs() < 4.0));
}

#[test]
fn ratios_beat_linear_scaling_where_events_follow_instructions() {
    let outcomes = study(5, 600, RUNS);
    let mix = outcomes.iter().find(|o| o.kind == Kind::Mix).expect("every kind is studied");
    assert!(mix.relative_error < 0.7 * mix.relative_error_by_time);
}
