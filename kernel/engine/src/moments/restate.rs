//! Restatement of a group's sums, as if it had always been counted for its present fraction of the
//! time.

use super::{Base, GroupMoments, ONE};

impl GroupMoments {
    /// Restates all sums as if the group had always had `share` of a round's slices (decision 11).
    /// Runs in the overflow path, between two slices of the group, once per change of shares.
    #[cold]
    #[inline(never)]
    pub fn restate(&mut self, share: u16, round: u64) {
        let old = core::mem::replace(&mut self.share, share).max(1);
        self.restate_as([(old, round), (share, round)]);
    }

    /// Rescales all sums from a cycle of `old` slices to a cycle of `new` slices, as if the group
    /// had always had its share of `new` slices: other sessions have turns between its own
    /// (decision 85).
    #[cold]
    #[inline(never)]
    pub fn restate_turns(&mut self, [old, new]: [u64; 2]) {
        let share = self.share.max(1);
        self.restate_as([(share, old), (share, new)]);
    }

    /// Multiplies sums of counts by the ratio of the fractions of time for which the group is and
    /// was counted, its share of all slices, and sums of squares by the factor that preserves the
    /// error; some six hundred instructions.
    fn restate_as(&mut self, [(old, all_then), (new, all_now)]: [(u16, u64); 2]) {
        self.break_block();
        if self.slices == 0 {
            return;
        }
        let [then, now] = [all_then, all_now].map(|all| u128::from(all.max(1)));
        let ratio = (((u128::from(new) * then) << 32) / (u128::from(old) * now)) as u64;
        let left = |all: u64, share: u16| u128::from(all.saturating_sub(share.into()).max(1));
        let squared = (u128::from(ratio) * u128::from(ratio)) >> 32;
        let squared = squared * left(all_then, old) * now / (left(all_now, new) * then);
        let squared = squared as u64;
        let (cycles, weight) = (self.counted_cycles(), self.weight());
        self.sums = self.sums.map(|sum| ((u128::from(sum) * u128::from(ratio)) >> 32) as u64);
        self.restated.cycles = cycles.wrapping_sub(self.sums[Base::Cycles as usize]);
        let weight = times(weight.into(), squared) as u64;
        self.restated.weight = weight.wrapping_sub(self.slices.wrapping_mul(ONE));
        for pairs in &mut self.pairs {
            pairs.weight = times(pairs.weight.into(), squared) as u64;
            let once = times(pairs.squared_weight.into(), squared);
            pairs.squared_weight = times(once, squared) as u64;
            pairs.squares = pairs.squares.map(|sum| times(sum, squared));
        }
        for event in &mut self.events {
            let whole = u128::from(event.events) * u128::from(ratio)
                + ((u128::from(event.fraction) * u128::from(ratio)) >> 32);
            let counted = event.counted();
            (event.events, event.fraction) = ((whole >> 32) as u64, whole as u32);
            event.restated = counted.wrapping_sub(event.events);
            for pairs in &mut event.pairs {
                pairs.squares = times(pairs.squares, squared);
                pairs.products = pairs.products.map(|sum| times(sum, squared));
                for pair in &mut pairs.largest {
                    pair.weight = times(pair.weight.into(), squared) as i64;
                }
            }
        }
    }
}

/// `sum` times `factor`, a factor in units of 2⁻³², rounded to the nearest: a rare event's sum may
/// be small.
fn times(sum: i128, factor: u64) -> i128 {
    let factor = i128::from(factor);
    let low = (i128::from(sum as u32) * factor + (1 << 31)) >> 32;
    (sum >> 32).wrapping_mul(factor).wrapping_add(low)
}
