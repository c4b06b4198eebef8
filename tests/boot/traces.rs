//! Traces on their way to the host: whole and the same while it reads, counted where it does not.

use std::time::Duration;

use tally_abi::{Mode, trace::End};
use xtask::machine::{Boot, Outcome, Pmu, Request, TracePort};

use crate::{assert_small, assert_success, boot};

/// Two groups' events, for every counter of the machine.
const EVENTS: &str = "r01c4,r02c4,r08c4,r10c4,r20c4,r40c4";

fn traced(port: TracePort, programs: &str) -> Boot {
    let request = Request::new(format!("wire trace -- {programs}"));
    boot(&Request { trace_port: port, time_limit: Duration::from_secs(100), ..request })
}

/// Asserts that all of a trace is there.
fn assert_whole(boot: &Boot) {
    let told = &boot.transcript;
    assert_eq!((told.bad_trace, told.unreadable), (None, 0));
    let records = told.slices.len() + told.thresholds.len() + told.samples.len();
    let (mut read, mut lost) = (0, 0);
    for ring in &told.rings {
        assert_eq!(ring.written, ring.read + ring.lost);
        (read, lost) = (read + ring.read, lost + ring.lost);
    }
    assert_eq!((read, lost), (records as u64, 0));
    assert!(records > 0);
    assert!(told.losses.is_empty());
}

#[test]
fn a_trace_is_whole_by_either_way() {
    let programs = format!("switches {EVENTS} 10000 user 3000");
    let boots = [TracePort::File, TracePort::None].map(|port| traced(port, &programs));
    for boot in &boots {
        assert_success(boot);
        assert_whole(boot);
        let slices = &boot.transcript.slices;
        assert!(slices.len() >= 3000);
        // Numbered without a gap, in the order of time, each as long as its group.
        for (n, slice) in (0..).zip(slices) {
            assert_eq!((slice.sequence, slice.cpu, slice.mode), (n, 0, Mode::User));
            assert_eq!(usize::from(slice.events), if slice.group == 0 { 4 } else { 2 });
        }
        for two in slices.windows(2) {
            let [before, after] = two else { unreachable!() };
            assert!(before.end_tsc <= after.start_tsc || before.end == End::Overflow, "{two:?}");
        }
    }
    let [by_port, by_uart] = boots.map(|boot| boot.transcript.slices.len());
    assert!(by_port.abs_diff(by_uart) < 100, "{by_port}, {by_uart}");
}

/// A run of two groups, counted in ring 0 too, and its truth over time.
fn seeded(seed: u64) -> (Boot, String) {
    let own = std::env::temp_dir().join(format!("tally-{}", std::process::id()));
    let series = own.join("series.csv");
    std::fs::create_dir_all(&own).expect("there is room for temporary files");
    let line = format!("wire trace paranoid=1 seed={seed} -- switches {EVENTS} 10000 full 2000");
    let vpmu = vec![format!("series={}", series.display()), "every=1000000c".to_owned()];
    let boot = boot(&Request { vpmu, ..Request::new(line) });
    assert_success(&boot);
    assert_whole(&boot);
    let rows = std::fs::read_to_string(series).expect("the virtual PMU writes it");
    std::fs::remove_dir_all(&own).expect("it is ours");
    (boot, rows)
}

/// What the kernel executes does not depend on when the host takes what it sends.
#[test]
fn same_seed_same_bytes_and_another_seed_another_order() {
    let [(first, series), (again, same_series), (other, _)] = [7, 7, 8].map(seeded);
    // Not `assert_eq!`: it would print thousands of records.
    let [slices, others] = [&first, &again].map(|boot| &boot.transcript.slices);
    let differing = slices.iter().zip(others).enumerate().find(|(_, (one, other))| one != other);
    let same = first.transcript.trace == again.transcript.trace;
    assert!(same, "{}, {} slices, {differing:?}", slices.len(), others.len());
    assert_eq!(first.transcript.sessions, again.transcript.sessions);
    assert_eq!(first.truth, again.truth);
    let is_long = series.lines().count() > 10;
    assert!(is_long && series == same_series, "the truth is the same all the time");
    let groups = |boot: &Boot| -> Vec<u16> {
        boot.transcript.slices.iter().map(|slice| slice.group).collect()
    };
    assert_ne!(groups(&first), groups(&other));
}

