//! Programs of other origins: their words, environment and input at the start, and the messages
//! about refused calls and about files that the kernel cannot run.

use tally_abi::ExitStatus;
use xtask::machine::{Outcome, Pmu, Request};

use crate::{SharedBoot, boot, output_of};

/// Programs with words that contain blanks, an empty word, an environment and an input.
static WORDS: SharedBoot = SharedBoot::new(|| {
    Request::new("wire -- env=A=b\\sc env=D= stdin=/corpus.txt words a\\sb \\e env=no -- words")
});

#[test]
fn programs_get_their_words_environment_and_input() {
    let boot = WORDS.get();
    let output = output_of(boot, 0, 1);
    let (first, rest) = output.split_once('\n').unwrap();
    assert!(first.starts_with("[a b][][env=no] A=b c D= <"), "{output}");
    assert!(first.len() > "[a b][][env=no] A=b c D= <>".len(), "{output}");
    assert_eq!(rest, "2026\nwords: done\n");
    assert_eq!(output_of(boot, 1, 1), " <>\n2026\nwords: done\n");
}

/// Each of the programs that `tally` loads reads the whole input.
#[test]
fn programs_that_are_loaded_get_what_the_loader_has() {
    let line = "wire -- env=A=b stdin=/corpus.txt tally stat -r 2 -e instructions words a";
    let output = boot(&Request::new(line)).transcript.text();
    let words: Vec<&str> = output.lines().filter(|line| line.starts_with("[a] A=b <")).collect();
    assert_eq!(words.len(), 2, "{output}");
    assert_eq!(words[0], words[1], "{output}");
    assert!(words[0].len() > "[a] A=b <>".len(), "{output}");
}

#[test]
fn calls_that_the_kernel_refused_are_named_with_their_number() {
    let refused = &WORDS.get().transcript.refused_calls;
    let calls = "mmap (EINVAL) 1×, getrusage (EINVAL) 1×, call 9999 (ENOSYS) 3×".to_owned();
    assert_eq!(refused.len(), 2);
    assert!(refused.contains(&("words".into(), calls)), "{refused:?}");
}

#[test]
fn the_date_is_that_of_the_command_line() {
    let boot = boot(&Request { pmu: Pmu::Amd, ..Request::new("wire date=1000000000 -- words") });
    assert!(output_of(&boot, 0, 1).ends_with("2001\nwords: done\n"), "{}", boot.transcript.text());
}

#[test]
fn a_file_that_cannot_run_is_refused_with_the_reason() {
    let line = "wire -- unusable-dynamic -- unusable-arm -- unusable-truncated -- unusable-text";
    let boot = boot(&Request::new(line));
    let reasons = [
        ("unusable-dynamic", "interpreter /lib64/ld-linux-x86-64.so.2 is not on the machine"),
        ("unusable-arm", "64-bit Arm"),
        ("unusable-truncated", "a segment is outside the file: it may be truncated"),
        ("unusable-text", "a script, not an ELF file: run its interpreter, /bin/sh, "),
    ];
    for (name, reason) in reasons {
        let is_it = |outcome: &&Outcome| {
            matches!(outcome, Outcome::Refused { program, status, why }
                if program == name && *status == u8::from(ExitStatus::NotRunnable)
                    && why.contains(reason))
        };
        let failures = &boot.transcript.failures;
        assert_eq!(failures.iter().filter(is_it).count(), 1, "{name}: {failures:#?}");
    }
    assert_eq!(boot.transcript.failures.len(), reasons.len());
}

#[test]
fn more_memory_holds_what_less_does_not() {
    let run = |memory_mib| {
        let request = Request { memory_mib, ..Request::new("wire -- mappings 300") };
        boot(&request).transcript
    };
    let (small, large) = (run(None), run(Some(512)));
    let fault = small.failures.first().map(ToString::to_string).unwrap_or_default();
    assert!(fault.contains("out of memory: give the machine more with --memory"), "{fault}");
    assert_eq!(large.text(), "mappings: touched 300 MiB\n");
}
