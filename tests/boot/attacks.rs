//! Programs that attack the kernel harm only themselves: each ends as expected, and the counts of
//! the other programs and the trace stay exact.

use xtask::{
    machine::{Boot, Outcome, Pmu, Request},
    report::Report,
};

use crate::{SharedBoot, assert_exact_counts_are_true, assert_output, assert_success, boot, run};

/// Status of a program that the kernel ended because of a fault.
const FAULT: u8 = 76;
/// Status of a program for which no memory is left.
const NO_MEMORY: u8 = 83;
/// Statuses of programs ended by SIGKILL and by SIGALRM.
const SIGKILL: u8 = 128 + 9;
const SIGALRM: u8 = 128 + 14;
/// Status of a program that wrote to a pipe without a reader.
const SIGPIPE: u8 = 128 + 13;

/// Machine that runs attacks one after another next to a program that is counted all the time.
fn request(pmu: Pmu, cpus: usize, attacks: &[(&str, u8)]) -> Request {
    let names: Vec<&str> = attacks.iter().map(|(name, _)| *name).collect();
    let line = format!(
        "wire trace -- siege attack instructions {} -- \
         events=instructions,branches,branch-misses fair 2 300",
        names.join(" ")
    );
    Request { pmu, cpus, ..Request::new(line) }
}

/// Defines a module with one boot that runs the attacks, a test for each attack, and tests of what
/// the other programs see.
macro_rules! attacks {
    ($module:ident on $pmu:expr, $cpus:literal CPUs: $($name:ident => $status:expr,)*) => {
        mod $module {
            use super::*;

            const ATTACKS: &[(&str, u8)] = &[$((stringify!($name), $status)),*];
            static BOOT: SharedBoot = SharedBoot::new(|| request($pmu, $cpus, ATTACKS));

            $(
                #[test]
                fn $name() {
                    let line = format!("siege: {} {}\n", stringify!($name), $status);
                    assert_output(BOOT.get(), &line);
                }
            )*

            #[test]
            fn counting_stays_exact_before_during_and_after_each_attack() {
                let text = BOOT.get().transcript.text();
                assert!(text.contains("siege: done\n") && !text.contains("FAILED"), "{text}");
            }

            #[test]
            fn other_programs_have_exact_counts() {
                assert_others_are_counted(BOOT.get());
            }

            #[test]
            fn the_kernel_reports_one_fault_for_each_attack_that_faults() {
                let faults = ATTACKS.iter();
                let faults = faults.filter(|(_, status)| [FAULT, NO_MEMORY].contains(status));
                assert_faults(BOOT.get(), faults.count());
            }

            #[test]
            fn no_trace_record_is_lost_or_damaged() {
                let transcript = &BOOT.get().transcript;
                let rings = &transcript.rings;
                assert!(!rings.is_empty() && rings.iter().all(|r| r.written == r.read + r.lost));
                assert_eq!(transcript.unreadable, 0);
            }

            #[test]
            fn the_machine_ends_with_status_0() {
                let boot = BOOT.get();
                assert_eq!(boot.transcript.panicked, None, "{}", boot.transcript.text());
                assert_eq!(boot.transcript.done, Some(0), "{}", boot.outcome);
            }
        }
    };
}

fn assert_others_are_counted(boot: &Boot) {
    let report = Report::of(boot);
    for program in ["siege", "fair"] {
        assert!(report.sessions().any(|session| session.program == program), "{program}");
    }
    assert_exact_counts_are_true(&report);
}

/// Panics unless the kernel reported `count` faults, each with its kind.
fn assert_faults(boot: &Boot, count: usize) {
    let troubles = &boot.transcript.failures;
    let is_named =
        |trouble: &&Outcome| matches!(trouble, Outcome::Faulted { fault, .. } if !fault.is_empty());
    assert_eq!(troubles.iter().filter(is_named).count(), count, "{troubles:#?}");
}

