//! Every way in which a run can end has a distinct outcome and exit status.

use std::{path::Path, time::Duration};

use expect_test::expect;
use tally_abi::{ExitStatus, session::MAX_EVENTS, truth::RegionKind};
use xtask::{
    machine::{self, Boot, Outcome, Pmu, Request},
    report::{Kind, Report, SessionReport},
};

use crate::{
    SharedBoot, artefacts, assert_exact_counts_are_true, assert_output, assert_small,
    assert_success, boot, machine_permit, masked, output_of,
};

/// Panics unless the kernel refused something with `status`, for a reason that contains `words`.
pub fn assert_refused(boot: &Boot, status: ExitStatus, words: &str) {
    let is_it = |trouble: &Outcome| match trouble {
        Outcome::Refused { status: found, why, .. } => {
            *found == u8::from(status) && why.contains(words)
        }
        _ => false,
    };
    assert!(boot.transcript.failures.iter().any(is_it), "{:#?}", boot.transcript.failures);
}

static STATUS_42: SharedBoot = SharedBoot::new(|| Request::new("wire -- status 42"));

#[test]
fn the_programs_status_is_the_machines() {
    assert_eq!(STATUS_42.get().outcome, Outcome::Done(42));
}

#[test]
fn the_kernel_without_programs_holds_at_most_8_mib() {
    assert_small(STATUS_42.get(), 1);
}

/// With one CPU the clock is virtual time.
#[test]
fn the_first_program_runs_within_300_ms_of_the_kernels_entry() {
    let boot_ns = STATUS_42.get().transcript.boot_ns.expect("a program ran");
    assert!(boot_ns <= 300_000_000, "{boot_ns} ns");
}

/// Defines a boot of programs that end in different ways, and for each program a test of its status
/// and of words in its output.
macro_rules! endings {
    ($($test:ident: $program:expr => $status:expr, $words:expr;)*) => {
        fn programs() -> Vec<String> {
            vec![$($program.into()),*]
        }

        $(
            #[test]
            fn $test() {
                assert_ending(&$program, $status, $words);
            }
        )*
    };
}

/// Runs the programs at the same time, a program that is not in the ramdisk, and a file that is not
/// a program.
static ENDINGS: SharedBoot = SharedBoot::new(|| {
    Request::new(format!("wire -- {} -- no-such -- corpus.txt", programs().join(" -- ")))
});

fn assert_ending(program: &str, status: impl Into<u8>, words: &str) {
    let boot = ENDINGS.get();
    let index = programs().iter().position(|other| other == program).expect("it is on the list");
    let output = [1, 2].map(|fd| output_of(boot, index, fd)).concat();
    assert!(output.contains(words) && !output.contains("FAILED"), "{output}\n{}", boot.outcome);
    let exit = (program.split(' ').next().unwrap().to_owned(), status.into().into());
    assert!(boot.transcript.exits.contains(&exit), "{exit:?}, {:?}", boot.transcript.exits);
}

fn too_many_events() -> String {
    format!("deflate --events {}", vec!["INST_RETIRED.ANY"; MAX_EVENTS + 1].join(","))
}

endings! {
    a_sampling_period_of_0_is_refused:
        "tally record -e branches -c 0 status 0" => ExitStatus::Usage, "-c is at least 1";
    an_unknown_event_is_refused_with_the_nearest_name:
        "deflate --events BR_INST_RETIRED.ALL_BRANCHE" => ExitStatus::UnknownEvent,
        "BR_INST_RETIRED.ALL_BRANCHES";
    an_event_that_the_virtual_pmu_does_not_model_is_refused:
        "tally stat -e branches,MEM_LOAD_RETIRED.FB_HIT status 0" => ExitStatus::EventNotSupported,
            "MEM_LOAD_RETIRED.FB_HIT: the virtual PMU does not model it";
    a_slice_below_the_minimum_is_refused:
        "deflate --slice 10" => ExitStatus::SliceOutOfRange, "slice";
    more_events_than_a_plan_holds_are_refused:
        too_many_events() => ExitStatus::TooManyEvents, "1024";
    a_program_that_tally_stat_measures_opens_no_session_of_its_own:
        "tally stat -e branches deflate --file status" => 0, "branches";
    invalid_system_calls_are_refused_with_the_expected_errors:
        "calls INST_RETIRED.ANY" => 0, "calls: done\n";
    the_c_library_controls_and_reads_a_session:
        "capi INST_RETIRED.ANY,BR_INST_RETIRED.ALL_BRANCHES" => 0, "capi: done\n";
    a_program_may_exit_inside_its_session:
        "status 0 INST_RETIRED.ANY" => 0, "";
}

#[test]
fn a_program_that_is_not_in_the_ramdisk_is_refused() {
    assert_refused(ENDINGS.get(), ExitStatus::ProgramNotFound, "ramdisk");
}

