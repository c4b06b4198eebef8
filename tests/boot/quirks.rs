//! Behaviour of silicon, firmware and hypervisors against which the manuals give no guarantee:
//! counts stay right, or are refused with a reason.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tally_abi::ExitStatus;
use tally_lab::study::{quirks, verdict::Verdict};
use xtask::{
    machine::{Boot, Pmu, Request},
    report::{EventReport, Kind, Report},
};

use crate::{
    assert_exact_counts_are_true, assert_success, boot, intervals::assert_estimates_hold,
    outcomes::assert_refused,
};

/// Events of both vendors, more than counters.
const EVENTS: &str = "instructions,cycles,branches,branch-misses,cache-references,cache-misses,\
    L1-dcache-loads,L1-dcache-load-misses,dTLB-load-misses,iTLB-load-misses";

fn with(pmu: Pmu, quirks: &[&str], line: &str) -> Boot {
    let vpmu = quirks.iter().map(|quirk| (*quirk).to_owned()).collect();
    boot(&Request { pmu, vpmu, ..Request::new(line) })
}

#[test]
fn late_and_lost_interrupts_leave_counts_right_and_are_told() {
    let line = format!("wire -- tally stat --slice 20000 -e {EVENTS} deflate --level 1");
    let mut estimates = Vec::new();
    for (pmu, quirks) in [
        (Pmu::Intel, &["late=200"][..]),
        (Pmu::Intel, &["lost=50"]),
        (Pmu::Amd, &["late=5000", "lost=200", "pmi=100000+2000000"]),
        (Pmu::Intel, &["left=frozen", "late=500"]),
        (Pmu::Intel, &["masked=200"]),
    ] {
        let boot = with(pmu, quirks, &line);
        assert_success(&boot);
        let report = Report::of(&boot);
        assert_exact_counts_are_true(&report);
        let session = report.first.as_ref().unwrap();
        let may_lose = |quirk: &&str| quirk.starts_with("lost") || quirk.starts_with("masked");
        let may_lose = quirks.iter().any(may_lose);
        assert_eq!(session.lost_pmis > Some(0), may_lose, "{quirks:?}: {:?}", session.lost_pmis);
        let has_truth = |event: &&EventReport| event.estimate.is_some() && event.truth.is_some();
        estimates.extend(session.events.iter().filter(has_truth).cloned());
    }
    assert!(estimates.len() > 20, "{estimates:?}");
    assert_estimates_hold(&estimates);
}

/// Where ring 0 is counted, events of ring 3 alone are exact: no event between an overflow and its
/// interrupt is lost.
#[test]
fn late_and_lost_interrupts_beside_counts_of_ring_0_lose_nothing() {
    for overflows in ["", "overflows=nmi"] {
        let line = format!(
            "wire paranoid=1 {overflows} -- tally stat --kernel --slice 20000 --budget 50 \
             -e instructions:u,instructions:uk,branches:uk rounds 1 20000"
        );
        // Instructions of system-management interrupts are excluded by freezing the counters.
        for (pmu, quirk) in [
            (Pmu::Intel, "late=0"),
            (Pmu::Intel, "late=300"),
            (Pmu::Intel, "lost=20"),
            (Pmu::Intel, "smi=20000"),
        ] {
            let boot = with(pmu, &[quirk], &line);
            assert_success(&boot);
            let report = Report::of(&boot);
            let session = report.first.as_ref().unwrap();
            assert_eq!(session.events[0].kind, Kind::Exact);
            assert_exact_counts_are_true(&report);
            for event in &session.events[1..] {
                let error = event.estimate.unwrap().abs_diff(event.truth.unwrap());

                assert!(
                    error as f64 <= event.half_width_95.unwrap(),
                    "{overflows} {quirk}: {event:?}"
                );
            }
        }
    }
}

#[test]
fn a_counter_that_was_left_on_is_taken_over_and_named() {
    for (pmu, name) in [
        (Pmu::Intel, "IA32_PERFEVTSEL0 is 0x4300c0 (IA32_PERF_GLOBAL_INUSE 0x1)"),
        (Pmu::Amd, "PERF_CTL0 is 0x4300c0"),
        (Pmu::Zen3, "PERF_CTL0 is 0x4300c0"),
    ] {
        let line = "wire check-counters -- deflate --level 1 --kib 768";
        let boot = with(pmu, &["left=running"], line);
        assert_success(&boot);
        assert_exact_counts_are_true(&Report::of(&boot));
        let log = boot.folder.log_tail(1000);
        let warning = format!("CPU 0: {name}: a counter was left on; it is taken over");
        assert!(log.contains(&warning), "no '{warning}' in:\n{}", log);
    }
}

