//! The cost of a block in the interval pipeline.

use super::exposure::CAUSES;
use crate::cost::PARTS;

/// Bits of a cause's index.
const CAUSE_BITS: u32 = 4;
/// The largest cost, in parts of a cycle.
const MOST_PARTS: i32 = 1 << 26;
const _: () = assert!(CAUSES <= 1 << CAUSE_BITS);

/// A block's cost in parts of a cycle. Some of the parts are stalls, all with the same cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// All parts. Can be negative, as cycles of penalties can hide slots.
    parts: i32,
    /// Parts that are stalls; the lowest bits contain the index of the cause.
    stalled: u32,
}

impl Cost {
    /// The cost of a block that was in no sample; nothing is charged for it.
    pub(super) const UNKNOWN: Cost = Cost { parts: 0, stalled: u32::MAX };

    /// No cost.
    pub(super) const NOTHING: Cost = Cost { parts: 0, stalled: 0 };

    #[inline]
    pub(super) fn is_unknown(self) -> bool {
        self.stalled == u32::MAX
    }

    pub(super) fn new(cycles: f32, stalled: f32, cause: u8) -> Cost {
        let parts = |cycles: f32| (cycles * PARTS as f32) as i32;
        let parts_of_all = parts(cycles).clamp(-MOST_PARTS, MOST_PARTS);
        let stalled = parts(stalled).clamp(0, parts_of_all.max(0)) as u32;
        Cost { parts: parts_of_all, stalled: stalled << CAUSE_BITS | u32::from(cause) }
    }

    #[inline]
    pub(super) fn parts(self) -> i64 {
        self.parts.into()
    }

    #[inline]
    pub(super) fn stalled_parts(self) -> i64 {
        (self.stalled >> CAUSE_BITS).into()
    }

    #[inline]
    pub(super) fn cause(self) -> usize {
        self.stalled as usize & ((1 << CAUSE_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cost_is_the_unknown_one() {
        assert!(Cost::UNKNOWN.is_unknown());
        assert!(!Cost::new(1e9, 1e9, CAUSES as u8 - 1).is_unknown());
    }

    #[test]
    fn a_cost_keeps_parts_and_cause() {
        let most = MOST_PARTS.into();
        for (cycles, stalled, parts) in [
            (0.0, 0.0, (0, 0)),
            (1.5, 0.5, (384, 128)),
            (-0.25, 1.0, (-64, 0)),
            (1.0, 2.0, (256, 256)),
            (1e9, 1e9, (most, most)),
        ] {
            for cause in 0..CAUSES as u8 {
                let cost = Cost::new(cycles, stalled, cause);
                assert_eq!((cost.parts(), cost.stalled_parts()), parts);
                assert_eq!(cost.cause(), cause.into());
            }
        }
    }
}
