//! Registers that CPUID reports and a hypervisor hides.

use super::*;

fn without(vendor: Vendor, msr: u32) -> Result<Driver<Model>, InitError> {
    let mut model = new_model(vendor);
    assert!(model.msrs.remove(&msr).is_some(), "{msr:#x}");
    try_driver(model)
}

/// The driver does without the registers that only some events, or no event, need.
#[test]
fn registers_that_not_every_event_needs_may_be_missing() {
    let v2 = Vendor::Amd { global: true };
    for (vendor, msr, extra) in [
        (INTEL, 0x1a6, 6),
        (INTEL, 0x1a7, 5),
        (INTEL, 0x3f7, 3),
        (INTEL, 0x1d9, 7),
        (INTEL, 0x345, 7),
        (v2, 0x1d9, 0),
    ] {
        let mut pmu = without(vendor, msr).unwrap();
        assert_eq!(pmu.extra(), extra, "{vendor:?} {msr:#x}");
        let group = group(vendor, [1, 2, 3, 4], Mode::User);
        pmu.program(&group, &setup(Mode::User), SLICE);
        pmu.enable();
        let before = read(&mut pmu, group.used);
        happen(&mut pmu, false, SLICE + 1);
        assert_eq!(general(&counted(&mut pmu, &group, &before), &group), [10, 20, 30, 40]);
    }
}

/// A register that ignores accesses keeps no value, as under KVM with `ignore_msrs`.
#[test]
fn an_extra_register_that_ignores_writes_is_not_there() {
    let mut model = new_model(INTEL);
    model.stuck = Some(0x1a6);
    assert_eq!(try_driver(model).unwrap().extra(), 6);
}

#[test]
fn registers_that_every_event_needs_are_named() {
    let v2 = Vendor::Amd { global: true };
    for (vendor, msr, register) in [
        (INTEL, 0x186, "IA32_PERFEVTSEL"),
        (INTEL, 0x189, "IA32_PERFEVTSEL"),
        (INTEL, 0xc4, "IA32_PMC"),
        (INTEL, 0x309, "IA32_FIXED_CTR"),
        (INTEL, 0x30b, "IA32_FIXED_CTR"),
        (INTEL, 0x38d, "IA32_FIXED_CTR_CTRL"),
        (INTEL, 0x38e, "IA32_PERF_GLOBAL_STATUS"),
        (INTEL, 0x38f, "IA32_PERF_GLOBAL_CTRL"),
        (INTEL, 0x390, "IA32_PERF_GLOBAL_OVF_CTRL"),
        (v2, 0xc000_0300, "PerfCntrGlobalStatus"),
        (v2, 0xc000_0301, "PerfCntrGlobalCtl"),
        (v2, 0xc000_0302, "PerfCntrGlobalStatusClr"),
        (v2, 0xc001_0200, "PERF_CTL"),
        (Vendor::Amd { global: false }, 0xc001_020b, "PERF_CTR"),
    ] {
        let found = without(vendor, msr).map(|_| ());
        assert_eq!(found, Err(InitError::Missing { register }), "{vendor:?} {msr:#x}");
    }
}
