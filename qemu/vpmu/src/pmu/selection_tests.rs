//! Tests of counter masks, inverts and edges that are not part of the vendors' events.

use tally_model::{Access, Block, Branch, Insn, PipelineMode, Privilege, Signal};

use super::{AccessResult, access::select, tests::Machine};
use crate::Profile;

const C1: u64 = 1 << select::CMASK_SHIFT;
const INV: u64 = select::INV;
const EDGE: u64 = select::EDGE;
/// CYCLE_ACTIVITY.STALLS_MEM_ANY, with the counter mask of its encoding.
const STALLS: u64 = 20 << select::CMASK_SHIFT | 0x14a3;
/// DTLB_LOAD_MISSES.WALK_PENDING.
const WALKS: u64 = 0x1008;

#[test]
fn modifiers_are_modelled_where_there_is_a_level_or_there_are_episodes() {
    for (profile, value, expected) in [
        ("icelake-server", WALKS | C1 | EDGE, true),
        ("icelake-server", WALKS | EDGE, true),
        // ARITH.DIVIDER_ACTIVE.
        ("icelake-server", 0x0914 | C1 | EDGE, true),
        ("icelake-server", STALLS | INV, true),
        // No level, no episodes, and a mask that no cycle reaches.
        ("icelake-server", 0xc0 | C1, false),
        ("icelake-server", 0xc0 | C1 | INV, false),
        // Pipeline `interval` has no episodes of cycles without retirement.
        ("icelake-server", STALLS | EDGE, false),
        ("icelake-server", 0x0914 | (2 * C1), false),
        // EX_NO_RETIRE.LOAD_NOT_COMPLETE and DIV_CYCLES_BUSY_COUNT.
        ("zen4", 0x01d6, true),
        ("zen4", 0x01d6 | C1, true),
        ("zen4", 0x01d6 | C1 | INV, true),
        ("zen4", 0x01d6 | (2 * C1), false),
        // Without a mask there is no comparison.
        ("zen4", 0x01d6 | INV, false),
        ("zen4", 0xd3 | EDGE, true),
        ("zen4", 0xd3 | C1 | EDGE, true),
    ] {
        let pmu = Machine::new(profile, 4).pmu;
        assert_eq!(pmu.models(value, 0), expected, "{profile} {value:#x}");
    }
}

/// The values of Intel's first four general counters.
fn counters(machine: &mut Machine) -> [u64; 4] {
    [0, 1, 2, 3].map(|index| match machine.read(0xc1 + index) {
        AccessResult::Done(value) => value,
        other => panic!("{other:?}"),
    })
}

#[test]
fn inverts_count_the_other_cycles_and_edges_count_episodes() {
    let mut machine = Machine::new("icelake-server", 4);
    let rings = select::USR | select::OS | select::EN;
    let selects = [STALLS, STALLS | INV, 0x3c, WALKS | C1 | EDGE];
    for (index, value) in selects.into_iter().enumerate() {
        machine.write(0x186 + index as u32, value | rings);
    }
    let insn = Insn { uops: 1, length: 1, ..Insn::default() };
    let block = Block::new(Privilege::User, 5, (0, 0), Branch::default(), &[insn]);
    for page in 0..5_000 {
        let access = Access { address: page << 12, bytes: 8, retires: true, insn: 0 };
        machine.core.access::<false>(&block, access, |address| address);
    }
    machine.run(Privilege::Kernel, 1_000);
    let [stalls, others, cycles, walks] = counters(&mut machine);
    assert_eq!(stalls + others, cycles);
    assert!(stalls > 1_000 && others >= 200, "{stalls}, {others}");
    assert_eq!(walks, machine.core.counts()[0][Signal::DtlbLoadWalks]);
    assert!(walks > 1_000, "{walks}");
}

#[test]
fn edges_of_stalls_are_their_episodes_out_of_order() {
    let mut profile = Profile::find("sapphire-rapids").unwrap();
    profile.geometry = profile.geometry.out_of_order(PipelineMode::Real);
    let mut machine = Machine::of(profile, 4);
    // The event UOPS_RETIRED.STALL_CYCLES itself has an invert.
    for name in ["icelake-server", "sapphire-rapids"] {
        let mut profile = Profile::find(name).unwrap();
        profile.geometry = profile.geometry.out_of_order(PipelineMode::Real);
        assert!(Machine::of(profile, 4).pmu.models(0x02c2 | C1 | INV | EDGE, 0), "{name}");
    }
    // CYCLE_ACTIVITY.STALLS_TOTAL, its edges, the edges of its inverse, and UOPS_RETIRED.CYCLES.
    let stalls = 4 << select::CMASK_SHIFT | 0x04a3;
    let rings = select::USR | select::OS | select::EN;
    let selects = [stalls, stalls | EDGE, stalls | INV | EDGE, 0x02c2 | C1 | EDGE];
    for (index, value) in selects.into_iter().enumerate() {
        assert!(machine.pmu.models(value, 0), "{value:#x}");
        machine.write(0x186 + index as u32, value | rings);
    }
    let insn = Insn { uops: 1, length: 1, ..Insn::default() };
    let block = Block::new(Privilege::User, 6, (0, 0), Branch::default(), &[insn]);
    for page in 0..5_000 {
        let access = Access { address: page << 12, bytes: 8, retires: true, insn: 0 };
        machine.core.access::<false>(&block, access, |address| address);
        machine.core.retire(&block, 0);
    }
    let [cycles, edges, inverse, retiring] = counters(&mut machine);
    assert_eq!((edges, inverse), (retiring, retiring));
    assert_eq!(edges, machine.core.counts()[0][Signal::EpisodesAny]);
    assert!(edges > 100 && cycles > 10 * edges, "{edges} of {cycles} cycles");
}
