//! Micro-benchmarks of the out-of-order pipeline, with published results for the real cores: each
//! must measure the configured parameter.

mod common;

use common::{Ran, Random, feed, load_op, op, store_op, warm_cycles};
use tally_model::{BranchKind, Core, Geometry, PipelineMode, Signal, Unit};

const PC: u64 = 0x40_0000;
const DATA: u64 = 0x1000_0000;

fn machines() -> impl Iterator<Item = (&'static str, Geometry)> {
    Geometry::ALL.iter().map(|(name, geometry)| (*name, geometry.out_of_order(PipelineMode::Real)))
}

/// `count` instructions of a straight line of code that fits in the L1.
fn line(count: usize, mut ran: impl FnMut(u64, usize) -> Ran) -> Vec<Ran> {
    (0..count).map(|at| ran(PC + 4 * (at as u64 % 1024), at)).map(jump_back).collect()
}

/// Makes the code's last instruction continue at its first, at no cost.
fn jump_back(mut ran: Ran) -> Ran {
    if ran.insn.pc == PC + 4 * 1023 {
        ran.next_pc = PC;
    }
    ran
}

/// Cycles for one instruction of a stream, to a hundredth.
fn cycles_each(geometry: &Geometry, stream: &[Ran]) -> f64 {
    warm_cycles(geometry, stream) as f64 / stream.len() as f64
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 0.03 * expected + 0.01, "{what}: {found}, not {expected}");
}

#[test]
fn dependent_chains_take_their_latency() {
    for (name, geometry) in machines() {
        for unit in [Unit::Integer, Unit::Multiply, Unit::FpAdd, Unit::FpMultiply, Unit::Convert] {
            let stream = line(20_000, |pc, _| Ran::new(pc, op(unit, &[1], 1)));
            let latency = geometry.backend.units[unit as usize].latency_cycles;
            let found = cycles_each(&geometry, &stream);
            assert_near(found, latency.into(), &format!("{name}: {unit:?}"));
        }
    }
}

#[test]
fn independent_work_is_bound_by_ports_or_width() {
    for (name, geometry) in machines() {
        for unit in [Unit::Integer, Unit::Shift, Unit::Multiply, Unit::FpAdd, Unit::FpMultiply] {
            let stream = line(20_000, |pc, at| Ran::new(pc, op(unit, &[], (at % 14) as u8)));
            let ports = geometry.backend.units[unit as usize].ports.count_ones();
            let expected = 1.0 / f64::from(ports.min(geometry.width.into()));
            assert_near(cycles_each(&geometry, &stream), expected, &format!("{name}: {unit:?}"));
        }
    }
}

#[test]
fn instructions_without_a_unit_are_bound_by_width() {
    for (name, geometry) in machines() {
        let stream = line(20_000, |pc, _| Ran::new(pc, op(Unit::None, &[], 15)));
        let expected = 1.0 / f64::from(geometry.width);
        assert_near(cycles_each(&geometry, &stream), expected, name);
    }
}

#[test]
fn a_divider_is_not_pipelined() {
    for (name, geometry) in machines() {
        let independent =
            line(5_000, |pc, at| Ran::new(pc, op(Unit::Divide, &[], (at % 14) as u8)));
        assert_near(cycles_each(&geometry, &independent), 10.0, name);
        let chained = line(5_000, |pc, _| Ran::new(pc, op(Unit::Divide, &[1], 1)));
        let latency = geometry.backend.units[Unit::Divide as usize].latency_cycles;
        assert_near(cycles_each(&geometry, &chained), 10.0 + f64::from(latency), name);
    }
}

#[test]
fn loads_and_stores_are_bound_by_their_ports() {
    for (name, geometry) in machines() {
        let loads = line(20_000, |pc, at| {
            Ran::new(pc, load_op(15, (at % 14) as u8)).load(DATA + 8 * (at as u64 % 64))
        });
        let ports = geometry.backend.load_ports.count_ones();
        assert_near(cycles_each(&geometry, &loads), 1.0 / f64::from(ports), name);
        let stores = line(20_000, |pc, at| {
            Ran::new(pc, store_op(15, 14)).store(DATA + 8 * (at as u64 % 64))
        });
        assert_near(cycles_each(&geometry, &stores), 1.0, name);
    }
}

/// Loads that each give the next one's address, over all lines of `bytes` in an order without
/// locality.
fn chase(bytes: u64) -> Vec<Ran> {
    let lines = bytes / 64;
    let step = (lines * 5 / 8) | 1;
    let mut at = 0;
    line(lines as usize, |pc, _| {
        at = (at + step) % lines;
        Ran::new(pc, load_op(1, 1)).load(DATA + 64 * at)
    })
}

