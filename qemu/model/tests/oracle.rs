//! The time of each instruction adds up to the cycles, and goes where the program makes it.

mod common;

use common::{Ran, core_of, feed, stream::stream};
use tally_model::{
    BranchKind, CYCLE_PARTS, Charge, Core, Events, Geometry, Operation, PipelineMode, Rule, Signal,
};

/// Instructions whose last retirements are not charged yet are among so many.
const OPEN: usize = 32;

fn machine(geometry: &Geometry, mode: PipelineMode) -> Core {
    core_of(&Geometry { oracle: true, ..geometry.out_of_order(mode) })
}

fn cycles(core: &mut Core) -> u64 {
    let width = u64::from(core.geometry().width);
    core.counts().iter().map(|ring| ring[Signal::Slots] / width).sum()
}

fn sum<'a>(charges: impl IntoIterator<Item = &'a Charge>, rule: Rule) -> f64 {
    let parts: u64 = charges.into_iter().map(|charge| charge.times[rule as usize]).sum();
    parts as f64 / CYCLE_PARTS as f64
}

#[test]
fn the_times_of_all_instructions_add_up_to_the_cycles() {
    let modes = [PipelineMode::Real, PipelineMode::SingleDispatch, PipelineMode::InOrder];
    let machines = Geometry::ALL.iter().flat_map(|it| modes.map(|mode| (it, mode)));
    for ((seed, (name, geometry)), mode) in
        machines.enumerate().map(|(seed, (of, mode))| ((seed, of), mode))
    {
        let stream = stream(seed as u64, 20_000);
        let (most, last) = stream.split_at(stream.len() - OPEN);
        let mut core = machine(geometry, mode);
        feed(&mut core, most, |_| false);
        let before = cycles(&mut core);
        feed(&mut core, last, |_| false);
        let after = cycles(&mut core);
        let charges: Vec<Charge> = core.take_times().unwrap().collect();
        for rule in [Rule::Exposed, Rule::NextToRetire, Rule::LastRetired] {
            let sum = sum(&charges, rule);
            let is_all = before as f64 <= sum + 0.01 && sum <= after as f64 + 0.01;
            assert!(is_all, "{name} {mode:?} {rule:?}: {sum}, {before} to {after}");
        }
    }
}

/// A loop of a load that misses every level, and of additions that need nothing.
#[test]
fn a_load_from_memory_has_the_cycles_that_it_takes() {
    let mut core = machine(&Geometry::ICELAKE_SERVER, PipelineMode::Real);
    let mut stream = Vec::new();
    for turn in 0..2_000u64 {
        stream.push(Ran::new(0x40_1000, Operation::default()).load(0x1000_0000 + turn * 0x1040));
        // The next address needs the loaded value: nothing overlaps.
        let mut wait = Ran::new(0x40_1004, Operation::default());
        wait.insn.serialize_cycles = 1;
        stream.push(wait);
        stream.push(Ran::new(0x40_1008, Operation::default()).branch(BranchKind::Jump, 0x40_1000));
    }
    feed(&mut core, &stream, |_| false);
    let total = cycles(&mut core) as f64;
    let charges: Vec<Charge> = core.take_times().unwrap().collect();
    let of = |pc| charges.iter().filter(move |charge| charge.place.pc == pc);
    let load = sum(of(0x40_1000), Rule::Exposed) / total;
    assert!(load > 0.9, "{load}");
    let met = of(0x40_1000).filter(|it| it.events.bits() & Events::MEMORY.bits() != 0).count();
    assert!(met > 1_900, "{met}");
    // A sampler of dispatch tags what is dispatched while the load waits.
    assert!(sum(of(0x40_1000), Rule::Dispatched) / total < 0.2);
}
