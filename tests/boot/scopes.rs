//! Separate counts of `tally stat`, each with its own truth: threads of a program, and CPUs.

use std::collections::BTreeMap;

use tally_abi::truth::RegionKind;
use xtask::{
    machine::{Boot, Pmu, Request},
    report::{EventReport, Kind, Report, SessionReport},
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

/// Command with three threads and more events than counters.
fn fair() -> String {
    format!("tally stat --per-thread --slice 5000 --budget 20 -e {MULTIPLEXED} fair 3 120")
}

/// Sessions of the threads of the program of this name, by thread.
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
    // `threads` ends with a status other than 0.
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

/// The truth marks the whole program separately from its threads.
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

/// Events with the same number in each iteration of `fair`'s loop.
const OF_THE_LOOP: [&str; 4] = [
    "BR_INST_RETIRED.COND",
    "BR_INST_RETIRED.COND_TAKEN",
    "MEM_INST_RETIRED.ALL_LOADS",
    "MEM_INST_RETIRED.ALL_STORES",
];
/// Number of slices of an event that may have another rate than the loop's.
const UNLIKE_SLICES: f64 = 4.0;

/// Panics unless the estimates of the loop's events are near the truth. Nearly all slices lie in
/// the loop and have the same rates, so the choice of the slices that count an event does not
/// matter. An estimate is off by slices of other code (start and end of a program), and by counts
/// credited to a wrong session, CPU or slice. Returns the number of judged estimates.
fn assert_near_the_truth<'a>(sessions: impl Iterator<Item = &'a SessionReport>) -> usize {
    let mut judged = 0;
    for session in sessions {
        let of_the_loop = |event: &&EventReport| OF_THE_LOOP.contains(&&*event.name);
        let events = session.events.iter().filter(of_the_loop);
        for event in events.filter(|event| event.kind == Kind::Estimated) {
            let counted = session.slices.unwrap() as f64 * event.coverage.unwrap();
            let error = event.relative_error().expect("the model counts it");
            println!("{}: {} of {counted} slices, error {error}", session.program, event.name);
            assert!(error.abs() <= UNLIKE_SLICES / counted, "{error}: {session:#?}");
            judged += 1;
        }
    }
    judged
}

#[test]
fn estimates_of_each_thread_are_near_its_truth() {
    let threads = threads(BOOT.get(), "fair");
    // The other program of this name has one event. Three threads spin for a third of the time.
    let instructions = |it: &SessionReport| it.events[0].estimate.unwrap();
    let spinning =
        threads.values().filter(|it| it.events.len() > 1 && instructions(it) > 1_000_000);
    assert_eq!(assert_near_the_truth(spinning), 3 * OF_THE_LOOP.len());
}

/// Share of the estimates of each session whose interval contains the truth.
fn shares_inside<'a>(sessions: impl Iterator<Item = &'a SessionReport>) -> Vec<f64> {
    let share = |session: &SessionReport| {
        let estimated = session.events.iter().filter(|event| event.kind == Kind::Estimated);
        let inside: Vec<bool> =
            estimated.map(|event| event.is_within().expect("the model counts it")).collect();
        let held = inside.iter().filter(|is_inside| **is_inside).count();
        (!inside.is_empty()).then(|| held as f64 / inside.len() as f64)
    };
    sessions.filter_map(share).collect()
}

/// Panics if the intervals of these sessions contain the truth so rarely that chance explains it at
/// most once in a million times.
///
/// Sessions draw their group orders separately, so they are independent given the behaviour of the
/// programs. The intervals of one session are dependent: its share may have any distribution on 0
/// to 1. The mean of n such shares, each with an expectation of at least c, is q or less with a
/// probability of at most exp(-n·KL(q, c)), where KL is the relative entropy of two coins
/// (Hoeffding 1963, theorem 1). c is below the 95 % of long sessions (`cargo xtask study error`),
/// because these sessions have only some hundred slices.
fn assert_held_as_claimed(shares: &[f64]) {
    const CLAIM: f64 = 0.85;
    const FALSE_ALARMS: f64 = 1e-6;
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let part = |of: f64, claimed: f64| if of > 0.0 { of * (of / claimed).ln() } else { 0.0 };
    let entropy = part(mean, CLAIM) + part(1.0 - mean, 1.0 - CLAIM);
    let chance = (-entropy * shares.len() as f64).exp();
    println!("{mean} of the intervals in {} sessions, by chance {chance}", shares.len());
    assert!(mean >= CLAIM || chance > FALSE_ALARMS, "{mean}: {shares:?}");
}

/// Three threads in each of 24 runs.
#[test]
#[ignore = "long"]
fn intervals_of_each_thread_contain_its_truth() {
    let of_run = |seed| {
        let boot = boot(&Request::new(format!("wire seed={seed} -- {}", fair())));
        assert!(boot.failures().is_empty(), "{}", boot.outcome);
        threads(&boot, "fair").into_values()
    };
    let threads: Vec<_> = (1..=24).flat_map(of_run).collect();
    let is_spinning = |it: &&SessionReport| it.events[0].estimate.unwrap() > 1_000_000;
    let shares = shares_inside(threads.iter().filter(is_spinning));
    assert_eq!(shares.len(), 72);
    assert_held_as_claimed(&shares);
}

