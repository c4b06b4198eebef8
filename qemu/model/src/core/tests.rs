//! Tests of counts of known accesses and blocks.

use crate::{
    Access, Block, Branch, BranchKind, Core, Counts, Geometry, Insn, Llc, Privilege, Signal,
    StringKind,
};

fn core() -> Core {
    Core::new(&Geometry::ICELAKE_SERVER)
}

fn load(address: u64) -> Access {
    Access { address, bytes: 8, retires: true, insn: 0 }
}

/// A block of one instruction, far from all data.
fn nowhere() -> Block {
    let insn = Insn { pc: 0x4000_0000, length: 4, ..Insn::default() };
    Block::new(Privilege::User, 5, (0x100_0000, 0x100_0000), Branch::default(), &[insn])
}

fn walk_over(core: &mut Core, bytes: u64, rounds: u32) {
    let block = nowhere();
    for _ in 0..rounds {
        for address in (0..bytes).step_by(64) {
            core.access::<false>(&block, load(address), |address| address);
        }
    }
}

#[test]
fn each_level_serves_what_fits_in_it() {
    for (bytes, signal) in [
        (32 << 10, Signal::LoadL1Hit),
        (512 << 10, Signal::LoadL2Hit),
        (8 << 20, Signal::LoadL3Hit),
        (64 << 20, Signal::LoadL3Miss),
    ] {
        let mut core = core();
        walk_over(&mut core, bytes, 1);
        let before = core.counts()[0][signal];
        walk_over(&mut core, bytes, 1);
        let served = core.counts()[0][signal] - before;
        assert!(served * 64 >= bytes * 95 / 100, "{bytes} bytes: {served} from {signal:?}");
    }
}

#[test]
fn every_load_is_served_once_and_every_store_counted() {
    let mut core = core();
    walk_over(&mut core, 3 << 20, 2);
    (0..100).for_each(|at| core.access::<true>(&nowhere(), load(at * 8), |address| address));
    let user = &core.counts()[0];
    let served = [Signal::LoadL1Hit, Signal::LoadL2Hit, Signal::LoadL3Hit, Signal::LoadL3Miss];
    let loads: u64 = served.iter().map(|signal| user[*signal]).sum();
    assert_eq!((loads, user[Signal::Stores]), (2 * (3 << 20) / 64, 100));
    assert_eq!(core.counts()[1], Counts::ZERO);
}

#[test]
fn an_access_across_lines_touches_both_and_counts_once() {
    let mut core = core();
    core.access::<false>(&nowhere(), load(60), |address| address);
    let user = &core.counts()[0];
    assert_eq!((user[Signal::SplitLoads], user[Signal::L1dFills]), (1, 2));
    assert_eq!(user[Signal::LoadL3Miss], 1);
}

#[test]
fn the_clock_is_the_slots_of_both_rings() {
    let mut core = core();
    walk_over(&mut core, 1 << 20, 2);
    core.interrupt(100);
    let insns = [Insn { uops: 3, serialize_cycles: 7, ..Insn::default() }];
    core.retire(&Block::new(Privilege::User, 5, (0, 0), Branch::default(), &insns), 0);
    let slots: u64 = core.counts().iter().map(|ring| ring[Signal::Slots]).sum();
    assert_eq!(core.clock(), slots);
}

#[test]
fn a_part_of_a_block_counts_its_part() {
    let insn = |pc| Insn { pc, uops: 2, length: 4, ..Insn::default() };
    let block =
        Block::new(Privilege::Kernel, 5, (0, 0), Branch::default(), &[insn(0), insn(4), insn(8)]);
    let mut core = core();
    core.retire_part(&block, 0..1);
    core.retire_part(&block, 1..3);
    let parts = core.counts().clone();
    let mut whole = Core::new(&Geometry::ICELAKE_SERVER);
    whole.retire(&block, 12);
    assert_eq!(&parts, whole.counts());
    assert_eq!(parts[1][Signal::Instructions], 3);
}