#[test]
fn a_host_that_stops_reading_costs_records_and_no_hang() {
    let programs = format!("switches {EVENTS} 5000 user 20000");
    let boot = traced(TracePort::Unread, &programs);
    assert_success(&boot);
    let [ring] = boot.transcript.rings[..] else { panic!("{:?}", boot.transcript.rings) };
    assert_eq!(ring.written, ring.read + ring.lost);
    assert!(ring.written >= 20_000 && ring.lost > 10_000, "{ring:?}");
    // A pipe takes 64 KiB.
    assert!(ring.read > 100 && ring.read < 2_000, "{ring:?}");
}

#[test]
fn traces_of_several_processors_are_whole() {
    let programs = ["share 1 r01c4 100000"; 6].join(" -- ");
    for (port, pmu) in [(TracePort::File, Pmu::Intel), (TracePort::None, Pmu::Amd)] {
        let line = format!(
            "wire trace -- {}",
            programs.replace("r01c4", if pmu == Pmu::Amd { "r00c2" } else { "r01c4" })
        );
        let boot = boot(&Request { cpus: 4, pmu, trace_port: port, ..Request::new(line) });
        assert_eq!(boot.outcome, Outcome::Done(0));
        assert_whole(&boot);
        assert!(boot.transcript.rings.len() == 4 && boot.transcript.sessions.len() == 6);
        assert_small(&boot, 4);
    }
}

#[test]
fn a_program_follows_the_traces_as_they_are_written() {
    let events = "INST_RETIRED.ANY,r01c4,r02c4,r08c4,r10c4,r20c4";
    let line = format!(
        "wire trace paranoid=0 -- follow {events} 2 -- switches {EVENTS} 20000 user 500 -- follow write -- \
         status 0"
    );
    let boot = boot(&Request { cpus: 2, ..Request::new(line) });
    // The one that wrote to a ring was stopped; the other looked on, and the host has all of it too.
    assert!(matches!(boot.outcome, Outcome::Faulted { address: Some(_), .. }), "{}", boot.outcome);
    let text = boot.transcript.text();
    assert!(text.contains("follow: ") && !text.contains("FAILED"), "{text}");
    assert_whole(&boot);
}

#[test]
fn traces_are_for_those_who_may_read_them() {
    for (options, why) in [("trace", "NotPermitted"), ("paranoid=0", "WrongState")] {
        let line = format!("wire {options} -- follow refused {why}");
        assert_success(&boot(&Request::new(line)));
    }
}

#[test]
fn the_last_of_a_trace_is_there_at_the_end() {
    let boot = boot(&Request::new(format!("wire trace=last -- switches {EVENTS} 5000 user 20000")));
    assert_success(&boot);
    let told = &boot.transcript;
    assert_eq!((told.bad_trace, told.unreadable), (None, 0));
    let [ring] = told.rings[..] else { panic!("{:?}", told.rings) };
    assert_eq!((ring.written, ring.read), (ring.read + ring.lost, told.slices.len() as u64));
    let lost: u64 = told.losses.iter().map(|loss| loss.records).sum();
    assert_eq!(lost, ring.lost);
    // A full ring, up to the very last record.
    assert!(ring.read > 500 && ring.lost > 10_000, "{ring:?}");
    // In the order of time: what was lost came before what is there.
    let first = &told.slices[0];
    assert!(
        told.losses.iter().all(|loss| loss.tsc <= first.end_tsc),
        "{first:?}, {:?}",
        told.losses
    );
    let numbers: Vec<u64> = told.slices.iter().map(|slice| slice.sequence).collect();
    assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1));
    assert_eq!(numbers.last(), Some(&(ring.written - 1)));
}
