//! Programs read, stop and start their logical counters in the bank without system calls.

use tally_abi::truth::RegionKind;
use xtask::{
    machine::{Boot, Outcome, Pmu, Request},
    report::{Kind, Report},
};

use crate::{SharedBoot, assert_success, boot};

/// Machine with three programs: the first reads its bank, the second counts, the third executes
/// RDPMC without permission.
fn readers(pmu: Pmu, exact: &str, events: &str) -> Request {
    let line = format!("wire -- bank {exact} {events} -- share 1 {exact} 1000 -- crash rdpmc");
    Request { pmu, ..Request::new(line) }
}

static READERS_ON_INTEL: SharedBoot = SharedBoot::new(|| {
    readers(
        Pmu::Intel,
        "INST_RETIRED.ANY",
        "MEM_INST_RETIRED.ALL_LOADS,MEM_INST_RETIRED.ALL_STORES,BR_INST_RETIRED.COND,\
         BR_INST_RETIRED.ALL_BRANCHES,BR_MISP_RETIRED.COND,L1D.REPLACEMENT",
    )
});

static READERS_ON_AMD: SharedBoot = SharedBoot::new(|| {
    readers(
        Pmu::Amd,
        "RETIRED_INSTRUCTIONS",
        "LS_DISPATCH.LD_DISPATCH,LS_DISPATCH.STORE_DISPATCH,RETIRED_BRANCH_INSTRUCTIONS,\
         RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,RETIRED_TAKEN_BRANCH_INSTRUCTIONS,\
         RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED",
    )
});

fn assert_passed(boot: &Boot, program: &str) {
    let exits = &boot.transcript.exits;
    assert!(exits.contains(&(program.into(), 0)), "{}\n{}", boot.outcome, boot.transcript.text());
}

#[test]
fn the_bank_agrees_with_the_kernel_on_intel() {
    assert_passed(READERS_ON_INTEL.get(), "bank");
}

#[test]
fn the_bank_agrees_with_the_kernel_on_amd() {
    assert_passed(READERS_ON_AMD.get(), "bank");
}

#[test]
fn a_program_beside_a_reader_counts_undisturbed() {
    for boot in [&READERS_ON_INTEL, &READERS_ON_AMD] {
        assert_passed(boot.get(), "share");
    }
}

#[test]
fn rdpmc_is_permitted_only_to_the_program_with_a_bank() {
    for boot in [&READERS_ON_INTEL, &READERS_ON_AMD] {
        let troubles = &boot.get().transcript.failures;
        assert!(matches!(troubles[..], [Outcome::Faulted { .. }]), "{troubles:#?}");
    }
}

/// Number of stops and starts of a program in one run of the guest `switch`.
const PAIRS: u64 = 4_000;

/// Machine with programs that stop and start their counters in the bank: two with long slices, on 4
/// counters and on more, one whose slices end in between, and one that takes turns with them.
fn switches(pmu: Pmu, events: &str, more: &str) -> Request {
    let line = format!(
        "wire -- switch 200000 {events} -- switch 210000 {events},{more} -- switch 5000 {events} \
         -- share 1 {events} 300000"
    );
    Request { pmu, ..Request::new(line) }
}

/// Three events of Intel, instructions first.
const ON_INTEL: &str = "INST_RETIRED.ANY,MEM_INST_RETIRED.ALL_LOADS,BR_INST_RETIRED.COND";
/// Three events of AMD, instructions first.
const ON_AMD: &str =
    "RETIRED_INSTRUCTIONS,LS_DISPATCH.LD_DISPATCH,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS";

static SWITCHES_ON_INTEL: SharedBoot = SharedBoot::new(|| {
    let more = "MEM_INST_RETIRED.ALL_STORES,BR_INST_RETIRED.NEAR_TAKEN,CPU_CLK_UNHALTED.REF_TSC";
    switches(Pmu::Intel, ON_INTEL, more)
});

static SWITCHES_ON_AMD: SharedBoot = SharedBoot::new(|| {
    let more = "LS_DISPATCH.STORE_DISPATCH,RETIRED_TAKEN_BRANCH_INSTRUCTIONS";
    switches(Pmu::Amd, ON_AMD, more)
});

