//! What `tally stat` counts apart, each with a truth of its own: threads of a program, and CPUs.

use std::collections::BTreeMap;

use tally_abi::truth::RegionKind;
use xtask::{
    machine::{Boot, Pmu, Request},
    report::{Kind, Report, SessionReport},
};

use crate::{SharedBoot, assert_output, assert_success, boot, output_of};

const EXACT: &str = "instructions,cycles,branches,task-clock,user_time,cs,page-faults";
/// More events than counters.
const MULTIPLEXED: &str = "INST_RETIRED.ANY,BR_INST_RETIRED.COND,BR_INST_RETIRED.COND_TAKEN,\
    MEM_INST_RETIRED.ALL_LOADS,MEM_INST_RETIRED.ALL_STORES,UOPS_RETIRED.SLOTS,\
    BR_INST_RETIRED.NEAR_CALL,L1D.REPLACEMENT,BR_MISP_RETIRED.COND";

static BOOT: SharedBoot = SharedBoot::new(|| {
    Request::new(format!(
        "wire -- tally stat --per-thread -x, -e {EXACT} threads 8 \
         -- {} -- tally stat -j --per-thread -e cs fair 2 30",
        fair()
    ))
});

/// Three threads, with more events than counters.
fn fair() -> String {
    format!("tally stat --per-thread --slice 5000 --budget 20 -e {MULTIPLEXED} fair 3 120")
}

/// The sessions of the threads of the program of this name, by thread.
fn threads(boot: &Boot, program: &str) -> BTreeMap<u32, SessionReport> {
    let of_thread = |session: &SessionReport| {
        let thread = session.program.strip_prefix(program)?.strip_prefix('-')?.parse().ok()?;
        Some((thread, session.clone()))
    };
    Report::of(boot).sessions().filter_map(of_thread).collect()
}

/// Three programs are loaded by the three of the command line.
#[test]
fn exact_counts_of_each_thread_are_its_true_counts() {
    let boot = BOOT.get();
    // `threads` ends with a status of its own.
    assert!(boot.failures().is_empty(), "{}", boot.outcome);
    let threads = threads(boot, "threads");
    assert!(threads.len() > 8, "{:?}", threads.keys());
    for (thread, session) in &threads {
        for event in &session.events {
            assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth), "{thread}");
            assert!(event.truth > Some(10), "{thread}: {event:?}");
        }
    }
}

/// The truth of the whole program is marked apart from those of its threads.
#[test]
fn counts_of_all_threads_are_those_of_the_program() {
    let boot = BOOT.get();
    let threads = threads(boot, "threads");
    let tags: Vec<u32> = threads.values().filter_map(|session| session.session).collect();
    let regions = &boot.truth.as_ref().expect("there is a truth").regions;
    let region = |tag| regions.iter().find(|it| (it.kind, it.tag) == (RegionKind::Session, tag));
    let space = region(tags[0]).expect("the thread has a region").address_space;
    let whole = regions.iter().find(|region| {
        region.kind == RegionKind::Session
            && region.address_space == space
            && !tags.contains(&region.tag)
    });
    let whole = whole.expect("the program has a region").events["INST_RETIRED.ANY"].user;
    let of_thread = |session: &SessionReport| session.events[0].estimate.unwrap();
    assert_eq!(threads.values().map(of_thread).sum::<u64>(), whole);
}

/// The estimates of one run are few and err together: six runs.
#[test]
fn intervals_of_each_thread_contain_its_truth() {
    let with = |seed| boot(&Request::new(format!("wire seed={seed} -- {}", fair())));
    let others: Vec<Boot> = (2..7).map(with).collect();
    let (mut all, mut inside) = (0, 0);
    for boot in others.iter().chain([BOOT.get()]) {
        assert!(boot.failures().is_empty(), "{}", boot.outcome);
        let mut threads = threads(boot, "fair");
        // The other program of this name has one event.
        threads.retain(|_, session| session.events.len() > 1);
        let events = threads.values().flat_map(|session| &session.events);
        let estimated: Vec<_> = events.filter(|event| event.kind == Kind::Estimated).collect();
        // Three threads that spin for a third of the time each, of 9 events at least 6 multiplexed.
        assert!(estimated.len() >= 18, "{}", estimated.len());
        let contains = |event: &&&xtask::report::EventReport| {
            let truth = event.truth.unwrap_or_default() as f64;
            event.low_95 <= Some(truth) && Some(truth) <= event.high_95
        };
        all += estimated.len();
        inside += estimated.iter().filter(contains).count();
        let spinning = threads.values().map(|session| session.events[0].estimate.unwrap());
        assert_eq!(spinning.filter(|instructions| *instructions > 1_000_000).count(), 3);
    }
    assert!(inside * 100 >= all * 85, "{inside} of {all}");
}

