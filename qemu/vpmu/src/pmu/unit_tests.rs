//! Tests of the counter unit's registers, one by one.

use tally_model::{Privilege, Signal};

use super::{
    AccessResult, Unmodelled,
    access::select,
    tests::{Machine, USER_INSTRUCTIONS},
};

const CONFIG: u32 = 0x4f00_0000;
const COUNT: u32 = 0x4f00_0100;
const THRESHOLD: u32 = 0x4f00_0200;
const CONTROL: u32 = 0x4f00_0300;
const STATUS: u32 = 0x4f00_0304;
const SUPPORTED: u64 = 1 << 63;
const INT: u64 = 1 << 20;

fn machine(profile: &str) -> Machine {
    let mut machine = Machine::new(profile, 4);
    machine.pmu = machine.pmu.with_unit(true);
    machine
}

fn mode(number: u64) -> u64 {
    number << 40
}

#[test]
fn without_a_unit_its_registers_are_not_the_pmu_s() {
    let mut machine = Machine::new("zen4", 6);
    assert_eq!(machine.write(CONFIG, 0), AccessResult::Foreign);
    assert_eq!(machine.read(CONTROL), AccessResult::Foreign);
    assert_eq!(machine.pmu.rdpmc(COUNT, machine.core.counts()), AccessResult::Fault);
    assert_eq!(machine.pmu.unit_counters(), 0);
}

#[test]
fn one_write_starts_and_stops_all_counters() {
    let mut machine = machine("icelake-server");
    for index in [0, 77, 255] {
        assert_eq!(machine.write(CONFIG + index, USER_INSTRUCTIONS), AccessResult::Done(0));
        let read = AccessResult::Done(USER_INSTRUCTIONS | SUPPORTED);
        assert_eq!(machine.read(CONFIG + index), read);
    }
    assert!(!machine.pmu.is_counting());
    machine.run(Privilege::User, 3);
    machine.write(CONTROL, 1);
    assert!(machine.pmu.is_counting());
    machine.run(Privilege::User, 5_000);
    machine.run(Privilege::Kernel, 100);
    machine.write(CONTROL, 0);
    machine.run(Privilege::User, 9);
    for index in [0, 77, 255] {
        assert_eq!(machine.read(COUNT + index), AccessResult::Done(5_000));
        let value = machine.pmu.rdpmc(COUNT + index, machine.core.counts());
        assert_eq!(value, AccessResult::Done(5_000));
    }
    assert_eq!(machine.read(COUNT + 1), AccessResult::Done(0), "it is not enabled");
    machine.write(COUNT, u64::MAX);
    machine.write(CONTROL, 1);
    machine.run(Privilege::User, 2);
    assert_eq!(machine.read(COUNT), AccessResult::Done(1));
}

#[test]
fn a_threshold_fires_once_after_the_events_that_its_preload_leaves() {
    let mut machine = machine("icelake-server");
    // Fires after 4096 · 2 + 100 instructions.
    machine.write(CONFIG + 200, USER_INSTRUCTIONS | INT);
    machine.write(COUNT + 200, 4096 - 100);
    machine.write(THRESHOLD + 200, 2 << 12);
    machine.write(CONTROL, 1);
    machine.run(Privilege::User, 4096 * 2 + 99);
    machine.pmu.sync(machine.core.counts());
    assert!(!machine.pmu.take_interrupt());
    assert_eq!(machine.read(STATUS + 3), AccessResult::Done(0));
    machine.run(Privilege::User, 1);
    machine.pmu.sync(machine.core.counts());
    assert!(machine.pmu.take_interrupt());
    assert_eq!(machine.read(STATUS + 3), AccessResult::Done(1 << (200 - 192)));
    assert_eq!(machine.read(COUNT + 200), AccessResult::Done(3 << 12));
    machine.write(STATUS + 3, 1 << 9);
    assert_eq!(machine.read(STATUS + 3), AccessResult::Done(1 << 8));
    machine.write(STATUS + 3, 1 << 8);
    machine.run(Privilege::User, 3 * 4096);
    assert_eq!(machine.read(STATUS + 3), AccessResult::Done(0));
    assert!(!machine.pmu.take_interrupt());
}

#[test]
fn reserved_bits_and_addresses_fault() {
    for (profile, code_high) in [("icelake-server", AccessResult::Fault), ("zen4", DONE)] {
        let mut machine = machine(profile);
        assert_eq!(machine.write(CONFIG, 1 << 32), code_high, "{profile}");
        for (msr, value) in [
            (CONFIG, 1 << 19),
            (CONFIG, 1 << 21),
            (CONFIG, 1 << 36),
            (CONFIG, mode(5)),
            (CONFIG, 1 << 62),
            (THRESHOLD + 255, 1),
            (CONTROL, 2),
            (CONTROL + 1, 0),
            (CONTROL + 2, 0),
            (STATUS + 4, 0),
        ] {
            assert_eq!(machine.write(msr, value), AccessResult::Fault, "{msr:#x} <- {value:#x}");
        }
        assert_eq!(machine.read(STATUS + 4), AccessResult::Fault);
        assert_eq!(machine.read(CONTROL + 1), AccessResult::Done(0x0100_100c_0100));
        assert_eq!(machine.write(CONFIG + 256 * 4, 0), AccessResult::Foreign);
        assert_eq!(machine.pmu.rdpmc(COUNT + 256, machine.core.counts()), AccessResult::Fault);
    }
}

