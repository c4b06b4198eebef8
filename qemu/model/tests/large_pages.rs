//! Large pages in the TLBs: their numbers of entries, separate from 4 KiB pages or shared with
//! them, the cost of their walks, and their invalidation.

use tally_model::{
    Access, Block, Branch, Core, Geometry, Insn, PageSize, PageSizes, PipelineMode, Privilege,
    Signal,
};

/// The first addresses of memory in pages of 4 KiB, of 2 MiB and of 1 GiB: a terabyte of each.
const SMALL: u64 = 0;
const LARGE: u64 = 1 << 40;
const HUGE: u64 = 2 << 40;
/// The first address of the kernel's memory in pages of 2 MiB.
const KERNEL: u64 = 0xffff_8100_0000_0000;

/// Sizes by address.
const SIZES: PageSizes = PageSizes {
    of: |tables, address| match (tables, address >> 40 & 3) {
        (7, 1) => PageSize::Large,
        (7, 2) => PageSize::Huge,
        (7, _) => PageSize::Small,
        _ => panic!("the tables are {tables}"),
    },
    tables: 7,
};

const LARGE_BYTES: u64 = 2 << 20;
const HUGE_BYTES: u64 = 1 << 30;

fn machines() -> impl Iterator<Item = (&'static str, Geometry)> {
    Geometry::ALL.iter().map(|(name, geometry)| (*name, with_option(geometry)))
}

fn with_option(geometry: &Geometry) -> Geometry {
    Geometry { has_large_pages: true, ..*geometry }
}

fn core_of(geometry: &Geometry) -> Core {
    let mut core = Core::new(geometry);
    core.set_page_sizes(SIZES);
    core
}

/// A block of one instruction, at the same virtual and physical address `pc`.
fn block(pc: u64) -> Block {
    let insn = Insn { pc, length: 4, ..Insn::default() };
    Block::new(Privilege::User, 5, (pc >> 6, pc >> 6), Branch::default(), &[insn])
}

fn load(core: &mut Core, address: u64) {
    let access = Access { address, bytes: 8, retires: true, insn: 0 };
    core.access::<false>(&block(0x1000), access, |address| address);
}

/// Loads from each of `count` pages, at a different offset in each.
fn loads(core: &mut Core, first: u64, count: u64, bytes: u64) {
    (0..count)
        .for_each(|page| load(core, first + page * bytes + (page * 7 * (bytes / 512)) % bytes));
}

/// Second-level hits and walks by size.
fn misses(core: &mut Core) -> ([u64; 3], [u64; 3]) {
    let user = &core.counts()[0];
    let of = |signals: &[Signal; 3]| signals.map(|signal| user[signal]);
    (of(Signal::LOAD_STLB_HITS), of(Signal::LOAD_WALKS))
}

/// The growth of these counts in the second of two rounds.
fn second_round(core: &mut Core, mut round: impl FnMut(&mut Core)) -> ([u64; 3], [u64; 3]) {
    round(core);
    let before = misses(core);
    round(core);
    let after = misses(core);
    let added = |after: [u64; 3], before: [u64; 3]| [0, 1, 2].map(|at| after[at] - before[at]);
    (added(after.0, before.0), added(after.1, before.1))
}

const NONE: ([u64; 3], [u64; 3]) = ([0; 3], [0; 3]);

/// The published entries for pages of 2 MiB and of 1 GiB: of the first-level data TLB, and of the
/// second level.
fn published(name: &str) -> ([u64; 2], [u64; 2]) {
    match name {
        // Zen's second level has pages of 1 GiB as parts of 2 MiB.
        "zen3" => ([64, 64], [2048, 2048]),
        "zen4" => ([64, 64], [3072, 3072]),
        _ => ([32, 8], [1024, 1024]),
    }
}

