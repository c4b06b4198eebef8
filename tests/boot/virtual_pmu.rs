//! The virtual PMU keeps the manuals' rules, and counts exactly, on every profile.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use tally_abi::ExitStatus;
use xtask::{
    machine::{self, Profile, Request},
    vpmu_check::check,
};

use crate::artefacts;

#[test]
fn every_profile_keeps_the_rules_and_counts_exactly() {
    let artefacts = artefacts();
    let guest = artefacts.check_guest.expect("`cargo xtask test` builds it");
    for profile in Profile::ALL {
        for options in profile.variants() {
            let checked = check(&artefacts.qemu, &artefacts.plugin, &guest, profile, options)
                .unwrap_or_else(|failure| panic!("{failure}"));
            let failed: Vec<_> = checked.lines.iter().filter(|l| l.starts_with("FAIL")).collect();
            let what = format!("{} {options}", profile.name());
            assert!(failed.is_empty(), "{what}: {failed:#?}");
            assert!(checked.held >= 250, "{what}: only {} checks ran", checked.held);
        }
    }
}

/// Starts QEMU with these arguments behind the plugin's options; its status, and what it said.
fn start(options: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let artefacts = artefacts();
    let mut qemu = artefacts.qemu.command();
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-m", "16M"]).args(arguments);
    qemu.arg("-plugin").arg(format!("{}{options}", artefacts.plugin.display()));
    let mut child = qemu.stderr(Stdio::piped()).spawn().expect("QEMU starts");
    let start = Instant::now();
    while child.try_wait().expect("QEMU is ours").is_none() {
        if start.elapsed() > Duration::from_secs(20) {
            child.kill().expect("QEMU is ours");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = child.wait_with_output().expect("QEMU has ended");
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn an_option_that_the_virtual_pmu_refuses_is_a_usage_error() {
    for (option, word) in [("width=99", "width=99"), ("speed=1", "no option 'speed'")] {
        let request = Request { vpmu: vec![option.into()], ..Request::new("wire -- rounds 1 1") };
        let refused = machine::boot(&artefacts(), &request, &mut |_| {}).unwrap_err();
        assert_eq!(refused.status, ExitStatus::Usage, "{refused}");
        assert!(refused.message.contains(word), "{refused}");
    }
}

#[test]
fn what_cannot_be_served_is_refused_in_one_line() {
    for (options, arguments, word) in [
        (",profile=p4", &[][..], "unknown profile 'p4'"),
        (",speed=1", &[], "unknown option 'speed'"),
        (",counters=9", &[], "counters=9"),
        (",profile=zen4,fixed=2", &[], "fixed=2"),
        (",truth=/no/such/folder/truth.json", &[], "truth=/no/such/folder"),
        (",series=/no/such/folder/series.csv", &[], "series=/no/such/folder"),
        (",pmi=1:5", &[], "use 0 to 0"),
        ("", &["-accel", "kvm"], "use -accel tcg"),
        ("", &["-machine", "q35,accel=kvm"], "use -accel tcg"),
        ("", &["-smp", "2", "-icount", "shift=0"], "use -smp 1"),
        ("", &["-smp", "2", "-accel", "tcg,thread=single"], "use -smp 1"),
        ("", &["-machine", "q35", "-smp", "1,maxcpus=257"], "are more than 256"),
    ] {
        let (status, said) = start(options, arguments);
        assert_eq!(status, Some(1), "{options} {arguments:?}: {said}");
        let ours: Vec<&str> = said.lines().filter(|line| line.starts_with("tally-vpmu:")).collect();
        assert!(ours.len() == 1 && ours[0].contains(word), "{options} {arguments:?}: {said}");
    }
}