/// Fields of a line: thread, then as perf's count, unit, event, nanoseconds, share, metric, unit,
/// and the half width.
#[test]
fn each_thread_has_perfs_fields_with_its_name_before_them() {
    let boot = BOOT.get();
    let printed = output_of(boot, 0, 2);
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
    let printed = output_of(BOOT.get(), 2, 2);
    let lines = printed.lines().map(serde_json::from_str::<serde_json::Value>);
    let lines: Vec<_> = lines.map(|line| line.expect("it is JSON")).collect();
    assert_eq!(lines.len(), 3, "{printed}");
    for line in lines {
        assert!(line["thread"].as_str().unwrap().starts_with("fair-"), "{line}");
        assert_eq!(line["event"], "cs");
    }
}

/// Counts of CPUs while other programs run: of all CPUs, and of one of them, multiplexed.
static CPUS: SharedBoot = SharedBoot::new(|| Request {
    cpus: 2,
    ..Request::new(format!(
        "wire paranoid=0 -- tally stat -a -A -x, -e {EXACT} deflate --level 1 \
         -- tally stat -a -x, -e instructions fair 2 150 \
         -- tally stat -C 0-1 -x, --slice 5000 --budget 20 -e {MULTIPLEXED} fair 3 150 \
         -- tally stat -C 1 -A -j -e instructions,cs fair 2 100 -- deflate --level 2"
    ))
});

/// Sessions of the CPUs, in order of session numbers.
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

/// Sessions of programs with the same loop, run at the same time, each with its own sessions on
/// both CPUs.
fn loops_on_two_cpus(repeat: usize) -> Vec<SessionReport> {
    let stat = format!("-- tally stat -C 0-1 --slice 5000 --budget 20 -e {MULTIPLEXED} fair 3 150");
    let command = format!("wire paranoid=0 repeat={repeat} {stat} {stat}");
    let boot = boot(&Request { cpus: 2, ..Request::new(command) });
    let cpus = cpus(&boot);
    assert_eq!(cpus.len(), 4 * repeat, "{}", boot.outcome);
    cpus
}

/// Runs on two CPUs are never identical; the assertions hold for any interleaving.
#[test]
fn estimates_of_each_cpu_are_near_its_truth() {
    let cpus = loops_on_two_cpus(1);
    assert_eq!(assert_near_the_truth(cpus.iter()), cpus.len() * OF_THE_LOOP.len());
}

#[test]
#[ignore = "long"]
fn intervals_of_each_cpu_contain_its_truth() {
    let shares = shares_inside(loops_on_two_cpus(24).iter());
    assert_eq!(shares.len(), 96);
    assert_held_as_claimed(&shares);
}

/// Each CPU's line has perf's fields after the CPU's name. The counts of all CPUs together are
/// their sum.
#[test]
fn cpus_are_printed_as_perf_prints_them() {
    let boot = CPUS.get();
    let apart = output_of(boot, 0, 2);
    let fields: Vec<Vec<&str>> = apart.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(fields.len(), 2 * EXACT.split(',').count(), "{apart}");
    for (index, line) in fields.iter().enumerate() {
        assert_eq!((line[0], line.len()), (["CPU0", "CPU1"][index % 2], 9), "{apart}");
    }
    let counted = fields.iter().filter(|line| line[3] == "instructions");
    let counted: f64 = counted.map(|line| line[1].parse::<f64>().unwrap()).sum();
    // The program's own instructions, and those of the other programs meanwhile.
    assert!(counted > 100e6, "{apart}");

    let together = output_of(boot, 2, 2);
    assert_eq!(together.lines().count(), MULTIPLEXED.split(',').count(), "{together}");
    let reported: f64 = cpus(boot).iter().filter(|it| it.events.len() > 6).map(instructions).sum();
    let first: Vec<&str> = together.lines().next().unwrap().split(',').collect();
    assert_eq!(first[0].parse::<f64>().unwrap(), reported, "{together}");

    let json = output_of(boot, 3, 2);
    let lines = json.lines().map(serde_json::from_str::<serde_json::Value>);
    for line in lines.map(|line| line.expect("it is JSON")) {
        assert_eq!(line["cpu"], "1", "{line}");
    }
}

fn instructions(session: &SessionReport) -> f64 {
    session.events[0].estimate.unwrap() as f64
}

/// The counts of intervals add up to the count at the time of the last print. `tally` itself runs a
/// little longer.
#[test]
fn intervals_of_cpus_add_up() {
    let command = "wire paranoid=0 -- tally stat -a -I 20 -x, -e instructions fair 2 150";
    let boot = &boot(&Request { cpus: 2, ..Request::new(command) });
    let printed = output_of(boot, 0, 2);
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

/// Counts whole CPUs from C, with a handler, at shorter slices.
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

/// Panics unless the values that the program read in the banks equal those of the session, which
/// the program checks itself, and the truth.
/// Most instructions of a block of QEMU's translator (TCG_MAX_INSNS). The virtual PMU sees an
/// overflow in a block, and QEMU takes the interrupt at that block's end.
const BLOCK: u64 = 512;

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
        assert!((record.threshold..record.threshold + BLOCK).contains(&record.count), "{record:?}");
    }
}
