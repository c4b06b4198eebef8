//! Stalls by cause, and the exposed shares of penalties.

use std::mem;

use crate::signal::Signal;

/// Parts of a cycle in which costs are kept.
pub(super) const PARTS: u32 = 256;
/// The number of causes.
pub(super) const CAUSES: usize = Signal::STALLS.len();

/// The exposed share of a kind of penalties, by sums in which older ones count less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    exposed: f32,
    of: f32,
    most: f32,
}

impl Share {
    /// Of no penalty.
    pub(super) const fn of_none(most: f32) -> Share {
        Share { exposed: 0.0, of: 0.0, most }
    }

    /// A share that is assumed until penalties of more than `of` are known; of about `most` it is
    /// the mean.
    pub(super) fn new(share: f32, of: f32, most: f32) -> Share {
        Share { exposed: share * of, of, most }
    }

    pub(super) fn add(&mut self, exposed: f32, of: f32) {
        self.exposed += exposed;
        self.of += of;
        if self.of > self.most {
            self.exposed *= self.most / self.of;
            self.of = self.most;
        }
    }

    pub(super) fn get(&self) -> f32 {
        self.exposed / self.of
    }

    /// The share in a sum with `of` penalties of another share.
    pub(super) fn with(&self, share: f32, of: f32) -> f32 {
        (self.exposed + share * of) / (self.of + of)
    }

    pub(super) fn parts(&self) -> u32 {
        (self.get() * PARTS as f32) as u32
    }
}

/// Cycles without retirement by cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalls([f32; CAUSES]);

impl Stalls {
    /// The cycles of each cause, by its index.
    pub(super) fn of(cycles: impl FnMut(usize) -> f32) -> Stalls {
        Stalls(std::array::from_fn(cycles))
    }

    /// Takes the cycles of some causes out.
    pub(super) fn take(&mut self, causes: &[Signal]) -> f32 {
        let all = self.0.iter_mut().zip(Signal::STALLS);
        all.filter(|(_, cause)| causes.contains(cause)).map(|(own, _)| mem::take(own)).sum()
    }

    /// Takes cycles of a cause out, at most so many.
    pub(super) fn take_most(&mut self, cause: Signal, most: f32) -> f32 {
        let own = self.0.iter_mut().zip(Signal::STALLS).find(|(_, other)| **other == cause);
        own.map_or(0.0, |(own, _)| {
            let taken = own.min(most);
            *own -= taken;
            taken
        })
    }

    pub(super) fn sum(&self) -> f32 {
        self.0.iter().sum()
    }

    /// The index of the cause with the most cycles, and these.
    pub(super) fn longest(&self) -> Option<(u8, f32)> {
        let all = (0..).zip(self.0).filter(|(_, cycles)| *cycles > 0.0);
        all.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}
