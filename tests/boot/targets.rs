//! Branch target buffer of the virtual PMU: jumps with an entry cost nothing; jumps without one are
//! counted, and cost time.

use xtask::report::SessionReport;

use crate::{command::guest, exact, session_of};

/// Jumps of a round, and number of rounds.
const JUMPS: u64 = 14_000;
const ROUNDS: u64 = 50;
/// Cycles from a resteer to the fetch of the target.
const PENALTY: u64 = 10;

/// Run of jumps, with these words after the program's name.
pub fn run(options: &str, words: &str) -> SessionReport {
    session_of(&format!("cargo xtask run {options} --file {} -- jumps {words}", guest("jumps")))
}

#[test]
fn jumps_that_the_buffer_lacks_are_counted_and_cost_time() {
    for (pmu, pipeline, resteers, cycles) in [
        ("intel", "ooo", "BACLEARS.ANY", "CPU_CLK_UNHALTED.THREAD"),
        ("sapphire-rapids", "interval", "BACLEARS.ANY", "CPU_CLK_UNHALTED.THREAD"),
        ("amd", "ooo", "DECODER_OVERRIDE_BRANCH_PRED", "CYCLES_NOT_IN_HALT"),
    ] {
        let of = |btb: &str, list: &str, words: &str| {
            let vpmu = format!("pipeline={pipeline},btb={btb}");
            run(&format!("--pmu {pmu} --vpmu {vpmu} --events {list}"), words)
        };
        let list = format!("{resteers},{cycles}");
        let all = format!("{ROUNDS}");
        let (with, without) = (of("yes", &list, &all), of("no", cycles, &all));
        let found = exact(&with, resteers);
        let made = ROUNDS * JUMPS;
        assert!((made..made + made / 50).contains(&found), "{pmu}: {found} of {made}");
        let slower = exact(&with, cycles) as f64 - exact(&without, cycles) as f64;
        let each = slower / (found * PENALTY) as f64;
        assert!((0.7..1.1).contains(&each), "{pmu}: {each} of the penalty");

        let few = exact(&of("yes", &list, &format!("{ROUNDS} few")), resteers);
        assert!((1_000..1_000 + made / 50).contains(&few), "{pmu}: {few}");
    }
}
