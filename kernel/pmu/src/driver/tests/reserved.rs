//! Counters that are reserved for others.

use super::*;

/// Makes a driver without the highest of the model's counters.
fn driver_beside(vendor: Vendor) -> (Driver<Model>, u8) {
    let counter = if is_intel(vendor) { 3 } else { 5 };
    (try_driver_beside(new_model(vendor), 1 << counter).unwrap(), counter)
}

/// Writes the select of a counter as another part of the kernel would.
fn select(driver: &mut Driver<Model>, vendor: Vendor, counter: u8) {
    use crate::{Bus, registers::Register};
    let model = model(driver);
    let [event, privilege] = [0x40, 1 << 16];
    let address = if is_intel(vendor) {
        crate::registers::intel::PerfEvtSel::address(counter)
    } else {
        crate::registers::amd::PerfCtl::address(counter)
    };
    model.write(address, event | privilege);
    model.write(address, event | privilege | 1 << 22);
}

#[test]
fn they_count_whatever_the_driver_does() {
    for vendor in ALL {
        let (mut driver, counter) = driver_beside(vendor);
        select(&mut driver, vendor, counter);
        // A driver may leave the value that it wrote to test whether the counter is writable.
        let before = model(&mut driver).count_of(counter);
        let happened = |driver: &mut Driver<Model>| {
            happen(driver, false, 1);
            model(driver).count_of(counter) - before
        };
        let each = 640;
        assert_eq!(happened(&mut driver), each, "{vendor:?}: before any session");
        assert!(!driver.is_counting(), "{vendor:?}");
        let mut group = group(vendor, [1, 2, 3, 4], Mode::User);
        group.selectors[usize::from(counter)] = Selector(0);
        group.used &= !(1 << counter);
        driver.program(&group, &setup(Mode::User), SLICE);
        driver.enable();
        assert_eq!(happened(&mut driver), 2 * each, "{vendor:?}: in a session");
        assert!(driver.is_counting(), "{vendor:?}");
        driver.stop();
        assert_eq!(happened(&mut driver), 3 * each, "{vendor:?}: after it");
        assert!(!driver.is_counting(), "{vendor:?}");
    }
}
