//! Traces reach the host complete and in order while the host reads. Lost records are counted while
//! it does not.

use std::{collections::BTreeSet, time::Duration};

use tally_abi::{
    Mode, syscall,
    trace::{Delivered, End, SignalRecord, SlicePlace},
};
use xtask::{
    machine::{Boot, Outcome, Pmu, Request, TracePort},
    report::Report,
    trace::run::Run,
    trace_file::Trace,
};

use crate::{SharedBoot, assert_small, assert_success, boot};

/// Events of two groups, for the counters of any profile.
const EVENTS: &str = "r01c4,r02c4,r08c4,r10c4,r20c4,r40c4";

// Linux's numbers.
const SIGSEGV: u8 = 11;
const SIGALRM: u8 = 14;

/// Machine that traces `programs` to the host.
fn traced(port: TracePort, programs: &str) -> Request {
    let request = Request::new(format!("wire trace -- {programs}"));
    Request { trace_port: port, time_limit: Duration::from_secs(100), ..request }
}

/// Panics unless the host has every record.
pub(crate) fn assert_complete(boot: &Boot) {
    let transcript = &boot.transcript;
    assert_eq!((transcript.bad_trace, transcript.unreadable), (None, 0));
    let of_engine =
        transcript.slices.len() + transcript.thresholds.len() + transcript.samples.len();
    let of_kernel =
        transcript.syscalls.len() + transcript.switches.len() + transcript.signals.len();
    let records = of_engine + of_kernel;
    let (mut read, mut lost) = (0, 0);
    for ring in &transcript.rings {
        assert_eq!(ring.written, ring.read + ring.lost);
        (read, lost) = (read + ring.read, lost + ring.lost);
    }
    assert_eq!((read, lost), (records as u64, 0));
    assert!(records > 0);
    assert!(transcript.losses.is_empty());
}

/// Machine with a program of three thousand slices.
fn three_thousand_slices(port: TracePort) -> Request {
    traced(port, &format!("switches {EVENTS} 10000 user 3000"))
}

/// Traces sent by the virtio port while programs run, and held in memory until they have ended.
static BY_PORT: SharedBoot = SharedBoot::new(|| three_thousand_slices(TracePort::File));
static IN_MEMORY: SharedBoot = SharedBoot::new(|| three_thousand_slices(TracePort::None));

#[test]
fn a_trace_by_the_virtio_port_is_complete() {
    assert_success(BY_PORT.get());
    assert_complete(BY_PORT.get());
}

#[test]
fn a_trace_in_memory_is_complete() {
    assert_success(IN_MEMORY.get());
    assert_complete(IN_MEMORY.get());
}

#[test]
fn both_transports_carry_as_many_slices() {
    let [by_port, in_memory] =
        [&BY_PORT, &IN_MEMORY].map(|boot| boot.get().transcript.slices.len());
    assert!(by_port >= 3000 && by_port.abs_diff(in_memory) < 100, "{by_port}, {in_memory}");
}

/// The trace states for each event of a session its position in the slice records; the counts there
/// are those of the event.
#[test]
fn a_trace_describes_its_run() {
    let boot = BY_PORT.get();
    let run = Run::of(boot, &Report::of(boot), "switches").json();
    let described = Trace::with_run(&boot.transcript.trace, &run);
    let run = Run::read(&Trace::open(&described).unwrap()).unwrap();
    let processor = run.processor.as_ref().expect("the machine has a PMU");
    assert_eq!((&*processor.vendor, processor.family, processor.model), ("GenuineIntel", 6, 0x6a));
    // Virtual time advances one nanosecond for each instruction.
    assert!(run.tsc_hz.is_some_and(|hz| hz.abs_diff(1_000_000_000) < 1_000_000), "{run:?}");
    assert!(run.programs.iter().any(|of| of.program == 1 && of.name == "switches"), "{run:?}");
    let [session] = &run.sessions[..] else { panic!("{run:?}") };
    let slices = &boot.transcript.slices;
    assert!(slices.iter().all(|slice| slice.address_space == session.address_space));
    let readings = &boot.transcript.sessions[&session.session].readings;
    assert_eq!((session.events.len(), readings.len()), (6, 6));
    for (event, reading) in session.events.iter().zip(readings) {
        let SlicePlace::List { group, index } = event.place else { panic!("{event:?}") };
        let of_group = slices.iter().filter(|slice| slice.group == group);
        let counted: u64 = of_group.map(|slice| slice.counts[usize::from(index)]).sum();
        assert!(counted > 0 && event.report.name == reading.name, "{event:?}");
        assert_eq!(counted, reading.reading.counted, "{event:?}");
    }
}

