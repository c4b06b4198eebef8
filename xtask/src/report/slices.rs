//! The slices of a session, from their records.

use tally_abi::trace::{End, SlicePlace, SliceRecord};
use tally_engine::{Plan, plan::CounterAssignment};

/// Counts of a slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    /// The group on the counters.
    pub group: u16,
    /// Core cycles.
    pub cycles: u64,
    /// Instructions.
    pub instructions: u64,
    /// Events by place in the group.
    pub events: Vec<u64>,
}

impl Slice {
    fn add(&mut self, record: &SliceRecord) {
        self.group = record.group;
        self.cycles += record.cycles;
        self.instructions += record.instructions;
        let events = record.counts.get(..usize::from(record.events)).unwrap_or_default();
        self.events.resize(self.events.len().max(events.len()), 0);
        self.events.iter_mut().zip(events).for_each(|(sum, events)| *sum += events);
    }
}

/// The slices that reached their lengths, from records in the order of time. A context switch cuts
/// a slice into pieces, each of which has a record.
pub fn whole(records: &[SliceRecord]) -> Vec<Slice> {
    let (whole, _) = whole_and_rest(records);
    whole
}

/// All slices, from records in the order of time; the last may not have reached its length.
pub(super) fn all(records: &[SliceRecord]) -> Vec<Slice> {
    let (mut slices, rest) = whole_and_rest(records);
    slices.extend(rest);
    slices
}

fn whole_and_rest(records: &[SliceRecord]) -> (Vec<Slice>, Option<Slice>) {
    let (mut whole, mut current) = (Vec::new(), None);
    for record in records {
        let slice: &mut Slice = current.get_or_insert_default();
        slice.add(record);
        if record.end == End::Overflow {
            whole.extend(current.take());
        }
    }
    (whole, current)
}

/// The group of an event that is counted part of the time, and its place among the group's counts.
pub fn place(plan: &Plan, assigned: CounterAssignment) -> Option<(u16, usize)> {
    match plan.place_in_slices(assigned) {
        SlicePlace::List { group, index } => Some((group, index.into())),
        SlicePlace::Cycles | SlicePlace::Instructions | SlicePlace::None => None,
    }
}

/// Records of made-up programs.
#[cfg(test)]
pub(crate) mod made_up {
    use tally_abi::{
        Mode,
        trace::{End, SliceRecord},
    };
    use tally_engine::{Demand, Layout, Pinned, Plan, Selector, Widths, plan};

    pub(crate) const GROUPS: u16 = 4;
    /// SplitMix64 (Steele, Lea, Flood 2014): 0 to 1.
    pub(crate) struct Random(pub(crate) u64);

    impl Random {
        pub(crate) fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
        }

        pub(crate) fn below(&mut self, limit: usize) -> usize {
            (self.uniform() * limit as f64) as usize
        }
    }

    /// Four groups of one event each.
    pub(crate) fn four_groups() -> Plan {
        let demands: Vec<_> = (0..u64::from(GROUPS))
            .map(|event| Demand::general(Selector(event), 1))
            .chain([Demand::pinned(Pinned::Instructions), Demand::pinned(Pinned::Cycles)])
            .collect();
        let layout = Layout { general: 1, reference: false, extra: 0, widths: Widths::of(48) };
        plan(&demands, &layout).unwrap()
    }

    pub(crate) fn record(
        group: u16,
        end: End,
        [cycles, instructions, events]: [u64; 3],
    ) -> SliceRecord {
        let mut counts = [0; tally_engine::MAX_GENERAL];
        counts[0] = events;
        SliceRecord {
            session: 1,
            group,
            mode: Mode::User,
            end,
            slice_multiplier: 1,
            cpu: 0,
            sequence: 0,
            address_space: 0,
            start_tsc: 0,
            end_tsc: 0,
            cycles,
            instructions,
            events: 1,
            counts,
        }
    }
}
