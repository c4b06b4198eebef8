//! Sums of a session's slices in strata of instructions per cycle (IPC).
//!
//! Cycles and instructions of every slice are known, whatever group was counted in it. A program's
//! phases differ in IPC, and their events with it. So slices are classified by IPC, in [`STRATA`]
//! strata of a sixteenth of an octave, and each group has its sums in each. [`crate::estimate`]
//! computes estimates from them (decision 72).
//!
//! [`Strata::add`] runs when rows are folded outside of the overflow interrupt: integers, no
//! allocation, no panic, two cache lines and one to three for each event. The sums have the size of
//! those of [`crate::moments`], and cannot overflow for the same reasons.

use alloc::{boxed::Box, vec};

use crate::{Counts, Pinned, Plan, for_each_counter};

/// Number of strata: from an IPC of an eighth to eight. The first and the last stratum also contain
/// all slices beyond.
pub const STRATA: usize = 96;
/// Strata in an octave.
const PER_OCTAVE: i32 = 16;
/// The stratum of an IPC of one.
const MIDDLE: i32 = STRATA as i32 / 2;

/// The slices of one group in one stratum, with x the cycles of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slices {
    /// Number of slices.
    pub number: u64,
    /// Σ x.
    pub cycles: u64,
    /// Σ x².
    pub squares: u128,
}

/// Sums over the same slices of one event, with y its events in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Slices with at least one event.
    pub met: u64,
    /// Σ y.
    pub events: u64,
    /// Σ y².
    pub squares: u128,
    /// Σ x·y.
    pub products: u128,
}

/// The sums of a session.
#[derive(Clone, Debug)]
pub struct Strata {
    /// Σ x of all slices, by stratum.
    cycles: [u64; STRATA],
    groups: Box<[Members]>,
    /// Slices by group and stratum.
    slices: Box<[Slices]>,
    /// Events by group, stratum and event of the group.
    events: Box<[Events]>,
}

/// Position of a group's events.
#[derive(Clone, Copy, Debug)]
struct Members {
    /// The group's counters, as a mask.
    used: u16,
    /// Index of the group's first event in the first stratum.
    first: usize,
}

impl Members {
    fn number(self) -> usize {
        self.used.count_ones() as usize
    }
}

impl Strata {
    /// Makes empty strata for the groups of `plan`.
    pub(crate) fn of(plan: &Plan) -> Strata {
        let mut places = 0;
        let members = |group: &crate::Group| {
            let members = Members { used: group.used, first: places };
            places += members.number() * STRATA;
            members
        };
        let groups: Box<[Members]> = plan.groups.iter().map(members).collect();
        Strata {
            cycles: [0; STRATA],
            slices: vec![Slices::default(); groups.len() * STRATA].into(),
            events: vec![Events::default(); places].into(),
            groups,
        }
    }

    /// Bytes that the strata take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.groups) + size_of_val(&*self.slices) + size_of_val(&*self.events)
    }

    /// Adds a slice of a group.
    pub(crate) fn add(&mut self, group: u16, slice: &Counts) {
        let (cycles, instructions) = (slice[Pinned::Cycles], slice[Pinned::Instructions]);
        let Some(members) = self.groups.get(usize::from(group)).filter(|_| cycles > 0) else {
            return;
        };
        let stratum = stratum(cycles, instructions);
        self.cycles[stratum] = self.cycles[stratum].wrapping_add(cycles);
        let place = usize::from(group) * STRATA + stratum;
        if let Some(slices) = self.slices.get_mut(place) {
            slices.number += 1;
            slices.cycles = slices.cycles.wrapping_add(cycles);
            slices.squares = slices.squares.wrapping_add(product(cycles, cycles));
        }
        let mut place = members.first + stratum * members.number();
        for_each_counter(members.used, |counter| {
            let count = slice.general[counter];
            if let Some(event) = self.events.get_mut(place) {
                event.met += u64::from(count > 0);
                event.events = event.events.wrapping_add(count);
                event.squares = event.squares.wrapping_add(product(count, count));
                event.products = event.products.wrapping_add(product(cycles, count));
            }
            place += 1;
        });
    }

    /// By stratum: the cycles of all slices, the sums of the group's slices, and those of the event
    /// on this counter.
    pub(crate) fn sums(
        &self,
        group: u16,
        counter: u8,
    ) -> impl Iterator<Item = (u64, Slices, Events)> + '_ {
        let none = Members { used: 0, first: 0 };
        let members = self.groups.get(usize::from(group)).copied().unwrap_or(none);
        let before = members.used & ((1 << (counter % 16)) - 1);
        let place = members.first + before.count_ones() as usize;
        let first = usize::from(group) * STRATA;
        let slices = self.slices.get(first..).unwrap_or_default().iter();
        let events = self.events.get(place..).unwrap_or_default().iter();
        let events = events.step_by(members.number().max(1));
        let sums = self.cycles.iter().zip(slices.zip(events));
        sums.map(|(cycles, (slices, events))| (*cycles, *slices, *events))
    }
}

fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// The stratum of a slice.
pub(crate) fn stratum(cycles: u64, instructions: u64) -> usize {
    let place = MIDDLE + log2(instructions) - log2(cycles);
    place.clamp(0, STRATA as i32 - 1) as usize
}

/// The logarithm to the base 2, in units of 1 / [`PER_OCTAVE`], rounded down; 0 counts as 1.
fn log2(value: u64) -> i32 {
    /// Value of the six bits after the first: 16 · log₂(1 + i / 64), rounded down.
    const FRACTION: [u8; 64] = [
        0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8,
        8, 9, 9, 9, 9, 10, 10, 10, 10, 10, 11, 11, 11, 11, 12, 12, 12, 12, 12, 13, 13, 13, 13, 13,
        14, 14, 14, 14, 14, 15, 15, 15, 15, 15,
    ];
    let value = value.max(1);
    let exponent = value.ilog2();
    // The leading 1 is shifted out.
    let after = (value << (u64::BITS - 1 - exponent)) << 1;
    let fraction = FRACTION[(after >> (u64::BITS - 6)) as usize % FRACTION.len()];
    exponent as i32 * PER_OCTAVE + i32::from(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_first_seven_bits() {
        for value in (1..200_000).chain([1 << 40, u64::MAX]) {
            let exact = (value as f64).log2() * 16.0;
            let rounded = f64::from(log2(value));
            assert!((exact - 1.4..=exact + 1e-9).contains(&rounded), "{value}: {exact} {rounded}");
        }
        assert_eq!(log2(0), 0);
    }

    #[test]
    fn strata_are_sixteenths_of_an_octave_and_the_ends_have_the_rest() {
        assert_eq!(stratum(200_000, 200_000), 48);
        assert_eq!(stratum(200_000, 400_000), 64);
        assert_eq!((stratum(1 << 30, 0), stratum(1, 1 << 30)), (0, STRATA - 1));
    }
}