const DONE: AccessResult = AccessResult::Done(0);

/// Whether a profile's unit supports an event, given by its select, in each of the five modes.
fn supported(profile: &str, event: u64) -> [bool; 5] {
    let mut machine = machine(profile);
    std::array::from_fn(|number| {
        machine.write(CONFIG, event | select::USR | select::EN | mode(number as u64));
        let AccessResult::Done(config) = machine.read(CONFIG) else { panic!("no fault") };
        let reported = machine.pmu.take_unmodelled();
        assert_eq!(reported.is_empty(), config & SUPPORTED != 0);
        assert!(reported.iter().all(|what| matches!(what, Unmodelled::Unit(_))));
        config & SUPPORTED != 0
    })
}

#[test]
fn levels_and_edges_are_refused_where_the_model_has_none() {
    let (events, level, edges) = ([true, false, false, false, false], 1..3, 3..5);
    let with = |modes: std::ops::Range<usize>| {
        let mut supported = events;
        supported[modes].fill(true);
        supported
    };
    for (profile, event, expected) in [
        // Instructions; loads that missed the L2; cycles; a fixed counter's cycles.
        ("icelake-server", 0xc0, events),
        ("icelake-server", 0x10d1, events),
        ("icelake-server", 0x3c, events),
        ("icelake-server", 0x0200, events),
        // CYCLE_ACTIVITY.STALLS_MEM_ANY and INT_MISC.RECOVERY_CYCLES: causes of cycles.
        ("icelake-server", 20 << 24 | 0x14a3, with(level.clone())),
        ("icelake-server", 0x010d, with(level.clone())),
        // DTLB_LOAD_MISSES.WALK_PENDING, ARITH.DIVIDER_ACTIVE: walks and divisions can overlap.
        ("icelake-server", 0x1008, with(edges.clone())),
        ("icelake-server", 1 << 24 | 0x0914, with(edges.clone())),
        // The vendor's edge detection is part of the event: INT_MISC.CLEARS_COUNT.
        ("icelake-server", 1 << 24 | 1 << 18 | 0x010d, events),
        // An event that is not in the table; another counter mask; an off-core response.
        ("icelake-server", 0xffff, [false; 5]),
        ("icelake-server", 2 << 24 | 0x0914, [false; 5]),
        ("icelake-server", 0x01b7, [false; 5]),
        ("zen4", 0xc0, events),
        ("zen4", 0x01d6, with(level.clone())),
        ("zen4", 0xd3, with(edges)),
        // A unit mask that the profile has only a part of.
        ("zen4", 0xffd6, [false; 5]),
        ("zen4", 0x0200, [false; 5]),
    ] {
        assert_eq!(supported(profile, event), expected, "{profile} {event:#x}");
    }
}

#[test]
fn a_level_s_two_modes_are_all_cycles_and_edges_are_episodes() {
    let mut machine = machine("icelake-server");
    let (stalls, walks) = (20 << 24 | 0x14a3, 0x1008);
    let rings = select::USR | select::OS | select::EN;
    for (index, config) in
        [stalls | mode(1), stalls | mode(2), 0x3c, walks | mode(3), walks | mode(4)]
            .into_iter()
            .enumerate()
    {
        machine.write(CONFIG + index as u32, config | rings);
    }
    machine.write(CONTROL, 1);
    let block = tally_model::Block::new(
        Privilege::User,
        5,
        (0, 0),
        tally_model::Branch::default(),
        &[tally_model::Insn { uops: 1, length: 1, ..tally_model::Insn::default() }],
    );
    for page in 0..5_000 {
        let (address, bytes) = (page << 12, 8);
        let access = tally_model::Access { address, bytes, retires: true, insn: 0 };
        machine.core.access::<false>(&block, access, |address| address);
    }
    machine.run(Privilege::Kernel, 1_000);
    let values = [0, 1, 2, 3, 4].map(|index| match machine.read(COUNT + index) {
        AccessResult::Done(value) => value,
        other => panic!("{other:?}"),
    });
    assert_eq!(values[0] + values[1], values[2]);
    assert!(values[0] > 1_000 && values[1] >= 200, "{values:?}");
    let walks = machine.core.counts()[0][Signal::DtlbLoadWalks];
    assert_eq!(values[3..], [walks, walks]);
    assert!(walks > 1_000);
}
