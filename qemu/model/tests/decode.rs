//! The cache of decoded micro-operations on code that it holds, and on code that it does not.

mod common;

use common::{Ran, op, user_counts};
use tally_model::{BranchKind, Counts, Geometry, PipelineMode, Signal, Unit};

const PC: u64 = 0x40_0000;
/// Bytes of an instruction.
const LENGTH: u64 = 4;
const INSNS: u64 = 200_000;

fn machines() -> impl Iterator<Item = (&'static str, Geometry)> {
    Geometry::ALL.iter().map(|(name, geometry)| {
        let mut geometry = Geometry { has_uop_cache: true, ..*geometry };
        // No other delays of fetch.
        (geometry.perfect.l1i, geometry.perfect.itlb, geometry.perfect.stlb) = (true, true, true);
        (*name, geometry)
    })
}

/// A loop over `bytes` of moves, which take no unit. Each loop is in separate lines.
fn moves(bytes: u64) -> Vec<Ran> {
    let count = bytes / LENGTH;
    let insn = |at: u64| {
        let ran = Ran::new(PC + LENGTH * (at % count), op(Unit::None, &[], 15));
        if at % count == count - 1 { ran.branch(BranchKind::Jump, PC) } else { ran }
    };
    (0..INSNS).map(insn).collect()
}

fn insns_a_cycle(geometry: &Geometry, counts: &Counts) -> f64 {
    let cycles = counts[Signal::Slots] as f64 / f64::from(geometry.width);
    INSNS as f64 / cycles
}

/// Instructions of four bytes that the decoders deliver per cycle.
fn decoded_a_cycle(geometry: &Geometry) -> f64 {
    let decode = geometry.decode;
    f64::from(decode.decoders).min(f64::from(decode.fetch_bytes) / LENGTH as f64)
}

/// Bytes of code whose micro-operations the cache holds: a line has 16.
fn cached_bytes(geometry: &Geometry) -> u64 {
    let decode = geometry.decode;
    let entries_a_line = 16_u32.div_ceil(decode.entry_uops.into());
    u64::from(decode.sets) * u64::from(decode.ways / entries_a_line) * 64
}

#[test]
fn a_loop_that_the_cache_holds_runs_at_the_width_of_dispatch() {
    for (name, geometry) in machines() {
        // Pages can share sets where these are no power of two.
        let stream = moves(cached_bytes(&geometry) / 2);
        let counts = user_counts(&geometry.out_of_order(PipelineMode::Real), &stream);
        let cached = counts[Signal::UopsCached] as f64 / INSNS as f64;
        assert!(cached > 0.98, "{name}: {cached}");
        assert_eq!(counts[Signal::UopsCached] + counts[Signal::UopsDecoded], INSNS, "{name}");
        let rate = insns_a_cycle(&geometry, &counts);
        assert!(rate > 0.97 * f64::from(geometry.width), "{name}: {rate}");
    }
}

#[test]
fn a_loop_that_it_does_not_hold_runs_at_the_rate_of_the_decoders() {
    for (name, geometry) in machines() {
        let stream = moves(4 * cached_bytes(&geometry));
        let out_of_order = geometry.out_of_order(PipelineMode::Real);
        let counts = user_counts(&out_of_order, &stream);
        assert_eq!(counts[Signal::UopsCached], 0, "{name}");
        let (rate, wanted) = (insns_a_cycle(&geometry, &counts), decoded_a_cycle(&geometry));
        assert!((0.97 * wanted..=1.01 * wanted).contains(&rate), "{name}: {rate}, {wanted}");
        // Fetch gives some in each cycle, and less than dispatch takes.
        let lost = counts[Signal::SlotsFetchBandwidth] as f64 / counts[Signal::Slots] as f64;
        let missing = 1.0 - wanted / f64::from(geometry.width);
        assert!((lost - missing).abs() < 0.03, "{name}: {lost}, {missing}");
        let cycles = counts[Signal::DecodeCycles] as f64;
        assert!((cycles * wanted / INSNS as f64 - 1.0).abs() < 0.03, "{name}: {cycles}");

        let interval = user_counts(&geometry, &stream);
        assert_eq!(interval[Signal::UopsDecoded], counts[Signal::UopsDecoded], "{name}");
        let ratio = insns_a_cycle(&geometry, &interval) / rate;
        assert!((0.9..1.1).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn a_rest_that_it_does_not_hold_costs_switches() {
    for (name, geometry) in machines() {
        // Half of the sets have one line more than they can hold.
        let more = u64::from(geometry.decode.sets / 2) * 64;
        let stream = moves(cached_bytes(&geometry) + more);
        let counts = user_counts(&geometry.out_of_order(PipelineMode::Real), &stream);
        let switches = counts[Signal::DecodeSwitches];
        assert!(switches > 10, "{name}: {switches}");
        let each = u64::from(geometry.decode.switch_cycles);
        assert_eq!(counts[Signal::DecodeSwitchCycles], each * switches, "{name}");
        let [found, missed] =
            [Signal::UopCacheHits, Signal::UopCacheMisses].map(|signal| counts[signal]);
        assert!(found > 0 && missed > found / 10, "{name}: {found}, {missed}");
    }
}

#[test]
fn without_the_cache_all_but_microcode_is_decoded() {
    for (name, geometry) in Geometry::ALL {
        let counts = user_counts(geometry, &moves(4096));
        assert_eq!(counts[Signal::UopsDecoded], INSNS, "{name}");
        let others = [Signal::UopsCached, Signal::DecodeCycles, Signal::UopCacheMisses];
        assert_eq!(others.map(|signal| counts[signal]), [0; 3], "{name}");
    }
}
