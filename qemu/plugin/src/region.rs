//! Regions and their truth.
//!
//! A region belongs to the address space in which it was opened. Each vCPU sums its counts in that
//! space while the region was open, for each region: it records the totals of its counts when it
//! enters (the region opens, or the vCPU switches to the space) and adds the difference when it
//! leaves. All vCPUs share the list of regions, which changes rarely. Every block compares a
//! generation number, so that the other vCPUs notice a change.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tally_abi::truth::{Count, PmiCost, Region, Truth};
use tally_model::{Counts, Privilege, Signal};
use tally_vpmu::Profile;

use crate::{
    series::{Scope, Series},
    tag::Tag,
    totals::{add_differences, events, totals},
};

/// A region in the shared list of all vCPUs.
#[derive(Clone, Copy, Debug)]
struct Shared {
    tag: Tag,
    space: u64,
    open: bool,
}

static REGIONS: Mutex<Vec<Shared>> = Mutex::new(Vec::new());
/// The number of changes of [`REGIONS`]. Relaxed is enough: the vCPU that changes the list updates
/// itself at once, and the others may do so a block later.
static GENERATION: AtomicU64 = AtomicU64::new(0);

fn regions() -> MutexGuard<'static, Vec<Shared>> {
    REGIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The generation of the list of regions.
#[inline]
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Opens a region in an address space.
pub(crate) fn open(tag: Tag, space: u64) {
    open_in(&mut regions(), tag, space);
}

