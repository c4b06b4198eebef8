//! Plans with events that must be counted in the same slices: the braces of a list.
//!
//! The problem is bin packing, so the algorithm is greedy: braces with the most events first, each
//! into the first group with room for all of its events; then every other event, those with the
//! fewest choices first. An event takes another's counter if that one can move (augmenting paths),
//! so a group has room whenever a new assignment of its counters would have.

use alloc::{vec, vec::Vec};
use core::cmp::Reverse;

use super::{
    deal::{least, within},
    error::{Lack, PlanError},
    sharing::Sharing,
    wanted::{Spot, Wanted},
};
use crate::demand::{Layout, MAX_EXTRA, MAX_GENERAL};

/// Events that must be counted in the same slices: indices in the planner's list.
pub(super) struct Braces {
    pub(super) together: u16,
    pub(super) indices: Vec<usize>,
}

/// A spot for each of `wanted`, the number of groups, and its lower bound.
pub(super) fn arrange(
    wanted: &[Wanted],
    shares: &[u16],
    braces: &[Braces],
    layout: &Layout,
) -> Result<(Vec<Spot>, usize, usize), PlanError> {
    let mut bins: Vec<Bin> = Vec::new();
    let mut order: Vec<&Braces> = braces.iter().collect();
    order.sort_by_key(|braces| Reverse(braces.indices.len()));
    for Braces { together, indices } in order {
        let alone = Bin::default().with(wanted, indices).map_err(|lack| {
            let pairs = indices.iter().filter(|index| wanted[**index].pair.is_some()).count();
            let (counters, general) =
                ((indices.len() + pairs) as u16, layout.general.count_ones() as u8);
            let lack = if counters > general.into() { Lack::Counters } else { lack };
            PlanError::NoGroup { together: *together, counters, general, lack }
        })?;
        put(&mut bins, wanted, indices, alone);
    }
    let is_whole = |index: &usize| braces.iter().any(|braces| braces.indices.contains(index));
    let mut others: Vec<usize> = (0..wanted.len()).filter(|index| !is_whole(index)).collect();
    others.sort_by_key(|index| {
        let Wanted { counters, extra, alone, .. } = wanted[*index];
        (alone, extra.is_none(), counters.count_ones(), Reverse(shares[*index]))
    });
    for index in others {
        let alone = Bin::default().with(wanted, &[index]);
        put(&mut bins, wanted, &[index], alone.expect("the planner has checked each event"));
    }
    let mut spots = vec![Spot::default(); wanted.len()];
    for (group, bin) in bins.iter().enumerate() {
        bin.place(wanted, group, &mut spots);
    }
    Ok((spots, bins.len(), lower_bound(wanted, braces, layout)))
}

/// Puts events into the first bin that has room for them, or else into the new bin `alone`.
fn put(bins: &mut Vec<Bin>, wanted: &[Wanted], indices: &[usize], alone: Bin) {
    for bin in &mut *bins {
        if let Ok(with) = bin.with(wanted, indices) {
            *bin = with;
            return;
        }
    }
    bins.push(alone);
}

/// Lower bound of the groups: for the distinct events without their braces; and for disjoint braces
/// that need more than half of the counters each, of which no group holds two.
fn lower_bound(wanted: &[Wanted], braces: &[Braces], layout: &Layout) -> usize {
    let mut once = wanted.to_vec();
    once.sort_unstable();
    once.dedup();
    let together = || (0..once.len()).filter(|index| !once[*index].alone);
    let with_extra = together().filter(|index| once[*index].extra.is_some()).collect();
    let counters = within::<{ 1 << MAX_GENERAL }>(together().map(|index| once[index].counters));
    let bound = least(&counters).max(Sharing::of(&once, with_extra).least());
    let general = layout.general.count_ones() as usize;
    let mut large: Vec<Wanted> = Vec::new();
    let disjoint = |braces: &&Braces| {
        let of: Vec<Wanted> = braces.indices.iter().map(|index| wanted[*index]).collect();
        let is_large = 2 * of.len() > general && of.iter().all(|event| !large.contains(event));
        if is_large {
            large.extend(of);
        }
        is_large
    };
    let halves = braces.iter().filter(disjoint).count();
    bound.max(halves) + once.iter().filter(|event| event.alone).count()
}

/// A group that is being filled.
#[derive(Clone, Default)]
struct Bin {
    /// The event on each counter, by its index.
    on: [Option<usize>; MAX_GENERAL],
    /// Events equal to an event on a counter: both indices.
    same: Vec<(usize, usize)>,
}

impl Bin {
    fn events(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.on.iter().copied().flatten()
    }

    /// Returns the bin with these events added.
    fn with(&self, wanted: &[Wanted], indices: &[usize]) -> Result<Bin, Lack> {
        let mut bin = self.clone();
        for &index in indices {
            let same = bin.events().find(|on| wanted[*on] == wanted[index]);
            match same {
                Some(on) => bin.same.push((index, on)),
                None if bin.take(wanted, index, &mut 0) => {}
                None => return Err(Lack::Choices),
            }
        }
        let is_alone = bin.events().any(|event| wanted[event].alone);
        if is_alone && bin.events().count() > 1 {
            return Err(Lack::Alone);
        }
        bin.registers(wanted).map(|_| bin).ok_or(Lack::Registers)
    }

    /// Puts an event on one of its possible counters, moving that counter's event to another if
    /// necessary. `seen` are the counters tried so far.
    fn take(&mut self, wanted: &[Wanted], index: usize, seen: &mut u16) -> bool {
        for counter in (0..MAX_GENERAL).filter(|counter| wanted[index].counters >> counter & 1 == 1)
        {
            if *seen >> counter & 1 == 1 {
                continue;
            }
            *seen |= 1 << counter;
            if self.on[counter].is_none_or(|other| self.take(wanted, other, seen)) {
                self.on[counter] = Some(index);
                return true;
            }
        }
        false
    }

    /// The register of each event, by counter; `None` if the registers cannot hold all values.
    fn registers(&self, wanted: &[Wanted]) -> Option<[Option<usize>; MAX_GENERAL]> {
        let mut of = [None; MAX_GENERAL];
        self.hold(wanted, 0, &mut [None; MAX_EXTRA], &mut of).then_some(of)
    }

    fn hold(
        &self,
        wanted: &[Wanted],
        counter: usize,
        values: &mut [Option<u64>; MAX_EXTRA],
        of: &mut [Option<usize>; MAX_GENERAL],
    ) -> bool {
        let Some(on) = self.on.get(counter) else { return true };
        let Some(extra) = on.and_then(|index| wanted[index].extra) else {
            return self.hold(wanted, counter + 1, values, of);
        };
        for register in (0..MAX_EXTRA).filter(|register| extra.registers >> register & 1 == 1) {
            let before = values[register];
            if before.is_none_or(|value| value == extra.value) {
                (values[register], of[counter]) = (Some(extra.value), Some(register));
                if self.hold(wanted, counter + 1, values, of) {
                    return true;
                }
                values[register] = before;
            }
        }
        false
    }

    fn place(&self, wanted: &[Wanted], group: usize, spots: &mut [Spot]) {
        let registers = self.registers(wanted).expect("`with` has checked them");
        for (counter, on) in self.on.iter().enumerate() {
            if let Some(index) = *on {
                spots[index] = Spot { group, counter, register: registers[counter] };
            }
        }
        for (index, on) in &self.same {
            spots[*index] = spots[*on];
        }
    }
}
