//! Events that take a pair of counters, on a layout like AMD's: groups have counters 2 to 5, and
//! pairs may be on counters 2 and 3, and on 4 and 5.

mod fits;

use expect_test::expect;
use fits::fits;
use proptest::prelude::*;
use tally_engine::{
    Demand, Lack, Layout, MAX_GENERAL, PlanError, Selector, Widths, plan,
    plan::{CounterAssignment, Plan},
};

/// The select that the second counter of a pair needs.
const JOIN: Selector = Selector(0xf_0040_00ff);

fn layout(general: u16) -> Layout {
    Layout { general, reference: false, extra: 0, widths: Widths::of(48) }
}

fn single(id: u64, counters: u16) -> Demand {
    Demand::general(Selector(1000 + id), counters)
}

fn pair(id: u64, counters: u16) -> Demand {
    Demand { pair: Some(JOIN), ..Demand::general(Selector(2000 + id), counters) }
}

fn together(demand: Demand) -> Demand {
    Demand { together: Some(0), ..demand }
}

/// Checks that every event has its counter for itself, each pair two, and that a pair's select is
/// on its second counter whenever it counts, and is not whenever another event is on the first.
fn check(plan: &Plan, demands: &[Demand]) {
    let mut used = vec![0_u16; plan.groups.len()];
    let mut firsts = 0;
    let mut seen: Vec<(Demand, CounterAssignment)> = Vec::new();
    for (demand, assigned) in demands.iter().zip(&plan.assignments) {
        let CounterAssignment::General { group, counter } = *assigned else { panic!() };
        if seen.contains(&(*demand, *assigned)) {
            continue;
        }
        seen.push((*demand, *assigned));
        let (index, counter) = (usize::from(group), usize::from(counter));
        assert_ne!(demand.counters >> counter & 1, 0);
        let takes = if demand.pair.is_some() { 0b11 } else { 1 } << counter;
        assert_eq!(used[index] & takes, 0, "two events on a counter: {plan:?}");
        used[index] |= takes;
        assert_eq!(plan.groups[index].selectors[counter], demand.selector);
        if let Some(second) = demand.pair {
            assert_eq!(plan.groups[index].selectors[counter + 1], second);
            assert_eq!(plan.groups[index].used >> (counter + 1) & 1, 0, "a half is not read");
            firsts |= 1 << counter;
        }
    }
    for group in &plan.groups {
        let seconds = (group.used & firsts) << 1;
        assert_eq!(group.seconds & seconds, seconds, "the selects of halves are written");
        assert_eq!(group.used & firsts << 1, 0, "a half's counter counts nothing else");
    }
}

/// The fewest groups, by trying every assignment of the events to counters.
fn fewest(demands: &[Demand], general: u16) -> usize {
    let of_pairs = |firsts: u16| {
        let mask = |demand: &Demand| match demand.pair {
            Some(_) => demand.counters & firsts,
            None => demand.counters & general & !(firsts << 1),
        };
        let masks: Vec<u16> = demands.iter().map(mask).collect();
        let all = !masks.contains(&0);
        all.then(|| (1..).find(|groups| fits(&masks, &mut [0; MAX_GENERAL], *groups)).unwrap())
    };
    let has_pairs = demands.iter().any(|demand| demand.pair.is_some());
    let choices: &[u16] = if has_pairs { &[0x04, 0x14] } else { &[0] };
    choices.iter().filter_map(|firsts| of_pairs(*firsts)).min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn plans_with_pairs_are_valid_and_the_smallest(
        singles in prop::collection::vec(1_u16..16, 0..6),
        pairs in 0..4_u64,
    ) {
        let singles = (0..).zip(&singles).map(|(id, mask)| single(id, mask << 2 | 0x10));
        let demands: Vec<Demand> = singles.chain((0..pairs).map(|id| pair(id, 0x15))).collect();
        prop_assume!(!demands.is_empty());
        let plan = plan(&demands, &layout(0x3c)).unwrap();
        check(&plan, &demands);
        prop_assert_eq!(plan.groups.len(), fewest(&demands, 0x3c));
        prop_assert!(plan.is_optimal());
    }
}

#[test]
fn pairs_share_groups_with_other_events() {
    let demands: Vec<Demand> =
        (0..3).map(|id| pair(id, 0x15)).chain((0..4).map(|id| single(id, 0x3f))).collect();
    let three = plan(&demands, &layout(0x3c)).unwrap();
    check(&three, &demands);
    let names = ["add", "multiply", "divide", "a", "b", "c", "d"];
    expect![[r#"
        7 events in 3 groups, 3 slices to a round; no plan has fewer groups
        group 0: counters 2 and 3 add, counter 4 a, counter 5 b
        group 1: counters 2 and 3 multiply, counter 4 c, counter 5 d
        group 2: counters 2 and 3 divide
    "#]]
    .assert_eq(&three.explain(|event| names[event]).to_string());
}

#[test]
fn two_pairs_are_counted_at_once() {
    let demands = [pair(0, 0x15), pair(1, 0x15)];
    let both = plan(&demands, &layout(0x3c)).unwrap();
    check(&both, &demands);
    assert_eq!((both.groups.len(), both.groups[0].used), (1, 0x14));
    let demands = demands.map(together);
    check(&plan(&demands, &layout(0x3c)).unwrap(), &demands);
}

#[test]
fn pairs_without_room_are_refused() {
    // Nothing after counters 2 and 4, or nothing on them.
    for general in [0x14, 0x28, 0x18] {
        let refused = plan(&[pair(0, 0x15)], &layout(general)).unwrap_err();
        assert_eq!(refused, PlanError::NoCounter { event: 0, counters: 0x15 });
    }
    let lists: [&[Demand]; 2] = [
        &[pair(0, 0x15), single(0, 0x3f), single(1, 0x3f), single(2, 0x3f)],
        &[pair(0, 0x15), pair(1, 0x15), single(0, 0x3f)],
    ];
    for demands in lists {
        let demands: Vec<Demand> = demands.iter().copied().map(together).collect();
        match plan(&demands, &layout(0x3c)).unwrap_err() {
            PlanError::NoGroup { counters: 5, general: 4, lack: Lack::Counters, .. } => {}
            other => panic!("{other:?}"),
        }
        let three = plan(&demands[..3], &layout(0x3c)).map(|plan| plan.groups.len());
        assert_eq!(three.ok(), (demands[1].pair.is_none()).then_some(1));
    }
}
