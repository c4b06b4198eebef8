//! Stalls by cause, and the exposed shares of penalties.

use crate::{cost::PARTS, counts::Counts, signal::Signal};

/// The number of causes.
pub(super) const CAUSES: usize = Signal::STALLS.len();

/// Time constant, in samples, of the exponentially weighted sums of lost slots and of activity.
const SAMPLES_OF_SLOTS: f32 = 4.0;
/// The number of causes of lost slots.
pub(super) const LOST: usize = Signal::LOST_SLOTS.len();
/// Cycles from which on they are divided among all causes; fewer are charged to one cause.
const MANY_CYCLES: u64 = 32;
/// Step of `order` from one charge to the next: 65,536 over the golden ratio, so that causes
/// alternate evenly.
const STEP: u16 = 40_503;

/// Division of lost slots among their causes, as cumulative shares in parts of 65,536. The last
/// cause has the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Division([u16; LOST - 1]);

impl Division {
    /// Computes the division in proportion to these slots; the last cause gets all if there are
    /// none.
    pub(super) fn of(slots: &[f32; LOST]) -> Division {
        let all: f32 = slots.iter().sum();
        let mut sum = 0.0;
        Division(std::array::from_fn(|index| {
            sum += slots[index];
            if all > 0.0 { (65_536.0 * sum / all) as u16 } else { 0 }
        }))
    }

    /// Charges cycles to their causes. Fewer than `MANY_CYCLES` go to one cause, which `order`
    /// selects.
    #[inline]
    pub(super) fn charge(self, cycles: u64, order: &mut u16, charged: &mut [u64; LOST]) {
        if cycles < MANY_CYCLES {
            *order = order.wrapping_add(STEP);
            let cause = self.0.iter().filter(|limit| *limit <= order).count();
            charged[cause] += cycles;
            return;
        }
        let mut before = 0;
        let parts = self.0.iter().map(|limit| (cycles * u64::from(*limit)) >> 16).chain([cycles]);
        for (of, upto) in charged.iter_mut().zip(parts) {
            *of += upto - before;
            before = upto;
        }
    }
}

/// The engine's lost slots by cause.
pub(super) fn lost_slots(counts: &Counts) -> [u64; LOST] {
    std::array::from_fn(|index| counts[Signal::LOST_SLOTS[index]])
}

/// Adds the growth during a sample to exponentially weighted sums.
pub(super) fn add_sample<const N: usize>(sums: &mut [f32; N], now: [u64; N], before: [u64; N]) {
    for (sum, (now, before)) in sums.iter_mut().zip(now.into_iter().zip(before)) {
        *sum += (now - before) as f32 - *sum / SAMPLES_OF_SLOTS;
    }
}

/// The exposed share of one kind of penalty, from sums in which older penalties weigh less.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    exposed: f32,
    of: f32,
    most: f32,
}

impl Share {
    /// A share without any penalties.
    pub(super) const fn of_none(most: f32) -> Share {
        Share { exposed: 0.0, of: 0.0, most }
    }

    /// Makes a share with a prior: `share`, with the weight of `of` cycles. The sums forget
    /// penalties older than about the last `most` cycles.
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

    /// The share after adding a prior of `share` with the weight of `of` cycles.
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
    /// Computes the cycles of each cause from its index.
    pub(super) fn of(cycles: impl FnMut(usize) -> f32) -> Stalls {
        Stalls(std::array::from_fn(cycles))
    }

    /// Removes at most `most` cycles of some causes, in their order; returns how many.
    pub(super) fn take(&mut self, causes: &[Signal], most: f32) -> f32 {
        let all = self.0.iter_mut().zip(Signal::STALLS);
        let mut sum = 0.0;
        for (own, _) in all.filter(|(_, cause)| causes.contains(cause)) {
            let taken = own.min(most - sum);
            *own -= taken;
            sum += taken;
        }
        sum
    }

    pub(super) fn sum(&self) -> f32 {
        self.0.iter().sum()
    }

    /// The index of the cause with the most cycles, and its cycles.
    pub(super) fn longest(&self) -> Option<(u8, f32)> {
        let all = (0..).zip(self.0).filter(|(_, cycles)| *cycles > 0.0);
        all.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_go_to_causes_in_their_proportion() {
        for slots in
            [[10.0, 0.0, 30.0, 0.0, 20.0, 40.0], [0.0; LOST], [0.0, 7.0, 0.0, 0.0, 0.0, 0.0]]
        {
            let all: f32 = slots.iter().sum();
            let division = Division::of(&slots);
            for cycles in [1, 31, 1_000] {
                let (mut order, mut charged) = (0, [0; LOST]);
                (0..1_000).for_each(|_| division.charge(cycles, &mut order, &mut charged));
                assert_eq!(charged.iter().sum::<u64>(), 1_000 * cycles);
                for (cause, got) in charged.iter().enumerate() {
                    let unknown = if cause == LOST - 1 { 1.0 } else { 0.0 };
                    let want = if all > 0.0 { slots[cause] / all } else { unknown };
                    let got = *got as f32 / (1_000 * cycles) as f32;
                    assert!((got - want).abs() < 0.003, "{slots:?}: {charged:?}");
                }
            }
        }
    }
}
