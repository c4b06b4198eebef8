//! Accumulators of signals: one for each, and narrow ones for the signals that blocks add most
//! often.
//!
//! Invariant: the counts of the first signals are determined by a block's bytes alone; a block adds
//! them as one short vector ([`Lanes`]).

use std::ops::{Index, IndexMut};

use crate::signal::{STATIC_SIGNALS, Signal};

/// The number of signals in [`Lanes`]: the first ones, which occur in most blocks.
const LANES: usize = 16;

/// Sums of the first signals over some blocks, narrow enough that adding a block's counts is two
/// vector additions.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct Lanes([u16; LANES]);

// No lane overflows before it is cleared; the addition relies on it.
const _: () = assert!(Lanes::BLOCKS as u32 * Lanes::MAX <= u16::MAX as u32);

impl Lanes {
    pub(crate) const ZERO: Lanes = Lanes([0; LANES]);
    /// The number of blocks that the sums can contain.
    pub(crate) const BLOCKS: u16 = 256;
    /// Maximum count that one block may add to any signal.
    const MAX: u32 = (u16::MAX / Lanes::BLOCKS) as u32;

    /// A block's counts as lanes, if they are small and the block counts no other signals.
    pub(crate) fn of(counts: &[u32; STATIC_SIGNALS]) -> Option<Lanes> {
        let (first, others) = counts.split_at(LANES);
        let fits = first.iter().all(|count| *count <= Lanes::MAX)
            && others.iter().all(|count| *count == 0);
        fits.then(|| Lanes(std::array::from_fn(|lane| first[lane] as u16)))
    }

    /// Clears a signal, if it has a lane.
    pub(crate) fn clear(&mut self, signal: Signal) {
        if let Some(lane) = self.0.get_mut(signal as usize) {
            *lane = 0;
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, other: &Lanes) {
        // Read and written as a whole, so that it compiles to vector additions.
        self.0 = std::array::from_fn(|lane| self.0[lane] + other.0[lane]);
    }
}

/// Accumulators, one for each signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts([u64; Signal::ALL.len()]);

impl Counts {
    /// All zero.
    pub const ZERO: Counts = Counts([0; Signal::ALL.len()]);

    /// Adds the counts between two snapshots.
    pub fn add_difference(&mut self, from: &Counts, to: &Counts) {
        for (sum, (from, to)) in self.0.iter_mut().zip(from.0.iter().zip(&to.0)) {
            *sum += to - from;
        }
    }

    /// Adds the sums of some blocks.
    pub(crate) fn add_lanes(&mut self, lanes: &Lanes) {
        for (acc, lane) in self.0.iter_mut().zip(&lanes.0) {
            *acc += u64::from(*lane);
        }
    }

    /// Adds a block's counts of the static signals.
    pub(crate) fn add_static(&mut self, counts: &[u32; STATIC_SIGNALS]) {
        for (acc, count) in self.0.iter_mut().zip(counts) {
            *acc += u64::from(*count);
        }
    }
}

impl Index<Signal> for Lanes {
    type Output = u16;
    #[inline]
    fn index(&self, signal: Signal) -> &u16 {
        &self.0[signal as usize]
    }
}

impl Index<Signal> for Counts {
    type Output = u64;
    #[inline]
    fn index(&self, signal: Signal) -> &u64 {
        &self.0[signal as usize]
    }
}

impl IndexMut<Signal> for Counts {
    #[inline]
    fn index_mut(&mut self, signal: Signal) -> &mut u64 {
        &mut self.0[signal as usize]
    }
}