#[test]
fn lanes_do_not_overflow_and_larger_blocks_bypass_them() {
    // Slots of a block: up to the maximum of a lane, one more, and far more.
    for uops in [1u64, 254, 255, 256, 257, 500 * 255] {
        let insn = |uops| Insn { uops, length: 1, ..Insn::default() };
        let mut insns = vec![insn(255); uops as usize / 255];
        insns.push(insn((uops % 255) as u8));
        let block = Block::new(Privilege::User, 5, (0, 0), Branch::default(), &insns);
        assert_eq!(block.lanes().is_some(), uops <= 255, "{uops}");
        for runs in [1, 255, 256, 257, 70_000] {
            let mut core = core();
            core.fetch(&block);
            let fetched = core.clock();
            let stalled = fetched / 5;
            (0..runs).for_each(|_| core.retire(&block, 0));
            let user = &core.counts()[0];
            assert_eq!(user[Signal::Instructions], runs * insns.len() as u64);
            // Samples can find that the block takes more than its slots, by whole cycles.
            let (slots, stalls) =
                (user[Signal::Slots], Signal::STALLS.iter().map(|cause| user[*cause]).sum::<u64>());
            assert_eq!((user[Signal::Uops], (slots - runs * uops) % 5), (runs * uops, 0));
            assert!(slots >= runs * uops + 5 * stalls && stalls >= stalled);
            assert_eq!(core.clock(), slots);
        }
    }
}

#[test]
fn a_pair_that_an_edge_separates_retires_as_one() {
    let head = Insn { uops: 1, length: 4, fuses_with: 1, ..Insn::default() };
    let mut tail = Insn { pc: 4, uops: 1, length: 2, condition: 1, ..Insn::default() };
    tail.add(Signal::Branches);
    tail.add(Signal::BranchCond);
    let branch = Branch { kind: BranchKind::Cond, pc: 4, fall_through: 6 };
    let blocks = [(Branch::default(), head), (branch, tail)]
        .map(|(branch, insn)| Block::new(Privilege::User, 5, (0, 0), branch, &[insn]));
    let mut core = core();
    for round in 1..600 {
        core.retire(&blocks[0], 4);
        core.retire(&blocks[1], if round % 3 == 0 { 0 } else { 6 });
        core.serialize(Privilege::User, 1);
        if round % 7 == 0 {
            let user = core.counts()[0].clone();
            assert_eq!((user[Signal::Instructions], user[Signal::Fused]), (2 * round, round));
            assert_eq!((user[Signal::Uops], user[Signal::Slots]), (round, core.clock()));
        }
    }
}

#[test]
fn the_page_offset_shows_a_taken_branch() {
    let branch = Branch { kind: BranchKind::Cond, pc: 0x1010, fall_through: 0x1012 };
    let block = Block::new(Privilege::User, 5, (64, 64), branch, &[Insn::default()]);
    let mut core = core();
    core.retire(&block, 0x7f00_0012);
    let directions = |core: &mut Core| {
        [Signal::CondNotTaken, Signal::CondTaken].map(|signal| core.counts()[0][signal])
    };
    assert_eq!(directions(&mut core), [1, 0]);
    core.retire(&block, 0x1000);
    assert_eq!(directions(&mut core), [1, 1]);
    let user = &core.counts()[0];
    let wrong = user[Signal::MispredictCondTaken] + user[Signal::MispredictCondNotTaken];
    assert!(wrong > 0 && wrong == user[Signal::MispredictCond]);
}

#[test]
fn cores_share_the_last_level() {
    let geometry = &Geometry::ICELAKE_SERVER;
    let llc = Llc::new(geometry.llc);
    let mut one = Core::sharing(geometry, llc.clone());
    let mut other = Core::sharing(geometry, llc);
    walk_over(&mut one, 1 << 20, 1);
    walk_over(&mut other, 1 << 20, 1);
    assert_eq!(other.counts()[0][Signal::LoadL3Hit], (1 << 20) / 64);
}