/// A stop executes 10 instructions and 4 for each counter, besides the call, its argument and the
/// return from the library function (5). A start in addition returns a result (3), and one start a
/// slice makes a system call of some 42 instructions: a slice is 200,000 cycles, a pair some 6,000
/// instructions (2 in the mean). The compiler may save and restore the six registers that a call
/// preserves (12). The means are rounded down.
fn assert_instructions_of_switches(boot: &Boot, more_counters: u64) {
    let truth = boot.truth.as_ref().expect("the virtual PMU writes it");
    for (slice, counters) in [(200_000, 4), (210_000, more_counters)] {
        let instructions = |tag: u32| {
            let region = truth.region(RegionKind::Marked, tag).expect("it was open");
            let name = ["INST_RETIRED.ANY", "RETIRED_INSTRUCTIONS"];
            let events = name.iter().find_map(|name| region.events.get(*name));
            events.expect("it is counted").user
        };
        let none = instructions(slice + 3);
        let [start, stop] = [1, 2].map(|tag| (instructions(slice + tag) - none) / PAIRS);
        println!("{counters} counters: start {start} instructions, stop {stop}");
        let sequence = 10 + 4 * counters;
        assert!((sequence..sequence + 6).contains(&stop), "{stop} on {counters} counters");
        let most = sequence + 5 + 3 + 2 + 12;
        assert!((sequence + 1..=most).contains(&start), "{start} on {counters} counters");
    }
}

#[test]
fn stopped_and_started_banks_take_few_instructions() {
    assert_instructions_of_switches(SWITCHES_ON_INTEL.get(), 7);
    assert_instructions_of_switches(SWITCHES_ON_AMD.get(), 6);
}

/// Panics unless the counts of the sessions equal the truth of the regions that the programs marked
/// around the counted code. The instructions of stopping and starting are in a count, but outside
/// of the region.
fn assert_counts_of_switched_banks(boot: &Boot, programs: usize) {
    let truth = boot.truth.as_ref().expect("the virtual PMU writes it");
    let report = Report::of(boot);
    let sessions = boot.transcript.sessions.values().zip(report.sessions());
    let switches: Vec<_> = sessions.filter(|(known, _)| known.program == "switch").collect();
    assert_eq!(switches.len(), programs);
    for (known, report) in switches {
        let slice = known.config.slice.length();
        let region = truth.region(RegionKind::Marked, slice as u32);
        for event in &report.events {
            let counted = event.estimate.expect("it is exact");
            let truth = region.expect("it was open").events[&event.name].user;
            if event.name == "CPU_CLK_UNHALTED.REF_TSC" {
                // The instructions of stop and start that an event counts are not constant.
                continue;
            }
            println!("slices of {slice}: {} counted {counted}, truth {truth}", event.name);
            assert_eq!(event.kind, Kind::Exact);
            assert!((truth..truth + 200 * PAIRS).contains(&counted), "{event:?} {truth}");
        }
    }
}

#[test]
fn a_stopped_bank_counts_nothing_on_intel() {
    assert_success(SWITCHES_ON_INTEL.get());
}

#[test]
fn a_stopped_bank_counts_nothing_on_amd() {
    assert_success(SWITCHES_ON_AMD.get());
}

#[test]
fn a_started_bank_counts_what_the_truth_counts_on_intel() {
    assert_counts_of_switched_banks(SWITCHES_ON_INTEL.get(), 3);
}

#[test]
fn a_started_bank_counts_what_the_truth_counts_on_amd() {
    assert_counts_of_switched_banks(SWITCHES_ON_AMD.get(), 3);
}

/// NMIs arrive between any two instructions of two programs that stop and start their counters,
/// also inside of the restartable sequences. Interrupted sequences restart; otherwise counts would
/// be off by whole slices. The loops are short so that more NMIs arrive inside of the sequences.
fn assert_sequences_restart(pmu: Pmu, events: &str) {
    let programs = [2000, 2100].map(|slice| format!("switch {slice} {events} 200"));
    let line = format!("wire overflows=nmi -- {}", programs.join(" -- "));
    let boot = boot(&Request { pmu, single_instructions: true, ..Request::new(line) });
    assert_success(&boot);
    assert_counts_of_switched_banks(&boot, 2);
}

#[test]
fn sequences_that_nmis_interrupt_begin_again_on_intel() {
    assert_sequences_restart(Pmu::Intel, ON_INTEL);
}

#[test]
fn sequences_that_nmis_interrupt_begin_again_on_amd() {
    assert_sequences_restart(Pmu::Amd, ON_AMD);
}
