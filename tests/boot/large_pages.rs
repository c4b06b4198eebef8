//! Large pages of the virtual PMU under an unmodified Linux: memory in pages of 2 MiB takes one
//! page walk for each large page, the same memory in pages of 4 KiB one for each small page.

use std::path::PathBuf;

use xtask::machine::Pmu;

use crate::{command::guest, linux};

/// Memory of the program, its pages of each size, and its passes: one of stores and four of loads.
const MEGABYTES: u64 = 96;
const LARGE: u64 = MEGABYTES / 2;
const SMALL: u64 = MEGABYTES * 256;
const LOADS: u64 = 4;

/// Runs the program with its memory in pages of each size. Returns the page walks in ring 3, of
/// loads and of stores: the sum of each list of events.
fn walks<const N: usize>(pmu: Pmu, events: [[&str; N]; 2]) -> [[u64; 2]; 2] {
    let list = events.as_flattened().join(":u,");
    let perf = format!("perf stat -x, -e {list}:u ./pages {MEGABYTES} {LOADS}");
    let script = format!("{perf} small 2>&1; {perf} large 2>&1");
    let files = [PathBuf::from(guest("pages"))];
    let vpmu = ["large-pages=yes".to_owned()];
    let (status, output) = linux::run_with(pmu, &vpmu, &files, &script);
    assert_eq!(status, 0, "{output}");
    let counts: Vec<u64> = linux::counts(&output).into_iter().map(|(count, _)| count).collect();
    assert_eq!(counts.len(), 4 * N, "{output}");
    [0, 1].map(|run| [0, 1].map(|size| counts[(2 * run + size) * N..][..N].iter().sum()))
}

fn assert_walks<const N: usize>(pmu: Pmu, events: [[&str; N]; 2]) {
    let [[small, few_large], [few_small, large]] = walks(pmu, events);
    // The second level has a tenth of the pages of 4 KiB, and in order none of these.
    let all = (1 + LOADS) * SMALL;
    assert!((all..all + all / 10).contains(&small), "{small} of {all}");
    assert!(few_large < LARGE / 4, "{few_large}");
    // The TLB holds all pages of 2 MiB. A switch to another address space and back empties it.
    assert!((LARGE..8 * LARGE).contains(&large), "{large} of {LARGE}");
    assert!(few_small < all / 100, "{few_small}");
}

#[test]
fn a_program_s_large_pages_take_a_walk_each_on_intel() {
    assert_walks(
        Pmu::Intel,
        [
            ["dtlb_load_misses.walk_completed_4k", "dtlb_store_misses.walk_completed_4k"],
            ["dtlb_load_misses.walk_completed_2m_4m", "dtlb_store_misses.walk_completed_2m_4m"],
        ],
    );
}

/// AMD's events count loads and stores. The check guest has large pages on every profile, too.
#[test]
#[ignore = "long"]
fn a_program_s_large_pages_take_a_walk_each_on_amd() {
    let events = "ls_l1_d_tlb_miss.tlb_reload";
    let [small, large] = ["4k", "2m"].map(|size| format!("{events}_{size}_l2_miss"));
    assert_walks(Pmu::Amd, [[&small], [&large]]);
}