#[test]
fn every_frame_number_is_cached_like_any_other() {
    // Page frames at both ends of the modelled range, of 52 bits, and where nothing is mapped.
    for frame in [0, 1, 0xffff_fffe, 0xffff_ffff, 0xff_ffff_ffff, u64::MAX >> 12] {
        let mut core = core();
        let block = nowhere();
        for _ in 0..2 {
            for line in 0..64 {
                let translate = |address: u64| frame << 12 | address & 0xfff;
                core.access::<false>(&block, load(0x7000 + 64 * line), translate);
            }
        }
        let user = &core.counts()[0];
        assert_eq!((user[Signal::L1dFills], user[Signal::LoadL1Hit]), (64, 64), "{frame:#x}");
        assert_eq!(user[Signal::DtlbLoadWalks], 1, "{frame:#x}");
        let insn = Insn { length: 4, ..Insn::default() };
        for _ in 0..2 {
            let line = frame << 6;
            let block = Block::new(Privilege::User, 5, (line, line), Branch::default(), &[insn]);
            core.fetch(&block);
            core.retire(&block, 4);
            core.fetch(&nowhere());
        }
        assert_eq!(core.counts()[0][Signal::L1iMiss], 2, "{frame:#x}");
    }
}

#[test]
fn page_table_entries_with_the_highest_numbers_are_cached() {
    for (name, geometry) in Geometry::ALL {
        let mut core = Core::new(geometry);
        core.switch_space(u64::MAX);
        // The upper-level entry of the first page has all bits of a line number set.
        for page in [0xffff_ffc0_0000_0000, u64::MAX - 7, 0] {
            for _ in 0..2 {
                core.flush(true);
                core.access::<false>(&nowhere(), load(page), |address| address);
            }
        }
        let user = &core.counts()[0];
        assert_eq!(user[Signal::DtlbLoadWalks], 6, "{name}");
        // Two entries a walk, in the L2 from the second walk on.
        assert_eq!(user[Signal::L2WalkReads], 12, "{name}");
    }
}

/// A repeated move over `bytes`, with an interrupt behind the first element if `interrupted`.
fn repeated_move(core: &mut Core, bytes: u64, interrupted: bool) {
    let insn =
        Insn { pc: 0x4000_0000, length: 2, string: Some(StringKind::Move), ..Insn::default() };
    let block = Block::new(Privilege::User, 5, (0, 0), Branch::default(), &[insn]);
    let kernel = Block::new(Privilege::Kernel, 5, (0, 0), Branch::default(), &[insn]);
    for address in 0..bytes {
        let element = Access { address, bytes: 1, ..load(0) };
        core.access::<false>(&block, element, |address| address);
        core.access::<true>(&block, Access { address: address + (1 << 30), ..element }, |a| a);
        if interrupted && address == 0 {
            core.access::<true>(&kernel, load(1 << 40), |address| address);
            core.retire_part(&kernel, 0..1);
        }
    }
    core.retire_part(&block, 0..1);
}

#[test]
fn a_repeated_string_instruction_is_one_load_and_one_store_or_one_for_each_element() {
    const BYTES: u64 = 64 << 10;
    for interrupted in [false, true] {
        let mut core = core();
        repeated_move(&mut core, BYTES, interrupted);
        let user = &core.counts()[0];
        let signals = [Signal::Instructions, Signal::LoadL3Miss, Signal::Stores];
        assert_eq!(signals.map(|signal| user[signal]), [1, 1, 1]);
        assert_eq!([Signal::LoadL1Hit, Signal::LoadsWalked].map(|signal| user[signal]), [0, 1]);
        assert_eq!(user[Signal::DtlbLoadWalks], BYTES >> 12);
        assert_eq!(core.counts()[1][Signal::Stores], u64::from(interrupted));
    }
    let mut core = Core::new(&Geometry::of("zen4"));
    repeated_move(&mut core, BYTES, false);
    let user = &core.counts()[0];
    assert_eq!(user[Signal::LoadL1Hit] + user[Signal::LoadL3Miss], BYTES);
    assert_eq!(user[Signal::Stores], BYTES);
}
