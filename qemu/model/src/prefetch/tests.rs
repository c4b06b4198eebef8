//! Tests of the requests of each prefetcher.

use super::{page::PAGE_LINES, *};

/// Makes prefetchers of one kind alone.
fn only(name: &str, both_ways: bool) -> Prefetch {
    let mut on = Prefetchers::NONE;
    assert!(on.set(name), "{name}");
    Prefetch::new(on, both_ways)
}

fn loads(prefetch: &mut Prefetch, pc: u64, addresses: &[u64]) -> Vec<Option<u64>> {
    let line = |address: &u64| prefetch.loads(pc, *address).into_iter().flatten().next();
    addresses.iter().map(line).collect()
}

fn requests(prefetch: &mut Prefetch, lines: impl Iterator<Item = u64>) -> Vec<Vec<u64>> {
    lines.map(|line| prefetch.requests(line, true).into_iter().flatten().collect()).collect()
}

#[test]
fn names_turn_on_one_each() {
    let mut all = Prefetchers::NONE;
    for name in Prefetchers::NAMES {
        let before = all;
        assert!(all.set(name) && all != before, "{name}");
    }
    assert_eq!(all, Prefetchers::ALL);
    assert!(!all.set("l3"));
}

#[test]
fn a_stride_is_found_at_the_third_load() {
    for stride in [128, 2048, -128, -2048] {
        let mut prefetch = only("l1-stride", false);
        // An address in the middle of a page, with room on both sides for the shorter strides.
        let at = |step: i64| 0x7800u64.wrapping_add_signed(step * stride);
        assert_eq!(loads(&mut prefetch, 1, &[at(-2), at(-1)]), [None, None], "{stride}");
        let next = at(1);
        let found = loads(&mut prefetch, 1, &[at(0)]);
        let shares = next >> 12 == at(0) >> 12;
        assert_eq!(found, [shares.then_some(next >> 6)], "{stride}");
    }
}

#[test]
fn strides_longer_than_2_kib_are_not_found() {
    let mut prefetch = only("l1-stride", false);
    let found = loads(&mut prefetch, 1, &[0x0, 0x840, 0x1080, 0x18c0, 0x2100]);
    assert_eq!(found, [None; 5]);
}

#[test]
fn a_stride_that_changes_is_learnt_anew() {
    let mut prefetch = only("l1-stride", false);
    let found = loads(&mut prefetch, 1, &[0, 64, 128, 320, 512, 704]);
    assert_eq!(found, [None, None, Some(3), None, Some(11), Some(14)]);
}

#[test]
fn a_stride_belongs_to_an_instruction_by_its_lowest_eight_bits() {
    let mut prefetch = only("l1-stride", false);
    assert_eq!(loads(&mut prefetch, 0x1001, &[0]), [None]);
    assert_eq!(loads(&mut prefetch, 0x1002, &[64]), [None]);
    assert_eq!(loads(&mut prefetch, 0x2001, &[64, 128]), [None, Some(3)]);
    // The 25th instruction replaces the first of the last 24.
    (0x10..0x10 + 24).for_each(|pc| assert_eq!(loads(&mut prefetch, pc, &[0]), [None]));
    assert_eq!(loads(&mut prefetch, 0x2001, &[192]), [None]);
}

#[test]
fn the_next_line_follows_ascending_loads() {
    let mut intel = only("l1-next", false);
    assert_eq!(loads(&mut intel, 1, &[0x100, 0x108, 0x100, 0x140]), [None, Some(5), None, Some(6)]);
    let mut amd = only("l1-next", true);
    assert_eq!(loads(&mut amd, 1, &[0x1c0, 0x180, 0x178]), [None, Some(5), Some(4)]);
}

#[test]
fn no_prefetcher_leaves_the_page() {
    for both_ways in [false, true] {
        for name in Prefetchers::NAMES {
            let mut prefetch = only(name, both_ways);
            let mut asked = 0;
            let lines = (0..4 * PAGE_LINES).chain((0..4 * PAGE_LINES).rev());
            for (line, misses) in lines.zip([true, false].into_iter().cycle()) {
                let into_l1 = prefetch.loads(1, line << 6).into_iter().flatten();
                let into_l2 = prefetch.requests(line, misses).into_iter().flatten();
                for ahead in into_l1.chain(into_l2) {
                    assert!(share_page(ahead, line), "{name}: {ahead} for {line}");
                    asked += 1;
                }
            }
            assert!(asked > 64, "{name}: {asked}");
        }
    }
}

#[test]
fn a_stream_is_one_from_the_third_request_and_runs_20_lines_ahead() {
    for descends in [false, true] {
        let place = |step: u64| if descends { 63 - step } else { step };
        let mut prefetch = only("l2-stream", false);
        let asked = requests(&mut prefetch, (0..64).map(place));
        assert_eq!(asked[..2], [vec![], vec![]]);
        assert_eq!(asked[2], [place(3), place(4)]);
        let mut furthest = 2;
        for (step, asked) in asked.iter().enumerate().skip(2) {
            for ahead in asked {
                furthest += 1;
                assert_eq!(*ahead, place(furthest), "each line once, in order");
                assert!(furthest - step as u64 <= 20);
            }
        }
        // With two lines at a time, the streamer is 20 ahead after 20 requests, and requests the
        // page's last line.
        assert_eq!(asked[21].last(), Some(&place(41)));
        assert_eq!(furthest, 63);
    }
}

#[test]
fn there_are_32_streams() {
    for (pages, found) in [(32, true), (33, false)] {
        let mut prefetch = only("l2-stream", false);
        let lines = (0..4).flat_map(|line| (0..pages).map(move |page| page * PAGE_LINES + line));
        let asked = requests(&mut prefetch, lines);
        assert_eq!(asked.iter().any(|asked| !asked.is_empty()), found, "{pages}");
    }
}

#[test]
fn a_pair_is_aligned_or_follows_the_direction() {
    let mut intel = only("l2-pair", false);
    assert_eq!(requests(&mut intel, [10, 13].into_iter()), [[11], [12]]);
    assert_eq!(intel.requests(20, false), [None; 3]);
    let mut amd = only("l2-pair", true);
    assert_eq!(requests(&mut amd, [10, 13, 12].into_iter()), [[11], [14], [11]]);
}
