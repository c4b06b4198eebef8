//! Machines with more CPUs than a word has bits, and with APIC IDs above 255.

use std::time::Duration;

use xtask::{
    machine::{Boot, Request},
    report::{Kind, Report, SessionReport},
};

use crate::{
    SharedBoot, assert_output, assert_success, boot, intervals::assert_estimates_hold,
    traces::assert_complete,
};

const CPUS: usize = 72;
/// More events than counters.
const MULTIPLEXED: &str = "INST_RETIRED.ANY,BR_INST_RETIRED.COND,MEM_INST_RETIRED.ALL_LOADS,\
    MEM_INST_RETIRED.ALL_STORES,BR_INST_RETIRED.NEAR_CALL,BR_INST_RETIRED.COND_TAKEN";

/// Programs that run on each CPU for some turns, which one counts CPU by CPU; another counts some
/// CPUs, and one that is not there.
static MANY: SharedBoot = SharedBoot::new(|| Request {
    cpus: CPUS,
    time_limit: Duration::from_secs(100),
    ..Request::new(
        "wire trace paranoid=0 -- tally stat -a -A -x, -e instructions:u,cycles:u affinity \
         --- tally stat -C 0,63-65,71 -A -x, -e instructions:u rounds 1 2000 \
         --- tally stat -C 70-72 -e instructions:u deflate",
    )
});

/// Sessions of the CPUs, in the order of their numbers.
fn cpus(boot: &Boot) -> Vec<SessionReport> {
    Report::of(boot).sessions().filter(|it| it.program.starts_with("CPU")).cloned().collect()
}

#[test]
fn programs_run_on_each_of_72_cpus() {
    let boot = MANY.get();
    assert_eq!(boot.transcript.booted.as_ref().map(|booted| booted.cpus), Some(CPUS as u32));
    assert_output(boot, "affinity: done");
    assert_complete(boot);
    assert_eq!(boot.transcript.rings.len(), CPUS);
}

#[test]
fn exact_counts_of_each_of_72_cpus_are_its_true_counts() {
    let sessions = cpus(MANY.get());
    assert_eq!(sessions.len(), CPUS + 5);
    for (cpu, session) in sessions[..CPUS].iter().enumerate() {
        assert_eq!(session.program, format!("CPU{cpu}"));
        for event in &session.events {
            assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth), "{event:?}");
            // `affinity` was there twice.
            assert!(event.estimate > Some(100_000), "{cpu}: {event:?}");
        }
    }
}

#[test]
fn a_list_of_cpus_has_numbers_above_63() {
    let boot = MANY.get();
    // The first `tally` prints its CPUs too.
    let errors = boot.transcript.output.iter().filter(|output| output.fd == 2);
    let second = errors.clone().map(|output| output.pid).filter(|pid| *pid > 1).min().unwrap();
    let printed = errors.filter(|output| output.pid == second);
    let printed: Vec<u8> = printed.flat_map(|output| output.bytes.clone()).collect();
    let printed = String::from_utf8(printed).unwrap();
    let names: Vec<&str> = printed.lines().filter_map(|line| line.split(',').next()).collect();
    assert_eq!(names, ["CPU0", "CPU63", "CPU64", "CPU65", "CPU71"], "{printed}");
    let refused = boot.transcript.text();
    assert!(refused.contains("there is no CPU 72: the machine has 72, from 0 on"), "{refused}");
}

/// A CPU whose APIC ID is 256, the first of the ninth socket of 32.
const ABOVE_255: [&str; 8] = [
    "-machine",
    "q35",
    "-smp",
    "2,sockets=12,cores=17,threads=1,maxcpus=204",
    "-device",
    "Icelake-Server-x86_64-cpu,socket-id=8,core-id=0,thread-id=0",
    "-device",
    "intel-iommu,intremap=on,eim=on",
];

/// Overflow interrupts reach the CPU, as do those of other CPUs.
#[test]
fn a_cpu_with_apic_id_256_counts_like_others() {
    let stat = format!("tally stat -a -A -x, --slice 20000 -e {MULTIPLEXED} affinity");
    let qemu_args = ABOVE_255.map(str::to_owned).into();
    let line = format!("wire log=debug trace paranoid=0 -- {stat}");
    let boot = boot(&Request { cpus: 2, qemu_args, ..Request::new(line) });
    assert_success(&boot);
    assert_complete(&boot);
    let log = std::fs::read_to_string(boot.folder.log()).unwrap();
    assert!(log.contains("CPU 2: APIC ID 256"), "{log}");
    let sessions = cpus(&boot);
    assert_eq!(sessions.len(), 3);
    for session in &sessions {
        // `affinity` runs for a time on each, on a slow host for few slices.
        assert!(session.slices > Some(10), "{session:?}");
        let event = &session.events[0];
        assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth), "{event:?}");
    }
    assert_estimates_hold(sessions.iter().flat_map(|session| &session.events));
}
