//! The planner compared with brute force: its plans are valid, and none has fewer groups.

mod fits;

use expect_test::expect;
use fits::fits;
use proptest::prelude::*;
use tally_abi::{
    SessionConfig, Slice,
    session::{MAX_SLICE, MIN_SLICE, NO_BUDGET_PPM},
};
use tally_engine::{
    Demand, Extra, Layout, MAX_GENERAL, MAX_SHARE, Pinned, PlanError, Selector, Session, Widths,
    plan,
    plan::{CounterAssignment, Plan},
};

fn demand(selector: u64, counters: u16) -> Demand {
    Demand::general(Selector(selector), counters)
}

fn layout(general: u16) -> Layout {
    Layout { general, reference: true, extra: 7, widths: Widths::of(48) }
}

/// Checks that each event is on a counter that may count it, with its own selector there, and its
/// value in a register that it can use, and that nothing else is in the plan.
fn check_valid(plan: &Plan, demands: &[Demand], layout: &Layout) {
    let mut used = vec![0_u16; plan.groups.len()];
    let mut registers = vec![0_u8; plan.groups.len()];
    let mut shares = vec![1; plan.groups.len()];
    for (demand, place) in demands.iter().zip(&plan.assignments) {
        let CounterAssignment::General { group, counter } = *place else { panic!("{place:?}") };
        assert_ne!(demand.counters & layout.general & 1 << counter, 0);
        let (index, counter) = (usize::from(group), usize::from(counter));
        let group = &plan.groups[index];
        match demand.extra {
            None => assert_eq!(group.selectors[counter], demand.selector),
            Some(extra) => {
                let mut ways = (0..4).filter(|register| extra.registers >> register & 1 == 1);
                let (first, second) = (ways.next().unwrap(), ways.next());
                let register = match group.selectors[counter] {
                    selector if selector == demand.selector => first,
                    selector if selector == extra.second => second.unwrap(),
                    selector => panic!("{selector:?} is none of {demand:?}"),
                };
                assert_eq!(group.extra.values[register], extra.value);
                assert_ne!(layout.extra & 1 << register, 0);
                registers[index] |= 1 << register;
            }
        }
        assert_eq!(group.alone, demand.alone);
        if demand.alone {
            assert_eq!(group.used.count_ones(), 1, "{demand:?} is not alone");
        }
        shares[index] = demand.share.max(shares[index]);
        used[index] |= 1 << counter;
    }
    assert!(plan.groups.iter().map(|group| group.used).eq(used));
    assert!(plan.groups.iter().map(|group| group.extra.used).eq(registers));
    assert!(plan.groups.iter().map(|group| group.share).eq(shares));
    assert!(plan.least <= plan.groups.len());
}

/// Makes an off-core event: register 0 with one selector, register 1 with another.
fn offcore(id: u64, counters: u16, value: u64, registers: u8) -> Demand {
    let second = Selector(id * 2 + 1001);
    let first = if registers == 2 { second } else { Selector(id * 2 + 1000) };
    Demand { extra: Some(Extra { value, registers, second }), ..demand(first.0, counters) }
}

/// State of a group: counters in use, the value of each register, whether it is closed.
#[derive(Clone, Default)]
struct Full {
    counters: u16,
    values: [Option<u64>; 4],
    closed: bool,
}

/// Returns whether `demands` can be put into `groups`, by exhaustive search.
fn packs(demands: &[Demand], groups: &mut Vec<Full>) -> bool {
    let Some((first, rest)) = demands.split_first() else { return true };
    for index in 0..groups.len() {
        // Among empty groups, one is as good as another.
        let empty = |group: &Full| group.counters == 0;
        if index > 0 && empty(&groups[index]) && empty(&groups[index - 1]) {
            break;
        }
        let before = groups[index].clone();
        if before.closed || first.alone && !empty(&before) {
            continue;
        }
        for counter in (0..8).filter(|c| first.counters & !before.counters & 1 << c != 0) {
            let registers: Vec<Option<(usize, u64)>> = match first.extra {
                None => vec![None],
                Some(extra) => (0..4)
                    .filter(|r| extra.registers >> r & 1 == 1)
                    .filter(|r| before.values[*r].is_none_or(|held| held == extra.value))
                    .map(|r| Some((r, extra.value)))
                    .collect(),
            };
            for register in registers {
                let group = &mut groups[index];
                group.counters |= 1 << counter;
                group.closed = first.alone;
                if let Some((register, value)) = register {
                    group.values[register] = Some(value);
                }
                if packs(rest, groups) {
                    return true;
                }
                groups[index] = before.clone();
            }
        }
    }
    false
}

