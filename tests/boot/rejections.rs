//! Rejected loads in the virtual PMU: because of a store to another page with the same low address
//! bits, and because of a store whose address is known only after the load was executed.

use xtask::report::SessionReport;

use crate::{command::guest, exact, session_of};

const ROUNDS: u64 = 20_000;

fn run(pmu: &str, list: &str, words: &str) -> SessionReport {
    let guest = guest("rejections");
    let options = format!("--pmu {pmu} --vpmu pipeline=ooo,rejections=yes --events {list}");
    session_of(&format!("cargo xtask run {options} --file {guest} -- rejections {words}"))
}

#[test]
fn loads_at_the_same_place_of_another_page_are_issued_again() {
    for (pmu, event) in [
        ("intel", "LD_BLOCKS_PARTIAL.ADDRESS_ALIAS"),
        ("sapphire-rapids", "LD_BLOCKS.ADDRESS_ALIAS"),
    ] {
        let aliased = exact(&run(pmu, event, &format!("alias {ROUNDS}")), event);
        assert!((ROUNDS - 10..ROUNDS + ROUNDS / 50).contains(&aliased), "{pmu}: {aliased}");
        let late = exact(&run(pmu, event, &format!("late {ROUNDS} 1")), event);
        assert!(late < ROUNDS / 50, "{pmu}: {late}");
    }
}

#[test]
fn a_load_ahead_of_what_it_follows_clears_the_pipeline_until_it_waits() {
    for (pmu, event) in [("intel", "MACHINE_CLEARS.MEMORY_ORDERING"), ("amd", "RESYNCS")] {
        // A load that was harmless fifteen times does not wait.
        let clears =
            [40, 8].map(|every| exact(&run(pmu, event, &format!("late {ROUNDS} {every}")), event));
        let expected = ROUNDS / 40;
        assert!((expected - 2..expected + 50).contains(&clears[0]), "{pmu}: {clears:?}");
        assert!(clears[1] < 50, "{pmu}: {clears:?}");
    }
}
