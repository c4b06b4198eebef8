//! CPI stacks of paper 001's architectures on streams whose stack is known.

mod common;

use common::{Ran, Random, feed, load_op, op, stream::stream};
use tally_model::{
    Architecture, BranchKind, Component, Core, Counts, Geometry, Operation, Perfect, PipelineMode,
    Signal, Unit,
};

fn machine() -> Geometry {
    let real = Geometry::ICELAKE_SERVER.out_of_order(PipelineMode::Real);
    Geometry { stacks: true, ..real }
}

fn with(perfect: &[&str]) -> Geometry {
    let mut geometry = machine();
    perfect.iter().for_each(|name| assert!(geometry.perfect.set(name), "{name}"));
    geometry
}

/// The growth of ring 3's counts in the second run of a stream.
fn warm(geometry: &Geometry, stream: &[Ran]) -> impl Fn(Signal) -> u64 + use<> {
    let mut core = Core::new(geometry);
    feed(&mut core, stream, |_| false);
    let before = core.counts()[0].clone();
    feed(&mut core, stream, |_| false);
    let after: Counts = core.counts()[0].clone();
    move |signal| after[signal] - before[signal]
}

fn cycles(counts: &impl Fn(Signal) -> u64) -> u64 {
    counts(Signal::Slots) / u64::from(machine().width)
}

fn nops(pc: u64, count: u64) -> Vec<Ran> {
    (0..count).map(|at| Ran::new(pc + at % 16 * 4, Operation::default())).collect()
}

/// Makes each instruction without a branch continue at the next one of the stream.
fn linked(mut stream: Vec<Ran>) -> Vec<Ran> {
    for at in 1..stream.len() {
        let next = stream[at].insn.pc;
        let ran = &mut stream[at - 1];
        if ran.kind == BranchKind::None {
            ran.next_pc = next;
        }
    }
    stream
}

fn of(architecture: Architecture, component: Component) -> Signal {
    architecture.signal(component).unwrap()
}

/// Groups of `together` concurrent loads from memory, each before 2,000 cycles of other work. All
/// instructions are in one line of code.
fn misses(together: u64) -> Vec<Ran> {
    let mut stream = Vec::new();
    for group in 0..50u64 {
        for load in 0..together {
            // Every load has its own line, in all sets of the last level by turns, and there are
            // too many lines for it.
            let address = 0x1000_0000 + (group * together + load) * 0x10_0000;
            stream.push(Ran::new(0x40_0000, load_op(1, 2 + load as u8)).load(address));
        }
        stream.extend(nops(0x40_0004, 10_000));
    }
    linked(stream)
}

#[test]
fn a_miss_counts_from_the_full_buffer_and_overlapping_ones_once() {
    let geometry = Geometry { perfect: Perfect { dtlb: true, ..Perfect::default() }, ..machine() };
    let mut small = geometry;
    (small.llc.sets, small.llc.ways) = (1024, 1);
    let memory = u64::from(geometry.latency.memory_cycles);
    let fill = u64::from(geometry.reorder_uops) / u64::from(geometry.width);
    for together in [1, 4] {
        let counts = warm(&small, &misses(together));
        let each = |architecture| counts(of(architecture, Component::L2d)) as f64 / 50.0;
        let expect = |got: f64, want: u64, what: &str| {
            assert!((got - want as f64).abs() <= 6.0, "{what} of {together}: {got}, not {want}");
        };
        expect(each(Architecture::Fmt), memory - fill, "FMT");
        expect(each(Architecture::Sfmt), memory - fill, "sFMT");
        expect(each(Architecture::Power5), memory, "POWER5");
        assert_eq!(each(Architecture::Naive), (memory * together) as f64);
        assert_eq!(each(Architecture::NonSpeculative), (memory * together) as f64);
        let perfect = warm(
            &Geometry { perfect: Perfect { l2d: true, ..small.perfect }, ..small },
            &misses(together),
        );
        let reference = (cycles(&counts) - cycles(&perfect)) as f64 / 50.0;
        expect(each(Architecture::Fmt), reference as u64, "FMT against the reference");
    }
}

/// Branches on random outcomes, each computed by a chain of `chain` multiplications.
fn branches(chain: u64) -> Vec<Ran> {
    let mut random = Random(3);
    let mut stream = Vec::new();
    for _ in 0..3_000 {
        stream.extend(nops(0x40_0000, 30));
        for at in 0..chain {
            stream.push(Ran::new(0x40_0100 + at * 4, op(Unit::Multiply, &[3], 3)));
        }
        let mut test = op(Unit::Integer, &[3], 4);
        test.writes |= tally_model::RegisterSet::FLAGS;
        stream.push(Ran::new(0x40_0180, test));
        let target = if random.below(2) == 0 { 0x40_01c0 } else { 0x40_0188 };
        stream.push(Ran::new(0x40_0184, Operation::default()).branch(BranchKind::Cond, target));
        if target != 0x40_01c0 {
            stream.push(Ran::new(target, Operation::default()).branch(BranchKind::Jump, 0x40_01c0));
        }
        // The chain begins again.
        stream.push(Ran::new(0x40_01c0, op(Unit::Integer, &[], 3)));
    }
    linked(stream)
}

