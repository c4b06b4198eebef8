//! Properties that hold for every stream of instructions.

mod common;

use common::{Ran, Random, core_of, feed, is_timed, stream::stream};
use proptest::prelude::*;
use tally_model::{
    Assist, BufferShape, CacheShape, Core, Counts, DecodeShape, Geometry, Operation, Perfect,
    Pipeline, PipelineMode, Prefetchers, Privilege, Signal, TlbShape,
};

/// A machine so small that code and data evict each other everywhere, so that counts depend on the
/// order of accesses. Its caches have too few sets for the tags of page-table entries, so its TLBs
/// are perfect.
fn tiny() -> Geometry {
    Geometry {
        l2: CacheShape { sets: 4, ways: 4 },
        llc: CacheShape { sets: 8, ways: 4 },
        perfect: Perfect { itlb: true, dtlb: true, ..Perfect::default() },
        target_buffer: BufferShape { sets: 4, ways: 2 },
        decode: DecodeShape { sets: 3, ways: 4, ..Geometry::ICELAKE_SERVER.decode },
        ..Geometry::ICELAKE_SERVER
    }
}

/// A machine so small that translations evict each other: few TLB entries, and one way for page
/// tables.
fn narrow() -> Geometry {
    Geometry {
        l2: CacheShape { sets: 1024, ways: 1 },
        llc: CacheShape { sets: 1024, ways: 1 },
        stlb: TlbShape { sets: 2, ways: 4 },
        ..Geometry::ICELAKE_SERVER
    }
}

/// The machine with all options that are off by default.
fn complete(geometry: Geometry) -> Geometry {
    let all = Geometry { prefetch: Some(Prefetchers::ALL), has_target_buffer: true, ..geometry };
    Geometry {
        has_uop_cache: true,
        has_wrong_paths: true,
        has_rejections: true,
        has_large_pages: true,
        ..all
    }
}

const MODES: [PipelineMode; 5] = [
    PipelineMode::Real,
    PipelineMode::Bundles(5),
    PipelineMode::Bundles(16),
    PipelineMode::SingleDispatch,
    PipelineMode::InOrder,
];

fn machines() -> Vec<(String, Geometry)> {
    let mut machines = vec![
        ("tiny interval".to_owned(), tiny()),
        ("tiny out of order".to_owned(), tiny().out_of_order(PipelineMode::Real)),
        ("tiny and complete, interval".to_owned(), complete(tiny())),
        ("narrow interval".to_owned(), narrow()),
        ("narrow out of order".to_owned(), narrow().out_of_order(PipelineMode::Real)),
    ];
    let stacks = Geometry::ICELAKE_SERVER.out_of_order(PipelineMode::Real);
    machines.push(("stacks".to_owned(), Geometry { stacks: true, ..stacks }));
    for assist in Assist::ALL {
        machines.push((assist.name().to_owned(), Geometry { assist: Some(assist), ..stacks }));
    }
    for (name, geometry) in Geometry::ALL {
        machines.push((format!("{name} interval"), *geometry));
        machines
            .extend(MODES.map(|mode| (format!("{name} {mode:?}"), geometry.out_of_order(mode))));
        let out_of_order = complete(geometry.out_of_order(PipelineMode::Real));
        machines.push((format!("{name}, complete"), out_of_order));
        machines.push((format!("{name}, complete, interval"), complete(*geometry)));
    }
    machines
}

fn count(geometry: &Geometry, stream: &[Ran], cut: impl FnMut(usize) -> bool) -> [Counts; 2] {
    let mut core = core_of(geometry);
    feed(&mut core, stream, cut);
    core.counts().clone()
}

fn sum(counts: &[Counts; 2], signals: &[Signal]) -> u64 {
    counts.iter().map(|ring| signals.iter().map(|signal| ring[*signal]).sum::<u64>()).sum()
}

/// The first signal that differs between counts of the same stream in different divisions. Excluded
/// are the times of the interval pipeline: where its samples begin depends on blocks.
fn difference_by_cuts(
    geometry: &Geometry,
    one: &[Counts; 2],
    other: &[Counts; 2],
) -> Option<String> {
    let is_free = |signal| geometry.pipeline == Pipeline::Interval && is_timed(signal);
    let mut same = other.clone();
    for (ring, from) in same.iter_mut().zip(one) {
        Signal::ALL.iter().filter(|it| is_free(**it)).for_each(|it| ring[*it] = from[*it]);
    }
    difference(one, &same)
}

