//! Time of repeated string instructions, judged by published figures.
//!
//! Bytes in a cycle are of one core. Sources:
//!
//! - *start, L1*: Intel, "Optimization Reference Manual", "REP String Enhancement" and "Enhanced
//!   REP MOVSB and STOSB Operation": 20 cycles for up to 12 elements, about 35 before a fast
//!   string; AMD, 25112, table 6: 14 to 16. An L1 stores 32 bytes in a cycle (AMD's; Intel's up to
//!   Skylake) or 64.
//! - *L2*: the same manual has 64 bytes as the peak and 29 as sustained on Skylake (travisdowns,
//!   uarch-bench, "How much bandwidth does the L2 have to give, anyway?"), 48 on its servers; AMD's
//!   guides have 32. A copy moves two lines for each of its own.
//! - *last level*: 32 GiB/s at 2.5 GHz, 13.7 bytes in a cycle, on a Haswell server
//!   (community.intel.com 1118044); 32 bytes on AMD's complex (software optimization guides 56665,
//!   57647).
//! - *memory*: REP MOVSB reads and writes 15 GB/s on a core of Skylake at up to 3.5 GHz, so copies
//!   2.1 bytes in a cycle (Stack Overflow 43343231); servers have a longer way and as many fill
//!   buffers. A core of Milan reads 31 GB/s, 8.9 bytes in a cycle at 3.5 GHz (chipsandcheese.com,
//!   by vengineer.hatenablog.com).
//! - *elements*: REPNE SCASB and REPE CMPSB take two cycles for a byte at best on Skylake (Stack
//!   Overflow 33480999, from Agner Fog's tables); on AMD64 of 2005 5/2 and 10/3 (AMD, 25112,
//!   table 6).

mod common;

use std::ops::RangeInclusive;

use common::is_timed;
use tally_model::{
    Access, Block, Branch, Core, Counts, Geometry, Insn, PipelineMode, Privilege, Signal,
    StringKind,
};

const FROM: u64 = 0x1000_0000;
const TO: u64 = 0x5000_0000;

/// The size of an instruction's arrays together, by the level that has them.
#[derive(Clone, Copy, Debug)]
enum Place {
    L1,
    L2,
    LastLevel,
    Memory,
}

impl Place {
    fn bytes(self, geometry: &Geometry) -> u64 {
        match self {
            Place::L1 => 8 << 10,
            Place::L2 => geometry.l2.bytes() / 2,
            Place::LastLevel => 2 * geometry.l2.bytes(),
            Place::Memory => 1 << 20,
        }
    }
}

struct Published {
    kind: StringKind,
    /// Bytes of an element.
    element: u64,
    place: Place,
    /// Bytes in a cycle, Intel's and AMD's.
    bytes_in_a_cycle: [RangeInclusive<f64>; 2],
}

const fn published(
    kind: StringKind,
    element: u64,
    place: Place,
    bytes_in_a_cycle: [RangeInclusive<f64>; 2],
) -> Published {
    Published { kind, element, place, bytes_in_a_cycle }
}

const PUBLISHED: [Published; 10] = [
    published(StringKind::Fill, 1, Place::L1, [16.0..=64.0, 16.0..=32.0]),
    published(StringKind::Move, 1, Place::L1, [16.0..=64.0, 16.0..=32.0]),
    published(StringKind::Fill, 8, Place::L2, [12.0..=48.0, 12.0..=32.0]),
    published(StringKind::Move, 8, Place::L2, [8.0..=32.0, 8.0..=32.0]),
    published(StringKind::Fill, 8, Place::LastLevel, [5.0..=16.0, 12.0..=32.0]),
    published(StringKind::Move, 8, Place::LastLevel, [2.5..=10.0, 6.0..=20.0]),
    published(StringKind::Fill, 8, Place::Memory, [2.0..=6.0, 4.0..=10.0]),
    published(StringKind::Move, 8, Place::Memory, [1.0..=4.0, 2.0..=6.0]),
    published(StringKind::Scan, 1, Place::L1, [0.3..=1.0, 0.4..=1.0]),
    published(StringKind::Compare, 1, Place::L1, [0.3..=1.0, 0.3..=1.0]),
];

