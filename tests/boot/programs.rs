//! Ordinary programs run as under Linux, with either way of booting, and system calls with random
//! arguments leave the kernel intact.

use tally_lab::{fuzz, study::programs::compare};
use xtask::{
    build::programs::list::List,
    machine::{DEFAULT_TIME_LIMIT, Pmu, Request},
    project::Project,
};

use crate::{artefacts, assert_output, assert_success, boot, boot_with, machine_permit, run};

#[test]
fn mmap_avoids_the_segments_and_the_heap_of_a_program_linked_in_its_area() {
    let boot = run("", "segments");
    assert_success(&boot);
    assert_eq!(boot.transcript.text(), "segments: done\n");
}

/// The image is that for a USB stick. Its kernel has no second UART and logs the results.
#[test]
fn the_disk_image_boots_and_logs_its_results() {
    let boot = boot(&Request { from_disk: true, ..Request::new("") });
    let log = boot.folder.log_tail(100);
    assert!(log.contains("INST_RETIRED.ANY") && log.contains(" exact"), "{log}");
    assert!(log.contains("status 0"), "{log}");
}

/// Some firmware leaves five-level paging on, on machines with much memory. Only the boot loader
/// reboots there.
#[test]
fn the_disk_image_boots_where_firmware_left_five_level_paging_on() {
    let cpu = format!("{},-x2apic,+la57", Pmu::Intel.qemu_cpu());
    let qemu_args = vec!["-cpu".into(), cpu];
    let request = Request { from_disk: true, five_levels: true, qemu_args, ..Request::new("") };
    let log = boot(&request).folder.log_tail(200);
    assert!(log.contains("tally: five-level paging is on"), "{log}");
    assert!(log.contains("INST_RETIRED.ANY") && log.contains("status 0"), "{log}");
}

/// Panics unless the quick programs of the list behave as on the build machine.
fn check_list(pmu: Pmu) {
    let list = List::read(&Project::here()).unwrap();
    let quick: Vec<_> = list.wanted(true).collect();
    let _permit = machine_permit();
    let compared = compare(&artefacts(), &list.environment, &quick, pmu, DEFAULT_TIME_LIMIT);
    let differences = compared.unwrap_or_else(|failure| panic!("{failure}")).differences;
    let lines: Vec<String> = differences.iter().map(|it| format!("{it}\n")).collect();
    assert!(lines.is_empty(), "{}", lines.concat());
}

#[test]
fn listed_programs_do_the_same_as_under_linux_on_intel() {
    check_list(Pmu::Intel);
}

#[test]
fn listed_programs_do_the_same_as_under_linux_on_amd() {
    check_list(Pmu::Amd);
}

/// Makes `calls` random system calls. The guest then checks that counting is exact.
fn check_fuzz(pmu: Pmu, cpus: u16, calls: u64) {
    let request = fuzz::request(pmu, cpus, calls, 1);
    let boot = boot_with(&artefacts().audited(), &request);
    assert_output(&boot, fuzz::HELD);
    assert!(boot.transcript.done.is_some(), "{}", boot.outcome);
}

#[test]
fn counting_is_exact_after_random_system_calls_on_one_cpu() {
    check_fuzz(Pmu::Intel, 1, 8_000);
}

#[test]
fn counting_is_exact_after_random_system_calls_on_three_cpus() {
    check_fuzz(Pmu::Amd, 3, 8_000);
}
