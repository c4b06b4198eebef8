//! Under an unmodified Linux, `perf record -b` has the branches that a known program took.

use std::fmt::Write;

use crate::linux_program;

/// Rounds of the program's loop: a call, its return, a jump, and the loop's own branch.
const ROUNDS: u32 = 50_000;
/// The taken branches of a round, each with its target.
const ROUND: [(u64, u64); 4] = [
    (0x40_007d, 0x40_0092),
    (0x40_0092, 0x40_0082),
    (0x40_0082, 0x40_0085),
    (0x40_0087, 0x40_007d),
];
const CALL: (u64, u64) = ROUND[0];
const RETURN: u64 = ROUND[1].0;

/// Instructions between two samples, of the 5 in a round.
const PERIOD: u32 = 5_003;
const SAMPLES: usize = 5 * ROUNDS as usize / PERIOD as usize;
/// Line between the outputs.
const NEXT: &str = "====";

/// The program's code.
fn program() -> Vec<u8> {
    let mut code = vec![0xb9];
    code.extend(ROUNDS.to_le_bytes());
    // CALL, JMP over a NOP, DEC ECX, JNZ; then EXIT(0); the function is a RET.
    code.extend([0xe8, 0x10, 0, 0, 0, 0xeb, 0x01, 0x90, 0xff, 0xc9, 0x75, 0xf4]);
    code.extend([0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05, 0xc3]);
    code
}

/// Commands that record branches in several ways and print them, each behind a line.
pub fn script(is_precise: bool) -> String {
    // Interrupts that take long by the virtual time must not lower the rate of samples.
    let mut script = format!(
        "echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent\n{}",
        linux_program::write(&program(), "/tmp/round")
    );
    let event = format!("-c {PERIOD} -e instructions:u");
    let mut record = |options: &str, fields: &str| {
        let _ = writeln!(
            script,
            "echo {NEXT}; perf record {options} -B -N --no-bpf-event -o /tmp/b /tmp/round 2>&1 \
             >/dev/null | grep -v perf; perf script -F {fields} -i /tmp/b 2>/dev/null"
        );
    };
    record(&format!("-b {event}"), "ip,brstack");
    record(&format!("-j any_call,u {event}"), "brstack");
    if is_precise {
        record(&format!("--call-graph lbr {event}"), "ip");
        record("-b -e cpu/event=0xc4,umask=0x20,period=251/uppp", "ip,brstack");
    }
    script
}

/// A branch with its target, and whether it was mispredicted.
type Taken = ((u64, u64), bool);

/// Branches of a sample, the last first.
fn branches(line: &str) -> Vec<Taken> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let entry = |text: &str| {
        let mut fields = text.split('/');
        let [from, to] = [fields.next(), fields.next()].map(|field| field.and_then(hex));
        Some(((from?, to?), fields.next()? == "M"))
    };
    line.split_whitespace().filter_map(entry).collect()
}

/// The address of a sample.
fn address(line: &str) -> Option<u64> {
    u64::from_str_radix(line.split_whitespace().next()?, 16).ok()
}

/// Panics unless the outputs have the program's branches; `depth` is the number of records.
pub fn check(printed: &str, depth: usize, is_precise: bool) {
    let outputs: Vec<&str> = printed.split(&format!("{NEXT}\n")).skip(1).collect();
    assert_eq!(outputs.len(), if is_precise { 4 } else { 2 }, "{printed}");
    check_rounds(outputs[0], depth, SAMPLES);
    for line in outputs[1].lines() {
        let all = branches(line);
        // The first instructions of the program are behind few calls.
        assert!(all.iter().all(|(branch, _)| *branch == CALL), "{line}");
        assert_eq!(all.len(), depth, "{line}");
    }
    if is_precise {
        check_chains(outputs[2]);
        check_precise(outputs[3], depth);
    }
}

/// Checks samples of all branches: each follows the one before in the program.
fn check_rounds(printed: &str, depth: usize, samples: usize) {
    let lines: Vec<_> = printed.lines().filter(|line| line.contains('/')).collect();
    assert!(lines.len().abs_diff(samples) <= 2, "{} samples: {printed}", lines.len());
    let mut wrong = 0;
    for line in lines {
        let all = branches(line);
        check_order(&all, depth);
        // The interrupt comes at the next branch, or at the one behind it.
        let last = ROUND.iter().position(|known| *known == all[0].0).expect(line);
        let next = [last, last + 1].map(|at| Some(ROUND[at % ROUND.len()].1));
        assert!(next.contains(&address(line)), "{line}");
        wrong += all.iter().filter(|(_, is_wrong)| *is_wrong).count();
    }
    assert!(wrong <= 8, "{wrong} branches of a loop are mispredicted");
}

/// Checks that there are `depth` branches, of which each follows the next one in the program.
fn check_order(all: &[Taken], depth: usize) {
    assert_eq!(all.len(), depth, "{all:x?}");
    let place = |branch| ROUND.iter().position(|known| *known == branch);
    let places: Vec<_> = all.iter().map(|(branch, _)| place(*branch)).collect();
    let follows = |pair: &[Option<usize>]| match pair {
        [Some(later), Some(earlier)] => (earlier + 1) % ROUND.len() == *later,
        _ => false,
    };
    assert!(places.windows(2).all(follows), "{all:x?}");
}

/// Checks call chains: a sample in the function has its caller.
fn check_chains(printed: &str) {
    let chains: Vec<Vec<u64>> = printed
        .split("\n\n")
        .map(|chain| {
            let lines = chain.split_whitespace();
            lines.filter_map(|line| u64::from_str_radix(line, 16).ok()).collect()
        })
        .filter(|chain: &Vec<u64>| !chain.is_empty())
        .collect();
    let inside = chains.iter().filter(|chain| chain[0] == RETURN);
    let callers: Vec<_> = inside.map(|chain| chain.get(1).copied()).collect();
    assert!(!callers.is_empty(), "{printed}");
    assert!(callers.iter().all(|caller| *caller == Some(CALL.0)), "{callers:x?}");
}

/// Checks precise samples of taken branches: the last branch is the instruction of the sample.
fn check_precise(printed: &str, depth: usize) {
    let samples: Vec<&str> = printed.lines().filter(|line| line.contains('/')).collect();
    assert!(samples.len().abs_diff(4 * ROUNDS as usize / 251) <= 5, "{}", samples.len());
    for line in samples {
        let all = branches(line);
        check_order(&all, depth);
        assert_eq!(all.first().map(|((from, _), _)| *from), address(line), "{line}");
    }
}