#[test]
fn slices_are_numbered_without_a_gap() {
    for boot in [&BY_PORT, &IN_MEMORY] {
        for (n, slice) in (0..).zip(&boot.get().transcript.slices) {
            assert_eq!((slice.sequence, slice.cpu, slice.mode), (n, 0, Mode::User));
        }
    }
}

#[test]
fn slices_have_the_number_of_their_groups_events() {
    for boot in [&BY_PORT, &IN_MEMORY] {
        for slice in &boot.get().transcript.slices {
            assert_eq!(usize::from(slice.events), if slice.group == 0 { 4 } else { 2 });
        }
    }
}

#[test]
fn slices_are_in_the_order_of_time() {
    for boot in [&BY_PORT, &IN_MEMORY] {
        for two in boot.get().transcript.slices.windows(2) {
            let [before, after] = two else { unreachable!() };
            assert!(before.end_tsc <= after.start_tsc || before.end == End::Overflow, "{two:?}");
        }
    }
}

/// Run with `seed`, counted in ring 0 too, with the truth over time. `instance` names the run's
/// folder.
fn seeded(seed: u64, instance: &str) -> (Boot, String) {
    let folder =
        std::env::temp_dir().join(format!("tally-{}-{seed}-{instance}", std::process::id()));
    let series = folder.join("series.csv");
    std::fs::create_dir_all(&folder).expect("there is room for temporary files");
    let line = format!("wire trace paranoid=1 seed={seed} -- switches {EVENTS} 10000 full 2000");
    let vpmu = vec![format!("series={}", series.display()), "every=1000000c".to_owned()];
    let boot = boot(&Request { vpmu, ..Request::new(line) });
    assert_success(&boot);
    assert_complete(&boot);
    let rows = std::fs::read_to_string(series).expect("the virtual PMU writes it");
    std::fs::remove_dir_all(&folder).expect("this test made it");
    (boot, rows)
}

/// Execution in the kernel does not depend on the time when the host reads. The comparison avoids
/// `assert_eq!`, which would print thousands of records.
#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_another_order() {
    let [(first, series), (again, same_series)] =
        ["first", "again"].map(|instance| seeded(7, instance));
    let [slices, others] = [&first, &again].map(|boot| &boot.transcript.slices);
    let differing = slices.iter().zip(others).enumerate().find(|(_, (one, other))| one != other);
    let same = first.transcript.trace == again.transcript.trace;
    assert!(same, "{}, {} slices, {differing:?}", slices.len(), others.len());
    assert_eq!(first.transcript.sessions, again.transcript.sessions);
    assert_eq!(first.truth, again.truth);
    assert!(series.lines().count() > 10 && series == same_series, "the truth over time differs");
    let (other, _) = seeded(8, "first");
    let groups = |boot: &Boot| -> Vec<u16> {
        boot.transcript.slices.iter().map(|slice| slice.group).collect()
    };
    assert_ne!(groups(&first), groups(&other));
}

/// A pipe holds 64 KiB.
#[test]
fn a_host_that_does_not_read_costs_records_and_does_not_stop_the_machine() {
    let programs = format!("switches {EVENTS} 5000 user 20000");
    let boot = boot(&traced(TracePort::Unread, &programs));
    assert_success(&boot);
    let [ring] = boot.transcript.rings[..] else { panic!("{:?}", boot.transcript.rings) };
    assert_eq!(ring.written, ring.read + ring.lost);
    assert!(ring.written >= 20_000 && ring.lost > 10_000, "{ring:?}");
    assert!(ring.read > 100 && ring.read < 2_000, "{ring:?}");
}

/// Machine with six programs on four CPUs.
fn four_cpus(port: TracePort, pmu: Pmu, event: &str) -> Request {
    let share = format!("share 1 {event} 100000");
    Request { cpus: 4, pmu, ..traced(port, &[&*share; 6].join(" -- ")) }
}

static FOUR_CPUS_BY_PORT: SharedBoot =
    SharedBoot::new(|| four_cpus(TracePort::File, Pmu::Intel, "r01c4"));
static FOUR_CPUS_IN_MEMORY: SharedBoot =
    SharedBoot::new(|| four_cpus(TracePort::None, Pmu::Amd, "r00c2"));

#[test]
fn programs_on_four_cpus_end_with_their_own_status() {
    for boot in [&FOUR_CPUS_BY_PORT, &FOUR_CPUS_IN_MEMORY] {
        assert_success(boot.get());
    }
}