/// Lines of perf's fields: thread, count, unit, event, nanoseconds, share, metric, unit, and then
/// the half width.
#[test]
fn each_thread_has_perfs_fields_with_its_name_before_them() {
    let boot = BOOT.get();
    let printed = output_of(boot, 0, 1);
    let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split(',').collect()).collect();
    let of = |event: &str| -> BTreeMap<String, f64> {
        let lines = lines.iter().filter(|fields| fields.len() == 9 && fields[3] == event);
        lines.map(|fields| (fields[0].to_owned(), fields[1].parse().unwrap())).collect()
    };
    let [instructions, ran, user, switches] =
        ["instructions", "task-clock", "user_time", "cs"].map(of);
    assert_eq!(lines.len(), EXACT.split(',').count() * instructions.len(), "{printed}");
    let reported: BTreeMap<String, f64> = threads(boot, "threads")
        .iter()
        .map(|(tid, it)| (format!("threads-{tid}"), it.events[0].estimate.unwrap() as f64))
        .collect();
    assert_eq!(instructions, reported, "{printed}");
    for (thread, user) in user {
        assert!(user > 0.0 && user / 1e6 <= ran[&thread] + 0.01, "{thread}: {printed}");
    }
    assert!(switches.values().sum::<f64>() > 8.0, "{printed}");
}

#[test]
fn json_has_perfs_key_for_the_thread() {
    let printed = output_of(BOOT.get(), 2, 1);
    let lines = printed.lines().map(serde_json::from_str::<serde_json::Value>);
    let lines: Vec<_> = lines.map(|line| line.expect("it is JSON")).collect();
    assert_eq!(lines.len(), 3, "{printed}");
    for line in lines {
        assert!(line["thread"].as_str().unwrap().starts_with("fair-"), "{line}");
        assert_eq!(line["event"], "cs");
    }
}

/// Counts of CPUs, while other programs run: all of them, and one of them, multiplexed.
static CPUS: SharedBoot = SharedBoot::new(|| Request {
    cpus: 2,
    ..Request::new(format!(
        "wire paranoid=0 -- tally stat -a -A -x, -e {EXACT} deflate --level 1 \
         -- tally stat -a -x, -e instructions fair 2 150 \
         -- tally stat -C 0-1 -x, --slice 5000 --budget 20 -e {MULTIPLEXED} fair 3 150 \
         -- tally stat -C 1 -A -j -e instructions,cs fair 2 100 -- deflate --level 2"
    ))
});

/// The sessions of the CPUs, in order of the numbers of the sessions.
fn cpus(boot: &Boot) -> Vec<SessionReport> {
    Report::of(boot).sessions().filter(|it| it.program.starts_with("CPU")).cloned().collect()
}

#[test]
fn exact_counts_of_each_cpu_are_its_true_counts() {
    let boot = CPUS.get();
    assert!(boot.failures().is_empty(), "{}", boot.outcome);
    let cpus = cpus(boot);
    // Two for each of three sessions, one for the last.
    assert_eq!(cpus.len(), 7);
    let events = cpus.iter().flat_map(|session| &session.events);
    let exact: Vec<_> = events.filter(|event| event.kind == Kind::Exact).collect();
    for event in &exact {
        assert_eq!(event.estimate, event.truth, "{event:?}");
    }
    let total: u64 = exact.iter().filter_map(|event| event.estimate).sum();
    assert!(exact.len() >= 9 && total > 100_000_000, "{total} in {}", exact.len());
}

/// Two programs side by side, six times with other seeds: estimates of one session err together,
/// and so do those of sessions at the same time.
#[test]
fn intervals_of_each_cpu_contain_its_truth() {
    let stat = format!("-- tally stat -C 0-1 --slice 5000 --budget 20 -e {MULTIPLEXED} fair 3 150");
    let command = format!("wire paranoid=0 repeat=6 {stat} {stat}");
    let boot = boot(&Request { cpus: 2, ..Request::new(command) });
    let cpus = cpus(&boot);
    assert_eq!(cpus.len(), 24, "{}", boot.outcome);
    let events = cpus.iter().flat_map(|session| &session.events);
    let estimated: Vec<_> = events.filter(|event| event.kind == Kind::Estimated).collect();
    let contains = |event: &&&xtask::report::EventReport| {
        let truth = event.truth.unwrap_or_default() as f64;
        event.low_95 <= Some(truth) && Some(truth) <= event.high_95
    };
    let inside = estimated.iter().filter(contains).count();
    assert!(estimated.len() >= 144, "{}", estimated.len());
    assert!(inside * 100 >= estimated.len() * 80, "{inside} of {}", estimated.len());
}

