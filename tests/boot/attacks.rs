//! Whatever a program does, it does to itself: others, their counts and the trace go on right.

use xtask::{
    machine::{Outcome, Pmu, Request},
    report::{Kind, Report},
};

use crate::{assert_success, boot, run};

/// The status of a program that the kernel stopped.
const STOPPED: u8 = 76;
/// The same of one that a signal ended: SIGKILL, SIGALRM.
const KILLED: u8 = 128 + 9;
const TIMED_OUT: u8 = 128 + 14;

/// What the program `attack` can do, and the status with which it ends.
const ATTACKS: [(&str, u8); 65] = [
    // Frames that a handler has forged: what is in them is never more than ring 3 may.
    ("forge_code", 0),
    ("forge_flags", STOPPED),
    ("forge_no_interrupts", 0),
    ("forge_step", STOPPED),
    ("forge_to_kernel", STOPPED),
    ("forge_to_hole", STOPPED),
    ("forge_to_edge", STOPPED),
    ("forge_stack", STOPPED),
    ("forge_fpu", 0),
    ("forge_fpu_nowhere", STOPPED),
    ("forge_no_fpu", 0),
    ("forge_masks", KILLED),
    ("no_frame", STOPPED),
    ("kernel_frame", STOPPED),
    ("handler_faults", STOPPED),
    ("handler_recurs", STOPPED),
    ("handler_in_kernel", STOPPED),
    ("stack_in_kernel", STOPPED),
    ("no_restorer", STOPPED),
    ("blocked_fault", STOPPED),
    ("storm", 0),
    ("times_out", TIMED_OUT),
    ("kills_itself", KILLED),
    // Threads.
    ("waits_for_ever", STOPPED),
    ("ignores_alarms", STOPPED),
    ("blocks_alarms", STOPPED),
    ("deadlock", STOPPED),
    ("thousand", 0),
    ("endless", 0),
    ("thread_faults", STOPPED),
    ("tls_nowhere", 0),
    ("ends_in_session", 7),
    ("first_ends", 0),
    ("word_nowhere", 0),
    ("wild_futexes", 0),
    ("wild_affinities", 0),
    // Memory.
    ("maps_all", 0),
    ("maps_pages", 0),
    ("breaks_all", 0),
    ("sets_aside", 0),
    ("in_pieces", 0),
    ("unmaps_stack", STOPPED),
    ("unmaps_code", STOPPED),
    ("unmaps_all", STOPPED),
    ("protects_stack", STOPPED),
    ("protects_code", STOPPED),
    ("protects_all", STOPPED),
    ("writes_all", 0),
    ("opens_all", 0),
    ("aliases", 0),
    // Sessions and programs.
    ("sessions", 0),
    ("programs", 0),
    ("long_name", 0),
    ("ends_started", 0),
    ("ends_open", 0),
    ("faults_started", STOPPED),
    ("killed_started", KILLED),
    ("deadlock_started", STOPPED),
    ("writes_bank", STOPPED),
    ("frees_bank", 0),
    ("stops_in_bank", 0),
    ("threshold_on_no_stack", STOPPED),
    ("threshold_nowhere", STOPPED),
    ("returns_unasked", 0),
    ("unknown", 0),
];

/// Boots a machine on these, one after the other, beside two programs that count all the time.
fn besiege(pmu: Pmu, cpus: usize, attacks: &[(&str, u8)]) {
    let ways: Vec<&str> = attacks.iter().map(|(way, _)| *way).collect();
    let line = format!(
        "wire trace -- siege attack instructions {} -- \
         events=instructions,branches,branch-misses fair 2 300",
        ways.join(" ")
    );
    let boot = boot(&Request { pmu, cpus, ..Request::new(line) });
    let told = boot.transcript.text();
    assert_eq!(boot.transcript.panicked, None, "{told}");
    for (way, status) in attacks {
        assert!(told.contains(&format!("siege: {way} {status}\n")), "{way}, {status}:\n{told}");
    }
    assert!(told.contains("siege: done\n") && !told.contains("FAILED"), "{told}");
    assert_eq!(boot.transcript.done, Some(0), "{}", boot.outcome);
    let stopped = attacks.iter().filter(|(_, status)| *status == STOPPED).count();
    let faults = boot.transcript.troubles.iter();
    let faults = faults
        .filter(|trouble| matches!(trouble, Outcome::Faulted { fault, .. } if !fault.is_empty()));
    assert_eq!(faults.count(), stopped, "{:#?}", boot.transcript.troubles);
    // Those beside them were counted as ever, and no record of the trace went astray.
    let report = Report::of(&boot);
    for program in ["siege", "fair"] {
        let session = report.sessions().find(|session| session.program == program).unwrap();
        for event in session.events.iter().filter(|event| event.kind == Kind::Exact) {
            assert_eq!(event.estimate, event.truth, "{program}: {event:?}");
        }
    }
    assert!(boot.transcript.rings.iter().all(|ring| ring.written == ring.read + ring.lost));
    assert_eq!(boot.transcript.unreadable, 0);
}

/// The first that is about memory.
const MEMORY: usize = 36;

#[test]
fn attacks_by_signals_and_threads_are_their_programs_own_affair() {
    besiege(Pmu::Intel, 1, &ATTACKS[..MEMORY]);
}

#[test]
fn attacks_by_memory_and_sessions_are_their_programs_own_affair() {
    besiege(Pmu::Amd, 2, &ATTACKS[MEMORY..]);
}

/// What the command line has counted around a program is not that program's to stop.
#[test]
fn a_program_cannot_stop_what_is_counted_around_it() {
    let boot = run("", "events=instructions,cycles:k attack stops_watch");
    assert_success(&boot);
    let report = Report::of(&boot).first.expect("the kernel opened a session");
    assert_eq!(report.events[0].estimate, report.events[0].truth);
}

/// Several that take of the kernel's own memory what they can get, at the same time: more than it has at
/// first. Nothing is counted meanwhile, so that the machine is fast; after it, counting is exact.
#[test]
fn the_kernels_memory_is_not_a_programs_to_use_up() {
    let thousands = ["attack thousand"; 6].join(" -- ");
    let boot = run(
        "",
        &format!("sequence attack large_sessions ; share 1 instructions 1000 -- {thousands}"),
    );
    assert_success(&boot);
    assert!(boot.transcript.text().contains("share 1: done"), "{}", boot.transcript.text());
}

/// Names, files, and memory of which there is not enough for both.
#[test]
fn what_two_programs_ask_for_at_once_one_of_them_gets() {
    let line = "wire -- attack races 0 -- attack races 1";
    let boot = boot(&Request { cpus: 2, ..Request::new(line) });
    assert_success(&boot);
    let told = boot.transcript.text();
    let mut all = [0; 4];
    for line in told.lines().filter_map(|line| line.strip_prefix("races: ")) {
        for (sum, count) in all.iter_mut().zip(line.split(' ')) {
            *sum += count.parse::<u32>().unwrap();
        }
    }
    assert_eq!(all, [300, 300, 300, 1], "{told}");
}
