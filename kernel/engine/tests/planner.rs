//! The planner against brute force: its plans are valid, and none is smaller.

use proptest::prelude::*;
use tally_engine::{
    Always, Demand, Layout, PlanError, Selector, plan,
    plan::{Place, Plan},
};

fn demand(selector: u64, counters: u8) -> Demand {
    Demand { selector: Selector(selector), counters, always: None }
}

fn layout(general: u8) -> Layout {
    Layout { general, reference: true }
}

/// Each event on a counter that may count it, with its own selector there, and nothing besides.
fn check_valid(plan: &Plan, demands: &[Demand], general: u8) {
    let mut used = vec![0_u8; plan.groups.len()];
    for (demand, place) in demands.iter().zip(&plan.places) {
        let Place::General { group, counter } = *place else { panic!("{place:?}") };
        assert_ne!(demand.counters & general & 1 << counter, 0);
        let group = usize::from(group);
        assert_eq!(plan.groups[group].selectors[usize::from(counter)], demand.selector);
        used[group] |= 1 << counter;
    }
    assert!(plan.groups.iter().map(|group| group.used).eq(used));
}

/// Whether `masks` can be put on counters with at most `capacity` on each, by trying everything.
fn fits(masks: &[u8], load: &mut [usize; 8], capacity: usize) -> bool {
    let Some((first, rest)) = masks.split_first() else { return true };
    (0..8).any(|counter| {
        if first >> counter & 1 == 0 || load[counter] == capacity {
            return false;
        }
        load[counter] += 1;
        let fits = fits(rest, load, capacity);
        load[counter] -= 1;
        fits
    })
}

proptest! {
    #[test]
    fn plans_are_valid_and_least(masks in prop::collection::vec(1_u8..16, 1..9)) {
        let demands: Vec<Demand> =
            masks.iter().enumerate().map(|(i, mask)| demand(i as u64, *mask)).collect();
        let plan = plan(&demands, &layout(0xf)).unwrap();
        check_valid(&plan, &demands, 0xf);
        let least = (1..).find(|g| fits(&masks, &mut [0; 8], *g)).unwrap();
        prop_assert_eq!(plan.groups.len(), least);
    }

    #[test]
    fn long_lists_are_planned_validly(
        masks in prop::collection::vec(1_u8..=255, 1..1024),
        general in 1_u8..=255,
    ) {
        let demands: Vec<Demand> = masks.iter().enumerate()
            .map(|(i, mask)| demand(i as u64 / 2, mask | (general & general.wrapping_neg())))
            .collect();
        let plan = plan(&demands, &layout(general)).unwrap();
        check_valid(&plan, &demands, general);
    }
}

#[test]
fn errors_name_the_event() {
    let any = demand(1, 0xff);
    assert_eq!(plan(&[], &layout(0xf)), Err(PlanError::NoEvents));
    let many = vec![any; 1025];
    assert_eq!(plan(&many, &layout(0xf)), Err(PlanError::TooManyEvents { events: 1025 }));
    let off = PlanError::NoCounter { event: 1, counters: 0xf0 };
    assert_eq!(plan(&[any, demand(2, 0xf0)], &layout(0xf)), Err(off));
    assert_eq!((off.event(), off.error()), (Some(1), tally_abi::Error::EventNotSupported));
    let reference = Demand { always: Some(Always::Reference), ..any };
    let none = Layout { general: 0xf, reference: false };
    assert_eq!(plan(&[any, reference], &none), Err(PlanError::NoReference { event: 1 }));
}

#[test]
fn the_same_selector_shares_a_counter_and_always_needs_none() {
    let cycles = Demand { always: Some(Always::Cycles), ..demand(0, 0) };
    let plan = plan(&[demand(7, 1), cycles, demand(7, 1)], &layout(1)).unwrap();
    assert_eq!(plan.groups.len(), 1);
    assert_eq!(plan.places[0], plan.places[2]);
    assert_eq!(plan.places[1], Place::Always(Always::Cycles));
}

#[test]
fn only_always_counted_events_still_have_a_group_to_run() {
    let cycles = Demand { always: Some(Always::Cycles), ..demand(0, 0) };
    let plan = plan(&[cycles], &layout(0xf)).unwrap();
    assert_eq!(plan.groups.iter().map(|group| group.used).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_thousand_events_on_one_counter_each_are_planned() {
    let demands: Vec<Demand> = (0..1024).map(|i| demand(i, 1 << (i % 8))).collect();
    assert_eq!(plan(&demands, &layout(0xff)).unwrap().groups.len(), 128);
}
