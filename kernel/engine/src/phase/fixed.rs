//! Fixed-point arithmetic of an interval: few instructions, no division by 128 bits, no loop.
//!
//! Values have [`BITS`] fraction bits. Roots come from a table and are within 0.5 %: only bars need
//! them.

/// Fraction bits of costs, bars and roots.
pub(super) const BITS: u32 = 8;
/// Fraction bits of shares of an interval.
pub(super) const SHARE_BITS: u32 = 20;
/// Maximum of a cost, in cycles per 1,000 instructions, without fraction bits.
pub(super) const MOST_COST: u64 = 1 << 28;
/// Maximum of a cost's bar. Squares of bars with their fraction bits fit 61 bits, so that the sum
/// of eight events' squares fits 64.
pub(super) const MOST_BAR: u64 = 1 << 22;

/// √(i + ½), with [`BITS`] fraction bits, for the 8 leading bits i of a normalized number.
const ROOTS: [u16; 256] = {
    let mut roots = [0; 256];
    let mut index = 64;
    while index < 256 {
        roots[index] = (((2 * index as u64 + 1) << (2 * BITS - 1)).isqrt()) as u16;
        index += 1;
    }
    roots
};

/// The root of an integer, with [`BITS`] fraction bits, within 0.5 %; 0 for 0.
#[inline]
pub(super) fn root(value: u64) -> u64 {
    // An even number of bits, so that the exponent halves.
    let shift = (value | 1).leading_zeros() & !1;
    let leading = (value << shift) >> (u64::BITS - 8);
    let root = ROOTS.get(leading as usize).copied().unwrap_or_default();
    (u64::from(root) << 28) >> (shift / 2)
}

/// `value` · `factor` without its lowest `bits` bits, at most `most`.
#[inline]
pub(super) fn scaled(value: u64, factor: u64, bits: u32, most: u64) -> u64 {
    let product = (u128::from(value) * u128::from(factor)) >> bits;
    // The callers' bounds keep the product below 2^64.
    (product as u64).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_within_their_bound() {
        assert_eq!(root(0), 0);
        let values = (1..100_000).chain((0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + power / 3, power + (power - 1)]
        }));
        for value in values.filter(|value| *value > 0) {
            let exact = (value as f64).sqrt();
            let got = root(value) as f64 / f64::from(1 << BITS);
            assert!((got - exact).abs() <= 0.005 * exact + 1.0 / 256.0, "{value}: {got}");
        }
    }
}