/// A disk image whose boot loader finds no ramdisk, which holds the command line, ends alike.
#[test]
fn a_command_line_without_a_program_is_refused() {
    let boot = boot(&Request::new("wire"));
    assert_refused(&boot, ExitStatus::ProgramNotFound, "no program is named");
}

#[test]
fn a_file_that_is_no_elf_is_refused() {
    assert_refused(ENDINGS.get(), ExitStatus::NotRunnable, "ELF");
}

#[test]
fn one_programs_end_does_not_affect_the_others() {
    let boot = ENDINGS.get();
    assert!(boot.transcript.panicked.is_none() && boot.transcript.done.is_some());
    assert_eq!(boot.transcript.failures.len(), 2, "{:#?}", boot.transcript.failures);
}

/// Session in which the program `status` exited.
fn session_left_open() -> SessionReport {
    let report = Report::of(ENDINGS.get());
    report.sessions().find(|session| session.program == "status").unwrap().clone()
}

#[test]
fn exit_inside_a_session_leaves_an_exact_count() {
    let event = &session_left_open().events[0];
    assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth));
}

#[test]
fn exit_inside_a_session_closes_its_region() {
    let boot = ENDINGS.get();
    let sessions = &boot.transcript.sessions;
    let (tag, _) = sessions.iter().find(|(_, known)| known.program == "status").unwrap();
    let truth = boot.truth.as_ref().expect("the virtual PMU writes it");
    assert!(truth.region(RegionKind::Session, *tag).is_some_and(|region| region.closed));
}

/// Slices so short that the budget lengthens some.
static STAT: SharedBoot = SharedBoot::new(|| {
    let events = "instructions,branches,branch-misses,L1-dcache-loads,LLC-loads,L1D.REPLACEMENT";
    Request::new(format!("wire -- tally stat --slice 5000 -e {events} rounds 1 60000"))
});