/// Waits until the kernel has set up its overflow interrupt, by QEMU's monitor; returns whether it
/// has.
fn await_kernel(monitor: &mut UnixStream) -> bool {
    let entry = format!("vec {}", 0xe0);
    let mut answer = vec![0; 1 << 16];
    for _ in 0..1_000 {
        if monitor.write_all(b"info lapic\n").is_err() {
            return false;
        }
        thread::sleep(Duration::from_millis(50));
        match monitor.read(&mut answer) {
            Ok(0) | Err(_) => return false,
            Ok(length) if String::from_utf8_lossy(&answer[..length]).contains(&entry) => {
                return true;
            }
            Ok(_) => {}
        }
    }
    false
}

/// Firmware leaves LINT1 as an NMI, by which a board reports errors. QEMU's `nmi` raises it.
#[test]
fn interrupts_that_firmware_left_on_end_no_run() {
    let socket = std::env::temp_dir().join(format!("tally-nmi-{}", std::process::id()));
    let qemu_args = vec!["-monitor".to_owned(), format!("unix:{},server,nowait", socket.display())];
    let has_ended = Arc::new(AtomicBool::new(false));
    let raise = thread::spawn({
        let (socket, has_ended) = (socket.clone(), has_ended.clone());
        move || {
            let mut raised = 0;
            while !has_ended.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(50));
                let Ok(mut monitor) = UnixStream::connect(&socket) else { continue };
                if !await_kernel(&mut monitor) {
                    continue;
                }
                while monitor.write_all(b"nmi\n").is_ok() {
                    raised += 1;
                    thread::sleep(Duration::from_millis(40));
                }
            }
            raised
        }
    });
    let line = "wire -- deflate --level 9 --kib 2500".to_owned();
    let boot = boot(&Request { qemu_args, ..Request::new(line) });
    has_ended.store(true, Ordering::Relaxed);
    let raised = raise.join().unwrap();
    let _ = std::fs::remove_file(socket);
    assert_success(&boot);
    assert!(raised > 3, "{raised}");
}

/// A hypervisor that hides itself has not all of the registers that the processor has.
#[test]
fn registers_that_fault_are_done_without_or_named() {
    let response = "OCR.DEMAND_DATA_RD.ANY_RESPONSE";
    let optional = "absent=0x1a6+0x1a7+0x3f7+0x1d9+0x345+0xe8";
    let job = |events: &str| format!("wire check-counters -- events={events} status 0");
    let boot = with(Pmu::Intel, &[optional], &job("branches,branch-misses"));
    assert_success(&boot);
    assert_exact_counts_are_true(&Report::of(&boot));
    let log = boot.folder.log_tail(1000);
    assert!(log.contains("CPU 0 lacks extra registers of its model"), "{log}");
    let refused = with(Pmu::Intel, &[optional], &job(response));
    let why = format!("{response}: it needs an extra register");
    assert_refused(&refused, ExitStatus::EventNotSupported, &why);
    let refused = with(Pmu::Intel, &[optional], &job("topdown-retiring"));
    assert_refused(&refused, ExitStatus::EventNotSupported, "shows none with this unit mask");
    for (pmu, quirk, register) in [
        (Pmu::Intel, "absent=0x38f", "IA32_PERF_GLOBAL_CTRL"),
        (Pmu::Amd, "absent=0xc0010205", "PERF_CTR"),
    ] {
        let named = format!("an access to {register} faults");
        let boot = with(pmu, &[quirk], &job("branches"));
        assert_refused(&boot, ExitStatus::NoPmu, &named);
    }
}

/// Firmware that keeps a counter writes it when it runs, which may be after the checks. A switch to
/// another event would hide it.
#[test]
fn a_counter_that_firmware_writes_while_programs_run_takes_all_values() {
    let line = "wire check-counters -- deflate --events branches --level 1 --kib 1536";
    let boot = with(Pmu::Intel, &["left=owned", "smi=15000000"], line);
    let named = "IA32_PERFEVTSEL0 is 0x4300c0, and Tally wrote another value";
    assert_refused(&boot, ExitStatus::CounterFailed, named);
}

