//! Hard identities: some events never exceed others (misses and accesses, for example), and
//! readings must obey that.
//!
//! Estimates of two events come from different slices, so a part may come out larger than its
//! whole. Both are moved to the nearest possible pair, with distances weighted by the variances:
//! the projection onto a half-space, for each bound in turn. An interval grows by the distance by
//! which its value was moved, so it still contains what it contained before.
//!
//! Successive readings must not decrease either ([`crate::Session::readings`]): if a part's higher
//! value was read already, its whole is raised. If the whole is exact, a part is lowered, but not
//! below its earlier reading: earlier readings obeyed the bounds, and wholes only grow. Uses
//! floating point: never in the overflow path.

use alloc::vec::Vec;

use libm::round;

use crate::Pinned;

/// A bound: the sum of some events never exceeds another event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Indices of the parts in the list of demands: events of which no two count the same
    /// occurrence.
    pub parts: Vec<u16>,
    /// The event that bounds the sum.
    pub whole: Whole,
}

/// The event that bounds the sum of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// An event, by its index in the list of demands.
    Event(u16),
    /// A pinned event, whether it is in the list of demands or not.
    Pinned(Pinned),
}

/// An event's value before it is reconciled with the others'.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Events, as estimated or counted.
    pub count: u64,
    /// Variance of the estimate; 0 if the value is exact, and then it is not moved.
    pub variance: f64,
    /// Value that [`reconcile`] returned the last time, a lower limit of the new value.
    pub floor: u64,
    /// Whether the value is known.
    pub known: bool,
}

/// Sweeps of projections, after which any remaining excess is removed by moving one side only.
const SWEEPS: usize = 8;

/// Moves the values of `items` so that all `bounds` hold, where `pinned` returns the counts of
/// [`Whole::Pinned`]. Returns the new values. Bounds of events that are not known are ignored, and
/// bounds between exact counts are not enforced.
pub fn reconcile(
    items: &[Candidate],
    bounds: &[Bound],
    pinned: &dyn Fn(Pinned) -> u64,
) -> Vec<u64> {
    let mut values: Vec<f64> = items.iter().map(|item| item.count as f64).collect();
    for _ in 0..SWEEPS {
        let moved = bounds.iter().filter(|bound| project(&mut values, items, bound, pinned));
        if moved.count() == 0 {
            break;
        }
    }
    let raised = values.iter().zip(items).map(|(value, item)| {
        let is_estimate = item.variance > 0.0;
        if is_estimate { (round(value.max(0.0)) as u64).max(item.floor) } else { item.count }
    });
    let mut values: Vec<u64> = raised.collect();
    // Floors and rounding may violate a bound: then wholes are raised to their parts or, where that
    // is impossible, parts lowered to their wholes. Each sweep settles at least one level.
    let steps: [Step; 2] = [raise_whole, lower_parts];
    for step in steps {
        for _ in 0..=bounds.len() {
            let moved = bounds.iter().filter(|bound| step(&mut values, items, bound, pinned));
            if moved.count() == 0 {
                break;
            }
        }
    }
    values
}

/// Moves one side of a bound. Returns whether a move was necessary.
type Step = fn(&mut [u64], &[Candidate], &Bound, &dyn Fn(Pinned) -> u64) -> bool;

/// The parts whose values are known.
fn parts<'a>(bound: &'a Bound, items: &'a [Candidate]) -> impl Iterator<Item = usize> + 'a {
    let index = |part: &u16| usize::from(*part);
    bound.parts.iter().map(index).filter(|part| items.get(*part).is_some_and(|item| item.known))
}

/// The whole, if it is an event with a known value.
fn whole(bound: &Bound, items: &[Candidate]) -> Option<usize> {
    let Whole::Event(event) = bound.whole else { return None };
    let event = usize::from(event);
    items.get(event).filter(|item| item.known).map(|_| event)
}

/// The sum of the parts, and the whole's value as the limit; `None` if the whole is not known.
fn excess<T: Copy + core::iter::Sum<T>>(
    values: &[T],
    items: &[Candidate],
    bound: &Bound,
    pinned: impl Fn(Pinned) -> T,
) -> Option<(T, T)> {
    let limit = match bound.whole {
        Whole::Pinned(event) => pinned(event),
        Whole::Event(_) => values[whole(bound, items)?],
    };
    Some((parts(bound, items).map(|part| values[part]).sum(), limit))
}

/// Moves parts and whole to the nearest values that obey the bound. Returns whether a move was
/// necessary.
fn project(
    values: &mut [f64],
    items: &[Candidate],
    bound: &Bound,
    pinned: &dyn Fn(Pinned) -> u64,
) -> bool {
    let Some((sum, limit)) = excess(values, items, bound, |event| pinned(event) as f64) else {
        return false;
    };
    let of_whole = whole(bound, items).map_or(0.0, |event| items[event].variance);
    let variance = of_whole + parts(bound, items).map(|part| items[part].variance).sum::<f64>();
    let too_much = sum - limit;
    if too_much <= 0.0 || variance <= 0.0 {
        return false;
    }
    for part in parts(bound, items) {
        values[part] = (values[part] - too_much * items[part].variance / variance).max(0.0);
    }
    if let Some(event) = whole(bound, items) {
        values[event] += too_much * of_whole / variance;
    }
    true
}

fn raise_whole(
    values: &mut [u64],
    items: &[Candidate],
    bound: &Bound,
    pinned: &dyn Fn(Pinned) -> u64,
) -> bool {
    let (Some((sum, limit)), Some(event)) =
        (excess(values, items, bound, pinned), whole(bound, items))
    else {
        return false;
    };
    let raises = sum > limit && items[event].variance > 0.0;
    if raises {
        values[event] = sum;
    }
    raises
}

