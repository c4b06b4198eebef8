//! Precise samples: which counters store records, and what interrupts.

use std::boxed::Box;

use tally_abi::bank::PINNED_SLOT;
use tally_engine::{PreciseRecords, Records};

use super::*;
use crate::registers::{
    Register,
    intel::{DsArea, FixedCtrCtrl, PebsDataCfg, PebsEnable, PerfCapabilities, PerfEvtSel},
};

/// The select's bit for adaptive records.
const ADAPTIVE: u64 = 1 << 34;
const INTERRUPT: u64 = 1 << 20;

fn driver_with(capabilities: u64) -> Driver<Model> {
    let features = intel::Features {
        general: 0xf,
        reserved: 0,
        reference: true,
        metrics: false,
        debug_store: true,
        branches: intel::BranchSupport::None,
        first_is_exact: false,
        capabilities: true,
        extra: 7,
        widths: Widths { pinned: WIDTH, general: WIDTH },
        addresses: intel::Addresses::Legacy,
    };
    let mut model = new_model(INTEL);
    for register in [DsArea::FIRST, PebsEnable::FIRST, PebsDataCfg::FIRST] {
        model.msrs.insert(register, 0);
    }
    model.msrs.insert(PerfCapabilities::FIRST, capabilities);
    let mut driver = Intel::new(model, features).map(Driver::Intel).unwrap();
    driver.sample_precisely(|| Box::leak(Box::default()), |_| false);
    driver
}

/// A driver on a processor with adaptive records of format 4, a group whose second event is
/// precise, and the setup of its session.
fn with_a_precise_event() -> (Driver<Model>, Group, Setup) {
    let mut group = group(INTEL, [1, 2, 3, 4], Mode::User);
    group.selectors[1].0 |= ADAPTIVE;
    (
        driver_with(4 << 8 | 1 << 14),
        group,
        Setup { precise: Some(Records::default()), ..setup(Mode::User) },
    )
}

fn enabled(pmu: &mut Driver<Model>) -> u64 {
    model(pmu).peek::<PebsEnable>(0).bits()
}

fn interrupts(pmu: &mut Driver<Model>, index: u8) -> bool {
    model(pmu).peek::<PerfEvtSel>(index).bits() & INTERRUPT != 0
}

#[test]
fn a_preloaded_precise_counter_stores_a_record_and_raises_no_interrupt_of_its_own() {
    let (mut pmu, group, setup) = with_a_precise_event();
    pmu.program(&group, &setup, SLICE);
    assert_eq!(enabled(&mut pmu), 0, "nothing is stored before a preload");
    pmu.preload(1, 100);
    pmu.preload(2, 100);
    assert_eq!(enabled(&mut pmu), 1 << 1);
    assert_eq!([1, 2].map(|index| interrupts(&mut pmu, index)), [false, true]);
    pmu.enable();
    pmu.stop();
    assert_eq!(enabled(&mut pmu), 0, "stopping disarms");
    assert!(!interrupts(&mut pmu, 2));
}

#[test]
fn the_pinned_instructions_store_a_record_in_a_precise_session_alone() {
    let (mut pmu, group, setup) = with_a_precise_event();
    for precise in [true, false] {
        let records = precise.then(Records::default);
        pmu.program(&group, &Setup { precise: records, ..setup }, SLICE);
        pmu.preload(PINNED_SLOT, 100);
        let control = model(&mut pmu).peek::<FixedCtrCtrl>(0);
        assert_eq!(control.contains(FixedCtrCtrl::PMI0), !precise);
        assert_eq!(enabled(&mut pmu), if precise { 1 << 32 } else { 0 });
        pmu.disarm();
    }
}

#[test]
fn an_acknowledgement_is_also_of_the_debug_store() {
    let (mut pmu, group, setup) = with_a_precise_event();
    pmu.program(&group, &setup, SLICE);
    model(&mut pmu).written.clear();
    pmu.ack_and_resume();
    let written = &model(&mut pmu).written;
    assert!(written.iter().any(|(msr, value)| *msr == 0x390 && value >> 62 & 1 == 1));
}

#[test]
fn processors_without_adaptive_records_have_no_precise_samples() {
    // None, format 3, format 4 without the baseline, and formats that the driver does not know.
    for capabilities in [0, 3 << 8, 4 << 8, 3 << 8 | 1 << 14, 7 << 8 | 1 << 14] {
        let mut pmu = driver_with(capabilities);
        assert!(!pmu.can_sample_precisely(), "{capabilities:#x}");
        assert_eq!(pmu.take_precise(), PreciseRecords::default());
        assert_eq!(model(&mut pmu).peek::<DsArea>(0), DsArea(0));
    }
    assert!(
        [4, 5, 6].map(|format| driver_with(format << 8 | 1 << 14).can_sample_precisely())
            == [true; 3]
    );
}