#[test]
fn the_traces_of_four_cpus_are_complete() {
    for boot in [&FOUR_CPUS_BY_PORT, &FOUR_CPUS_IN_MEMORY] {
        assert_complete(boot.get());
        let transcript = &boot.get().transcript;
        assert_eq!((transcript.rings.len(), transcript.sessions.len()), (4, 6));
    }
}

#[test]
fn the_kernel_on_four_cpus_holds_at_most_8_mib() {
    for boot in [&FOUR_CPUS_BY_PORT, &FOUR_CPUS_IN_MEMORY] {
        assert_small(boot.get(), 4);
    }
}

/// Boot in which a program reads the rings of both CPUs while they are written, and another writes
/// to a ring.
static FOLLOWED: SharedBoot = SharedBoot::new(|| {
    let events = "INST_RETIRED.ANY,r01c4,r02c4,r08c4,r10c4,r20c4";
    let line = format!(
        "wire trace paranoid=0 -- follow {events} 2 -- switches {EVENTS} 20000 user 500 -- \
         follow write -- status 0"
    );
    Request { cpus: 2, ..Request::new(line) }
});

#[test]
fn a_program_reads_complete_traces_while_they_are_written() {
    let text = FOLLOWED.get().transcript.text();
    assert!(text.contains("follow: ") && !text.contains("FAILED"), "{text}");
}

#[test]
fn a_write_to_a_trace_ring_is_a_fault() {
    let outcome = &FOLLOWED.get().outcome;
    assert!(matches!(outcome, Outcome::Faulted { address: Some(_), .. }), "{outcome}");
}

#[test]
fn programs_that_read_a_trace_take_nothing_from_the_host() {
    assert_complete(FOLLOWED.get());
}

#[test]
fn a_trace_is_not_readable_without_permission() {
    assert_success(&boot(&Request::new("wire trace -- follow refused NotPermitted")));
}

#[test]
fn without_a_trace_there_is_none_to_read() {
    assert_success(&boot(&Request::new("wire paranoid=0 -- follow refused WrongState")));
}

/// Boot that keeps only the last records of a long trace.
static LAST: SharedBoot = SharedBoot::new(|| {
    Request::new(format!("wire trace=last -- switches {EVENTS} 5000 user 20000"))
});

#[test]
fn the_last_records_of_a_trace_are_read_at_the_end() {
    let boot = LAST.get();
    assert_success(boot);
    let transcript = &boot.transcript;
    assert_eq!((transcript.bad_trace, transcript.unreadable), (None, 0));
    let [ring] = transcript.rings[..] else { panic!("{:?}", transcript.rings) };
    // The whole ring.
    assert!(ring.read > 500 && ring.lost > 10_000, "{ring:?}");
    let sequence: Vec<u64> = transcript.slices.iter().map(|slice| slice.sequence).collect();
    assert!(sequence.windows(2).all(|two| two[1] == two[0] + 1));
    assert_eq!(sequence.last(), Some(&(ring.written - 1)));
}

#[test]
fn overwritten_records_are_counted_as_lost() {
    let transcript = &LAST.get().transcript;
    let [ring] = transcript.rings[..] else { panic!("{:?}", transcript.rings) };
    let slices = transcript.slices.len() as u64;
    assert_eq!((ring.written, ring.read), (ring.read + ring.lost, slices));
    let lost: u64 = transcript.losses.iter().map(|loss| loss.records).sum();
    assert_eq!(lost, ring.lost);
}

#[test]
fn losses_are_dated_before_the_records_that_are_left() {
    let transcript = &LAST.get().transcript;
    let first = &transcript.slices[0];
    let losses = &transcript.losses;
    assert!(losses.iter().all(|loss| loss.tsc <= first.end_tsc), "{first:?}, {losses:?}");
}

/// Boot with the shortest possible slices, and a trace with these options.
fn shortest_slices(options: &str) -> Boot {
    let boot = boot(&Request::new(format!("wire {options} -- switches {EVENTS} 1800 user 20000")));
    assert_success(&boot);
    boot
}

/// A load takes a hundred cycles, so that a tick of the timer has more slices than the ring has
/// records.
#[test]
fn a_slow_program_loses_no_record_between_two_ticks() {
    let job = format!("events={EVENTS} slice=20000 budget=500000 bottleneck 2 chase 1200000");
    let boot = boot(&Request::new(format!("wire trace -- {job}")));
    assert_success(&boot);
    assert_complete(&boot);
    assert!(boot.transcript.slices.len() > 5_000, "{}", boot.transcript.slices.len());
}

