//! AMD's floating-point operations, whose counters are pairs that the event Merge joins: a program
//! of known arithmetic is counted by unit mask, with one group and with several, and sampled.

use crate::command::{guest, run, text};

const ROUNDS: f64 = 1_000_000.0;
/// Events of additions, multiplications, divisions, FMAs and all of them, with the operations of a
/// round of `flops`: a scalar addition, a multiplication of two and an FMA of four elements.
const OPERATIONS: [(&str, f64); 5] =
    [("r0103", 1.0), ("r0203", 2.0), ("r0403", 0.0), ("r0803", 8.0), ("r0f03", 11.0)];

/// Output of a command of Tally's with these options, for the program `flops`.
fn counted(pmu: &str, command: &str) -> String {
    let file = guest("flops");
    let mut words = vec!["-q", "--pmu", pmu, "--file", &file, "--"];
    words.extend(command.split(' '));
    let rounds = ROUNDS.to_string();
    words.extend(["flops", &rounds]);
    let output = run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout) + &text(&output.stderr)
}

/// The count of an event and the half width of its interval, the first and last of `stat -x`'s
/// fields.
fn count(printed: &str, event: &str) -> (f64, f64) {
    let lines = printed.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let mut of_event = lines.filter(|line| line.get(2) == Some(&event));
    let line = of_event.next().unwrap_or_else(|| panic!("no {event}: {printed}"));
    let half = line.last().and_then(|half| half.parse().ok()).unwrap_or(0.0);
    (line[0].parse().unwrap(), half)
}

fn assert_counts(pmu: &str, events: &[&str], is_exact: bool) {
    let more = if is_exact { "" } else { ",branches,r4cb,r0729" };
    let printed = counted(pmu, &format!("stat -x, -e {}{more}", events.join(",")));
    for (event, of_round) in OPERATIONS.iter().filter(|(event, _)| events.contains(event)) {
        let (count, half) = count(&printed, event);
        let error = (count - of_round * ROUNDS).abs();
        if is_exact {
            assert_eq!(error, 0.0, "{pmu} {event}: {printed}");
        } else {
            assert!(error <= half, "{pmu} {event}: {printed}");
        }
    }
}

#[test]
fn two_pairs_are_exact_on_zen_4() {
    assert_counts("amd", &["r0103", "r0803"], true);
    assert_counts("amd", &["r0f03", "r0203"], true);
}

#[test]
fn two_pairs_are_exact_on_zen_3() {
    assert_counts("zen3", &["r0103", "r0803"], true);
    assert_counts("zen3", &["r0f03", "r0203"], true);
}

#[test]
fn pairs_are_switched_with_other_events_on_zen_4() {
    assert_counts("amd", &OPERATIONS.map(|(event, _)| event), false);
}

#[test]
fn pairs_are_switched_with_other_events_on_zen_3() {
    assert_counts("zen3", &OPERATIONS.map(|(event, _)| event), false);
}

#[test]
fn a_pair_is_sampled() {
    for pmu in ["amd", "zen3"] {
        let printed = counted(pmu, "record --budget 100 -e r0f03 -c 100000");
        let expected = 11.0 * ROUNDS / 100_000.0;
        let words = |line: &str| line.split_whitespace().next()?.parse::<f64>().ok();
        let samples = printed.lines().find(|line| line.contains("samples of")).and_then(words);
        assert!((samples.unwrap() - expected).abs() <= 2.0, "{expected}: {printed}");
    }
}