attacks! { by_signals_and_threads on Pmu::Intel, 1 CPUs:
    sigreturn_to_kernel_segment => 0,
    sigreturn_with_all_flags => FAULT,
    sigreturn_without_interrupt_flag => 0,
    sigreturn_with_trap_flag => FAULT,
    sigreturn_to_kernel_address => FAULT,
    sigreturn_to_noncanonical_address => FAULT,
    sigreturn_to_last_canonical_address => FAULT,
    sigreturn_with_kernel_stack => FAULT,
    sigreturn_with_invalid_fpu_state => FAULT,
    sigreturn_with_kernel_fpu_pointer => FAULT,
    sigreturn_without_fpu_state => 0,
    sigreturn_with_sigkill_blocked => SIGKILL,
    sigreturn_on_unmapped_stack => FAULT,
    sigreturn_on_kernel_stack => FAULT,
    fault_in_fault_handler => FAULT,
    fault_handler_recursion => FAULT,
    handler_at_kernel_address => FAULT,
    sigaltstack_at_kernel_address => FAULT,
    handler_without_restorer => FAULT,
    fault_with_signals_blocked => FAULT,
    timer_and_raise_storm => 0,
    queue_signals_until_refused => 0,
    set_timers_until_refused => 0,
    open_signal_files_until_refused => 0,
    deadlock_beside_ignored_timer => FAULT,
    sigalrm_default_action => SIGALRM,
    sigkill_to_itself => SIGKILL,
    futex_wait_forever => FAULT,
    futex_wait_with_sigalrm_ignored => FAULT,
    futex_wait_with_sigalrm_blocked => FAULT,
    mutex_deadlock => FAULT,
    thousand_threads => 0,
    clone_until_refused => 0,
    fault_in_second_thread => FAULT,
    tls_at_invalid_address => 0,
    exit_group_in_session => 7,
    first_thread_exits_first => 0,
    clear_tid_at_invalid_address => 0,
    random_futex_calls => 0,
    random_affinity_calls => 0,
}

attacks! { by_memory_files_and_sessions on Pmu::Amd, 2 CPUs:
    mmap_until_refused => 0,
    touch_until_killed => NO_MEMORY,
    getrandom_until_refused => 0,
    touch_a_page_of_each_gigabyte => NO_MEMORY,
    mremap_to_and_fro => 0,
    truncate_a_mapped_file => 0,
    map_behind_a_file => FAULT,
    mmap_over_everything => FAULT,
    mmap_pages_until_refused => 0,
    brk_until_refused => 0,
    reserve_16_tib => 0,
    munmap_every_second_page => 0,
    munmap_stack => FAULT,
    munmap_text => FAULT,
    munmap_everything => FAULT,
    mprotect_stack => FAULT,
    mprotect_text => FAULT,
    mprotect_everything => FAULT,
    write_until_full => 0,
    create_files_until_refused => 0,
    path_aliases => 0,
    reopen_sessions => 0,
    load_programs_until_refused => 0,
    long_program_path => 0,
    exit_in_session => 0,
    exit_with_open_session => 0,
    fault_in_session => FAULT,
    sigkill_in_session => SIGKILL,
    deadlock_in_session => FAULT,
    write_to_bank => FAULT,
    unmap_bank => 0,
    overwrite_control_page => 0,
    upcall_on_kernel_stack => FAULT,
    upcall_at_unmapped_address => FAULT,
    upcall_return_without_upcall => 0,
    unknown_call_numbers => 0,
}

attacks! { by_streams_and_locks on Pmu::Intel, 2 CPUs:
    fill_pipes_until_refused => 0,
    fill_sockets_until_refused => 0,
    write_to_closed_pipe => SIGPIPE,
    pipe_with_itself => FAULT,
    transfers_at_kernel_addresses => 0,
    timers_of_a_nanosecond => 0,
    counters_at_their_limit => 0,
    epoll_until_refused => 0,
    locks_until_refused => 0,
    counts_of_5000_threads => 0,
}

#[test]
fn a_program_cannot_stop_the_session_that_the_kernel_opened_around_it() {
    let boot = run("", "events=instructions,cycles:k attack control_session_of_kernel");
    assert_success(&boot);
    let report = Report::of(&boot).first.expect("the kernel opened a session");
    assert_eq!(report.events[0].estimate, report.events[0].truth);
}

/// Six programs with a thousand threads each need more kernel memory than the kernel has at the
/// start. Nothing is counted meanwhile, so the machine runs fast; counting is exact afterwards.
#[test]
fn programs_cannot_use_up_the_kernels_own_memory() {
    let threads = ["attack thousand_threads"; 6].join(" -- ");
    let programs =
        format!("sequence attack sessions_of_1024_events ; share 1 instructions 1000 -- {threads}");
    let vpmu = vec!["unmodelled=zero".to_owned()];
    let boot = boot(&Request { vpmu, ..Request::new(format!("wire -- {programs}")) });
    assert_success(&boot);
    assert_output(&boot, "share 1: done");
}

/// Two programs on two CPUs request the same names and files; each request succeeds for one.
#[test]
fn what_two_programs_ask_for_at_once_one_of_them_gets() {
    let line = "wire -- attack race_for_files 0 -- attack race_for_files 1";
    let boot = boot(&Request { cpus: 2, ..Request::new(line) });
    assert_success(&boot);
    let text = boot.transcript.text();
    let mut sums = [0; 3];
    for line in text.lines().filter_map(|line| line.strip_prefix("race: ")) {
        for (sum, count) in sums.iter_mut().zip(line.split(' ')) {
            *sum += count.parse::<u32>().unwrap();
        }
    }
    assert_eq!(sums, [300, 300, 300], "{text}");
}
