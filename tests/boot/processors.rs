//! Machines that show other processors: each counts its own events by their names and encodings.
//!
//! The virtual PMU finds an event by the encoding that the kernel writes, and counts what the
//! profile models under the event's name: a count of another event has another truth.

use xtask::{
    explain,
    machine::{self, ProcessorArgs},
    project::Project,
    report::{EventReport, Kind, SessionReport},
};

use crate::session_of;

/// Fewest events of a processor that a test counts; Knights Landing has four on general counters.
const FEWEST: usize = 4;
/// Most events of a list: a round of slices stays short.
const MOST: usize = 60;

/// Events of a processor that a machine which shows it counts, by the vendor's names.
fn modelled(processor: &str) -> Vec<String> {
    let shown = ProcessorArgs::of(processor).shown(&Project::here()).expect("it has a table");
    let (pmu, options) = shown.expect("it is given");
    let pmu = machine::virtual_pmu_of(pmu, &options).expect("the options are right");
    let found = explain::detect(&pmu).expect("it is detected");
    let names = found.catalogue().entries().map(|entry| entry.name);
    names.filter(|name| explain::models(&pmu, &found, name)).map(str::to_owned).collect()
}

/// Counts events of the processor in the default job, and compares them with the truth. Returns the
/// number of events, and how many intervals hold of how many.
fn count(processor: &str) -> (usize, usize, usize) {
    let own = modelled(processor);
    assert!(own.len() >= FEWEST, "{processor}: {own:?}");
    let list = own[..own.len().min(MOST)].join(",");
    let session = session_of(&format!(
        "cargo xtask run --processor {processor} --slice 20000 --budget 50 --events {list} -- deflate"
    ));
    let SessionReport { events, .. } = session;
    // Fixed counters' events and unions of unit masks have names that the truth does not have.
    let judged: Vec<&EventReport> = events.iter().filter(|event| event.truth.is_some()).collect();
    assert!(judged.len() * 2 >= events.len(), "{processor}: {} judged", judged.len());
    for event in judged {
        match event.kind {
            Kind::Exact => assert_eq!(event.estimate, event.truth, "{processor}: {event:?}"),
            Kind::Estimated => assert!(is_near(event), "{processor}: {event:?}"),
            Kind::NotMeasured => {}
        }
    }
    let within: Vec<bool> = events.iter().filter_map(EventReport::is_within).collect();
    let held = within.iter().filter(|held| **held).count();
    println!("{processor}: {} of {} events, {held} of {}", events.len(), own.len(), within.len());
    (events.len(), held, within.len())
}

/// Returns whether an estimate is within six half widths of the truth, and of what interrupts add:
/// some 100 events a slice.
fn is_near(event: &EventReport) -> bool {
    let (Some(estimate), Some(truth)) = (event.estimate, event.truth) else { return false };
    let half_width = event.half_width_95.unwrap_or(0.0);
    estimate.abs_diff(truth) as f64 <= 6.0 * half_width + 0.1 * truth as f64 + 100_000.0
}

#[test]
fn later_servers_count_their_own_events() {
    for processor in ["emeraldrapids", "cascadelakex", "zen5"] {
        let (events, held, of) = count(processor);
        assert!(events >= 40 && held * 10 >= of * 7, "{processor}: {held} of {of} of {events}");
    }
}

#[test]
#[ignore = "long"]
fn every_processor_counts_its_own_events() {
    let all: Vec<_> = ProcessorArgs::names().map(count).collect();
    let [held, of] =
        [1, 2].map(|part| all.iter().map(|it| if part == 1 { it.1 } else { it.2 }).sum());
    let (held, of): (usize, usize) = (held, of);
    println!("{held} of {of} intervals hold");
    assert!(held * 100 >= of * 85, "{held} of {of}");
}