fn open_in(regions: &mut Vec<Shared>, tag: Tag, space: u64) {
    match regions.iter_mut().find(|region| region.tag == tag && region.space == space) {
        Some(region) => region.open = true,
        None => regions.push(Shared { tag, space, open: true }),
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Closes a region of an address space; returns whether it was open.
pub(crate) fn close(tag: Tag, space: u64) -> bool {
    close_in(&mut regions(), tag, space)
}

fn close_in(regions: &mut [Shared], tag: Tag, space: u64) -> bool {
    let found =
        regions.iter_mut().find(|region| region.tag == tag && region.space == space && region.open);
    let Some(region) = found else { return false };
    region.open = false;
    GENERATION.fetch_add(1, Ordering::Relaxed);
    true
}

/// Closes a region of an address space and, if it was open, opens another one there. No vCPU sees
/// one change without the other. Returns whether the first was open.
pub(crate) fn replace(tag: Tag, by: Tag, space: u64) -> bool {
    let mut regions = regions();
    let was_open = close_in(&mut regions, tag, space);
    if was_open {
        open_in(&mut regions, by, space);
    }
    was_open
}

/// A vCPU's counts in a region, and the overflow handlers' part of them.
#[derive(Clone, Debug)]
struct Sums {
    /// Totals when the vCPU entered, while it is inside.
    entered: Option<Moment>,
    sums: Vec<Count>,
    slots: u64,
    /// Whether the vCPU was inside when the running handler began, and has not left since.
    is_interrupted: bool,
    handlers: Handlers,
}

/// The totals of every event, and the clock.
#[derive(Clone, Debug)]
struct Moment {
    totals: Vec<Count>,
    /// Instructions of every ring but 3.
    instructions: u64,
    slots: u64,
}

/// The cost of overflow handlers in one region.
#[derive(Clone, Debug)]
struct Handlers {
    count: u64,
    instructions: u64,
    slots: u64,
    sums: Vec<Count>,
}

/// A vCPU's counts in every region.
#[derive(Debug, Default)]
pub(crate) struct VcpuTruth {
    /// Sums in the order of the shared list.
    regions: Vec<Sums>,
    /// Totals when the overflow handler began, while it runs.
    handler: Option<Moment>,
    /// The vCPU's counts over time, if the options request a series.
    pub(crate) series: Option<Series>,
    /// Whether the guest ended the truth, so that nothing is summed any more.
    ended: bool,
}

impl Moment {
    fn new(counts: &[Counts; 2], slots: u64, profile: &Profile) -> Moment {
        let instructions = counts[Privilege::Kernel as usize][Signal::Instructions];
        Moment { totals: totals(profile, counts), instructions, slots }
    }
}

impl Sums {
    fn new(profile: &Profile) -> Sums {
        let zero = vec![Count::default(); events(profile).count()];
        let handlers = Handlers { count: 0, instructions: 0, slots: 0, sums: zero.clone() };
        Sums { entered: None, sums: zero, slots: 0, is_interrupted: false, handlers }
    }

    fn leave(&mut self, entered: &Moment, now: &Moment) {
        add_differences(&mut self.sums, &entered.totals, &now.totals);
        self.slots += now.slots - entered.slots;
        self.is_interrupted = false;
    }
}

impl Handlers {
    fn add(&mut self, begin: &Moment, end: &Moment) {
        self.count += 1;
        self.instructions += end.instructions - begin.instructions;
        self.slots += end.slots - begin.slots;
        add_differences(&mut self.sums, &begin.totals, &end.totals);
    }
}

impl VcpuTruth {
    /// Makes the truth of a vCPU without regions, and its series, if one is written.
    pub(crate) fn new(series: Option<Series>) -> VcpuTruth {
        VcpuTruth { series, ..VcpuTruth::default() }
    }

    /// Returns whether the vCPU is inside any region.
    pub(crate) fn inside(&self) -> bool {
        self.regions.iter().any(|region| region.entered.is_some())
    }

    /// Begins the charge of an overflow handler, whose interrupt is being delivered.
    pub(crate) fn begin_handler(&mut self, counts: &[Counts; 2], clock: u64, profile: &Profile) {
        self.handler = Some(Moment::new(counts, clock, profile));
        for region in &mut self.regions {
            region.is_interrupted = region.entered.is_some();
        }
    }

    /// Ends the charge of an overflow handler, which has returned. Regions that it opened or closed
    /// are not charged.
    pub(crate) fn end_handler(&mut self, counts: &[Counts; 2], clock: u64, profile: &Profile) {
        let Some(begin) = self.handler.take() else { return };
        let end = Moment::new(counts, clock, profile);
        for region in self.regions.iter_mut().filter(|region| region.is_interrupted) {
            region.is_interrupted = false;
            region.handlers.add(&begin, &end);
        }
    }

    /// Leaves every region and ends the series' last row, for good.
    pub(crate) fn end(&mut self, counts: &[Counts; 2], clock: u64, profile: &Profile) {
        if let Some(mut series) = self.series.take() {
            series.end(counts, profile);
        }
        self.ended = true;
        self.update(0, counts, clock, profile);
    }

    /// Enters and leaves regions as the shared list and the vCPU's current address space require;
    /// returns the list's generation.
    pub(crate) fn update(
        &mut self,
        space: u64,
        counts: &[Counts; 2],
        clock: u64,
        profile: &Profile,
    ) -> u64 {
        let regions = regions();
        let generation = generation();
        self.regions.resize_with(regions.len(), || Sums::new(profile));
        if let Some(series) = &mut self.series {
            let open = regions.iter().filter(|region| region.open && region.space == space);
            let tags = open.map(|region| region.tag).collect();
            series.enter(Scope { space, tags }, counts, profile);
        }
        let mut now = None;
        for (region, sums) in regions.iter().zip(&mut self.regions) {
            let belongs = region.open && region.space == space && !self.ended;
            if belongs == sums.entered.is_some() {
                continue;
            }
            let now = now.get_or_insert_with(|| Moment::new(counts, clock, profile));
            match sums.entered.take() {
                Some(entered) => sums.leave(&entered, now),
                None => sums.entered = Some(now.clone()),
            }
        }
        generation
    }
}

/// The truth of all vCPUs, each of which must have left every region.
pub(crate) fn truth<'a>(profile: &Profile, vcpus: impl Iterator<Item = &'a VcpuTruth>) -> Truth {
    let shared = regions();
    let mut truth = Truth {
        version: tally_abi::truth::VERSION,
        profile: profile.name.to_owned(),
        regions: shared.iter().map(|region| region.without_counts(profile)).collect(),
        shadows: Vec::new(),
    };
    let width = u64::from(profile.geometry.width);
    for vcpu in vcpus {
        for (region, sums) in truth.regions.iter_mut().zip(&vcpu.regions) {
            add(profile, &mut region.events, &sums.sums);
            let happened = events(profile).zip(&sums.sums);
            let happened = happened.filter(|(_, count)| **count != Count::default());
            let named = happened.map(|(event, count)| (event.name.to_owned(), *count));
            region.cpus.push(named.collect());
            let (pmi, handlers) = (&mut region.pmi, &sums.handlers);
            pmi.count += handlers.count;
            pmi.instructions += handlers.instructions;
            pmi.cycles += handlers.slots / width;
            pmi.region_cycles += sums.slots / width;
            add(profile, &mut pmi.events, &handlers.sums);
        }
    }
    truth
}

fn add(profile: &Profile, sums: &mut BTreeMap<String, Count>, counts: &[Count]) {
    for (event, count) in events(profile).zip(counts) {
        let sum = sums.entry(event.name.to_owned()).or_default();
        sum.user += count.user;
        sum.kernel += count.kernel;
    }
}

fn by_name(profile: &Profile, counts: &[Count]) -> BTreeMap<String, Count> {
    events(profile).zip(counts).map(|(event, count)| (event.name.to_owned(), *count)).collect()
}

impl Shared {
    fn without_counts(&self, profile: &Profile) -> Region {
        let zero = vec![Count::default(); events(profile).count()];
        Region {
            kind: self.tag.kind,
            tag: self.tag.number,
            address_space: self.space << 12,
            closed: !self.open,
            events: by_name(profile, &zero),
            cpus: Vec::new(),
            pmi: PmiCost { events: by_name(profile, &zero), ..PmiCost::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::truth::RegionKind;

    use super::*;

    #[test]
    fn a_marked_region_and_a_session_of_the_same_tag_are_two_regions() {
        let [marked, session] =
            [RegionKind::Marked, RegionKind::Session].map(|kind| Tag { kind, number: 1 });
        // An address space that no other test uses.
        let space = 0x7e57;
        open(marked, space);
        assert!(!close(session, space), "the session is not open");
        open(session, space);
        assert!(close(marked, space));
        assert!(close(session, space), "it has not been closed with the region");
        let own = regions().iter().filter(|region| region.space == space).count();
        assert_eq!(own, 2);
    }
}