/// A host may take a counter at any time.
#[test]
fn a_counter_that_fails_later_takes_all_values_and_is_named() {
    for (pmu, held, options, named) in [
        (Pmu::Intel, "held=3@15000000", "", "general counter 3"),
        (Pmu::Intel, "held=1@15000000", "overflows=nmi", "general counter 1"),
        (Pmu::Amd, "held=4@15000000", "", "general counter 4"),
        // The slice timer: no group is switched from then on.
        (Pmu::Amd, "held=0@15000000", "", "the counter of cycles"),
    ] {
        let line = &format!("wire check-counters {options} -- deflate --level 1 --kib 1536");
        let boot = with(pmu, &[held], line);
        assert_refused(&boot, ExitStatus::CounterFailed, named);
        let report = Report::of(&boot);
        let events = &report.first.as_ref().unwrap().events;
        assert!(events.iter().all(|event| event.kind == Kind::NotMeasured), "{pmu:?} {held}");
        assert!(events[0].reason.as_ref().unwrap().contains("has stopped counting"));
    }
}

/// Checks made while programs run do not change their counts.
#[test]
fn counters_that_are_checked_while_programs_run_count_on() {
    let job = "deflate --level 1";
    for (pmu, cpus, options) in
        [(Pmu::Intel, 1, ""), (Pmu::Amd, 1, "overflows=nmi"), (Pmu::Intel, 2, "")]
    {
        let line = format!("wire check-counters {options} -- {job} -- {job}");
        let boot = boot(&Request { pmu, cpus, ..Request::new(line) });
        assert_success(&boot);
        let report = Report::of(&boot);
        assert_eq!(report.sessions().count(), 2);
        assert_exact_counts_are_true(&report);
    }
}

/// An event that the stepping lacks is recognised only by CPUID or by its parts.
#[test]
fn an_event_that_counts_nothing_beside_its_parts_has_no_value() {
    let loads = "MEM_INST_RETIRED.ALL_LOADS";
    let line = "wire check-counters -- deflate --level 1 --kib 768";
    let boot = with(Pmu::Intel, &[&format!("missing={loads}")], line);
    assert_success(&boot);
    let report = Report::of(&boot);
    let of = |name: &str| {
        let mut events = report.first.iter().flat_map(|session| &session.events);
        events.find(|event| event.name == name).unwrap()
    };
    assert_eq!(of(loads).kind, Kind::NotMeasured);
    assert!(of(loads).reason.as_ref().unwrap().contains("counted nothing"));
    let hits = of("MEM_LOAD_RETIRED.L1_HIT");
    assert!(hits.estimate.unwrap() > hits.truth.unwrap() / 2, "{hits:?}");
}

/// Applies the study's own judgement to a shorter default job, with each quirk and with some pairs.
#[test]
#[ignore = "long"]
fn counts_with_quirks_are_right_or_refused() {
    let sets = quirks::sets();
    let (singles, pairs): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| set.len() == 1);
    let some_pairs = pairs.into_iter().step_by(29);
    for (pmu, set) in
        [Pmu::Intel, Pmu::Amd].into_iter().cycle().zip(singles.into_iter().chain(some_pairs))
    {
        let pmu = if quirks::can_have(pmu, &set) { pmu } else { Pmu::Intel };
        let request = quirks::request(pmu, &set);
        let command_line = request.command_line.clone() + " --level 1 --kib 768";
        let verdict = Verdict::of(&boot(&Request { command_line, ..request }));
        assert!(!matches!(verdict, Verdict::Wrong { .. }), "{pmu:?} {set:?}: {verdict:?}");
        let cannot = ["held=3", "held=3@15000000", "locked=2", "masked=1", "lost=1"];
        let cannot = cannot.iter().any(|quirk| set.contains(quirk));
        assert_eq!(
            matches!(verdict, Verdict::Refused { .. }),
            cannot,
            "{pmu:?} {set:?}: {verdict:?}"
        );
    }
}

#[test]
fn machines_that_cannot_count_are_refused_in_words() {
    let line = "wire check-counters -- events=instructions status 0";
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let refusing = "wire check-counters pmu=refuse -- events=instructions status 0";
        let running = with(pmu, &["left=running"], refusing);
        assert_refused(&running, ExitStatus::NoPmu, "firmware or a hypervisor left a counter on");
        let owned = with(pmu, &["left=owned", "smi=20000"], line);
        assert_refused(&owned, ExitStatus::NoPmu, "firmware or a hypervisor uses that counter");
        for quirk in ["lost=1", "masked=1"] {
            let lost = with(pmu, &[quirk], line);
            assert_refused(&lost, ExitStatus::NoPmu, "raised no interrupt");
        }
        let locked = with(pmu, &["locked=2"], line);
        assert_refused(&locked, ExitStatus::NoPmu, "2 ignores writes: firmware or a hypervisor");
    }
}
