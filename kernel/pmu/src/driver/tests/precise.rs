//! Precise samples: which counters store records, and what interrupts.

use std::boxed::Box;

use tally_abi::bank::PINNED_SLOT;
use tally_engine::{PreciseRecords, Records};

use super::*;
use crate::RecordBuffer;
use crate::registers::{
    Register,
    intel::{DsArea, FixedCtrCtrl, PebsDataCfg, PebsEnable, PerfCapabilities, PerfEvtSel},
};

/// The select's bit for adaptive records.
const ADAPTIVE: u64 = 1 << 34;
const INTERRUPT: u64 = 1 << 20;

fn driver_with(capabilities: u64) -> Driver<Model> {
    let records = intel::RecordSupport::DebugStore { exact: PebsEnable::FIXED0 };
    driver_of(records, capabilities)
}

/// A driver on a processor with architectural PEBS, whose first counters are precise.
fn driver_with_a_buffer() -> Driver<Model> {
    let exact = PebsEnable::FIXED0 | PebsEnable::GENERAL0;
    driver_of(intel::RecordSupport::Buffer { exact }, 0xf << 8)
}

/// The physical address of the buffer.
const PHYSICAL: u64 = 0x12_3000;

fn driver_of(records: intel::RecordSupport, capabilities: u64) -> Driver<Model> {
    let features = intel::Features {
        general: 0xf,
        reserved: 0,
        reference: true,
        metrics: false,
        records,
        branches: intel::BranchSupport::None,
        capabilities: true,
        extra: 7,
        widths: Widths { pinned: WIDTH, general: WIDTH },
        addresses: intel::Addresses::Legacy,
    };
    let mut model = new_model(INTEL);
    let stores = [DsArea::FIRST, PebsEnable::FIRST, PebsDataCfg::FIRST];
    let buffers = [0x3f4, 0x3f5, 0x1903, 0x1907, 0x190b, 0x190f, 0x1983];
    let has_buffer = matches!(records, intel::RecordSupport::Buffer { .. });
    let registers = if has_buffer { buffers.as_slice() } else { &stores };
    model.msrs.extend(registers.iter().map(|register| (*register, 0)));
    model.msrs.insert(PerfCapabilities::FIRST, capabilities);
    let mut driver = Intel::new(model, features).map(Driver::Intel).unwrap();
    let buffer = Box::leak(Box::new(RecordBuffer::new()));
    driver.sample_precisely(|| Box::leak(Box::default()), || Some((buffer, PHYSICAL)), |_| false);
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
    pmu.store_records(1 << 1);
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
        pmu.store_records(u16::from(precise) << PINNED_SLOT);
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

fn raw(pmu: &mut Driver<Model>, msr: u32) -> u64 {
    model(pmu).msrs[&msr]
}

/// Addresses and bits as Linux has them in msr-index.h: bit 63 stores records, 62 has the access.
#[test]
fn a_counter_with_a_buffer_is_armed_by_its_own_register() {
    let mut pmu = driver_with_a_buffer();
    assert_eq!(raw(&mut pmu, 0x3f4), PHYSICAL);
    assert_eq!(raw(&mut pmu, 0x3f5), 1 << 32 | 1 << 36, "each record interrupts");
    let group = group(INTEL, [1, 2, 3, 4], Mode::User);
    let records = Records { accesses: true, slow_load_cycles: 0 };
    pmu.program(&group, &Setup { precise: Some(records), ..setup(Mode::User) }, SLICE);
    pmu.store_records(1 << PINNED_SLOT | 0b11);
    [0, 1, 2, PINNED_SLOT].into_iter().for_each(|slot| {
        pmu.preload(slot, 100);
    });
    let configs = [0x1903, 0x1907, 0x190b, 0x1983].map(|msr| raw(&mut pmu, msr));
    // The reload value of the precise ones is 0: the event of the overflow is the record's.
    assert_eq!(configs, [3 << 62, 3 << 62 | 1, 0, 3 << 62]);
    assert_eq!([0, 1, 2].map(|index| interrupts(&mut pmu, index)), [false, false, true]);
    model(&mut pmu).written.clear();
    pmu.ack_and_resume();
    let is_acknowledged = |(msr, value): &(u32, u64)| *msr == 0x390 && value >> 54 & 1 == 1;
    assert!(model(&mut pmu).written.iter().any(is_acknowledged));
    pmu.enable();
    pmu.stop();
    let configs = [0x1903, 0x1907, 0x190b, 0x1983].map(|msr| raw(&mut pmu, msr));
    assert_eq!(configs, [0; 4], "stopping disarms");
}

#[test]
fn an_empty_buffer_costs_no_access() {
    let mut pmu = driver_with_a_buffer();
    let before = pmu.msr_accesses();
    assert_eq!(pmu.take_precise(), PreciseRecords::default());
    assert_eq!(pmu.msr_accesses(), before);
}

#[test]
fn a_buffer_needs_its_format_and_its_registers() {
    let exact = PebsEnable::FIXED0;
    let support = intel::RecordSupport::Buffer { exact };
    assert!(!driver_of(support, 6 << 8 | 1 << 14).can_sample_precisely());
    assert!(
        !driver_of(intel::RecordSupport::DebugStore { exact }, 0xf << 8).can_sample_precisely()
    );
    assert!(driver_with_a_buffer().can_sample_precisely());
}
