//! Cycles of the interval pipeline by the number of micro-operations that execute in them, in
//! proportion to the cycles of its samples.

use crate::{counts::Counts, signal::Signal};

/// Number of kinds of cycles: by the number of micro-operations that execute, and idle ones by
/// cause.
pub(super) const KINDS: usize = Signal::EXECUTED.len() + Signal::IDLE.len();

fn signals() -> impl Iterator<Item = Signal> {
    Signal::EXECUTED.iter().chain(Signal::IDLE).copied()
}

/// Cycles of each kind.
pub(super) type Cycles = [u64; KINDS];

/// The kind of cycles that wait for a store, or for a load, or for neither.
pub(super) fn waiting(is_behind_memory: bool, is_store: bool) -> usize {
    let kind = match (is_behind_memory, is_store) {
        (false, _) => Signal::IdleEmpty,
        (true, false) => Signal::IdleLoads,
        (true, true) => Signal::IdleStores,
    };
    signals().position(|signal| signal == kind).unwrap_or_default()
}

/// Returns the engine's cycles of each kind.
pub(super) fn of(counts: &Counts) -> Cycles {
    let mut cycles = [0; KINDS];
    cycles.iter_mut().zip(signals()).for_each(|(cycles, signal)| *cycles = counts[signal]);
    cycles
}

/// Stores cycles of each kind.
pub(super) fn store(cycles: &Cycles, counts: &mut Counts) {
    cycles.iter().zip(signals()).for_each(|(cycles, signal)| counts[signal] = *cycles);
}

/// The share of each kind of cycles, in parts of 65,536.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shares([u32; KINDS]);

impl Shares {
    /// Computes shares in proportion to these cycles.
    pub(super) fn of(cycles: &[f32; KINDS]) -> Shares {
        let all: f32 = cycles.iter().sum();
        Shares(cycles.map(|own| if all > 0.0 { (65_536.0 * own / all) as u32 } else { 0 }))
    }

    /// Adds each kind's share of `cycles`, rounded down: monotone in `cycles`.
    pub(super) fn add(&self, cycles: u64, to: &mut Cycles) {
        to.iter_mut().zip(self.0).for_each(|(to, share)| *to += (cycles * u64::from(share)) >> 16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_divided_by_the_shares() {
        let mut seen = [0.0; KINDS];
        (seen[0], seen[4], seen[8]) = (1.0, 2.0, 1.0);
        let mut cycles = [5; KINDS];
        Shares::of(&seen).add(1_001, &mut cycles);
        assert_eq!(cycles, [255, 5, 5, 5, 505, 5, 5, 5, 255]);
        Shares::of(&[0.0; KINDS]).add(1_000, &mut cycles);
        assert_eq!(cycles.iter().sum::<u64>(), 1_045);
        let mut counts = Counts::ZERO;
        store(&cycles, &mut counts);
        assert_eq!((of(&counts), counts[Signal::Executed1]), (cycles, 255));
    }
}
