//! Estimates made again from the records of all slices.

use xtask::{report::Report, run::RunArgs};

use crate::{assert_success, boot};

/// Of a job with which nothing in them was chosen.
#[test]
fn refined_estimates_are_closer_to_the_truth_and_hold_it() {
    for machine in ["intel", "amd"] {
        let command = format!("cargo xtask run --pmu {machine} --refine --seed 2026");
        let args = RunArgs::of(&command).unwrap();
        let boot = boot(&args.request().unwrap());
        assert_success(&boot);
        let mut report = Report::of(&boot);
        report.add_refined(&boot, &args.plan().unwrap().expect("it is asked for"));
        let events = report.first.expect("it has a session").events;
        let both: Vec<_> =
            events.iter().filter_map(|event| Some((event, event.as_refined()?))).collect();
        let outside = both.iter().filter(|(_, refined)| refined.is_within() == Some(false)).count();
        assert!(both.len() >= 15 && outside <= 3, "{machine}: {outside} of {events:?}");
        let narrower =
            both.iter().filter(|(event, refined)| refined.half_width_95 < event.half_width_95);
        assert!(narrower.count() * 4 > both.len() * 3, "{machine}: {events:?}");
    }
}
