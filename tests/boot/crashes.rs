//! A program that faults ends with a report of the fault, and no other program is affected.

use xtask::machine::{Outcome, Request};

use crate::{SharedBoot, output_of};

/// Defines a boot that runs the programs at the same time, and for each program a test that the
/// kernel reports its fault in these words.
macro_rules! crashes {
    ($($test:ident: $program:literal => $words:literal,)*) => {
        const PROGRAMS: &[&str] = &[$($program),*];

        $(
            #[test]
            fn $test() {
                let fault = fault_of($program);
                assert!(fault.contains($words), "{}: reported as '{fault}'", $program);
            }
        )*
    };
}

/// Program that ends with an exit after all others have faulted.
const LAST: &str = "status 0";

static BOOT: SharedBoot =
    SharedBoot::new(|| Request::new(format!("wire -- {} -- {LAST}", PROGRAMS.join(" -- "))));

/// The kernel's report of the fault of a program. Each program faults in its first turn, so
/// programs of one name fault in the order of the command line.
fn fault_of(program: &str) -> &'static str {
    let name = |program: &str| program.split(' ').next().unwrap_or_default().to_owned();
    let of_name = PROGRAMS.iter().filter(|other| name(other) == name(program));
    let index = of_name.clone().position(|other| *other == program).expect("it is on the list");
    let troubles = &BOOT.get().transcript.failures;
    let faults: Vec<&str> = troubles
        .iter()
        .filter_map(|trouble| match trouble {
            Outcome::Faulted { program: of, fault, .. } if *of == name(program) => Some(&**fault),
            _ => None,
        })
        .collect();
    assert_eq!(faults.len(), of_name.count(), "{troubles:#?}");
    faults[index]
}

crashes! {
    read_of_address_0: "crash read-null" => "page fault",
    write_to_the_first_page: "crash write-null" => "page fault",
    read_of_kernel_memory: "crash read-kernel" => "page fault",
    jump_into_the_kernel: "crash jump-kernel" => "page fault",
    write_to_text: "crash write-code" => "page fault",
    execution_of_the_stack: "crash run-stack" => "page fault",
    invalid_instruction: "crash invalid" => "invalid instruction",
    division_by_zero: "crash divide" => "division by zero",
    privileged_instruction: "crash privileged" => "general protection fault",
    msr_read: "crash msr" => "general protection fault",
    rdpmc_without_permission: "crash rdpmc" => "general protection fault",
    software_interrupt: "crash interrupt" => "general protection fault",
    port_output: "crash port" => "general protection fault",
    trap_flag: "crash trap-flag" => "debug exception",
    noncanonical_address: "crash non-canonical" => "general protection fault",
    stack_overflow: "crash stack" => "stack overflow: page fault",
    wait_that_no_thread_can_end: "threads stuck" => "deadlock",
    signal_handlers_that_fill_the_stack: "endings full" => "no room on the stack",
    signal_handler_at_a_kernel_address: "endings-pie nowhere" => "handler",
}

#[test]
fn no_faulting_program_goes_on() {
    let text = BOOT.get().transcript.text();
    assert!(!text.contains("survived") && !text.contains("below the stack"), "{text}");
}

#[test]
fn a_program_beside_faulting_ones_ends_with_its_own_status() {
    let boot = BOOT.get();
    assert!(boot.transcript.exits.contains(&("status".into(), 0)), "{}", boot.transcript.text());
}

#[test]
fn every_program_starts() {
    for (index, program) in PROGRAMS.iter().enumerate().filter(|(_, p)| p.starts_with("crash")) {
        assert!(output_of(BOOT.get(), index, 1).starts_with("crash: "), "{program}");
    }
}

#[test]
fn the_address_of_an_invalid_handler_is_reported() {
    let is_reported = |trouble: &Outcome| {
        matches!(trouble, Outcome::Faulted { address: Some(0x8000_0000_0000_0000), program, .. }
            if program == "endings-pie")
    };
    let troubles = &BOOT.get().transcript.failures;
    assert!(troubles.iter().any(is_reported), "{troubles:#?}");
}

#[test]
fn every_fault_is_reported_with_its_instruction() {
    for trouble in &BOOT.get().transcript.failures {
        let Outcome::Faulted { instruction, .. } = trouble else { panic!("{trouble}") };
        assert_ne!(*instruction, 0, "{trouble}");
    }
}

#[test]
fn the_machine_ends_and_the_kernel_does_not_panic() {
    let boot = BOOT.get();
    assert_eq!(boot.transcript.panicked, None);
    assert_eq!(boot.transcript.done, Some(boot.outcome.status()), "{}", boot.outcome);
}
