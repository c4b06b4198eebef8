//! Do the 95 % intervals cover the truth, and are the estimates unbiased?
//!
//! Synthetic programs run on a simulated PMU under the real session and multiplexer, so that what
//! is judged is the whole of the engine: plan, random order, sums, estimate. Seeds are fixed.

mod simulation;

use simulation::{Kind, Outcome, study};

/// Runs of each program.
const RUNS: u64 = 400;

fn table(outcomes: &[Outcome]) {
    println!("{:<12} {:>6} {:>6} {:>8} {:>8} {:>9} {:>9}", "kind", "groups", "slices", "coverage", "bias/se", "rel.err", "by time");
    for o in outcomes {
        println!(
            "{:<12} {:>6} {:>6} {:>8.3} {:>8.2} {:>9.4} {:>9.4}",
            format!("{:?}", o.kind), o.groups, o.slices, o.coverage, o.bias_z, o.relative_error, o.relative_error_by_time
        );
    }
}

#[test]
fn intervals_cover_the_truth() {
    let mut all = Vec::new();
    for (groups, slices) in [(2, 60), (5, 100), (5, 600), (5, 2000), (10, 600), (10, 3000)] {
        all.extend(study(groups, slices, RUNS));
    }
    table(&all);
    let mean = |f: &dyn Fn(&&Outcome) -> bool| {
        let v: Vec<f64> = all.iter().filter(f).map(|o| o.coverage).collect();
        v.iter().sum::<f64>() / v.len() as f64
    };
    for kind in Kind::ALL {
        println!("{kind:?}: {:.3}", mean(&|o| o.kind == kind));
    }
    println!("all: {:.3}", mean(&|_| true));
}