#[test]
fn a_program_that_waits_for_the_host_loses_no_record() {
    let boot = shortest_slices("trace=halt trace-ring=16");
    assert_complete(&boot);
    let [ring] = boot.transcript.rings[..] else { panic!("{:?}", boot.transcript.rings) };
    assert!(ring.lost == 0 && ring.written > 20_000 && ring.waits > 50, "{ring:?}");
}

#[test]
fn a_small_ring_loses_and_counts_what_the_host_does_not_take_in_time() {
    let boot = shortest_slices("trace trace-ring=2");
    let [ring] = boot.transcript.rings[..] else { panic!("{:?}", boot.transcript.rings) };
    assert!(ring.lost > 0 && ring.written == ring.read + ring.lost, "{ring:?}");
    let lost: u64 = boot.transcript.losses.iter().map(|loss| loss.records).sum();
    assert_eq!(lost, ring.lost);
}

/// Runs the program of the signals, and one that ends with a status, on one CPU.
fn with_events(events: &str) -> Boot {
    let boot = boot(&Request::new(format!("wire trace {events} -- signals -- status 0")));
    // The first program ends by `abort`.
    let exits: BTreeSet<_> = boot.transcript.exits.iter().cloned().collect();
    assert_eq!(exits, [("signals".into(), 134), ("status".into(), 0)].into(), "{}", boot.outcome);
    boot
}

#[test]
fn calls_switches_and_signals_are_in_a_trace_that_asks_for_them() {
    let boot = with_events("trace-events=syscalls,switches,signals");
    assert_complete(&boot);
    let told = &boot.transcript;
    let calls = |call: u64| told.syscalls.iter().filter(move |record| record.call == call);
    // Each output of the programs came by a call, whose result is the length of the output.
    let written: u64 = calls(syscall::WRITE)
        .chain(calls(syscall::WRITEV))
        .filter(|record| record.returned && record.rdi <= 2)
        .map(|record| record.result)
        .sum();
    assert_eq!(written, told.text().len() as u64);
    assert!(told.syscalls.iter().all(|record| record.start_tsc <= record.tsc));
    let ends: Vec<u32> = calls(syscall::EXIT_GROUP).map(|record| record.program).collect();
    assert_eq!(ends, [2]);
    assert!(calls(syscall::EXIT_GROUP).all(|record| !record.returned && record.result == 0));
    // Switches lead from thread to thread without a gap, and from the idle loop and back to it.
    let first = &told.switches[0];
    assert_eq!((first.from_program, first.from_thread), (0, 0));
    for two in told.switches.windows(2) {
        let (before, after) = (&two[0], &two[1]);
        assert_eq!((before.program, before.thread), (after.from_program, after.from_thread));
    }
    let threads = |program: u32| {
        let of_program = told.switches.iter().filter(|record| record.program == program);
        of_program.map(|record| record.thread).collect::<BTreeSet<_>>()
    };
    assert!(threads(1).len() > 1 && threads(2) == BTreeSet::from([2]), "{:?}", threads(1));
    // The timer and the faults of the program.
    for signal in [SIGALRM, SIGSEGV] {
        let is_it = |record: &&SignalRecord| record.signal == signal && record.program == 1;
        let record = told.signals.iter().find(is_it).expect("the program handles it");
        assert_eq!(record.action, Delivered::Handled);
        assert!(record.handler != 0 && record.address != 0, "{record:?}");
    }
}

#[test]
fn a_trace_has_the_events_that_are_asked_for_and_the_same_seed_gives_the_same() {
    let [one, other] = [(); 2].map(|()| with_events("trace-events=switches"));
    assert!(one.transcript.trace == other.transcript.trace);
    let told = &one.transcript;
    assert!(!told.switches.is_empty() && told.syscalls.is_empty() && told.signals.is_empty());
    let none = with_events("").transcript;
    assert!(none.switches.is_empty() && none.syscalls.is_empty() && none.signals.is_empty());
}

#[test]
fn the_log_has_the_levels_that_are_asked_for() {
    let log = |level: &str| {
        let boot = boot(&Request::new(format!("wire log={level} -- rounds 1 1")));
        assert_success(&boot);
        boot.folder.log_tail(10_000)
    };
    let [info, debug, trace] = ["info", "debug", "trace"].map(log);
    let entry = "rounds: entry 0x";
    assert!(!info.contains(entry) && debug.contains(entry) && trace.contains(entry), "{debug}");
    let call = "program 1, thread 1: WRITE";
    assert!(!debug.contains(call) && trace.contains(call), "{trace}");
    // The kernel prints the first line before it knows the level.
    let error = log("error");
    assert_eq!(error.lines().count(), 1, "{error}");
}