#[test]
fn a_pointer_chase_shows_each_levels_latency_at_its_capacity() {
    for (name, mut geometry) in machines() {
        // The TLBs' latency is measured by another benchmark.
        geometry.perfect.dtlb = true;
        let latency = geometry.latency;
        for (level, below, cycles) in [
            (geometry.l1d.bytes(), 0, latency.l1_cycles),
            (geometry.l2.bytes(), geometry.l1d.bytes(), latency.l2_cycles),
            (geometry.llc.bytes(), geometry.l2.bytes(), latency.llc_cycles),
            (u64::MAX, geometry.llc.bytes(), latency.memory_cycles),
        ] {
            for bytes in [level / 4 * 3, below * 2] {
                if bytes > 1 << 26 || bytes == 0 || bytes > level {
                    continue;
                }
                let found = cycles_each(&geometry, &chase(bytes));
                assert_near(found, cycles.into(), &format!("{name}: {bytes} bytes"));
            }
        }
    }
}

#[test]
fn a_chase_over_pages_shows_the_tlbs() {
    for (name, geometry) in machines() {
        // One line per page, each in another set of the L1, so that only translation misses.
        let chase = |pages: u64| {
            let stream = line(8 * pages as usize, |pc, at| {
                let page = (at as u64 * 7) % pages;
                Ran::new(pc, load_op(1, 1)).load(DATA + 4096 * page + 64 * (page % 64))
            });
            cycles_each(&geometry, &stream)
        };
        let first = u64::from(geometry.dtlb.sets * geometry.dtlb.ways);
        let latency = geometry.latency;
        assert_near(chase(first / 2), latency.l1_cycles.into(), name);
        let expected = f64::from(latency.l1_cycles + latency.stlb_cycles);
        assert_near(chase(first * 4), expected, name);
    }
}

#[test]
fn independent_misses_overlap_up_to_the_fill_buffers() {
    for (name, mut geometry) in machines() {
        geometry.perfect.dtlb = true;
        let bytes = 64 << 20;
        let lines = bytes / 64;
        let stream = line(lines as usize, |pc, at| {
            Ran::new(pc, load_op(15, (at % 14) as u8)).load(DATA + 64 * at as u64)
        });
        let latency = f64::from(geometry.latency.memory_cycles);
        let expected = latency / f64::from(geometry.backend.fill_buffers);
        assert_near(cycles_each(&geometry, &stream), expected, name);
    }
}

/// The mean number of fill buffers in use while any is, and the share of the cycles in which a line
/// waits for one.
fn fill_buffers(geometry: &Geometry, stream: &[Ran]) -> [f64; 2] {
    let mut core = Core::new(geometry);
    feed(&mut core, stream, |_| false);
    let cycles = core.clock() as f64 / f64::from(geometry.width);
    let counts = &core.counts()[0];
    let [all, some, full] = [Signal::PendingMisses, Signal::PendingMissCycles, Signal::FullFills]
        .map(|signal| counts[signal] as f64);
    assert!(some <= 1.01 * cycles, "{some} of {cycles}");
    [all / some, full / cycles]
}

#[test]
fn misses_that_overlap_fill_the_buffers_and_those_of_a_chase_use_one() {
    for (name, mut geometry) in machines() {
        geometry.perfect.dtlb = true;
        geometry.perfect.itlb = true;
        let independent = line(100_000, |pc, at| {
            Ran::new(pc, load_op(15, (at % 14) as u8)).load(DATA + 64 * at as u64)
        });
        let [used, waits] = fill_buffers(&geometry, &independent);
        assert_near(used, geometry.backend.fill_buffers.into(), name);
        assert!(waits > 0.9, "{name}: {waits}");
        let [used, waits] = fill_buffers(&geometry, &chase(8 << 20));
        assert_near(used, 1.0, name);
        assert!(waits < 0.01, "{name}: {waits}");
    }
}