/// The block of one such instruction.
fn block(geometry: &Geometry, kind: StringKind) -> Block {
    let insn = Insn { pc: 0x40_0000, length: 2, uops: 2, string: Some(kind), ..Insn::default() };
    Block::new(Privilege::User, geometry.width, (0x1_0000, 0x1_0000), Branch::default(), &[insn])
}

/// Runs the instruction over this range of its arrays, as far as it gets before it is interrupted.
fn pass(core: &mut Core, block: &Block, kind: StringKind, element: u64, range: [u64; 2]) {
    core.fetch(block);
    for at in (range[0]..range[1]).step_by(element as usize) {
        let access = |address| Access { address, bytes: element, retires: true, insn: 0 };
        if kind != StringKind::Fill {
            core.access::<false>(block, access(FROM + at), |address| address);
        }
        match kind {
            StringKind::Move | StringKind::Fill => {
                core.access::<true>(block, access(TO + at), |address| address);
            }
            StringKind::Compare => {
                core.access::<false>(block, access(TO + at), |address| address);
            }
            StringKind::Scan => {}
        }
    }
}

/// The length of each of the instruction's arrays.
fn length(geometry: &Geometry, kind: StringKind, place: Place) -> u64 {
    let arrays = if matches!(kind, StringKind::Move | StringKind::Compare) { 2 } else { 1 };
    (place.bytes(geometry) / arrays) & !63
}

/// Cycles of the instruction over arrays of `length` bytes, in the last of some runs.
fn cycles(geometry: &Geometry, kind: StringKind, element: u64, length: u64, runs: u32) -> u64 {
    let mut core = Core::new(geometry);
    let block = block(geometry, kind);
    let mut before = 0;
    for _ in 0..runs {
        before = core.clock();
        pass(&mut core, &block, kind, element, [0, length]);
        core.retire_part(&block, 0..1);
    }
    (core.clock() - before) / u64::from(geometry.width)
}

/// Bytes in a cycle.
fn measured(geometry: &Geometry, of: &Published) -> f64 {
    let length = length(geometry, of.kind, of.place);
    // In the first run no cache has the arrays.
    let runs = if matches!(of.place, Place::Memory) { 1 } else { 2 };
    length as f64 / cycles(geometry, of.kind, of.element, length, runs) as f64
}

#[test]
fn both_pipelines_pass_bytes_as_published() {
    for (name, geometry) in Geometry::ALL {
        for of in &PUBLISHED {
            let machines = [*geometry, geometry.out_of_order(PipelineMode::Real)];
            let found = machines.map(|geometry| measured(&geometry, of));
            let range = &of.bytes_in_a_cycle[usize::from(name.starts_with("zen"))];
            let what = format!("{name}: {:?} in {:?}: {found:?}", of.kind, of.place);
            assert!(found.iter().all(|bytes| range.contains(bytes)), "{what}, not {range:?}");
            let ratio = found[0] / found[1];
            assert!((1.0 / 1.5..1.5).contains(&ratio), "{what}");
        }
    }
}

#[test]
fn an_instruction_starts_as_published() {
    for (name, geometry) in Geometry::ALL {
        for machine in [*geometry, geometry.out_of_order(PipelineMode::Real)] {
            let [short, long] =
                [8, 256].map(|length| cycles(&machine, StringKind::Fill, 1, length, 2));
            assert!((14..=25).contains(&short), "{name}: {short}");
            let range = if name.starts_with("zen") { 18..=50 } else { 35..=55 };
            assert!(range.contains(&long), "{name}: {long}");
        }
    }
}

/// The counts of a move of a line, which fetches the code, and then of one over `length` bytes that
/// an interrupt stops at each of `stops`.
fn interrupted(geometry: &Geometry, length: u64, stops: &[u64]) -> Counts {
    let mut core = Core::new(geometry);
    let block = block(geometry, StringKind::Move);
    pass(&mut core, &block, StringKind::Move, 1, [0, 64]);
    core.retire_part(&block, 0..1);
    let mut from = 0;
    for stop in stops.iter().copied().chain([length]) {
        pass(&mut core, &block, StringKind::Move, 1, [from, stop]);
        if stop != length {
            core.interrupt(250);
        }
        from = stop;
    }
    core.retire_part(&block, 0..1);
    // The pipeline is empty behind an interrupt.
    core.interrupt(0);
    core.counts()[0].clone()
}