#[test]
fn as_many_large_pages_fit_as_there_are_entries() {
    for (name, geometry) in machines() {
        let (first, second) = published(name);
        for (at, (start, bytes)) in
            [(LARGE, LARGE_BYTES), (HUGE, HUGE_BYTES)].into_iter().enumerate()
        {
            let round = |count| {
                second_round(&mut core_of(&geometry), |core| loads(core, start, count, bytes))
            };
            assert_eq!(round(first[at]), NONE, "{name}");
            // In order, the least recent page is always the next one: in a set with one page too
            // many, all pages miss. With more than twice as many pages as entries, every set
            // misses.
            let (hits, walks) = round(2 * first[at]);
            assert_eq!((hits[at + 1], walks), (2 * first[at], [0; 3]), "{name}");
            if start == LARGE {
                assert_eq!(round(second[at]).1, [0; 3], "{name}");
                let (hits, walks) = round(2 * second[at]);
                assert_eq!((hits[1], walks[1]), (0, 2 * second[at]), "{name}");
            }
        }
    }
}

#[test]
fn without_the_option_each_4_kib_has_an_entry() {
    for (name, geometry) in Geometry::ALL {
        let count = |geometry: &Geometry| {
            let mut core = core_of(geometry);
            for at in 0..1_000 {
                load(&mut core, LARGE + at * 4096);
                core.fetch(&block(HUGE + at * 4096));
            }
            core.counts()[0].clone()
        };
        let (without, with) = (count(geometry), count(&with_option(geometry)));
        let of = |counts: &tally_model::Counts, signals: &[Signal; 3]| {
            signals.map(|signal| counts[signal])
        };
        assert_eq!(of(&without, Signal::LOAD_WALKS), [1_000, 0, 0], "{name}");
        assert_eq!(of(&without, Signal::FETCH_WALKS), [1_000, 0, 0], "{name}");
        assert_eq!(of(&with, Signal::LOAD_WALKS), [0, 2, 0], "{name}");
        assert_eq!(of(&with, Signal::FETCH_WALKS)[0], 0, "{name}");
        assert!((1..=2).contains(&with[Signal::ItlbWalks1G]), "{name}");
    }
}

#[test]
fn code_of_large_pages_has_entries_too() {
    for (name, geometry) in machines() {
        let first = match name {
            "icelake-server" => 16,
            "sapphire-rapids" => 32,
            _ => 64,
        };
        let fetched = |count: u64| {
            let mut core = core_of(&geometry);
            let mut round = || {
                (0..count).for_each(|page| core.fetch(&block(LARGE + page * LARGE_BYTES)));
                let user = &core.counts()[0];
                [Signal::ItlbHit2M, Signal::ItlbStlbHit, Signal::ItlbWalks2M].map(|it| user[it])
            };
            let (before, after) = (round(), round());
            [0, 1, 2].map(|at| after[at] - before[at])
        };
        assert_eq!(fetched(first), [first, 0, 0], "{name}");
        assert_eq!(fetched(2 * first), [0, 2 * first, 0], "{name}");
        // A page counts once, however many of its lines are fetched.
        let mut core = core_of(&geometry);
        (0..512).for_each(|at| core.fetch(&block(LARGE + at * 4096 + 64)));
        let user = &core.counts()[0];
        assert_eq!([user[Signal::ItlbWalks2M], user[Signal::ItlbHit2M]], [1, 511], "{name}");
    }
}

#[test]
fn pages_of_one_size_leave_anothers_entries_alone_or_share_them() {
    for (name, geometry) in machines() {
        let small = u64::from(geometry.dtlb.sets * geometry.dtlb.ways);
        let both = second_round(&mut core_of(&geometry), |core| {
            loads(core, SMALL + (1 << 30), small, 4096);
            loads(core, LARGE, 32, LARGE_BYTES);
        });
        match name {
            "icelake-server" | "sapphire-rapids" => assert_eq!(both, NONE, "{name}"),
            _ => assert!(both.0[0] > 0 && both.0[1] > 0 && both.1 == [0; 3], "{name}: {both:?}"),
        }
        // Half of each size fits everywhere.
        let halves = second_round(&mut core_of(&geometry), |core| {
            loads(core, SMALL + (1 << 30), 32, 4096);
            loads(core, LARGE, 32, LARGE_BYTES);
        });
        assert_eq!(halves, NONE, "{name}");
    }
}

