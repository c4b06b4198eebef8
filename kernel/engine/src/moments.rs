//! What the overflow path remembers of a group's slices: sums of integers, from which
//! [`crate::estimate`] computes estimates and errors later.
//!
//! Slices of one group are a systematic sample in time: one at a random place in each round. Their
//! spread about a common mean would blame the program's slow changes on sampling, so the spread
//! between *successive* slices is kept instead, as sums of products of differences.
//!
//! [`GroupMoments::add`] runs in the overflow path: no allocation, no floating point, no panic, at
//! most eight counters. The sums cannot overflow: a slice is at most 2³⁰ cycles, so a difference is
//! below 2³⁴ at sixteen events a cycle, and 2⁵⁸ slices fit.

use crate::{Counts, MAX_GENERAL};

/// What rates can be taken by: known exactly in total, and counted in every slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Events per core cycle.
    Cycles,
    /// Events per instruction.
    Instructions,
}

impl Base {
    /// Both.
    pub const ALL: [Base; 2] = [Base::Cycles, Base::Instructions];
}

/// One number for each [`Base`].
pub type PerBase<T> = [T; 2];

/// The slices of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventMoments {
    /// Σ y: events in all slices.
    pub events: u64,
    /// Σ Δy²: over successive slices.
    pub squares: i128,
    /// Σ Δy·Δx, for each base x.
    pub products: PerBase<i128>,
    last: u64,
}

/// The slices of one group: its bases, and the event on each of its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMoments {
    /// Slices in which anything was counted.
    pub slices: u64,
    /// Σ x, for each base.
    pub sums: PerBase<u64>,
    /// Σ Δx², for each base.
    pub squares: PerBase<i128>,
    /// By counter.
    pub events: [EventMoments; MAX_GENERAL],
    last: PerBase<u64>,
}

impl GroupMoments {
    /// Takes in one slice.
    pub fn add(&mut self, slice: &Counts) {
        if *slice == Counts::default() {
            return;
        }
        let x = [slice.cycles, slice.instructions];
        let first = self.slices == 0;
        let mut dx = [0; 2];
        for (dx, (x, last)) in dx.iter_mut().zip(x.iter().zip(self.last)) {
            *dx = if first { 0 } else { difference(*x, last) };
        }
        for (event, y) in self.events.iter_mut().zip(slice.general) {
            let dy = if first { 0 } else { difference(y, event.last) };
            event.events = event.events.wrapping_add(y);
            event.squares += dy * dy;
            for (product, dx) in event.products.iter_mut().zip(dx) {
                *product += dy * dx;
            }
            event.last = y;
        }
        for ((sum, square), (x, dx)) in
            self.sums.iter_mut().zip(&mut self.squares).zip(x.into_iter().zip(dx))
        {
            *sum = sum.wrapping_add(x);
            *square += dx * dx;
        }
        self.last = x;
        self.slices += 1;
    }
}

fn difference(now: u64, then: u64) -> i128 {
    i128::from(now) - i128::from(then)
}
