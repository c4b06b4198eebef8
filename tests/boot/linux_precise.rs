//! Under an unmodified Linux, `perf record` of precise events names the instruction.

use std::{collections::BTreeMap, fmt::Write};

use crate::linux_program;

/// Rounds of the program's loop, and its instructions in all.
const ROUNDS: u32 = 50_000;
const INSTRUCTIONS: u64 = 5 * ROUNDS as u64 + 4;
/// Addresses of the loop's instructions: a load, two NOPs, a decrement, a branch that is taken.
const LOOP: [u64; 5] = [0x40_007d, 0x40_0081, 0x40_0082, 0x40_0083, 0x40_0085];
/// Mark of a sample in ring 3 whose address is exact (`PERF_RECORD_MISC_EXACT_IP`), in perf's dump.
const EXACT: &str = "_SAMPLE(IP, 0x4002)";

/// A precise event, its period, its count, and the only instruction that has it, if there is only
/// one.
struct Precise {
    name: &'static str,
    event: &'static str,
    period: u64,
    count: u64,
    only: Option<u64>,
}

const EVENTS: [Precise; 4] = [
    Precise { name: "every", event: "event=0xc0", period: 2_503, count: INSTRUCTIONS, only: None },
    // Five instructions in a cycle.
    Precise { name: "time", event: "event=0x3c", period: 503, count: ROUNDS as u64, only: None },
    Precise {
        name: "taken",
        event: "event=0xc4,umask=0x20",
        period: 251,
        count: ROUNDS as u64,
        only: Some(LOOP[4]),
    },
    Precise {
        name: "loads",
        event: "event=0xd0,umask=0x81",
        period: 257,
        count: ROUNDS as u64,
        only: Some(LOOP[0]),
    },
];

/// The program's code.
fn program() -> Vec<u8> {
    let mut code = vec![0xb9];
    code.extend(ROUNDS.to_le_bytes());
    // The loop, then EXIT(0).
    code.extend([0x48, 0x8b, 0x04, 0x24, 0x90, 0x90, 0xff, 0xc9, 0x75, 0xf6]);
    code.extend([0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05]);
    code
}

/// Commands that record all events and print the numbers of samples and of exact ones, then event
/// and address of each.
pub fn script() -> String {
    // Interrupts that take long by the virtual time must not lower the rate of samples.
    let mut script = format!(
        "echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent\n{}perf record",
        linux_program::write(&program(), "/tmp/known")
    );
    for Precise { name, event, period, .. } in EVENTS {
        let _ = write!(script, " -e cpu/{event},period={period},name={name}/uppp");
    }
    script
        + &format!(
            " -B -N --no-bpf-event -o /tmp/precise /tmp/known 2>&1 >/dev/null | grep -v perf\n\
             perf script -D -i /tmp/precise 2>/dev/null > /tmp/dump\n\
             grep -F -c '_SAMPLE(' /tmp/dump; grep -F -c '{EXACT}' /tmp/dump\n\
             perf script -F event,ip -i /tmp/precise 2>/dev/null\n"
        )
}

/// Panics unless every sample is exact and at an instruction that has the event, and there are as
/// many as the period gives.
pub fn check(printed: &str) {
    let mut lines = printed.lines();
    let mut number = || lines.next().and_then(|line| line.trim().parse().ok());
    let (all, exact): (Option<u64>, Option<u64>) = (number(), number());
    assert!(all > Some(0) && all == exact, "{printed}");
    let mut samples: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for line in lines {
        let (name, address) = line.trim().split_once(':').expect(line);
        let of = EVENTS.iter().position(|of| name.starts_with(of.name)).expect(line);
        let address = address.split_whitespace().last().expect(line);
        let address = u64::from_str_radix(address, 16).expect(line);
        *samples.entry((of, address)).or_default() += 1;
    }
    for (index, of) in EVENTS.iter().enumerate() {
        check_event(of, samples.iter().filter(|((of, _), _)| *of == index));
    }
}

/// Checks the samples of an event by address.
fn check_event<'a>(of: &Precise, samples: impl Iterator<Item = (&'a (usize, u64), &'a u64)>) {
    let samples: BTreeMap<u64, u64> = samples.map(|((_, at), count)| (*at, *count)).collect();
    let what = format!("{}: {samples:x?}", of.name);
    let all: u64 = samples.values().sum();
    let expected = of.count / of.period;
    let most = if of.name == "time" { 5 * expected } else { expected };
    assert!((expected - expected / 20 - 1..=most).contains(&all), "{all}: {what}");
    let has_it = |address: &u64| of.only.map_or(LOOP.contains(address), |only| *address == only);
    // Before and behind the loop are four instructions.
    let wrong = samples.keys().filter(|address| !has_it(address)).count();
    assert!(wrong <= usize::from(of.only.is_none()), "{wrong} addresses: {what}");
    if of.name == "every" {
        let each = LOOP.map(|address| samples.get(&address).copied().unwrap_or(0));
        assert!(each.iter().all(|count| count.abs_diff(all / 5) <= 1), "{each:?}: {what}");
    }
}