/// The first signal in which two counts differ.
fn difference(one: &[Counts; 2], other: &[Counts; 2]) -> Option<String> {
    let mut rings = one.iter().zip(other);
    rings.find_map(|(one, other)| {
        let signal = Signal::ALL.iter().find(|signal| one[**signal] != other[**signal])?;
        Some(format!("{signal:?}: {} and {}", one[*signal], other[*signal]))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The division of a stream into blocks changes only the interval pipeline's time.
    #[test]
    fn cuts_change_nothing(seed in any::<u64>(), often in 1u64..20) {
        let stream = stream(seed, 4000);
        for (name, geometry) in machines() {
            let mut random = Random(seed ^ 1);
            let whole = count(&geometry, &stream, |_| false);
            let cut = count(&geometry, &stream, |_| random.below(often) == 0);
            prop_assert_eq!(difference_by_cuts(&geometry, &whole, &cut), None, "{}", name);
        }
    }

    /// In each cycle something retired, or the cycle has one cause; each slot belongs to a cycle.
    #[test]
    fn causes_are_disjoint_and_complete(seed in any::<u64>()) {
        let stream = stream(seed, 4000);
        for (name, geometry) in machines() {
            if name.ends_with("interval") {
                continue;
            }
            let mut core = core_of(&geometry);
            feed(&mut core, &stream, |_| false);
            // The last bundle retires.
            core.serialize(Privilege::User, 1);
            let counts = core.counts().clone();
            let slots = sum(&counts, &[Signal::Slots]);
            let cycles = slots / u64::from(geometry.width);
            prop_assert_eq!(slots % u64::from(geometry.width), 0);
            let stalls = sum(&counts, Signal::STALLS);
            let retiring = sum(&counts, &[Signal::RetireCycles]);
            prop_assert_eq!(stalls + retiring, cycles, "{}", name);
            prop_assert_eq!(sum(&counts, Signal::RESUMED), stalls, "{}", name);
            for (episodes, causes) in Signal::EPISODES {
                let (begun, cycles) = (sum(&counts, &[*episodes]), sum(&counts, causes));
                prop_assert!(begun <= cycles && (begun > 0) == (cycles > 0), "{name}: {episodes:?}");
                let each = Signal::EPISODES.iter().filter(|(_, of)| of.len() == 1);
                let parts = each.filter(|(_, of)| causes.contains(&of[0]));
                let parts: u64 = parts.map(|(part, _)| sum(&counts, &[*part])).sum();
                prop_assert!(begun <= parts, "{name}: {episodes:?} {begun}, parts {parts}");
            }
            let gaps = sum(&counts, &[Signal::EpisodesAny]);
            prop_assert!(gaps <= retiring + 2, "{name}: {gaps} gaps, {retiring} cycles between");
            let is_bundles = name.contains("Bundles");
            prop_assert!(is_bundles || retiring * u64::from(geometry.backend.retire_width)
                >= sum(&counts, &[Signal::Uops]), "{}", name);
        }
    }

    /// Each slot has a retired micro-operation or one cause, in each ring; and each cycle has a
    /// number of micro-operations that execute, or a cause.
    #[test]
    fn slots_have_one_user_or_cause(seed in any::<u64>()) {
        let mut stream = stream(seed, 4000);
        for (name, geometry) in machines() {
            let mut core = core_of(&geometry);
            for part in stream.chunk_by_mut(|one, next| one.ring == next.ring) {
                // The pipeline is empty at the end of a serializing instruction.
                part[part.len() - 1].insn.serialize_cycles = 40;
                let is_before = core.counts().clone();
                feed(&mut core, part, |_| false);
                for (ring, before) in core.counts().iter().zip(&is_before) {
                    let grown = |signal: &Signal| ring[*signal] - before[*signal];
                    let parts = Signal::LOST_SLOTS.iter().chain([&Signal::Uops]).map(grown);
                    prop_assert_eq!(parts.sum::<u64>(), grown(&Signal::Slots), "{}", name);
                    if name.ends_with("interval") {
                        continue;
                    }
                    // Each cycle of the ports has a number or a cause, too.
                    let executed = Signal::EXECUTED.iter().map(grown);
                    let cycles = executed.clone().chain(Signal::IDLE.iter().map(grown));
                    let width = u64::from(geometry.width);
                    prop_assert_eq!(cycles.sum::<u64>() * width, grown(&Signal::Slots), "{}", name);
                    let least = executed.zip(1..).map(|(cycles, uops)| cycles * uops);
                    let uops: u64 = Signal::PORTS.iter().map(grown).sum();
                    prop_assert!(least.sum::<u64>() <= uops, "{}", name);
                }
            }
        }
    }

    /// The clock is the sum of the slots of both rings, and no signal outgrows it.
    #[test]
    fn nothing_outruns_the_clock(seed in any::<u64>()) {
        let stream = stream(seed, 3000);
        for (name, geometry) in machines() {
            let mut core = core_of(&geometry);
            for part in stream.chunks(100) {
                let (before, clock) = (core.counts().clone(), core.clock());
                feed(&mut core, part, |_| false);
                let passed = core.clock() - clock;
                for (ring, earlier) in core.counts().iter().zip(&before) {
                    for signal in Signal::ALL {
                        let grown = ring[*signal] - earlier[*signal];
                        // Allow a block's counts on top: retirement may lag behind its accesses.
                        let most = signal.growth_per_slot() * (passed + 2048);
                        prop_assert!(grown <= most, "{name}: {signal:?} grew by {grown}");
                    }
                }
            }
            let slots = sum(core.counts(), &[Signal::Slots]);
            prop_assert_eq!(slots, core.clock(), "{}", name);
        }
    }
}

#[test]
fn a_pair_separated_early_leaves_no_sum_below_zero() {
    // The first branch that a cut separates from its pair comes while most counts are still in
    // lanes; a subtraction from the counts alone overflowed.
    let seed = 13564499539890886288;
    let stream = stream(seed, 4000);
    for (name, geometry) in machines() {
        let mut random = Random(seed ^ 1);
        let whole = count(&geometry, &stream, |_| false);
        let cut = count(&geometry, &stream, |_| random.below(18) == 0);
        assert_eq!(difference_by_cuts(&geometry, &whole, &cut), None, "{name}");
    }
}

#[test]
fn the_same_stream_gives_the_same_counts() {
    let stream = stream(7, 20_000);
    for (name, geometry) in machines() {
        let (one, other) =
            (count(&geometry, &stream, |_| false), count(&geometry, &stream, |_| false));
        assert_eq!(difference(&one, &other), None, "{name}");
    }
}

#[test]
fn pipelines_agree_on_what_is_not_time() {
    let stream = stream(11, 20_000);
    let untimed: Vec<_> = Signal::ALL.iter().filter(|signal| !is_timed(**signal)).collect();
    let with_and_without = |(name, geometry): &(&'static str, Geometry)| {
        [(*name, *geometry), (*name, complete(*geometry))]
    };
    for (name, geometry) in Geometry::ALL.iter().flat_map(with_and_without) {
        let interval = count(&geometry, &stream, |_| false);
        let ooo = count(&geometry.out_of_order(PipelineMode::Real), &stream, |_| false);
        for signal in &untimed {
            assert_eq!(interval[0][**signal], ooo[0][**signal], "{name}: {signal:?}");
        }
    }
}

#[test]
fn a_perfect_structure_never_misses() {
    let stream = stream(13, 20_000);
    let misses: [(&str, &[Signal]); 12] = [
        ("l1i", &[Signal::L1iMiss, Signal::StallL1i]),
        ("l1d", &[Signal::L1dFills, Signal::LoadL2Hit, Signal::LoadL3Miss, Signal::StallMemory]),
        ("l2", &[Signal::LoadL3Hit, Signal::LoadL3Miss, Signal::LlcReadHit, Signal::LlcReadMiss]),
        ("l2i", &[Signal::LlcCodeHit, Signal::LlcCodeMiss]),
        ("l2d", &[Signal::LoadL3Hit, Signal::LoadL3Miss, Signal::LlcReadHit, Signal::LlcRfoMiss]),
        ("llc", &[Signal::LlcReadMiss, Signal::LoadL3Miss, Signal::StallMemory]),
        ("llci", &[Signal::LlcCodeMiss]),
        ("llcd", &[Signal::LlcReadMiss, Signal::LoadL3Miss, Signal::LlcRfoMiss]),
        ("itlb", &[Signal::ItlbWalks, Signal::ItlbStlbHit, Signal::StallItlb]),
        ("dtlb", &[Signal::DtlbLoadWalks, Signal::DtlbLoadStlbHit, Signal::StallDtlb]),
        ("stlb", &[Signal::DtlbLoadWalks, Signal::DtlbStoreWalks, Signal::ItlbWalks]),
        ("branch", &[Signal::MispredictCond]),
    ];
    for (name, signals) in misses {
        for pipeline in [Geometry::ZEN4, Geometry::ZEN4.out_of_order(PipelineMode::Real)] {
            let real = count(&pipeline, &stream, |_| false);
            let mut geometry = pipeline;
            assert!(geometry.perfect.set(name));
            let perfect = count(&geometry, &stream, |_| false);
            assert_eq!(sum(&perfect, signals), 0, "{name}");
            assert!(sum(&real, signals) > 0, "{name}");
            assert!(sum(&perfect, &[Signal::Slots]) < sum(&real, &[Signal::Slots]), "{name}");
        }
    }
}

/// A level that is perfect for one stream serves the other as a real one.
#[test]
fn a_level_perfect_for_one_stream_serves_the_other_as_before() {
    let stream = stream(13, 20_000);
    let code = [Signal::L2CodeHit, Signal::LlcCodeHit, Signal::LlcCodeMiss];
    let data = [Signal::L2ReadHit, Signal::LlcReadHit, Signal::LlcReadMiss];
    let small = Geometry { l1i: CacheShape { sets: 1, ways: 1 }, ..Geometry::ZEN4 };
    let real = count(&small, &stream, |_| false);
    for (name, other) in [("l2i", data), ("l2d", code), ("llci", data), ("llcd", code)] {
        let mut geometry = small;
        assert!(geometry.perfect.set(name));
        let perfect = count(&geometry, &stream, |_| false);
        // A perfect L2 keeps lines out of the last level, which then serves the other stream.
        let of = |counts, name: &str| match name {
            "l2i" | "l2d" => sum(counts, &other[..1]),
            _ => sum(counts, &other),
        };
        assert_eq!(of(&perfect, name), of(&real, name), "{name}");
        assert!(of(&real, name) > 0, "{name}");
    }
}

/// Addresses at which a structure could mistake a key for its own marks: both ends of the address
/// space, of its lower and upper half, and of 52 bits of physical addresses.
const EDGES: [u64; 8] = [
    0,
    0x1_0000,
    0x7fff_ffff_0000,
    0xffff_8000_0000_0000,
    0xffff_ffff_0000_0000,
    0xffff_ffff_ffff_0000,
    0x000f_ffff_ffff_0000,
    0x0fff_ffff_0000,
];

/// Code in 16 pages at `code`, without branches, that loads from and stores to every line of 16
/// pages at `base`, twice. Stores cross the end of every second line but the last.
fn pages(code: u64, base: u64) -> Vec<Ran> {
    let lines = (0..2 * 1024).map(|line| base.wrapping_add(line % 1024 * 64));
    let places = (0..).map(|at| code.wrapping_add(at * 32 % 0x1_0000));
    places
        .zip(lines)
        .flat_map(|(pc, line)| {
            let plain = Ran::new(pc, Operation::default());
            let is_last = line == base.wrapping_add(0xffc0);
            let crossing = if is_last { line } else { line.wrapping_add(60 * (line >> 6 & 1)) };
            let mut jump = Ran::new(pc.wrapping_add(4), Operation::default());
            jump.next_pc = code.wrapping_add(pc.wrapping_sub(code).wrapping_add(32) % 0x1_0000);
            [plain.load(line).store(crossing), jump]
        })
        .collect()
}

/// A machine's counts do not depend on where in the address space the pages are.
#[test]
fn the_ends_of_the_address_space_are_like_its_middle() {
    for (name, geometry) in Geometry::ALL {
        for geometry in [*geometry, geometry.out_of_order(PipelineMode::Real)] {
            let at = |code: u64, base: u64| {
                let mut core = Core::new(&geometry);
                // The space whose page-table entries have the highest numbers.
                core.switch_space(u64::MAX);
                feed(&mut core, &pages(code, base), |_| false);
                core.flush_page(base);
                core.flush(false);
                feed(&mut core, &pages(code, base), |_| false);
                core.counts().clone()
            };
            let want = at(0x5555_0000_0000, 0x5555_1000_0000);
            for edge in EDGES {
                let other = if edge == 0x5555_0000_0000 { 0 } else { 0x5555_1000_0000 };
                for (code, base) in [(0x5555_0000_0000, edge), (edge, other)] {
                    let got = at(code, base);
                    // The upper half's translations survive a flush.
                    let signals = [Signal::Instructions, Signal::Stores, Signal::SplitStores];
                    for signal in signals {
                        assert_eq!(got[0][signal], want[0][signal], "{name}: {edge:#x} {signal:?}");
                    }
                    let walks = [Signal::DtlbLoadWalks, Signal::DtlbStoreWalks, Signal::ItlbWalks];
                    let (got, want) = (sum(&got, &walks), sum(&want, &walks));
                    let half = edge >> 47 & 1 == 1;
                    assert!(got == want || half && got < want, "{name} {edge:#x}: {got}, {want}");
                    assert!(got >= 32, "{name} {edge:#x}: {got}");
                }
            }
        }
    }
}
