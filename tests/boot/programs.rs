//! Ordinary programs run as under Linux, from either way to boot, and system calls with random
//! arguments leave the kernel intact.

use std::process::Command;

use xtask::{
    fuzz,
    machine::{Pmu, Request},
    project::Project,
    ramdisk,
};

use crate::{artefacts, assert_output, assert_success, boot, run};

#[test]
fn mmap_avoids_the_segments_and_the_heap_of_a_program_linked_in_its_area() {
    let boot = run("", "segments");
    assert_success(&boot);
    assert_eq!(boot.transcript.text(), "segments: done\n");
}

/// Commands of Debian's busybox. The text is cut, as compressing all of it takes half a minute.
const BUSYBOX_COMMANDS: [&str; 16] = [
    "truncate -s 300K corpus.txt",
    "gzip -k corpus.txt",
    "bzip2 -k corpus.txt",
    "sort -o sorted corpus.txt",
    "sha256sum corpus.txt.gz corpus.txt.bz2 sorted",
    "awk {n+=NF;s=s+length($0)}END{print(n,s)} corpus.txt",
    "gunzip -f corpus.txt.gz",
    "bunzip2 -f corpus.txt.bz2",
    "wc corpus.txt",
    "md5sum corpus.txt",
    "grep -c unsafe corpus.txt",
    "sleep 0.05",
    "cp corpus.txt copy",
    "mv copy moved",
    "head -c 300 moved",
    "rm moved",
];

/// What the commands print under Linux, in a folder with the ramdisk's text.
fn busybox_under_linux() -> String {
    let folder = Project::here().target.join("guest/busybox");
    std::fs::create_dir_all(&folder).unwrap();
    let artefacts = artefacts();
    let text = ramdisk::file(&artefacts.boot.ramdisk, ramdisk::CORPUS).unwrap();
    std::fs::write(folder.join(ramdisk::CORPUS), text).unwrap();
    let busybox = &artefacts.linux.as_ref().expect("`cargo xtask test` fetches it").busybox;
    let mut printed = String::new();
    for command in BUSYBOX_COMMANDS {
        let ran =
            Command::new(busybox).args(command.split(' ')).current_dir(&folder).output().unwrap();
        assert!(ran.status.success(), "{command}: {ran:?}");
        printed += &String::from_utf8_lossy(&ran.stdout);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    printed
}

#[test]
fn busybox_prints_what_it_prints_under_linux() {
    let commands = BUSYBOX_COMMANDS.map(|command| format!("busybox {command}"));
    let boot = run("", &format!("sequence {}", commands.join(" ; ")));
    assert_success(&boot);
    let [found, expected] = [boot.transcript.text(), busybox_under_linux()];
    let differing = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(found == expected, "first difference: {differing:?}");
}

/// The image for a USB stick, whose kernel has no second UART and logs its results.
#[test]
fn the_disk_image_boots_and_logs_its_results() {
    let boot = boot(&Request { from_disk: true, ..Request::new("") });
    let log = boot.folder.log_tail(100);
    assert!(log.contains("INST_RETIRED.ANY") && log.contains(" exact"), "{log}");
    assert!(log.contains("status 0"), "{log}");
}

/// Makes `calls` random system calls; the guest then checks that counting is exact.
fn check_fuzz(pmu: Pmu, cpus: u16, calls: u64) {
    let boot = boot(&fuzz::request(pmu, cpus, calls, 1));
    assert_output(&boot, fuzz::HELD);
    assert!(boot.transcript.done.is_some(), "{}", boot.outcome);
}

#[test]
fn counting_is_exact_after_random_system_calls_on_one_cpu() {
    check_fuzz(Pmu::Intel, 1, 12_000);
}

#[test]
fn counting_is_exact_after_random_system_calls_on_three_cpus() {
    check_fuzz(Pmu::Amd, 3, 24_000);
}