#[test]
fn a_misprediction_counts_from_dispatch_to_dispatch() {
    let real = warm(&machine(), &branches(8));
    let perfect = warm(&with(&["branch"]), &branches(8));
    let wrong = real(Signal::Mispredicts);
    assert!((1_000..2_000).contains(&wrong), "{wrong}");
    let reference = (cycles(&real) - cycles(&perfect)) as f64 / wrong as f64;
    let each = |architecture| real(of(architecture, Component::Branch)) as f64 / wrong as f64;
    // The chain takes 24 cycles before the penalty, which begins at the resolution.
    let (front, resolved) = (f64::from(machine().latency.mispredict_cycles), 8.0 * 3.0);
    assert!(reference > front + 0.7 * resolved, "{reference}");
    let fmt = each(Architecture::Fmt);
    assert!((fmt - reference).abs() < 0.1 * reference, "FMT {fmt}, reference {reference}");
    assert_eq!(each(Architecture::Sfmt), fmt);
    let power5 = each(Architecture::Power5);
    assert!(power5 < front, "POWER5 {power5}");
    assert_eq!(each(Architecture::Naive), front);
}

#[test]
fn a_line_of_code_counts_its_delay() {
    // Jumps through 2,048 lines, which are in the L2 and not in the L1.
    let lines = 2_048;
    let stream: Vec<Ran> = (0..lines)
        .flat_map(|line| {
            let pc = 0x40_0000 + line * 64;
            let mut all = nops(pc, 15);
            let next = 0x40_0000 + (line + 1) % lines * 64;
            all.push(Ran::new(pc + 60, Operation::default()).branch(BranchKind::Jump, next));
            all
        })
        .collect();
    let counts = warm(&with(&["itlb"]), &stream);
    let perfect = warm(&with(&["itlb", "l1i"]), &stream);
    assert_eq!(counts(Signal::L2CodeHit), lines);
    let reference = cycles(&counts) - cycles(&perfect);
    for architecture in [Architecture::Fmt, Architecture::Sfmt] {
        let got = counts(of(architecture, Component::L1i));
        let apart = got.abs_diff(reference) as f64 / reference as f64;
        assert!(apart < 0.1, "{architecture:?}: {got}, reference {reference}");
    }
    let power5 = counts(of(Architecture::Power5, Component::L1i));
    assert!(power5 < reference, "POWER5 {power5}");
    // Fetch of a line begins while the line before is dispatched, which the naive counters do not
    // see.
    let latency = &machine().latency;
    let delay = u64::from(latency.l2_cycles - latency.l2_cycles / 2);
    assert_eq!(counts(of(Architecture::Naive, Component::L1i)), lines * delay);
    assert!(lines * delay > reference);
}

#[test]
fn cycles_are_counted_once() {
    for (name, geometry) in Geometry::ALL {
        let geometry = Geometry { stacks: true, ..geometry.out_of_order(PipelineMode::Real) };
        let mut core = Core::new(&geometry);
        feed(&mut core, &stream(5, 60_000), |_| false);
        core.serialize(tally_model::Privilege::User, 10);
        let all = |signals: &[Signal], counts: &[Counts; 2]| -> u64 {
            counts.iter().map(|ring| signals.iter().map(|signal| ring[*signal]).sum::<u64>()).sum()
        };
        let counts = core.counts();
        let cycles = all(&[Signal::Slots], counts) / u64::from(geometry.width);
        let stalls = all(Signal::STALLS, counts);
        for (architecture, most) in [
            (Architecture::Power5, stalls),
            (Architecture::Fmt, cycles),
            (Architecture::Sfmt, cycles),
        ] {
            let signals = Component::ALL.map(|component| of(architecture, component));
            let sum = all(&signals, counts);
            assert!(sum <= most, "{name}: {architecture:?} {sum} of {most}");
            assert!(sum > most / 4, "{name}: {architecture:?} {sum} of {most}");
        }
    }
}

#[test]
fn stacks_change_no_other_count() {
    let stream = stream(9, 20_000);
    let count = |stacks| {
        let mut core = Core::new(&Geometry { stacks, ..machine() });
        feed(&mut core, &stream, |_| false);
        core.counts().clone()
    };
    let (off, on) = (count(false), count(true));
    for signal in Signal::ALL {
        let name = format!("{signal:?}");
        let of_stacks = ["Naive", "NonSpec", "Power5", "Fmt", "Sfmt"];
        if of_stacks.iter().any(|prefix| name.starts_with(prefix)) {
            assert_eq!(off[0][*signal], 0, "{name}");
        } else {
            assert_eq!(off[0][*signal], on[0][*signal], "{name}");
        }
    }
}
