//! Long system calls do not delay other programs: the kernel interrupts them and continues them in
//! the caller's next turn.

use std::{collections::BTreeMap, sync::OnceLock};

use xtask::machine::Request;

use crate::{SharedBoot, assert_success, output_of};

/// Longest wait of a program for its turn while one other program runs: a turn of the other, and as
/// much again for the end of a call that began in it.
const MAX_WAIT_US: u64 = 2 * 10_000;

/// Defines a boot in which one program makes long calls and another watches the clock, and a test
/// for each call.
macro_rules! calls {
    ($($test:ident: $call:literal,)*) => {
        const CALLS: &[&str] = &[$($call),*];

        $(
            #[test]
            fn $test() {
                let wait_us = waits_us()[$call];
                assert!(wait_us <= MAX_WAIT_US, "{} keeps the CPU for {wait_us} us", $call);
            }
        )*
    };
}

static BOOT: SharedBoot = SharedBoot::new(|| {
    let (phases, calls) = (CALLS.len(), CALLS.join(" "));
    // A list of 1,024 events includes events that the profile does not model.
    let vpmu = vec!["unmodelled=zero".to_owned()];
    let line = format!("wire -- turns watch {phases} -- turns call {calls}");
    Request { vpmu, ..Request::new(line) }
});

/// Longest wait of the watching program while the other makes each call, in microseconds.
fn waits_us() -> &'static BTreeMap<&'static str, u64> {
    static WAITS_US: OnceLock<BTreeMap<&'static str, u64>> = OnceLock::new();
    WAITS_US.get_or_init(|| {
        let boot = BOOT.get();
        assert_success(boot);
        println!("{}", output_of(boot, 1, 1));
        let output = output_of(boot, 0, 1);
        let waits = output.lines().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let ["turns:", "phase", phase, wait, "us"] = words[..] else { panic!("{line}") };
            (CALLS[phase.parse::<usize>().unwrap() - 1], wait.parse().unwrap())
        });
        waits.collect()
    })
}

calls! {
    write_of_48_mib: "write",
    read_of_48_mib: "read",
    writev_of_48_mib: "writev",
    truncation_of_48_mib: "truncate",
    extension_by_48_mib: "extend",
    mprotect_of_48_mib: "mprotect",
    madvise_of_48_mib: "madvise",
    munmap_of_48_mib: "munmap",
    mmap_of_48_mib: "mmap",
    brk_by_48_mib: "brk",
    ranking_names_near_an_unknown_one: "unknown-event",
    opening_a_session_of_1024_events: "session-open",
    reading_1024_events: "session-read",
    closing_a_session_of_1024_events: "session-close",
    exit_of_a_program_with_three_such_sessions: "end-by-exit",
    end_of_one_by_a_signal: "end-by-signal",
}
