//! AMD's op sampler: when it starts, what of its samples is taken, and what others pay.

use tally_engine::{Access, PreciseRecord, PreciseRecords, Records};

use super::*;
use crate::registers::{
    Register,
    amd::{IbsCtl, IbsDcLinAd, IbsOpCtl, IbsOpData, IbsOpData2, IbsOpData3, IbsOpRip, PerfCtl},
};

const AMD: Vendor = Vendor::Amd { global: true };
const ENABLE: u64 = 1 << 17;
const VALID: u64 = 1 << 18;
const OPS: u64 = 1 << 19;
const CODE: u64 = 0x40_1000;

/// Features of a processor with PerfMonV2 and the op sampler.
pub(super) const FEATURES: amd::Features = amd::Features {
    counters: 0x3f,
    reserved: 0,
    global: true,
    branches: 0,
    samples_ops: true,
    freeze: true,
};

fn driver_with(entry: u64, route: fn(u8) -> bool) -> Driver<Model> {
    let mut model = new_model(AMD);
    for register in IbsOpCtl::FIRST..=IbsCtl::FIRST {
        model.msrs.insert(register, 0);
    }
    model.msrs.insert(IbsCtl::FIRST, entry);
    let mut driver = Amd::new(model, FEATURES).map(Driver::Amd).unwrap();
    driver.sample_precisely(|| unreachable!("a debug store"), || unreachable!("a buffer"), route);
    driver
}

/// A driver with a group of an event that the sampler counts, on counter 2, and its setup.
fn sampling(code: u8, mode: Mode) -> (Driver<Model>, Group, Setup) {
    let records = Records { accesses: true, slow_load_cycles: 0 };
    let group = group(AMD, [code, 2, 3, 4], mode);
    let setup = Setup { precise: Some(records), ..setup(mode) };
    (driver_with(1 << 8 | 1, |entry| entry == 1), group, setup)
}

fn control(pmu: &mut Driver<Model>) -> u64 {
    model(pmu).peek::<IbsOpCtl>(0).bits()
}

/// The distance in a control value.
fn distance(control: u64) -> u64 {
    (control & 0xffff) << 4 | control & 0x7f << 20
}

/// Takes a sample at an address, as the processor does.
fn sample(pmu: &mut Driver<Model>, address: u64) {
    let random = 0x2a << 32;
    let msrs = &mut model(pmu).msrs;
    *msrs.get_mut(&IbsOpCtl::FIRST).unwrap() |= VALID | random;
    msrs.insert(IbsOpRip::FIRST, address);
}

#[test]
fn a_preload_starts_the_sampler_and_leaves_its_counter_alone() {
    for (code, counts_ops) in [(0x76, 0), (0xc1, OPS)] {
        let (mut pmu, group, setup) = sampling(code, Mode::User);
        pmu.program(&group, &setup, SLICE);
        assert_eq!(control(&mut pmu), 0, "nothing is sampled before a preload");
        model(&mut pmu).msrs.insert(0xc001_0205, 77);
        assert_eq!(pmu.preload(2, 1_000_000), 77);
        let started = control(&mut pmu);
        assert_eq!(started & (ENABLE | VALID | OPS), ENABLE | counts_ops);
        assert!((1_000_000 + 127..1_010_000).contains(&distance(started)), "{started:#x}");
        assert!(!model(&mut pmu).peek::<PerfCtl>(2).contains(PerfCtl::INT));
        pmu.preload(3, 100);
        assert!(model(&mut pmu).peek::<PerfCtl>(3).contains(PerfCtl::INT), "another event");
        pmu.enable();
        pmu.stop();
        assert_eq!(control(&mut pmu), 0, "stopping disarms");
        assert_eq!(pmu.take_precise(), PreciseRecords::default());
    }
}

