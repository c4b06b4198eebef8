//! Exhaustive search of a plan, the judge of the planner's.

use tally_engine::MAX_GENERAL;

/// Returns whether `masks` can be put on counters with at most `capacity` on each.
pub fn fits(masks: &[u16], load: &mut [usize; MAX_GENERAL], capacity: usize) -> bool {
    let Some((first, rest)) = masks.split_first() else { return true };
    (0..MAX_GENERAL).any(|counter| {
        if first >> counter & 1 == 0 || load[counter] == capacity {
            return false;
        }
        load[counter] += 1;
        let fits = fits(rest, load, capacity);
        load[counter] -= 1;
        fits
    })
}