/// Lowers the estimated parts to the whole, each in proportion to its room.
fn lower_parts(
    values: &mut [u64],
    items: &[Candidate],
    bound: &Bound,
    pinned: &dyn Fn(Pinned) -> u64,
) -> bool {
    let Some((sum, limit)) = excess(values, items, bound, pinned) else { return false };
    let mut too_much = sum.saturating_sub(limit);
    let before = too_much;
    let estimated = || parts(bound, items).filter(|part| items[*part].variance > 0.0);
    // A part falls below its floor only if a whole, or an exact count, was not known before.
    let floors: [fn(&Candidate) -> u64; 2] = [|item| item.floor, |_| 0];
    for floor in floors {
        let room = |values: &[u64], part: usize| values[part].saturating_sub(floor(&items[part]));
        let all: u64 = estimated().map(|part| room(values, part)).sum();
        let share = too_much.min(all) as f64 / all.max(1) as f64;
        for part in estimated() {
            let room = room(values, part);
            let less = ((room as f64 * share) as u64 + 1).min(room).min(too_much);
            values[part] -= less;
            too_much -= less;
        }
    }
    too_much < before
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    fn estimate(count: u64, stderr: f64) -> Candidate {
        Candidate { count, variance: stderr * stderr, floor: 0, known: true }
    }

    fn exact(count: u64) -> Candidate {
        Candidate { variance: 0.0, ..estimate(count, 0.0) }
    }

    fn bound(parts: &[u16], whole: u16) -> Bound {
        Bound { parts: parts.into(), whole: Whole::Event(whole) }
    }

    fn of(items: &[Candidate], bounds: &[Bound]) -> Vec<u64> {
        reconcile(items, bounds, &|_| 1000)
    }

    #[test]
    fn the_less_certain_gives_way() {
        let items = [estimate(110, 3.0), estimate(100, 1.0)];
        assert_eq!(of(&items, &[bound(&[0], 1)]), [101, 101]);
        // Values that obey the bound are not moved.
        assert_eq!(of(&items, &[bound(&[1], 0)]), [110, 100]);
        let items = [estimate(110, 3.0), exact(100)];
        assert_eq!(of(&items, &[bound(&[0], 1)]), [100, 100]);
        let kinds = [estimate(60, 1.0), estimate(60, 1.0), exact(100)];
        assert_eq!(of(&kinds, &[bound(&[0, 1], 2)]), [50, 50, 100]);
        let always = Bound { parts: vec![0], whole: Whole::Pinned(Pinned::Instructions) };
        assert_eq!(of(&[estimate(1100, 9.0)], &[always]), [1000]);
        let unknown = [estimate(9, 1.0), Candidate::default()];
        assert_eq!(of(&unknown, &[bound(&[0], 1)]), [9, 0]);
    }

    /// Random lists, in which any event may be part of an earlier one.
    fn lists() -> impl Strategy<Value = (Vec<Candidate>, Vec<Bound>)> {
        let item = (0_u64..1000, 0.1..50.0, 0_u64..900, 0_u8..8);
        let item = item.prop_map(|(count, stderr, floor, kind)| match kind {
            0 => Candidate::default(),
            _ => Candidate { floor, ..estimate(count, stderr) },
        });
        let whole = (1_u64..1000, any::<bool>());
        let bound = (prop::collection::btree_set(1_u16..12, 1..4), any::<prop::sample::Index>());
        let bounds = prop::collection::vec(bound, 1..10);
        (whole, prop::collection::vec(item, 11), bounds).prop_map(|(first, mut items, bounds)| {
            let (count, is_exact) = first;
            items.insert(0, if is_exact { exact(count) } else { estimate(count, 5.0) });
            let bounds = bounds.into_iter().map(|(parts, whole)| {
                let parts: Vec<u16> = parts.into_iter().collect();
                let whole = whole.index(usize::from(parts[0])) as u16;
                Bound { parts, whole: Whole::Event(whole) }
            });
            (items, bounds.collect())
        })
    }

    proptest! {
        #[test]
        fn every_bound_holds_and_exact_counts_stay((items, bounds) in lists()) {
            let values = of(&items, &bounds);
            for bound in &bounds {
                let Some((sum, limit)) = excess(&values, &items, bound, |_| 0) else { continue };
                prop_assert!(sum <= limit, "{bound:?} {values:?}");
            }
            for (value, item) in values.iter().zip(&items).filter(|(_, item)| item.variance == 0.0) {
                prop_assert_eq!(*value, item.count);
            }
        }

        /// Holds for all earlier readings, and however estimates change.
        #[test]
        fn values_that_obeyed_the_bounds_do_not_run_backwards(
            (mut items, bounds) in lists(),
            more in prop::collection::vec(0_u64..1000, 12),
        ) {
            let before = of(&items, &bounds);
            for ((item, before), count) in items.iter_mut().zip(&before).zip(more) {
                item.floor = *before;
                item.count = if item.variance > 0.0 { count } else { item.count + count };
            }
            let again = of(&items, &bounds);
            for ((now, item), before) in again.iter().zip(&items).zip(&before) {
                prop_assert!(!item.known || now >= before, "{before:?} {again:?}");
            }
        }

        /// A value falls below its floor only if an exact count requires it.
        #[test]
        fn nothing_runs_backwards_without_an_exact_count((mut items, bounds) in lists()) {
            items[0].variance = 9.0;
            let values = of(&items, &bounds);
            for (now, item) in values.iter().zip(&items).filter(|(_, item)| item.known) {
                prop_assert!(*now >= item.floor);
            }
            let again: Vec<Candidate> = items
                .iter()
                .zip(&values)
                .map(|(item, value)| Candidate { floor: *value, ..*item })
                .collect();
            prop_assert_eq!(of(&again, &bounds), values);
        }
    }
}
