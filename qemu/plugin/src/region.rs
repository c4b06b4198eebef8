//! Marked regions and the truth of them.
//!
//! A region belongs to the address space that opened it. Each vCPU keeps, for each region, the sum
//! of what it did in that space while the region was open: it takes a picture of its accumulators
//! when it enters (the region opens, or the space is switched to) and adds the difference when it
//! leaves. The list of regions is shared and changes rarely; a generation number that every block
//! compares tells the vCPUs to look again.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tally_abi::truth::{Count, Region, Truth};
use tally_model::{Counts, Geometry, Ring};
use tally_vpmu::{Event, Profile};

use crate::{
    series::{Place, Stretch},
    vcpu::Vcpu,
};

/// One region, as all vCPUs share it.
#[derive(Clone, Copy, Debug)]
struct Marked {
    tag: u32,
    space: u64,
    open: bool,
}

static REGIONS: Mutex<Vec<Marked>> = Mutex::new(Vec::new());
/// Counts changes of [`REGIONS`]. Relaxed is enough: a vCPU that marks a region looks at once, and
/// the others may see it a block later.
static GENERATION: AtomicU64 = AtomicU64::new(0);

fn regions() -> MutexGuard<'static, Vec<Marked>> {
    REGIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The generation of the list of regions.
#[inline]
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Opens the region of that tag for the space.
pub(crate) fn open(tag: u32, space: u64) {
    let mut regions = regions();
    match regions.iter_mut().find(|region| region.tag == tag && region.space == space) {
        Some(region) => region.open = true,
        None => regions.push(Marked { tag, space, open: true }),
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Closes it; whether it was open.
pub(crate) fn close(tag: u32, space: u64) -> bool {
    let mut regions = regions();
    let found =
        regions.iter_mut().find(|region| region.tag == tag && region.space == space && region.open);
    let Some(region) = found else { return false };
    region.open = false;
    GENERATION.fetch_add(1, Ordering::Relaxed);
    true
}

/// What one vCPU did in one region.
#[derive(Clone, Debug)]
struct Share {
    /// The totals of every event when the vCPU entered, while it is inside.
    entered: Option<Vec<Count>>,
    sums: Vec<Count>,
}

/// What one vCPU did in every region, and what its overflow interrupts cost.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// In the order of the shared list.
    shares: Vec<Share>,
    /// The clock at the last entry into any region, while inside.
    inside_since_slots: Option<u64>,
    inside_slots: u64,
    pub(crate) handlers: Handlers,
    /// What it did over time, where that is asked for.
    pub(crate) series: Option<Stretch>,
    /// Whether what it does from now on belongs nowhere.
    ended: bool,
}

/// What the overflow handlers did inside regions.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    count: u64,
    instructions: u64,
    slots: u64,
    /// Instructions and clock at the start of the handler that is running.
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

impl Shares {
    /// None yet; over time too where that is asked for.
    pub(crate) fn with(series: Option<Stretch>) -> Shares {
        Shares { series, ..Shares::default() }
    }

    /// Whether the vCPU is inside any region.
    pub(crate) fn inside(&self) -> bool {
        self.inside_since_slots.is_some()
    }

    /// Leaves every region and ends the last row, for good.
    pub(crate) fn end(&mut self, counts: &[Counts; 2], clock: u64, profile: &Profile) {
        if let Some(mut series) = self.series.take() {
            series.end(counts, profile);
        }
        self.ended = true;
        self.update(0, counts, clock, profile);
    }

    /// Looks at the list again: enters and leaves regions for the space that the vCPU is in now.
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
        self.shares.resize(regions.len(), Share { entered: None, sums: zero });
        if let Some(series) = &mut self.series {
            let open = regions.iter().filter(|region| region.open && region.space == space);
            let tags = open.map(|region| region.tag).collect();
            series.moved(Place { space, tags }, counts, profile);
        }
        let mut now = None;
        let mut inside = false;
        for (region, share) in regions.iter().zip(&mut self.shares) {
            let belongs = region.open && region.space == space && !self.ended;
            inside |= belongs;
            if belongs == share.entered.is_some() {
                continue;
            }
            let now = now.get_or_insert_with(|| totals(profile, counts));
            match share.entered.take() {
                Some(entered) => add_differences(&mut share.sums, &entered, now),
                None => share.entered = Some(now.clone()),
            }
        }
        if let Some(since) = self.inside_since_slots.take() {
            self.inside_slots += clock - since;
        }
        self.inside_since_slots = inside.then_some(clock);
        generation
    }
}

/// Every event of the truth file: the general ones and, where there are any, the fixed.
pub(crate) fn events(profile: &Profile) -> impl Iterator<Item = &'static Event> {
    let fixed = profile.fixed_events().iter();
    fixed.chain(profile.events()).chain(profile.offcore_events())
}

/// Every event's count so far.
pub(crate) fn totals(profile: &Profile, counts: &[Counts; 2]) -> Vec<Count> {
    let geometry: &Geometry = &profile.geometry;
    events(profile)
        .map(|event| Count {
            user: event.in_ring(counts, Ring::User, geometry),
            kernel: event.in_ring(counts, Ring::Kernel, geometry),
        })
        .collect()
}

/// Adds to each sum what lies between two pictures.
pub(crate) fn add_differences(sums: &mut [Count], from: &[Count], to: &[Count]) {
    for ((sum, from), to) in sums.iter_mut().zip(from).zip(to) {
        sum.user += to.user - from.user;
        sum.kernel += to.kernel - from.kernel;
    }
}

/// The truth of all vCPUs, which have left every region, as it stands.
pub(crate) fn truth<'a>(profile: &Profile, vcpus: impl Iterator<Item = &'a mut Vcpu>) -> Truth {
    let marked = regions();
    let mut truth = Truth {
        version: tally_abi::truth::VERSION,
        profile: profile.name.to_owned(),
        regions: marked.iter().map(|region| region.without_counts(profile)).collect(),
        pmi: Default::default(),
    };
    let width = u64::from(profile.geometry.width);
    for vcpu in vcpus {
        let shares = &vcpu.shares;
        for (region, share) in truth.regions.iter_mut().zip(&shares.shares) {
            for (event, count) in events(profile).zip(&share.sums) {
                if let Some(sum) = region.events.get_mut(event.name) {
                    sum.user += count.user;
                    sum.kernel += count.kernel;
                }
            }
            region.cpus.push(by_name(profile, &share.sums));
        }
        truth.pmi.count += shares.handlers.count;
        truth.pmi.instructions += shares.handlers.instructions;
        truth.pmi.cycles += shares.handlers.slots / width;
        truth.pmi.region_cycles += shares.inside_slots / width;
    }
    truth
}

fn by_name(profile: &Profile, counts: &[Count]) -> BTreeMap<String, Count> {
    events(profile).zip(counts).map(|(event, count)| (event.name.to_owned(), *count)).collect()
}

impl Marked {
    fn without_counts(&self, profile: &Profile) -> Region {
        let zero = vec![Count::default(); events(profile).count()];
        Region {
            tag: self.tag,
            address_space: self.space << 12,
            closed: !self.open,
            events: by_name(profile, &zero),
            cpus: Vec::new(),
        }
    }
}