fn sum(counts: &Counts, signals: &[Signal]) -> u64 {
    signals.iter().map(|signal| counts[*signal]).sum()
}

#[test]
fn an_interrupt_counts_nothing_twice() {
    const LENGTH: u64 = 16 << 10;
    for (name, geometry) in Geometry::ALL {
        for machine in [*geometry, geometry.out_of_order(PipelineMode::Real)] {
            let whole = interrupted(&machine, LENGTH, &[]);
            let stopped = interrupted(&machine, LENGTH, &[64, 100, 5_000]);
            for signal in Signal::ALL.iter().filter(|signal| !is_timed(**signal)) {
                let of_lines = matches!(signal, Signal::Uops | Signal::UopsMicrocode);
                let same = of_lines || whole[*signal] == stopped[*signal];
                assert!(same, "{name}: {signal:?}: {}, {}", whole[*signal], stopped[*signal]);
            }
            let slots = [&whole, &stopped].map(|counts| counts[Signal::Slots]);
            let [least, most] = [slots[0], slots[0] + 3 * 60 * u64::from(geometry.width)];
            assert!((least..most).contains(&slots[1]), "{name}: {slots:?}");
        }
    }
}

#[test]
fn every_cycle_and_every_slot_has_one_cause() {
    for (name, geometry) in Geometry::ALL {
        for machine in [*geometry, geometry.out_of_order(PipelineMode::Real)] {
            let counts = interrupted(&machine, 1 << 20, &[]);
            let slots = counts[Signal::Slots];
            let lost = counts[Signal::Uops] + sum(&counts, Signal::LOST_SLOTS);
            assert_eq!(lost, slots, "{name}");
            let cycles = slots / u64::from(geometry.width);
            // Without a sample, `interval` attributes the fetch of the code nowhere.
            let code = counts[Signal::StallL1i] + counts[Signal::StallItlb] + 16;
            let active = sum(&counts, Signal::EXECUTED) + sum(&counts, Signal::IDLE);
            assert!((cycles - code..=cycles).contains(&active), "{name}: {active} of {cycles}");
            let stalls = sum(&counts, Signal::STALLS) + counts[Signal::RetireCycles];
            assert!((cycles - 2..=cycles).contains(&stalls), "{name}: {stalls} of {cycles}");
            let of_memory = counts[Signal::StallMemory] + counts[Signal::StallDtlb];
            assert!(of_memory > cycles / 2, "{name}: {of_memory} of {cycles}");
            assert!(counts[Signal::SlotsMemory] > slots / 2, "{name}");
            assert!(counts[Signal::IdleLoads] + counts[Signal::IdleStores] > cycles / 2, "{name}");
        }
    }
}

#[test]
fn no_signal_grows_faster_than_the_clock_allows() {
    for (name, geometry) in Geometry::ALL {
        for machine in [*geometry, geometry.out_of_order(PipelineMode::Real)] {
            for kind in [StringKind::Fill, StringKind::Move, StringKind::Scan, StringKind::Compare]
            {
                let (mut core, block) = (Core::new(&machine), block(&machine, kind));
                let length = length(&machine, kind, Place::L1);
                pass(&mut core, &block, kind, 1, [0, length]);
                let (counts, clock) = (core.counts()[0].clone(), core.clock());
                (0..16).for_each(|_| pass(&mut core, &block, kind, 1, [0, length]));
                let passed = core.clock() - clock;
                for signal in Signal::ALL {
                    let grown = core.counts()[0][*signal] - counts[*signal];
                    // An access counts before its line passes.
                    let most = signal.growth_per_slot() * (passed + 64);
                    assert!(grown <= most, "{name}: {kind:?}: {signal:?} grew by {grown}");
                }
            }
        }
    }
}