#[test]
fn a_walk_for_a_large_page_reads_one_entry() {
    for (name, geometry) in machines() {
        for geometry in [geometry, geometry.out_of_order(PipelineMode::Real)] {
            for (start, reads) in [(SMALL, 2), (LARGE, 1), (HUGE, 1)] {
                let mut core = core_of(&geometry);
                load(&mut core, start + (5 << 20));
                let user = &core.counts()[0];
                assert_eq!(user[Signal::L2WalkReads], reads, "{name}: {start:#x}");
                let most = 6 + reads * u64::from(geometry.latency.memory_cycles);
                assert_eq!(user[Signal::DtlbLoadWalkCycles], most, "{name}: {start:#x}");
                assert_eq!(user[Signal::LoadsWalked], 1, "{name}: {start:#x}");
            }
        }
    }
}

#[test]
fn invlpg_removes_the_page_that_has_the_address() {
    for (name, geometry) in machines() {
        for (start, bytes) in [(SMALL, 4096), (LARGE, LARGE_BYTES), (HUGE, HUGE_BYTES)] {
            let walks = |core: &mut Core, address| {
                let before: u64 = misses(core).1.iter().sum();
                load(core, address);
                misses(core).1.iter().sum::<u64>() - before
            };
            let mut core = core_of(&geometry);
            let (page, next) = (start + 4 * bytes, start + 5 * bytes);
            // Two places in a page of 1 GiB need two entries if the page is kept in parts.
            assert_eq!(walks(&mut core, page), 1, "{name}");
            assert_eq!(walks(&mut core, page + bytes / 2), 0, "{name}");
            assert_eq!(walks(&mut core, next), 1, "{name}");
            core.flush_page(page + bytes - 1);
            assert_eq!(walks(&mut core, next + bytes / 4), 0, "{name}: the next page stays");
            assert_eq!(walks(&mut core, page + bytes / 2), 1, "{name}: {start:#x} is removed");
            assert_eq!(walks(&mut core, page), 0, "{name}");
        }
    }
}

#[test]
fn parts_of_a_page_are_removed_together() {
    for (name, geometry) in machines() {
        let mut core = core_of(&geometry);
        // On AMD's profiles the second level has this page in parts; other pages evict it from the
        // first level, the only one that has it as a whole.
        load(&mut core, HUGE);
        loads(&mut core, HUGE + HUGE_BYTES, 70, HUGE_BYTES);
        load(&mut core, HUGE + (512 << 20));
        loads(&mut core, HUGE + HUGE_BYTES, 70, HUGE_BYTES);
        core.flush_page(HUGE + (3 << 20));
        let before = misses(&mut core).1;
        load(&mut core, HUGE + (512 << 20));
        load(&mut core, HUGE);
        assert_eq!(misses(&mut core).1[2] - before[2], 1, "{name}");
    }
}

#[test]
fn a_new_space_keeps_the_kernels_pages() {
    for (name, geometry) in machines() {
        let mut core = core_of(&geometry);
        let mut walks = |flushed: Option<bool>| {
            if let Some(global_too) = flushed {
                core.flush(global_too);
            }
            let before = misses(&mut core).1[1];
            load(&mut core, LARGE + 77);
            load(&mut core, KERNEL + 77);
            misses(&mut core).1[1] - before
        };
        assert_eq!([walks(None), walks(None)], [2, 0], "{name}");
        assert_eq!([walks(Some(false)), walks(Some(true))], [1, 2], "{name}");
    }
}

#[test]
fn half_a_core_has_half_of_the_entries() {
    for (name, geometry) in machines() {
        let geometry = geometry.half_of_core();
        let ([large, huge], _) = published(name);
        for (start, bytes, entries) in
            [(LARGE, LARGE_BYTES, large / 2), (HUGE, HUGE_BYTES, huge / 2)]
        {
            let round = |count| {
                second_round(&mut core_of(&geometry), |core| loads(core, start, count, bytes))
            };
            assert_eq!(round(entries), NONE, "{name}");
            assert_eq!(round(2 * entries).0.iter().sum::<u64>(), 2 * entries, "{name}");
        }
    }
}

#[test]
fn perfect_tlbs_have_large_pages_too() {
    for (_, geometry) in machines() {
        let counts = |structure: &str| {
            let mut geometry = geometry;
            assert!(geometry.perfect.set(structure));
            let mut core = core_of(&geometry);
            loads(&mut core, LARGE, 500, LARGE_BYTES);
            misses(&mut core)
        };
        assert_eq!(counts("dtlb"), NONE);
        assert_eq!(counts("stlb"), ([0, 500, 0], [0; 3]));
    }
}
