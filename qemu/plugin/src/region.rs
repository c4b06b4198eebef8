//! Regions and their truth.
//!
//! A region belongs to the address space in which it was opened. Each vCPU sums, for each region,
//! what it executed in that space while the region was open: it takes the totals of its counts when
//! it enters (the region opens, or the vCPU switches to the space) and adds the difference when it
//! leaves. All vCPUs share the list of regions, which changes rarely; every block compares a
//! generation number, so that the other vCPUs notice a change.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tally_abi::truth::{Count, Region, Truth};
use tally_model::Counts;
use tally_vpmu::Profile;

use crate::{
    series::{Scope, Series},
    tag::Tag,
    totals::{add_differences, events, totals},
};

/// One region, as all vCPUs share it.
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
    let mut regions = regions();
    match regions.iter_mut().find(|region| region.tag == tag && region.space == space) {
        Some(region) => region.open = true,
        None => regions.push(Shared { tag, space, open: true }),
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Closes a region of an address space; returns whether it was open.
pub(crate) fn close(tag: Tag, space: u64) -> bool {
    let mut regions = regions();
    let found =
        regions.iter_mut().find(|region| region.tag == tag && region.space == space && region.open);
    let Some(region) = found else { return false };
    region.open = false;
    GENERATION.fetch_add(1, Ordering::Relaxed);
    true
}

/// What one vCPU executed in one region.
#[derive(Clone, Debug)]
struct Sums {
    /// The totals of every event when the vCPU entered, while it is inside.
    entered: Option<Vec<Count>>,
    sums: Vec<Count>,
}

/// What one vCPU executed in every region, and the cost of its overflow interrupts.
#[derive(Debug, Default)]
pub(crate) struct VcpuTruth {
    /// In the order of the shared list.
    regions: Vec<Sums>,
    /// The clock at the last entry into any region, while inside.
    inside_since_slots: Option<u64>,
    inside_slots: u64,
    pub(crate) handlers: Handlers,
    /// Its counts over time, if the options ask for a series.
    pub(crate) series: Option<Series>,
    /// Whether the guest ended the truth: nothing is summed any more.
    ended: bool,
}

/// The cost of overflow handlers inside regions.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    count: u64,
    instructions: u64,
    slots: u64,
    /// Instructions and clock at the start of the running handler.
    running: Option<(u64, u64)>,
}

impl Handlers {
    /// A handler's interrupt is being delivered.
    pub(crate) fn begin(&mut self, kernel_instructions: u64, clock: u64) {
        self.running = Some((kernel_instructions, clock));
    }

    /// The handler has returned.
    pub(crate) fn end(&mut self, kernel_instructions: u64, clock: u64) {
        if let Some((instructions, since)) = self.running.take() {
            self.count += 1;
            self.instructions += kernel_instructions - instructions;
            self.slots += clock - since;
        }
    }
}

impl VcpuTruth {
    /// The truth of a vCPU without regions, and its series, if one is written.
    pub(crate) fn new(series: Option<Series>) -> VcpuTruth {
        VcpuTruth { series, ..VcpuTruth::default() }
    }

    /// Returns whether the vCPU is inside any region.
    pub(crate) fn inside(&self) -> bool {
        self.inside_since_slots.is_some()
    }

    /// Leaves every region and ends the series' last row, for good.
    pub(crate) fn end(&mut self, counts: &[Counts; 2], clock: u64, profile: &Profile) {
        if let Some(mut series) = self.series.take() {
            series.end(counts, profile);
        }
        self.ended = true;
        self.update(0, counts, clock, profile);
    }

    /// Enters and leaves regions by the shared list and the vCPU's current address space; returns
    /// the list's generation.
    pub(crate) fn update(
        &mut self,
        space: u64,
        counts: &[Counts; 2],
        clock: u64,
        profile: &Profile,
    ) -> u64 {
        let regions = regions();
        let generation = generation();
        let zero = vec![Count::default(); events(profile).count()];
        self.regions.resize(regions.len(), Sums { entered: None, sums: zero });
        if let Some(series) = &mut self.series {
            let open = regions.iter().filter(|region| region.open && region.space == space);
            let tags = open.map(|region| region.tag).collect();
            series.enter(Scope { space, tags }, counts, profile);
        }
        let mut now = None;
        let mut inside = false;
        for (region, sums) in regions.iter().zip(&mut self.regions) {
            let belongs = region.open && region.space == space && !self.ended;
            inside |= belongs;
            if belongs == sums.entered.is_some() {
                continue;
            }
            let now = now.get_or_insert_with(|| totals(profile, counts));
            match sums.entered.take() {
                Some(entered) => add_differences(&mut sums.sums, &entered, now),
                None => sums.entered = Some(now.clone()),
            }
        }
        if let Some(since) = self.inside_since_slots.take() {
            self.inside_slots += clock - since;
        }
        self.inside_since_slots = inside.then_some(clock);
        generation
    }
}

/// The truth of all vCPUs. Each of them has left every region.
pub(crate) fn truth<'a>(profile: &Profile, vcpus: impl Iterator<Item = &'a VcpuTruth>) -> Truth {
    let shared = regions();
    let mut truth = Truth {
        version: tally_abi::truth::VERSION,
        profile: profile.name.to_owned(),
        regions: shared.iter().map(|region| region.without_counts(profile)).collect(),
        pmi: Default::default(),
    };
    let width = u64::from(profile.geometry.width);
    for vcpu in vcpus {
        for (region, sums) in truth.regions.iter_mut().zip(&vcpu.regions) {
            for (event, count) in events(profile).zip(&sums.sums) {
                if let Some(sum) = region.events.get_mut(event.name) {
                    sum.user += count.user;
                    sum.kernel += count.kernel;
                }
            }
            region.cpus.push(by_name(profile, &sums.sums));
        }
        truth.pmi.count += vcpu.handlers.count;
        truth.pmi.instructions += vcpu.handlers.instructions;
        truth.pmi.cycles += vcpu.handlers.slots / width;
        truth.pmi.region_cycles += vcpu.inside_slots / width;
    }
    truth
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
        // A space that no other test uses.
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