#[test]
fn stat_prints_a_line_for_each_event_and_the_conditions() {
    expect![[r#"

        Performance counter stats for 'rounds # 60000':

        # instructions
        # branches +- # % (# %)
        # branch-misses # # % branch_miss_rate +- # % +- # % (# %)
        # L1-dcache-loads +- # % (# %)
        # LLC-loads +- # % (# %)
        # L1D.REPLACEMENT +- # % (# %)

        # seconds time elapsed (modelled: # ns a step)

        # seconds user
        # seconds sys

        # event groups, # slices of # cycles as requested, # of them lengthened for the budget;
        the engine took # % of the time; +- is the half width of the # % interval
        interrupts are likely to have added up to: LLC-loads # %,
        L1D.REPLACEMENT # %
    "#]]
    .assert_eq(&masked(&output_of(STAT.get(), 0, 2).replace("%)", " %)")));
}

#[test]
fn stat_prints_fields_as_perf_does_and_the_detailed_events() {
    let boot =
        boot(&Request::new("wire -- tally stat -d -x, -e instructions,cycles rounds 1 60000"));
    let text = output_of(&boot, 0, 2);
    let lines: Vec<Vec<&str>> =
        text.lines().filter(|of| of.contains(',')).map(|of| of.split(',').collect()).collect();
    let names: Vec<&str> = lines.iter().map(|fields| fields[2]).collect();
    assert_eq!(names, ["instructions", "cycles", "L1-dcache-loads", "L1-dcache-load-misses"]);
    let report = Report::of(&boot).first.expect("tally opens a session");
    for (fields, event) in lines.iter().zip(&report.events) {
        assert_eq!(fields[0].parse().ok(), event.estimate, "{text}");
        assert_eq!((fields.len(), fields[1]), (8, ""), "{text}");
        assert!(fields[3].parse::<u64>().unwrap() > 0, "{text}");
        let shown: f64 = fields[7].parse().unwrap();
        assert!((shown - event.half_width_95.unwrap_or(0.0)).abs() <= 0.5, "{text}");
    }
}

#[test]
fn slices_that_the_budget_lengthened_are_reported() {
    let boot = STAT.get();
    assert_eq!(boot.outcome, Outcome::Done(0));
    let report = Report::of(boot).first.expect("tally opens a session");
    let text = boot.transcript.text().replace(',', "");
    let [slices, lengthened] =
        [report.slices, report.lengthened].map(|n| n.expect("the kernel sends it"));
    let line =
        format!(" {slices} slices of 5000 cycles as requested {lengthened} of them lengthened");
    assert!(lengthened > 0 && text.contains(&line), "no '{line}' in:\n{text}");
}

/// Boot that counts one event around a program, on a machine with two CPUs.
fn count_on_two_cpus(options: &str) -> Boot {
    let line = format!("wire {options} -- events=instructions status 0");
    boot(&Request { cpus: 2, ..Request::new(line) })
}

/// Programs move between CPUs, so a CPU that cannot count would leave gaps.
#[test]
fn sessions_are_refused_where_a_started_cpu_cannot_count() {
    assert_refused(
        &count_on_two_cpus("fail=pmu pmu=refuse"),
        ExitStatus::NoPmu,
        "CPU 1 cannot count",
    );
}

/// Models a KVM guest whose host has no counter left: the registers do not show it.
#[test]
fn a_counter_that_stands_still_is_refused_in_words() {
    let line = "wire check-counters -- events=instructions status 0";
    let held = |pmu, counter| {
        let vpmu = vec![format!("held={counter}")];
        boot(&Request { pmu, vpmu, ..Request::new(line) })
    };
    for (pmu, counter, name) in [
        (Pmu::Intel, 3, "general counter 3"),
        (Pmu::Amd, 5, "general counter 5"),
        (Pmu::Amd, 0, "the counter of cycles"),
    ] {
        let boot = held(pmu, counter);
        let why = format!("CPU 0 cannot count: {name} counted 0 of at least");
        assert_refused(&boot, ExitStatus::NoPmu, &why);
        assert_refused(&boot, ExitStatus::NoPmu, "nmi_watchdog=0");
    }
}

/// The check passes on every profile, and a loop after it has the same counts as without the check.
#[test]
fn counters_that_count_pass_the_check() {
    for pmu in [Pmu::Intel, Pmu::SapphireRapids, Pmu::Amd, Pmu::Zen3] {
        let line = "wire check-counters -- events=instructions,branches status 0";
        let boot = boot(&Request { pmu, cpus: 2, ..Request::new(line) });
        assert_success(&boot);
        assert_exact_counts_are_true(&Report::of(&boot));
    }
}

#[test]
fn a_cpu_that_is_not_started_need_not_count() {
    assert_eq!(count_on_two_cpus("fail=pmu pmu=refuse cpus=1").outcome, Outcome::Done(0));
}

#[test]
fn sessions_are_granted_where_all_cpus_can_count() {
    assert_eq!(count_on_two_cpus("").outcome, Outcome::Done(0));
}

#[test]
fn without_a_pmu_the_message_names_the_virtual_pmu() {
    let request = Request::new("wire -- deflate");
    let boot = boot(&Request { virtual_pmu: false, ..request });
    assert_eq!(boot.outcome, Outcome::Done(ExitStatus::NoPmu.into()));
    assert_output(&boot, "virtual PMU");
}

/// The option is longer than a message.
#[test]
fn an_unknown_option_is_refused_on_the_wire_and_in_the_log() {
    let option = format!("colour={}", "red".repeat(1000));
    let boot = boot(&Request::new(format!("wire {option} -- status 0")));
    assert_refused(&boot, ExitStatus::Usage, "colour=red");
    assert!(boot.folder.log_tail(20).contains("colour=red"), "{}", boot.folder.log_tail(20));
}

#[test]
fn a_machine_that_hangs_is_killed_at_its_time_limit() {
    let time_limit = Duration::from_secs(3);
    let boot = boot(&Request { time_limit, ..Request::new("wire fail=hang -- status 0") });
    match &boot.outcome {
        Outcome::TimedOut { log_tail, .. } => assert!(log_tail.contains("tally"), "{log_tail}"),
        other => panic!("{other}"),
    }
    assert_eq!(boot.outcome.status(), u8::from(ExitStatus::TimedOut));
    assert!(!is_open(&boot.folder.log()), "QEMU still runs");
}

#[test]
fn a_machine_that_does_not_start_is_reported_with_qemus_message() {
    let artefacts = machine::Artefacts { plugin: "/no/such/plugin.so".into(), ..artefacts() };
    let _permit = machine_permit();
    let boot = machine::boot(&artefacts, &Request::new("wire -- status 0"), &mut |_| {}).unwrap();
    match &boot.outcome {
        Outcome::MachineFailed { said } => assert!(said.contains("no/such/plugin"), "{said}"),
        other => panic!("{other}"),
    }
}

/// Returns whether a process has `file` open.
fn is_open(file: &Path) -> bool {
    let folders =
        std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("fd"));
    let mut open = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    open.any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == file))
}

/// A hybrid processor, on which CPU 1 counts other events, without the legacy interval timer.
static HYBRID_WITHOUT_PIT: SharedBoot = SharedBoot::new(|| {
    let vpmu = vec!["unlike=1".to_owned()];
    let line = "wire -- events=instructions status 0";
    Request { cpus: 3, vpmu, lacks: Some("pit"), ..Request::new(line) }
});

/// On that core an event select encodes another event.
#[test]
fn a_core_with_other_events_than_the_first_stays_offline() {
    let boot = HYBRID_WITHOUT_PIT.get();
    assert_success(boot);
    let log = boot.folder.log_tail(30);
    assert!(log.contains("APIC ID 1 has another PMU than the first CPU; offline"), "{log}");
    assert_eq!(boot.transcript.booted.as_ref().map(|booted| booted.cpus), Some(2));
}

#[test]
fn without_the_interval_timer_another_gives_the_time() {
    let boot = HYBRID_WITHOUT_PIT.get();
    let ns = boot.transcript.boot_ns.expect("a program runs");
    assert!((10_000_000..10_000_000_000).contains(&ns), "{ns} ns");
}
