//! The check that all counters count, on processors where they do, and on one with a counter that
//! stands still.

use super::*;
use crate::{
    AccessCosts, CHECK_INSTRUCTIONS, CounterName, access_costs, check_counters, check_interrupt,
    recheck_counters,
    registers::{Register, amd as amd_registers, intel as intel_registers},
};

fn all(vendor: Vendor) -> CounterMask {
    let general = if is_intel(vendor) { 0xf } else { 0x3f & !amd::PINNED };
    CounterMask { general, reference: is_intel(vendor) }
}

fn check(model: Model) -> Result<(), InitError> {
    let set = all(model.vendor);
    check_counters(try_driver(model).unwrap(), set, |driver| {
        happen(driver, true, CHECK_INSTRUCTIONS / 2);
    })
}

fn recheck(model: Model) -> Result<(), InitError> {
    let set = all(model.vendor);
    recheck_counters(try_driver(model).unwrap(), set, |driver| {
        happen(driver, true, CHECK_INSTRUCTIONS / 2);
    })
}

#[test]
fn counters_that_count_pass_whatever_firmware_left_in_them() {
    for vendor in ALL {
        let mut model = new_model(vendor);
        for index in 0..4 {
            let counter = match vendor {
                Vendor::Intel { .. } => intel_registers::Pmc::address(index),
                Vendor::Amd { .. } => amd_registers::PerfCtr::address(index),
            };
            // Some of the counters wrap within the check.
            model.msrs.insert(counter, WIDTH - 100 * u64::from(index));
        }
        assert_eq!(recheck(model.clone()), Ok(()), "{vendor:?}");
        assert_eq!(check(model), Ok(()), "{vendor:?}");
    }
}

/// The model's accesses take no cycles, so their measured cost is 0.
#[test]
fn costs_of_accesses_are_those_of_cycles_that_passed_and_leave_no_counter_enabled() {
    for vendor in ALL {
        let costs = access_costs(driver(vendor), all(vendor).general);
        assert_eq!(costs, AccessCosts::default(), "{vendor:?}");
        let mut model = new_model(vendor);
        // In hundredths of a cycle: each register access takes seven cycles.
        model.cycles_an_access = 7;
        let costs = access_costs(try_driver(model).unwrap(), all(vendor).general);
        assert_eq!((costs.read_centicycles, costs.write_centicycles), (700, 700), "{vendor:?}");
    }
}

#[test]
fn a_counter_that_stands_still_is_named() {
    use CounterName::{General, Pinned as Always};
    for vendor in ALL {
        let counters: Vec<(u32, CounterName)> = if is_intel(vendor) {
            let general = (0..4).map(|i| (intel_registers::Pmc::address(i), General(i)));
            let pinned =
                Pinned::ALL.map(|e| (intel_registers::FixedCtr::address(e as u8), Always(e)));
            general.chain(pinned).collect()
        } else {
            let name = |index| match [Pinned::Cycles, Pinned::Instructions]
                .into_iter()
                .find(|event| amd::rdpmc_pinned(*event) == u32::from(index))
            {
                Some(event) => Always(event),
                None => General(index),
            };
            (0..6).map(|i| (amd_registers::PerfCtr::address(i), name(i))).collect()
        };
        for (register, counter) in counters {
            let mut model = new_model(vendor);
            model.still = Some(register);
            for found in [check(model.clone()), recheck(model)] {
                assert!(
                    matches!(found, Err(InitError::StandsStill { counter: named, counted: 0, .. })
                        if named == counter),
                    "{vendor:?} {counter}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_counter_that_counts_on_does_not_stop() {
    let counter = CounterName::General(1);
    let found = check_counters(driver(INTEL), all(INTEL), |driver| {
        happen(driver, true, CHECK_INSTRUCTIONS / 2);
        *model(driver).msrs.get_mut(&intel_registers::Pmc::address(1)).unwrap() += 1;
    });
    assert_eq!(found, Err(InitError::DoesNotStop { counter }));
}

#[test]
fn a_counter_that_is_wider_than_it_says_is_named() {
    let mut features = intel::Features {
        general: 0xf,
        reserved: 0,
        reference: true,
        metrics: false,
        records: intel::RecordSupport::None,
        branches: intel::BranchSupport::None,
        capabilities: true,
        extra: 7,
        widths: Widths { pinned: WIDTH, general: WIDTH },
        addresses: intel::Addresses::Legacy,
    };
    for (general, found) in [
        (WIDTH, Ok(())),
        (WIDTH >> 8, Err(InitError::WrongWidth { counter: CounterName::General(0) })),
    ] {
        features.widths.general = general;
        let driver = Driver::Intel(Intel::new(new_model(INTEL), features).unwrap());
        let checked = check_counters(driver, all(INTEL), |driver| {
            happen(driver, true, CHECK_INSTRUCTIONS / 2);
        });
        assert_eq!(checked, found);
    }
}

#[test]
fn an_overflow_that_raises_no_interrupt_is_named() {
    for vendor in ALL {
        for (raised, found) in [(true, Ok(())), (false, Err(InitError::NoInterrupt))] {
            let mut interrupts = 0;
            let work = |driver: &mut Driver<Model>| {
                happen(driver, true, CHECK_INSTRUCTIONS / 2);
                interrupts += model(driver).interrupts;
            };
            let checked = check_interrupt(driver(vendor), all(vendor), work, || raised);
            assert_eq!(checked, found, "{vendor:?}");
            assert!(interrupts > 0);
        }
    }
}
