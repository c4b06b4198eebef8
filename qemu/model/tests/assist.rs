//! The effect of paper 004's table on each structure that it can assist.

mod common;

use common::{Ran, feed, load_op, op};
use tally_model::{
    Assist, BranchKind, Core, Counts, Geometry, Operation, PipelineMode, Signal, Unit,
};

/// Counts of a stream on a cold machine, with the table or without.
fn run(assist: Option<Assist>, stream: &[Ran]) -> Counts {
    let geometry = Geometry::ICELAKE_SERVER.out_of_order(PipelineMode::Real);
    let mut core = Core::new(&Geometry { assist, ..geometry });
    feed(&mut core, stream, |_| false);
    core.counts()[0].clone()
}

/// Asserts that of all assists only this one reduces the events, to less than a share.
fn assert_helps(helps: Assist, stream: &[Ran], signal: Signal, share: f64) {
    let without = run(None, stream)[signal] as f64;
    for assist in Assist::ALL {
        let with = run(Some(assist), stream)[signal] as f64;
        let expected = if assist == helps { with < share * without } else { with == without };
        assert!(expected, "{signal:?} with {}: {with} of {without}", assist.name());
    }
}

#[test]
fn strides_of_a_hundred_loads_fit_in_it() {
    let load = |at: u64| {
        // Each instruction is in its own page at a time, and has a stride of three lines in it.
        let (which, step) = (at % 100, at / 100);
        let address = 0x1000_0000 + which * 0x1_1000 + step / 21 * 4096 + step % 21 * 192;
        let mut ran = Ran::new(0x40_0000 + 4 * which, load_op(2, 1)).load(address);
        ran.next_pc = 0x40_0000 + 4 * ((at + 1) % 100);
        ran
    };
    let stream: Vec<Ran> = (0..20_000).map(load).collect();
    assert_helps(Assist::Data, &stream, Signal::LoadL3Miss, 0.25);
}

#[test]
fn the_next_line_of_straight_code_is_there() {
    let nop = |at: u64| Ran::new(0x40_0000 + 4 * at, Operation::default());
    let stream: Vec<Ran> = (0..100_000).map(nop).collect();
    assert_helps(Assist::Code, &stream, Signal::L1iMiss, 0.05);
}

#[test]
fn branches_with_periods_of_their_own_are_learnt() {
    // 64 branches, each taken once in 5 to 9 executions, in an order without pattern.
    let mut visits = [0u64; 64];
    let mut random = common::Random(3);
    let mut which = 0;
    let branch = |_| {
        let pc = 0x40_0000 + 64 * which;
        let visit = &mut visits[which as usize];
        *visit += 1;
        let taken = visit.is_multiple_of(5 + which % 5);
        let compare = Ran::new(pc, op(Unit::Integer, &[1], 1));
        let target = if taken { pc + 32 } else { pc + 8 };
        which = random.below(64);
        let next = 0x40_0000 + 64 * which;
        [
            compare,
            Ran::new(pc + 4, op(Unit::Integer, &[], 2)).branch(BranchKind::Cond, target),
            Ran::new(target, op(Unit::Integer, &[], 3)).branch(BranchKind::Jump, next),
        ]
    };
    let stream: Vec<Ran> = (0..60_000).flat_map(branch).collect();
    assert_helps(Assist::Branch, &stream, Signal::MispredictCond, 0.5);
}
