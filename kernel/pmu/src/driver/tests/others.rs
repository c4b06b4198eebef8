//! Counters that others left on, or that they write while the driver has them.

use super::*;
use crate::{
    bus::CountingBus, check_counters, recheck_counters, refuse_if_changed, testing::Model,
};

const SELECT: u64 = 1 << 22 | 0x3c;
const V2: Vendor = Vendor::Amd { global: true };
const LEGACY: Vendor = Vendor::Amd { global: false };

fn model_with(vendor: Vendor, registers: &[(u32, u64)]) -> Model {
    let mut model = new_model(vendor);
    model.msrs.extend(registers.iter().copied());
    model
}

fn left_on(model: Model) -> Option<ControlValue> {
    let widths = Widths { pinned: WIDTH, general: WIDTH };
    let bus = &mut CountingBus::new(model.clone());
    match model.vendor {
        Vendor::Intel { freeze } => {
            let (general, reserved, reference) = (0xf, 0, true);
            let features = intel::Features {
                general,
                reserved,
                reference,
                metrics: false,
                records: intel::RecordSupport::None,
                branches: intel::BranchSupport::None,
                capabilities: freeze,
                extra: 7,
                widths,
                addresses: intel::Addresses::Legacy,
            };
            intel::left_on(bus, &features)
        }
        Vendor::Amd { global } => {
            let features = amd::Features {
                counters: 0x3f,
                reserved: 0,
                global,
                branches: 0,
                samples_ops: false,
                freeze: global,
            };
            amd::left_on(bus, &features)
        }
    }
}

#[test]
fn counters_that_were_left_on_are_named_and_taken_over() {
    let named =
        |register, index, value| Some(ControlValue { register, index, value, in_use: None });
    for (vendor, registers, name) in [
        (INTEL, &[(0x188, SELECT)][..], named("IA32_PERFEVTSEL", Some(2), SELECT)),
        // As HP's servers with "Processor Power and Utilization Monitoring": fixed 1 and 2.
        (
            INTEL,
            &[(0x38d, 0x330), (0x38f, 0x6_0000_000f)],
            named("IA32_FIXED_CTR_CTRL", None, 0x330),
        ),
        // Enabled by its own control but not by the global one.
        (V2, &[(0xc001_0204, SELECT)], None),
        (V2, &[(0xc001_0204, SELECT), (0xc000_0301, 4)], named("PERF_CTL", Some(2), SELECT)),
        (LEGACY, &[(0xc001_0204, SELECT)], named("PERF_CTL", Some(2), SELECT)),
    ] {
        let mut model = model_with(vendor, registers);
        assert_eq!(left_on(model.clone()), name, "{vendor:?}");
        // What is on as the driver starts counts nothing for it.
        let mut pmu = try_driver(model.clone()).unwrap();
        assert!(!pmu.is_counting());
        model = self::model(&mut pmu).clone();
        assert_eq!(left_on(model.clone()), None, "{vendor:?}");
        let all =
            CounterMask { general: if is_intel(vendor) { 0xf } else { 0x3c }, reference: false };
        let checked = check_counters(try_driver(model).unwrap(), all, |driver| {
            happen(driver, true, crate::CHECK_INSTRUCTIONS / 2);
        });
        assert_eq!(checked, Ok(()), "{vendor:?}");
    }
}

#[test]
fn a_control_that_others_write_again_is_named() {
    for (vendor, msr, value, register, index) in [
        (INTEL, 0x188, SELECT | 1 << 17, "IA32_PERFEVTSEL", Some(2)),
        (INTEL, 0x38d, 0x330, "IA32_FIXED_CTR_CTRL", None),
        (V2, 0xc001_0208, SELECT | 1 << 17, "PERF_CTL", Some(4)),
        (LEGACY, 0xc001_0208, SELECT | 1 << 17, "PERF_CTL", Some(4)),
    ] {
        let named =
            Err(InitError::WrittenByOthers(ControlValue { register, index, value, in_use: None }));
        let all =
            CounterMask { general: if is_intel(vendor) { 0xf } else { 0x3c }, reference: false };
        let work = |driver: &mut Driver<Model>| {
            happen(driver, true, crate::CHECK_INSTRUCTIONS / 2);
            model(driver).msrs.insert(msr, value);
        };
        assert_eq!(recheck_counters(driver(vendor), all, work), named, "{vendor:?}");
        // Between two checks, with a session on the counters.
        for mode in [Mode::User, Mode::Full] {
            let mut pmu = driver(vendor);
            let events = group(vendor, [1, 2, 3, 4], mode);
            pmu.program(&events, &setup(mode), SLICE);
            pmu.enable();
            assert_eq!(refuse_if_changed(&mut pmu), Ok(()), "{vendor:?}");
            happen(&mut pmu, mode == Mode::Full, SLICE + 1);
            assert!(switch(&mut pmu, [&events; 2], &mut Counts::default()));
            pmu.ack_and_resume();
            assert_eq!(refuse_if_changed(&mut pmu), Ok(()), "{vendor:?}");
            pmu.stop();
            assert_eq!(refuse_if_changed(&mut pmu), Ok(()), "{vendor:?}");
            model(&mut pmu).msrs.insert(msr, value);
            assert_eq!(refuse_if_changed(&mut pmu), named, "{vendor:?}");
        }
    }
}

/// Records of branches and of events, which firmware or an earlier kernel left on.
#[test]
fn records_that_others_left_on_are_turned_off() {
    for (vendor, registers) in
        [(INTEL, &[0x3f1, 0x14ce][..]), (OLD_INTEL, &[0x3f1]), (V2, &[0xc000_010f])]
    {
        let left: Vec<(u32, u64)> = registers.iter().map(|msr| (*msr, 1 << 6)).collect();
        let mut pmu = try_driver(model_with(vendor, &left)).unwrap();
        assert!(registers.iter().all(|msr| model(&mut pmu).msrs[msr] == 0), "{vendor:?}");
    }
    let frozen = (0xc000_0300, 1 << 58 | 1);
    let mut pmu = try_driver(model_with(V2, &[frozen])).unwrap();
    assert_eq!(model(&mut pmu).msrs[&0xc000_0300], 0);
}

/// A counter that wraps without an interrupt is no lost overflow of the event that is preloaded on
/// it later.
#[test]
fn an_overflow_without_an_interrupt_leaves_no_status_behind() {
    let mut pmu = driver(INTEL);
    let events = group(INTEL, [1, 2, 3, 4], Mode::Full);
    pmu.program(&events, &setup(Mode::Full), SLICE);
    model(&mut pmu).msrs.insert(0xc1, WIDTH);
    pmu.enable();
    happen(&mut pmu, false, SLICE + 1);
    assert_ne!(model(&mut pmu).msrs[&0x38e] & 1, 0);
    assert!(switch(&mut pmu, [&events; 2], &mut Counts::default()));
    pmu.preload(0, 1_000_000);
    pmu.ack_and_resume();
    assert!(!pmu.has_lost_overflow());
    // The preloaded counter's own overflow is found, and so is the timer's.
    happen(&mut pmu, false, 1);
    assert!(!pmu.has_lost_overflow());
    model(&mut pmu).msrs.insert(0xc1, WIDTH);
    happen(&mut pmu, true, 1);
    assert!(pmu.has_lost_overflow());
}