/// Counters, the value and registers that the event needs, whether it is alone.
type Event = (u16, Option<(u64, u8)>, bool);

fn event() -> impl Strategy<Value = Event> {
    let extra = prop_oneof![
        3 => Just(None),
        4 => (1..5_u64, 1..4_u8).prop_map(Some),
        1 => (1..3_u64, Just(4_u8)).prop_map(Some)
    ];
    (1_u16..16, extra, prop::bool::weighted(0.1))
}

fn special(events: &[Event]) -> Vec<Demand> {
    let event = |(id, (counters, extra, alone)): (usize, &Event)| {
        let event = match extra {
            None => demand(id as u64, *counters),
            Some((value, registers)) => offcore(id as u64, *counters, *value, *registers),
        };
        Demand { alone: *alone, ..event }
    };
    events.iter().enumerate().map(event).collect()
}

proptest! {
    #[test]
    fn plans_are_valid_and_least(masks in prop::collection::vec(1_u16..16, 1..9)) {
        let demands: Vec<Demand> =
            masks.iter().enumerate().map(|(i, mask)| demand(i as u64, *mask)).collect();
        let plan = plan(&demands, &layout(0xf)).unwrap();
        check_valid(&plan, &demands, &layout(0xf));
        let least = (1..).find(|g| fits(&masks, &mut [0; MAX_GENERAL], *g)).unwrap();
        prop_assert_eq!((plan.groups.len(), plan.least), (least, least));
    }

    #[test]
    fn long_lists_are_planned_validly(
        masks in prop::collection::vec((1_u16..1024, 1..5_u16), 1..1024),
        general in 1_u16..1024,
    ) {
        let demands: Vec<Demand> = masks.iter().enumerate()
            .map(|(i, (mask, share))| Demand {
                share: *share,
                ..demand(i as u64 / 2, mask | (general & general.wrapping_neg()))
            })
            .collect();
        let plan = plan(&demands, &layout(general)).unwrap();
        // Equal events have the larger of their shares.
        prop_assert!(plan.is_optimal());
        let shares = |place: &CounterAssignment| demands.iter().zip(&plan.assignments)
            .filter(|(_, other)| *other == place).map(|(d, _)| d.share).max().unwrap();
        let demands: Vec<Demand> = demands.iter().zip(&plan.assignments)
            .map(|(demand, place)| Demand { share: shares(place), ..*demand }).collect();
        check_valid(&plan, &demands, &layout(general));
    }

    #[test]
    fn long_lists_with_registers_are_planned_validly(
        events in prop::collection::vec(event(), 1..200),
    ) {
        let demands = special(&events);
        let first = plan(&demands, &layout(0xf)).unwrap();
        check_valid(&first, &demands, &layout(0xf));
        prop_assert_eq!(first, plan(&demands, &layout(0xf)).unwrap());
    }

    #[test]
    fn registers_and_lone_events_are_judged_by_brute_force(
        events in prop::collection::vec(event(), 1..8),
    ) {
        let demands = special(&events);
        let plan = plan(&demands, &layout(0xf)).unwrap();
        check_valid(&plan, &demands, &layout(0xf));
        let mut brute = (1..).filter(|g| packs(&demands, &mut vec![Full::default(); *g]));
        let best = brute.next().unwrap();
        prop_assert!(plan.least <= best && best <= plan.groups.len());
        // Even without a proof, the planner finds the optimum in lists as short as these.
        prop_assert_eq!(plan.groups.len(), best);
    }

    #[test]
    fn where_no_value_is_wanted_twice_the_plan_is_proven(
        masks in prop::collection::vec((1_u16..1024, 0..4_u8), 1..300),
    ) {
        let demands: Vec<Demand> = masks.iter().enumerate().map(|(id, (mask, registers))| {
            match registers {
                0 => demand(id as u64, *mask),
                registers => offcore(id as u64, *mask, id as u64, *registers),
            }
        }).collect();
        let plan = plan(&demands, &layout(0x3ff)).unwrap();
        check_valid(&plan, &demands, &layout(0x3ff));
        prop_assert!(plan.is_optimal());
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
    let needs = offcore(3, 0xff, 1, 3);
    let bare = Layout { extra: 4, ..layout(0xf) };
    let no_register = PlanError::NoRegister { event: 0, registers: 3 };
    assert_eq!(plan(&[needs], &bare), Err(no_register));
    for share in [0, MAX_SHARE + 1] {
        let bad = plan(&[any, Demand { share, ..any }], &layout(0xf));
        assert_eq!(bad, Err(PlanError::BadShare { event: 1 }));
    }
    let reference = Demand { pinned: Some(Pinned::Reference), ..any };
    let none = Layout { general: 0xf, reference: false, extra: 0, widths: Widths::of(48) };
    assert_eq!(plan(&[any, reference], &none), Err(PlanError::NoReference { event: 1 }));
}

#[test]
fn the_same_selector_shares_a_counter_and_always_needs_none() {
    let cycles = Demand { pinned: Some(Pinned::Cycles), ..demand(0, 0) };
    let plan = plan(&[demand(7, 1), cycles, demand(7, 1)], &layout(1)).unwrap();
    assert_eq!(plan.groups.len(), 1);
    assert_eq!(plan.assignments[0], plan.assignments[2]);
    assert_eq!(plan.assignments[1], CounterAssignment::Pinned(Pinned::Cycles));
}

#[test]
fn only_always_counted_events_still_have_a_group_to_run() {
    let cycles = Demand { pinned: Some(Pinned::Cycles), ..demand(0, 0) };
    let plan = plan(&[cycles], &layout(0xf)).unwrap();
    assert_eq!(plan.groups.iter().map(|group| group.used).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_thousand_events_on_one_counter_each_are_planned() {
    let demands: Vec<Demand> = (0..1024).map(|i| demand(i, 1 << (i % 8))).collect();
    assert_eq!(plan(&demands, &layout(0xff)).unwrap().groups.len(), 128);
}

#[test]
fn counters_and_registers_of_others_are_left_alone() {
    let demands: Vec<Demand> = (0..6).map(|id| offcore(id, 0xff, id, 3)).collect();
    let all = plan(&demands, &layout(0xff)).unwrap();
    assert_eq!((all.groups.len(), all.least), (3, 3));
    // The first register and six of the counters are in use by another user.
    let less = Layout { general: 0x81, reference: true, extra: 2, widths: Widths::of(48) };
    let one = plan(&demands, &less).unwrap();
    check_valid(&one, &demands, &less);
    assert_eq!((one.groups.len(), one.least), (6, 6));
}

#[test]
fn equal_values_share_a_register() {
    // Four values, each wanted by a user's and a kernel's event: two values and four counters each.
    let demands: Vec<Demand> = (0..8).map(|id| offcore(id, 0xf, id / 2, 3)).collect();
    let plan = plan(&demands, &layout(0xf)).unwrap();
    check_valid(&plan, &demands, &layout(0xf));
    assert_eq!((plan.groups.len(), plan.least), (2, 2));
}

#[test]
fn shares_gather() {
    let share = |id: u64, share| Demand { share, ..demand(id, 0xf) };
    let mut demands: Vec<Demand> = (0..12).map(|id| share(id, 1)).collect();
    for id in [1, 6, 8, 11] {
        demands[id].share = 5;
    }
    let plan = plan(&demands, &layout(0xf)).unwrap();
    assert_eq!(plan.groups.iter().map(|group| group.share).collect::<Vec<_>>(), [5, 1, 1]);
    assert_eq!(plan.round(), 7);
}

#[test]
fn plans_explain_themselves() {
    let demands = [
        Demand::pinned(Pinned::Cycles),
        offcore(1, 0xf, 0x10001, 3),
        Demand { share: 3, ..demand(2, 1) },
        Demand { alone: true, ..demand(3, 2) },
    ];
    let plan = plan(&demands, &layout(0xf)).unwrap();
    let text = plan.explain(|event| ["CYCLES", "OCR", "TWO", "LONE"][event]).to_string();
    expect![[r#"
        4 events in 2 groups, 4 slices to a round; no plan has fewer groups
        always: CYCLES
        group 0, 3 slices: counter 0 TWO, counter 1 OCR; extra register 0 0x10001
        group 1: counter 1 LONE
    "#]]
    .assert_eq(&text);
}

#[test]
fn sessions_with_slices_or_budgets_out_of_range_are_refused() {
    let open = |length, budget_ppm| {
        let refusals = [Slice::Cycles(length), Slice::Instructions(length)].map(|slice| {
            let config = SessionConfig { slice, budget_ppm, ..SessionConfig::default() };
            let layout = Layout { general: 1, reference: false, extra: 0, widths: Widths::of(48) };
            Session::open(1, 0, config, 1, vec![Demand::general(Selector(1), 1)], &layout).err()
        });
        assert_eq!(refusals[0], refusals[1]);
        refusals[0]
    };
    for length in [0, MIN_SLICE - 1, MAX_SLICE + 1, u64::MAX] {
        assert_eq!(open(length, 1), Some(PlanError::SliceOutOfRange { length, max: MAX_SLICE }));
    }
    for ppm in [0, NO_BUDGET_PPM + 1, u32::MAX] {
        assert_eq!(open(MIN_SLICE, ppm), Some(PlanError::BudgetOutOfRange { ppm }));
    }
    for length in [MIN_SLICE, MAX_SLICE] {
        assert_eq!(open(length, 1).or(open(length, NO_BUDGET_PPM)), None);
    }
}

/// A counter must not wrap twice between two readings: neither with 16 events per cycle, nor with
/// 1,024 cycles per instruction.
#[test]
fn slices_in_which_a_counter_could_wrap_are_refused() {
    let open = |slice, widths| {
        let config = SessionConfig { slice, ..SessionConfig::default() };
        let layout = Layout { general: 1, reference: false, extra: 0, widths };
        Session::open(1, 0, config, 1, vec![Demand::general(Selector(1), 1)], &layout).err()
    };
    let too_long = |length, max| Some(PlanError::SliceOutOfRange { length, max });
    let narrow = Widths::of(32);
    let (cycles, instructions) = ((1 << 28) - 1, (1 << 22) - 1);
    assert_eq!(open(Slice::Cycles(cycles), narrow), None);
    assert_eq!(open(Slice::Cycles(1 << 30), narrow), too_long(1 << 30, cycles));
    assert_eq!(open(Slice::Instructions(instructions), narrow), None);
    assert_eq!(open(Slice::Instructions(1 << 23), narrow), too_long(1 << 23, instructions));
    assert_eq!(open(Slice::Cycles(1 << 30), Widths::of(40)), None);
    let mixed = Widths { pinned: (1 << 48) - 1, general: (1 << 32) - 1 };
    assert_eq!(open(Slice::Cycles(1 << 30), mixed), too_long(1 << 30, cycles));
}

#[test]
fn errors_have_subject_failure_and_remedy() {
    let text: String = [
        PlanError::NoEvents,
        PlanError::TooManyEvents { events: 2000 },
        PlanError::NoCounter { event: 0, counters: 0x30 },
        PlanError::NoRegister { event: 0, registers: 1 },
        PlanError::NoReference { event: 0 },
        PlanError::NotTogether { groups: 3 },
        PlanError::BadShare { event: 0 },
        PlanError::SliceOutOfRange { length: 9, max: 1000 },
        PlanError::BudgetOutOfRange { ppm: 0 },
    ]
    .map(|error| format!("{error}\n"))
    .concat();
    expect![[r#"
        the list of events is empty; name at least one
        more events than a plan can hold; ask for fewer
        it counts only on general counters of the mask 0x30, and this machine leaves none of them to events
        it needs an extra register, such as those of off-core responses, which this machine lacks or a hypervisor keeps
        the PMU does not count reference cycles
        the events need 3 groups of counters and direct mode has one: ask for fewer events, or open a session, which multiplexes them
        its share is out of range: use 1 to 64 slices of a round
        a slice of 9 is out of range: use 1800 to 1000
        a budget of 0 ppm is out of range: use 1 to 1000000
    "#]]
    .assert_eq(&text);
}
