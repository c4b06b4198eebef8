//! Code behind mispredicted branches, which the virtual PMU fetches on request.

use crate::{exact, session_of};

/// Random branches of a loop that is in the cache: each wrong path hits some lines.
#[test]
fn mispredicted_branches_fetch_lines_that_do_not_run() {
    let [hits, mispredicted] =
        ["IC_TAG_HIT_MISS.ALL_IC_ACCESS", "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED"];
    for pipeline in ["interval", "ooo"] {
        let counts = ["yes", "no"].map(|wrong_paths| {
            let session = session_of(&format!(
                "cargo xtask run --pmu amd --vpmu pipeline={pipeline},wrong-paths={wrong_paths} \
                 --events {hits},{mispredicted} -- bottleneck 2 branch 100000"
            ));
            [hits, mispredicted].map(|event| exact(&session, event))
        });
        let [[with, wrong], [without, same]] = counts;
        assert!(wrong > 20_000 && wrong.abs_diff(same) < same / 100, "{wrong}, {same}");
        let each = (with - without) as f64 / wrong as f64;
        // Six lines, one of them the right path's again.
        assert!((4.0..=7.5).contains(&each), "{pipeline}: {each}");
    }
}
