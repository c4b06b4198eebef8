//! Code after mispredicted branches, which the virtual PMU fetches on request.

use crate::{exact, session_of};

const HITS: &str = "IC_TAG_HIT_MISS.ALL_IC_ACCESS";
const MISPREDICTED: &str = "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED";

/// Lines fetched by a program, and its mispredicted branches.
fn counts(pipeline: &str, wrong_paths: &str, program: &str) -> [u64; 2] {
    let session = session_of(&format!(
        "cargo xtask run --pmu amd --vpmu pipeline={pipeline},wrong-paths={wrong_paths} \
         --events {HITS},{MISPREDICTED} -- {program}"
    ));
    [HITS, MISPREDICTED].map(|event| exact(&session, event))
}

/// Lines fetched on wrong paths of a program for each misprediction.
fn lines_each(pipeline: &str, program: &str) -> f64 {
    let [[with, wrong], [without, same]] = ["yes", "no"].map(|it| counts(pipeline, it, program));
    assert!(wrong > 20_000 && wrong.abs_diff(same) < same / 100, "{wrong}, {same}");
    (with - without) as f64 / wrong as f64
}

/// The branches of a loop in the cache are random: each wrong path hits some lines, all of which
/// belong to the short loop. Straight-line code would give seven or eight lines.
#[test]
fn mispredicted_branches_fetch_lines_that_do_not_run() {
    for pipeline in ["interval", "ooo"] {
        let each = lines_each(pipeline, "bottleneck 2 branch 100000");
        assert!((1.0..=5.0).contains(&each), "{pipeline}: {each}");
    }
}

/// Where lines of code jump to others, a wrong path fetches a line in each cycle: it follows the
/// jumps in the guest's memory.
#[test]
fn wrong_paths_follow_the_jumps_in_memory() {
    let program = "bottleneck jumps 100000";
    for pipeline in ["interval", "ooo"] {
        let each = lines_each(pipeline, program);
        // The 13 cycles of the penalty, and the line of the right path again. Straight-line code
        // would give eight.
        assert!((12.5..=14.5).contains(&each), "{pipeline}: {each}");
    }
    // Each run gives the same counts.
    assert_eq!(counts("interval", "yes", program), counts("interval", "yes", program));
}