/// The counts of a CPU are perf's fields behind its name; those of all are their sum.
#[test]
fn cpus_are_printed_as_perf_prints_them() {
    let boot = CPUS.get();
    let apart = output_of(boot, 0, 1);
    let fields: Vec<Vec<&str>> = apart.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(fields.len(), 2 * EXACT.split(',').count(), "{apart}");
    for (index, line) in fields.iter().enumerate() {
        assert_eq!((line[0], line.len()), (["CPU0", "CPU1"][index % 2], 9), "{apart}");
    }
    let counted = fields.iter().filter(|line| line[3] == "instructions");
    let counted: f64 = counted.map(|line| line[1].parse::<f64>().unwrap()).sum();
    // The program's own, and those of the other programs meanwhile.
    assert!(counted > 100e6, "{apart}");

    let together = output_of(boot, 2, 1);
    assert_eq!(together.lines().count(), MULTIPLEXED.split(',').count(), "{together}");
    let reported: f64 = cpus(boot).iter().filter(|it| it.events.len() > 6).map(instructions).sum();
    let first: Vec<&str> = together.lines().next().unwrap().split(',').collect();
    assert_eq!(first[0].parse::<f64>().unwrap(), reported, "{together}");

    let json = output_of(boot, 3, 1);
    let lines = json.lines().map(serde_json::from_str::<serde_json::Value>);
    for line in lines.map(|line| line.expect("it is JSON")) {
        assert_eq!(line["cpu"], "1", "{line}");
    }
}

fn instructions(session: &SessionReport) -> f64 {
    session.events[0].estimate.unwrap() as f64
}

/// The counts of intervals add up to what is counted until the last one is printed. `tally` itself
/// runs a little longer.
#[test]
fn intervals_of_cpus_add_up() {
    let command = "wire paranoid=0 -- tally stat -a -I 20 -x, -e instructions fair 2 150";
    let boot = &boot(&Request { cpus: 2, ..Request::new(command) });
    let printed = output_of(boot, 0, 1);
    let counts = printed.lines().map(|line| line.split(',').nth(1).unwrap().parse::<u64>());
    let counts: Vec<u64> = counts.map(|count| count.unwrap()).collect();
    assert!(counts.len() > 2, "{printed}");
    let sum: u64 = counts.iter().sum();
    let rest = cpus(boot).iter().map(instructions).sum::<f64>() - sum as f64;
    assert!((1.0..100e3).contains(&rest), "{rest}: {printed}");
}

/// Defines a test of a program that reads the banks of all CPUs and sets thresholds on them.
macro_rules! banks {
    ($($name:ident on $pmu:expr, $cpus:literal CPUs: $events:literal;)*) => {$(
        #[test]
        fn $name() {
            let line = format!("wire trace paranoid=0 -- banks {} 40000000 {}", $events, $cpus);
            assert_banks(&boot(&Request { pmu: $pmu, cpus: $cpus, ..Request::new(line) }), $cpus);
        }
    )*};
}

banks! {
    banks_of_one_cpu_on_intel on Pmu::Intel, 1 CPUs:
        "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD,r01c4,r02c4,r08c4,r10c4,r20c4,r40c4";
    banks_of_two_cpus_on_intel on Pmu::Intel, 2 CPUs:
        "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD,r01c4,r02c4,r08c4,r10c4,r20c4,r40c4";
    banks_of_two_cpus_on_amd on Pmu::Amd, 2 CPUs:
        "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,r0c2,r0c4,r0c0";
}

/// The same from C, with a handler, at shorter slices.
#[test]
fn whole_cpus_are_counted_from_c() {
    for (pmu, events) in [
        (Pmu::Intel, "INST_RETIRED.ANY,MEM_INST_RETIRED.ALL_LOADS,r01c4,r02c4,r08c4,r10c4,r20c4"),
        (Pmu::Amd, "RETIRED_INSTRUCTIONS,LS_DISPATCH.LD_DISPATCH,r0c2,r0c4,r0c0,r0c3"),
    ] {
        let line = format!("wire paranoid=0 -- cpus {events} 2");
        let boot = boot(&Request { pmu, cpus: 2, ..Request::new(line) });
        assert_output(&boot, "cpus: done");
        assert_success(&boot);
        let cpus = cpus(&boot);
        assert_eq!(cpus.len(), 2);
        for event in cpus.iter().flat_map(|session| &session.events) {
            assert!(event.kind != Kind::Exact || event.estimate == event.truth, "{event:?}");
        }
    }
}

/// What the program read in the banks is what the session reports, as the program checks, and that
/// is the truth.
fn assert_banks(boot: &Boot, parts: usize) {
    assert_output(boot, "banks: done");
    assert!(!boot.transcript.text().contains("FAILED"), "{}", boot.transcript.text());
    assert_success(boot);
    let cpus = cpus(boot);
    assert_eq!(cpus.len(), parts);
    for event in cpus.iter().flat_map(|session| &session.events) {
        match event.kind {
            Kind::Exact => assert_eq!(event.estimate, event.truth, "{event:?}"),
            // Intervals are judged where there are more.
            _ => println!("{event:?}"),
        }
    }
    let thresholds = &boot.transcript.thresholds;
    assert_eq!(thresholds.len(), parts + 1, "{thresholds:?}");
    for record in thresholds {
        assert!((record.threshold..record.threshold + 20).contains(&record.count), "{record:?}");
    }
}
