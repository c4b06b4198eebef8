//! Extra registers: values that some events need besides a counter.

use tally_engine::{MAX_EXTRA, Switch, for_each_counter};

use super::Intel;
use crate::{
    Bus,
    bus::CountingBus,
    registers::{
        Register,
        intel::{OffcoreRsp, PebsFrontend},
    },
};

/// Number of MSR_PEBS_FRONTEND among the extra registers; 0 and 1 are MSR_OFFCORE_RSP_0 and 1.
const FRONTEND: usize = 2;
const _: () = assert!(FRONTEND < MAX_EXTRA);
/// Value that each extra register can have.
const PROBE: u64 = 0x11;
const _: () = assert!(PROBE & !(OffcoreRsp::VALID & PebsFrontend::VALID) == 0);

/// Returns the planner's number for an extra register; `None` for one that is not driven.
pub(crate) fn extra_register(msr: u32) -> Option<u8> {
    match msr {
        PebsFrontend::FIRST => Some(FRONTEND as u8),
        _ => (0..2).find(|index| OffcoreRsp::address(*index) == msr),
    }
}

/// Returns the address of the extra register with the planner's number.
pub(crate) fn extra_address(number: u8) -> u32 {
    match usize::from(number) {
        FRONTEND => PebsFrontend::FIRST,
        0 | 1 => OffcoreRsp::address(number),
        _ => 0,
    }
}

/// Returns the registers of the mask `extra` that exist, and clears them. CPUID does not enumerate
/// them: they follow from the model, which a hypervisor shows without them. One that ignores
/// accesses keeps no value (Linux probes in the same way, `check_msr`).
pub(super) fn present_extra<B: Bus>(bus: &mut CountingBus<B>, extra: u8) -> u8 {
    let mut present = 0;
    for_each_counter(extra, |number| {
        let kept = match number {
            FRONTEND => keeps_a_value(bus, 0, PebsFrontend),
            _ => keeps_a_value(bus, number as u8, OffcoreRsp),
        };
        present |= u8::from(kept) << number;
    });
    present
}

/// Returns whether a register keeps a value, and clears it.
fn keeps_a_value<B: Bus, R: Register>(
    bus: &mut CountingBus<B>,
    index: u8,
    make: impl Fn(u64) -> R,
) -> bool {
    bus.try_put(index, make(PROBE))
        && bus.try_get::<R>(index).is_some_and(|kept| kept.raw() == PROBE)
        && bus.try_put(index, make(0))
}

impl<B: Bus> Intel<B> {
    /// [`Self::load_extra`] for a switch, which tests the mask and does not need it.
    #[cold]
    #[inline(never)]
    pub(super) fn load_extra_of(&mut self, next: &Switch) {
        self.load_extra(next.extra, &next.extra_values);
    }

    /// Writes the values that a group needs into extra registers where they differ. To be called
    /// before its selectors are written, while nothing counts: an event must not be counted with
    /// another event's value.
    pub(super) fn load_extra(&mut self, used: u8, values: &[u64; MAX_EXTRA]) {
        for_each_counter(used, |number| {
            let number = number % MAX_EXTRA;
            if self.extra[number] != values[number] {
                // One access for each value that changes.
                self.put_extra(number, values[number]);
            }
        });
    }

    pub(super) fn put_extra(&mut self, number: usize, value: u64) {
        match number {
            FRONTEND => self.bus.put(0, PebsFrontend(value)),
            _ => self.bus.put(number as u8, OffcoreRsp(value)),
        }
        self.extra[number % MAX_EXTRA] = value;
    }
}
