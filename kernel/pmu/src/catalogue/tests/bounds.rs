//! Upper bounds between events.

use std::{collections::BTreeSet, vec, vec::Vec};

use tally_abi::Mode;
use tally_engine::{
    Pinned,
    bounds::{Bound, Whole},
};

use super::super::{Catalogue, bounds::lines};
use super::{catalogues, icelake, zen4};

fn bounds(catalogue: Catalogue, list: &str, mode: Mode) -> Vec<Bound> {
    catalogue.bounds(&catalogue.resolve(list, mode).unwrap(), mode)
}

#[test]
fn every_line_is_of_events_that_there_are_and_says_why() {
    let known: BTreeSet<&str> =
        catalogues().flat_map(|catalogue| catalogue.entries().map(|entry| entry.name)).collect();
    assert!(lines().count() > 40);
    for [whole, parts, source] in lines() {
        assert!(!source.is_empty());
        for name in parts.split('+').chain([whole]) {
            assert!(known.contains(name), "{name}");
        }
    }
}

/// The bounds have no cycles: a cycle could not be resolved in any order.
#[test]
fn nothing_is_a_part_of_itself_by_any_way() {
    let mut below: BTreeSet<&str> = BTreeSet::new();
    // Repeatedly removes events that bound nothing, or only removed events, until none is left.
    let wholes: BTreeSet<&str> = lines().map(|[whole, ..]| whole).collect();
    while below.len() < wholes.len() {
        let is_open = |name: &str| wholes.contains(name) && !below.contains(name);
        let next: Vec<&str> = wholes
            .iter()
            .copied()
            .filter(|whole| is_open(whole))
            .filter(|whole| {
                let mut own = lines().filter(|[its, ..]| its == whole);
                own.all(|[_, parts, _]| !parts.split('+').any(is_open))
            })
            .collect();
        assert!(!next.is_empty(), "a circle");
        below.extend(next);
    }
}

#[test]
fn events_of_a_list_are_bound_by_name_alias_and_always() {
    let list = "branch-misses,branches,MEM_LOAD_RETIRED.L1_MISS,MEM_INST_RETIRED.ALL_LOADS";
    let event = |part, whole| Bound { parts: vec![part], whole: Whole::Event(whole) };
    let always = |part| Bound { parts: vec![part], whole: Whole::Pinned(Pinned::Instructions) };
    let found = bounds(icelake(), list, Mode::User);
    for bound in [always(1), always(3), event(0, 1), event(2, 3)] {
        assert!(found.contains(&bound), "{bound:?} {found:?}");
    }
    assert_eq!(found.len(), 4);
    let found = bounds(zen4(), "branches,branch-misses", Mode::User);
    assert_eq!(found, [always(0), event(1, 0)]);
}

#[test]
fn kinds_are_bound_in_sum_and_rings_by_both() {
    let list = "BR_INST_RETIRED.COND_TAKEN,BR_INST_RETIRED.COND,BR_INST_RETIRED.COND_NTAKEN";
    let found = bounds(icelake(), list, Mode::User);
    assert_eq!(found, [Bound { parts: vec![0, 2], whole: Whole::Event(1) }]);
    let list = "MEM_LOAD_RETIRED.L2_HIT,MEM_LOAD_RETIRED.L1_MISS,MEM_LOAD_RETIRED.L2_MISS";
    let found = bounds(icelake(), list, Mode::User);
    assert_eq!(found, [Bound { parts: vec![0, 2], whole: Whole::Event(1) }]);
    let list = "r08d1:u,MEM_LOAD_RETIRED.L1_MISS,MEM_LOAD_RETIRED.L1_MISS:k";
    let found = bounds(icelake(), list, Mode::Full);
    assert_eq!(found, [Bound { parts: vec![0, 2], whole: Whole::Event(1) }]);
    let found = bounds(icelake(), "branches:uk,branch-misses:u", Mode::Kernel);
    assert_eq!(found, [Bound { parts: vec![1], whole: Whole::Event(0) }]);
    // The count of one ring is a part of the count of both.
    let found = bounds(icelake(), "branches:uk,branch-misses:u,branch-misses:k", Mode::User);
    assert_eq!(found, [Bound { parts: vec![1, 2], whole: Whole::Event(0) }]);
    let found = bounds(icelake(), "branches,branch-misses:k", Mode::Full);
    assert!(found.contains(&Bound { parts: vec![1], whole: Whole::Event(0) }), "{found:?}");
    // An event counted in both rings is no part of an event counted in ring 3.
    let found = bounds(icelake(), "branches:u,branch-misses:uk", Mode::Kernel);
    assert_eq!(found, []);
    let found = bounds(icelake(), "branches:k,branch-misses:u", Mode::User);
    assert_eq!(found, []);
}