#[test]
fn a_stream_is_bound_by_ports_fill_buffers_or_the_load_queue() {
    for (name, mut geometry) in machines() {
        geometry.perfect.dtlb = true;
        let latency = geometry.latency;
        for (bytes, cycles) in [
            (geometry.l1d.bytes() / 2, 0),
            (geometry.l2.bytes() / 2, latency.l2_cycles),
            (geometry.l2.bytes() * 2, latency.llc_cycles),
            (geometry.llc.bytes() * 2, latency.memory_cycles),
        ] {
            // Eight loads per line. During one latency, at most as many lines arrive as there are
            // fill buffers, and at most as many loads complete as the load queue holds.
            let stream = line(bytes as usize / 8, |pc, at| {
                Ran::new(pc, load_op(15, (at % 14) as u8)).load(DATA + 8 * at as u64)
            });
            let by_ports = 8.0 / f64::from(geometry.backend.load_ports.count_ones());
            let by_fills = f64::from(cycles) / f64::from(geometry.backend.fill_buffers);
            let by_queue = 8.0 * f64::from(cycles) / f64::from(geometry.backend.loads);
            let found = 8.0 * cycles_each(&geometry, &stream);
            let expected = by_ports.max(by_fills).max(by_queue);
            // Where two limits are close to each other, they interfere a little.
            let allowed = 0.08 * expected;
            assert!(
                (found - expected).abs() <= allowed,
                "{name}, {bytes}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn a_store_is_forwarded_to_the_load_behind_it() {
    for (name, geometry) in machines() {
        // A chain through memory, eight bytes each: store, load.
        let stream = line(10_000, |pc, at| match at % 2 {
            0 => Ran::new(pc, store_op(15, 1)).store(DATA),
            _ => Ran::new(pc, load_op(15, 1)).load(DATA),
        });
        let found = 2.0 * cycles_each(&geometry, &stream);
        assert_near(found, geometry.latency.forward_cycles.into(), name);
        // A load wider than the store waits until the cache has it.
        let mut blocked = stream.clone();
        blocked.iter_mut().step_by(2).for_each(|ran| ran.accesses[0].1 = 4);
        let waited = 2.0 * cycles_each(&geometry, &blocked);
        assert!(waited >= found + 3.0, "{name}: {waited} after {found}");
    }
}

#[test]
fn a_random_branch_costs_half_a_misprediction() {
    for (name, geometry) in machines() {
        let mut random = Random(5);
        let mut stream = vec![];
        for _ in 0..20_000 {
            stream.push(Ran::new(PC, op(Unit::Integer, &[1], 1)));
            let branch = Ran::new(PC + 4, op(Unit::Branch, &[1], 15));
            let taken = random.below(2) == 0;
            let target = if taken { PC + 16 } else { PC + 8 };
            stream.push(branch.branch(BranchKind::Cond, target));
            stream.push(Ran::new(target, op(Unit::None, &[], 2)).branch(BranchKind::Jump, PC));
        }
        let mut core = Core::new(&geometry);
        feed(&mut core, &stream, |_| false);
        let user = &core.counts()[0];
        let missed = user[Signal::MispredictCond] as f64 / 20_000.0;
        assert!((0.47..0.53).contains(&missed), "{name}: {missed}");
        let each = user[Signal::StallMispredict] as f64 / user[Signal::MispredictCond] as f64;
        let penalty = f64::from(geometry.latency.mispredict_cycles);
        assert!((each - penalty).abs() <= 2.5, "{name}: {each} cycles, not {penalty}");
    }
}

#[test]
fn modes_restrict_dispatch_and_order() {
    for (name, geometry) in Geometry::ALL {
        let stream = line(20_000, |pc, at| Ran::new(pc, op(Unit::Integer, &[], (at % 14) as u8)));
        let each = |mode| cycles_each(&geometry.out_of_order(mode), &stream);
        assert_near(each(PipelineMode::SingleDispatch), 1.0, name);
        // Issue, one cycle of execution, retirement: the next instruction issues as this one
        // retires.
        assert_near(each(PipelineMode::InOrder), 2.0, name);
        // Out of order, a single-dispatch machine still overlaps misses; in order it does not.
        let misses = line(10_000, |pc, at| {
            Ran::new(pc, load_op(15, (at % 14) as u8)).load(DATA + 64 * (at as u64 % 8192))
        });
        let mut geometry = *geometry;
        geometry.perfect.dtlb = true;
        let each = |mode| cycles_each(&geometry.out_of_order(mode), &misses);
        assert!(each(PipelineMode::InOrder) > f64::from(geometry.latency.l2_cycles), "{name}");
        assert!(
            each(PipelineMode::SingleDispatch) < f64::from(geometry.latency.l2_cycles) / 3.0,
            "{name}"
        );
    }
}

#[test]
fn stalls_are_charged_to_their_causes() {
    let mut geometry = Geometry::ICELAKE_SERVER.out_of_order(PipelineMode::Real);
    geometry.perfect.dtlb = true;
    let divide = line(5_000, |pc, _| Ran::new(pc, op(Unit::Divide, &[1], 1)));
    let add = line(5_000, |pc, _| Ran::new(pc, op(Unit::FpAdd, &[1], 1)));
    let multiply = line(5_000, |pc, _| Ran::new(pc, op(Unit::Multiply, &[1], 1)));
    for (stream, cause) in [
        (chase(24 << 10), Signal::StallL1Hit),
        (chase(512 << 10), Signal::StallL2Hit),
        (chase(8 << 20), Signal::StallL3Hit),
        (chase(64 << 20), Signal::StallMemory),
        (divide, Signal::StallDivider),
        (add, Signal::StallFp),
        (multiply, Signal::StallInteger),
    ] {
        let mut core = Core::new(&geometry);
        feed(&mut core, &stream, |_| false);
        let before = core.counts()[0].clone();
        feed(&mut core, &stream, |_| false);
        let user = &core.counts()[0];
        let of = |signal: Signal| user[signal] - before[signal];
        let all: u64 = Signal::STALLS.iter().map(|signal| of(*signal)).sum();
        assert!(of(cause) * 100 >= all * 97, "{cause:?}: {} of {all}", of(cause));
    }
}
