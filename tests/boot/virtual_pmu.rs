//! The virtual PMU follows the rules of the manuals and counts exactly on every profile. Impossible
//! requests are refused.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use tally_abi::ExitStatus;
use tally_lab::vpmu_check::check;
use xtask::{
    machine::{self, ProfileName, Request},
    report::Kind,
};

use crate::{artefacts, exact, machine_permit, session_of};

/// Smallest number of checks of a profile.
const LEAST_CHECKS: usize = 250;

#[test]
fn every_profile_follows_the_manual() {
    let artefacts = artefacts();
    let guest = artefacts.check_guest.expect("`cargo xtask test` builds it");
    for profile in ProfileName::ALL {
        for options in profile.variants() {
            let _permit = machine_permit();
            let checked = check(&artefacts.qemu, &artefacts.plugin, &guest, profile, options)
                .unwrap_or_else(|failure| panic!("{failure}"));
            let failed: Vec<_> = checked.lines.iter().filter(|l| l.starts_with("FAIL")).collect();
            let what = format!("{} {options}", profile.name());
            assert!(failed.is_empty(), "{what}: {failed:#?}");
            assert!(checked.held >= LEAST_CHECKS, "{what}: only {} checks ran", checked.held);
        }
    }
}

/// The cycles with a level and those without it add up to all cycles; the edges of walks equal the
/// walks.
#[test]
fn inverts_and_edges_count_where_the_vendors_events_have_none() {
    let stalls = "CYCLE_ACTIVITY.STALLS_MEM_ANY";
    let walks = "DTLB_LOAD_MISSES.WALK";
    let list = format!("{stalls},{stalls}:i,{walks}_ACTIVE:e,{walks}_COMPLETED,cycles");
    let session = session_of(&format!("cargo xtask run --events {list} -- deflate --level 1"));
    // The truth has the unmodified events, whose counts differ.
    let modified = |name: String| {
        let event = session.events.iter().find(|event| event.name == name).unwrap();
        assert_eq!((event.kind, event.truth), (Kind::Exact, None), "{event:?}");
        event.estimate.unwrap()
    };
    let with = exact(&session, stalls);
    let both = with + modified(format!("{stalls}:i"));
    assert!(both.abs_diff(exact(&session, "cycles")) <= 1, "{both}");
    assert!(with > 1_000_000, "{with}");
    let completed = exact(&session, &format!("{walks}_COMPLETED"));
    assert_eq!(modified(format!("{walks}_ACTIVE:e")), completed);
}

/// Every gap in retirement is an episode of stalls, by each of their events.
#[test]
fn edges_of_stalls_count_their_episodes() {
    let [all, retired] = ["CYCLE_ACTIVITY.STALLS_TOTAL", "UOPS_RETIRED.STALL_CYCLES"];
    let beyond = "CYCLE_ACTIVITY.STALLS_L1D_MISS";
    let list = format!("{all},{all}:e,{retired}:e,{beyond}:e");
    let command = "cargo xtask run --vpmu pipeline=ooo --events";
    let session =
        session_of(&format!("{command} {list} -- bottleneck 1 chase 30000 branch 300000"));
    let count = |name: &str| {
        let event = session.events.iter().find(|event| event.name == name).unwrap();
        assert_eq!(event.kind, Kind::Exact, "{event:?}");
        event.estimate.unwrap()
    };
    let gaps = count(&format!("{all}:e"));
    assert_eq!(count(&format!("{retired}:e")), gaps);
    assert!(gaps > 100_000 && count(all) > 2 * gaps, "{gaps} gaps in {} cycles", count(all));
    let misses = count(&format!("{beyond}:e"));
    assert!((10_000..gaps / 2).contains(&misses), "{misses} of {gaps}");
}

/// Starts QEMU with these arguments and options of the plugin. Returns its status and standard
/// error.
fn start(options: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let artefacts = artefacts();
    let _permit = machine_permit();
    let mut qemu = artefacts.qemu.command();
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-m", "16M"]).args(arguments);
    qemu.arg("-plugin").arg(format!("{}{options}", artefacts.plugin.display()));
    let mut child = qemu.stderr(Stdio::piped()).spawn().expect("QEMU starts");
    let start = Instant::now();
    while child.try_wait().expect("this test started QEMU").is_none() {
        if start.elapsed() > Duration::from_secs(20) {
            child.kill().expect("this test started QEMU");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = child.wait_with_output().expect("QEMU has ended");
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

/// Panics unless the plugin ends QEMU with one line that contains `words`.
fn assert_refused(options: &str, arguments: &[&str], words: &str) {
    let (status, errors) = start(options, arguments);
    assert_eq!(status, Some(1), "{options} {arguments:?}: {errors}");
    let lines: Vec<&str> = errors.lines().filter(|line| line.starts_with("tally-vpmu:")).collect();
    assert!(lines.len() == 1 && lines[0].contains(words), "{options} {arguments:?}: {errors}");
}

#[test]
fn an_option_that_the_virtual_pmu_refuses_is_a_usage_error() {
    for (option, words) in [("width=99", "width=99"), ("speed=1", "unknown option 'speed'")] {
        let request = Request { vpmu: vec![option.into()], ..Request::new("wire -- rounds 1 1") };
        let _permit = machine_permit();
        let refused = machine::boot(&artefacts(), &request, &mut |_| {}).unwrap_err();
        assert_eq!(refused.status, ExitStatus::Usage, "{refused}");
        assert!(refused.message.contains(words), "{refused}");
    }
}

#[test]
fn an_unknown_profile_or_option_is_refused() {
    assert_refused(",profile=p4", &[], "unknown profile 'p4'");
    assert_refused(",speed=1", &[], "unknown option 'speed'");
}

#[test]
fn counters_that_the_profile_does_not_have_are_refused() {
    assert_refused(",counters=9", &[], "counters=9");
    assert_refused(",profile=zen4,fixed=2", &[], "fixed=2");
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    assert_refused(",truth=/no/such/folder/truth.json", &[], "truth=/no/such/folder");
    assert_refused(",series=/no/such/folder/series.csv", &[], "series=/no/such/folder");
}

#[test]
fn an_interrupt_on_a_cpu_that_is_not_there_is_refused() {
    assert_refused(",pmi=1:5", &[], "use 0 to 0");
}

#[test]
fn kvm_is_refused() {
    assert_refused("", &["-accel", "kvm"], "use -accel tcg");
    assert_refused("", &["-machine", "q35,accel=kvm"], "use -accel tcg");
}

#[test]
fn several_cpus_on_one_thread_are_refused() {
    assert_refused("", &["-smp", "2", "-icount", "shift=0"], "use -smp 1");
    assert_refused("", &["-smp", "2", "-accel", "tcg,thread=single"], "use -smp 1");
}

#[test]
fn more_than_1024_cpus_are_refused() {
    assert_refused("", &["-machine", "q35", "-smp", "1,maxcpus=1025"], "are more than 1024");
}