#[test]
fn a_sample_is_taken_once_by_its_counter_before_the_sampler_stops() {
    let (mut pmu, group, setup) = sampling(0xc1, Mode::User);
    pmu.program(&group, &setup, SLICE);
    pmu.preload(2, 1_000);
    sample(&mut pmu, CODE);
    let (info, times) = (0b11 | 1 << 17 | 210 << 32, 0x12_0034);
    let msrs = &mut model(&mut pmu).msrs;
    for (register, value) in [
        (IbsOpData::FIRST, times),
        (IbsOpData2::FIRST, 3),
        (IbsOpData3::FIRST, info),
        (IbsDcLinAd::FIRST, 0x7000),
    ] {
        msrs.insert(register, value);
    }
    pmu.stop();
    let access = Access { address: 0x7000, info, latency: times | 3 << 48 };
    let mut expected = PreciseRecords::default();
    expected.add(2, PreciseRecord { address: CODE, access });
    assert_eq!(pmu.take_precise(), expected);
    assert_eq!(pmu.take_precise(), PreciseRecords::default());
    pmu.preload(2, 1_000);
    assert_eq!(control(&mut pmu) >> 32, 0x2a, "the next count begins at random");
}

#[test]
fn an_op_without_an_access_has_none() {
    let (mut pmu, group, setup) = sampling(0xc1, Mode::User);
    pmu.program(&group, &setup, SLICE);
    pmu.preload(2, 1_000);
    sample(&mut pmu, CODE);
    model(&mut pmu).msrs.insert(IbsDcLinAd::FIRST, 0x7000);
    pmu.disarm();
    let mut expected = PreciseRecords::default();
    expected.add(2, PreciseRecord { address: CODE, access: Access::default() });
    assert_eq!(pmu.take_precise(), expected);
}

/// The sampler knows no rings.
#[test]
fn samples_of_another_ring_and_without_an_address_are_dropped_and_come_later() {
    let kernel = 0xffff_8000_0000_1000;
    for (mode, wrong) in [(Mode::User, kernel), (Mode::Kernel, CODE)] {
        let (mut pmu, group, setup) = sampling(0x76, mode);
        pmu.program(&group, &setup, SLICE);
        let mut last = 0;
        for _ in 0..20 {
            pmu.preload(2, 1_000);
            let now = distance(control(&mut pmu));
            assert!(now >= last && now < 1 << 21, "{now}");
            last = now;
            sample(&mut pmu, wrong);
            pmu.disarm();
            assert_eq!(pmu.take_precise(), PreciseRecords::default());
        }
        assert!(last > 1 << 20, "{last}");
        pmu.preload(2, 1_000);
        sample(&mut pmu, wrong ^ kernel ^ CODE);
        pmu.disarm();
        assert_ne!(pmu.take_precise(), PreciseRecords::default());
        pmu.preload(2, 1_000);
        assert!(distance(control(&mut pmu)) < 10_000, "one that was taken ends the row");
        sample(&mut pmu, wrong ^ kernel ^ CODE);
        model(&mut pmu).msrs.insert(IbsOpData::FIRST, 1 << 38);
        pmu.disarm();
        assert_eq!(pmu.take_precise(), PreciseRecords::default(), "no address");
    }
}

/// In the middle of a slice the engine stops, programs, and asks then.
#[test]
fn a_sample_outlives_the_next_program() {
    let (mut pmu, group, setup) = sampling(0x76, Mode::User);
    pmu.program(&group, &setup, SLICE);
    pmu.preload(2, 1_000);
    sample(&mut pmu, CODE);
    pmu.stop();
    pmu.program(&group, &setup, SLICE);
    assert_ne!(pmu.take_precise(), PreciseRecords::default());
}

#[test]
fn a_session_without_precise_events_touches_no_register_of_ibs() {
    let (mut pmu, group, setup) = sampling(0x76, Mode::User);
    model(&mut pmu).written.clear();
    pmu.program(&group, &Setup { precise: None, ..setup }, SLICE);
    pmu.preload(2, 1_000);
    pmu.enable();
    pmu.stop();
    let is_ibs = |(msr, _): &(u32, u64)| (IbsOpCtl::FIRST..=IbsCtl::FIRST).contains(msr);
    assert!(!model(&mut pmu).written.iter().any(is_ibs));
}

#[test]
fn without_an_interrupt_there_are_no_precise_samples() {
    assert!(driver_with(1 << 8, |_| true).can_sample_precisely());
    assert!(!driver_with(0, |_| true).can_sample_precisely(), "the entry is not valid");
    assert!(!driver_with(1 << 8, |_| false).can_sample_precisely());
    assert!(!driver(AMD).can_sample_precisely());
}
