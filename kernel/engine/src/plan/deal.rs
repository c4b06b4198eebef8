//! Dealing events to counters, or values to registers: `N` columns, and for each event the mask of
//! its possible columns. `SETS` is 2^`N`.
//!
//! By Hall's theorem events can be dealt with at most `capacity` to each column if and only if, for
//! every set *S* of columns, no more than `capacity`·|*S*| events are confined to columns of *S*.
//! So the smallest capacity is a maximum over all sets, and dealing needs no search: an event is
//! tied to any column for which the condition still holds afterwards.

/// Number of events that are confined to each set of columns.
pub(super) type Within<const SETS: usize> = [u16; SETS];

/// Counts events by the sets of columns to which they are confined.
pub(super) fn within<const SETS: usize>(
    masks: impl Iterator<Item = impl Into<usize>>,
) -> Within<SETS> {
    let mut within = [0; SETS];
    for mask in masks {
        within[mask.into() % SETS] += 1;
    }
    // Adds to each set the events confined to its subsets, column by column.
    let columns = (0..).map(|column| 1 << column).take_while(|bit| *bit < SETS);
    for bit in columns {
        for set in (0..SETS).filter(|set| set & bit != 0) {
            within[set] += within[set ^ bit];
        }
    }
    within
}

/// The smallest capacity with which all events can be dealt.
pub(super) fn least<const SETS: usize>(within: &Within<SETS>) -> usize {
    let sets = within.iter().enumerate().skip(1);
    sets.map(|(set, n)| usize::from(*n).div_ceil(set.count_ones() as usize)).max().unwrap_or(0)
}

/// A deal in progress.
#[derive(Clone, Debug)]
pub(super) struct Deal<const N: usize, const SETS: usize> {
    /// Events confined to each set; an event tied to a column counts as confined to that column.
    within: Within<SETS>,
    /// Number of events in each column so far.
    load: [usize; N],
    capacity: usize,
    /// Number of sets to examine: sets with higher columns are not needed.
    sets: usize,
}

impl<const N: usize, const SETS: usize> Deal<N, SETS> {
    /// Starts a deal of the events in `within`, with at least their [`least`] capacity.
    pub(super) fn new(within: Within<SETS>, capacity: usize) -> Self {
        const { assert!(1 << N == SETS) };
        // A set is redundant if its column adds no events to it.
        let used =
            (0..N).rev().find(|column| within[SETS - 1] != within[(SETS - 1) ^ (1 << column)]);
        Deal { within, load: [0; N], capacity, sets: used.map_or(1, |column| 2 << column) }
    }

    /// Ties an event with the possible columns `mask` to one of them: the least loaded that leaves
    /// room for all other events. One exists.
    pub(super) fn tie(&mut self, mask: impl Into<usize>) -> usize {
        let mask = mask.into();
        let choices = (0..N).filter(|column| mask >> column & 1 == 1);
        let column = choices
            .filter(|column| self.leaves_room(mask, *column))
            .min_by_key(|column| self.load[*column])
            .expect("Hall's condition holds for the event's set, so for one of its columns");
        self.put(mask, column);
        column
    }

    /// Ties an event to this column if that leaves room for all other events. Returns whether it
    /// does.
    pub(super) fn tie_to(&mut self, mask: impl Into<usize>, column: usize) -> bool {
        let mask = mask.into();
        let leaves_room = self.leaves_room(mask, column);
        if leaves_room {
            self.put(mask, column);
        }
        leaves_room
    }

    fn put(&mut self, mask: usize, column: usize) {
        for set in self.newly_within(mask, column) {
            self.within[set] += 1;
        }
        self.load[column] += 1;
    }

    /// Undoes [`Self::tie_to`].
    pub(super) fn untie(&mut self, mask: impl Into<usize>, column: usize) {
        for set in self.newly_within(mask.into(), column) {
            self.within[set] -= 1;
        }
        self.load[column] -= 1;
    }

    /// Maximum cost of [`Self::tie_to`], in sets examined.
    pub(super) fn cost(&self) -> usize {
        self.sets
    }

    /// Number of events in a column so far.
    pub(super) fn load(&self, column: usize) -> usize {
        self.load[column]
    }

    fn leaves_room(&self, mask: usize, column: usize) -> bool {
        self.newly_within(mask, column)
            .all(|set| usize::from(self.within[set]) < self.capacity * set.count_ones() as usize)
    }

    /// The sets to which an event becomes confined when it is tied to `column`.
    fn newly_within(
        &self,
        mask: usize,
        column: usize,
    ) -> impl Iterator<Item = usize> + use<N, SETS> {
        (0..self.sets).filter(move |set| set >> column & 1 == 1 && mask & !set != 0)
    }
}
