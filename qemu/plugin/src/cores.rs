//! A vCPU's core, and shadow cores that run beside it on the same stream with other perfect
//! structures. Every operation on the vCPU's core is repeated on its shadows; only the vCPU's own
//! core counts for the guest.
//!
//! Invariant: a shadow core shares only its last-level cache, and only with the same shadow of
//! other vCPUs. So it changes no count of the vCPU's own core.

use std::{ops::Range, sync::OnceLock, vec::Drain};

use tally_abi::truth::{ShadowTruth, Truth};
use tally_model::{
    Access, Block, Charge, Core, Counts, DataAccess, FetchedLine, Geometry, Llc, PageSizes,
    Prefetchers, Privilege,
};
use tally_vpmu::{PluginOptions, Profile};

use crate::{
    code, guest,
    paging::PageTables,
    region::{self, VcpuTruth},
    series::Series,
};

/// A vCPU's cores.
pub(crate) struct Cores {
    own: Core,
    shadows: Box<[Shadow]>,
    tables: PageTables,
}

/// A shadow core, and its counts in each region.
struct Shadow {
    core: Core,
    profile: Profile,
    truth: VcpuTruth,
}

impl Shadow {
    fn update_regions(&mut self, space: u64) {
        let clock = self.core.clock();
        self.truth.update(space, self.core.counts(), clock, &self.profile);
    }

    /// Ends the interval of the series if it is over; returns the least number of slots until the
    /// next one ends.
    fn tick(&mut self) -> u64 {
        let clock = self.core.clock();
        let series = self.truth.series.as_mut();
        series.map_or(u64::MAX, |series| series.tick(self.core.counts(), clock, &self.profile))
    }

    fn end_truth(&mut self) {
        let clock = self.core.clock();
        self.truth.end(self.core.counts(), clock, &self.profile);
    }
}

/// The last-level caches that all vCPUs share: one for their own cores, then one for each shadow.
fn shared(options: &PluginOptions) -> &'static [Llc] {
    static SHARED: OnceLock<Box<[Llc]>> = OnceLock::new();
    SHARED.get_or_init(|| {
        let count = 1 + options.shadows.len();
        (0..count).map(|_| Llc::new(options.profile.geometry.llc)).collect()
    })
}

/// Makes a core that reads the guest's code.
fn core(geometry: &Geometry, cache: &Llc) -> Core {
    let mut core = Core::sharing(geometry, cache.clone());
    core.set_code_memory(code::MEMORY);
    core
}

impl Cores {
    pub(crate) fn new(vcpu: u32, options: &PluginOptions) -> Cores {
        let caches = shared(options);
        let shadow = |(shadow, cache): (&tally_vpmu::Shadow, &Llc)| {
            let mut profile = options.profile;
            profile.geometry.perfect = shadow.perfect;
            profile.geometry.oracle = false;
            let core = core(&profile.geometry, cache);
            let series = options.series.as_ref();
            let series = series.map(|of| Series::new(vcpu, &shadow.name, of, &profile));
            Shadow { core, profile, truth: VcpuTruth::new(series) }
        };
        let shadows: Box<[Shadow]> = options.shadows.iter().zip(&caches[1..]).map(shadow).collect();
        let mut own = core(&options.profile.geometry, &caches[0]);
        if !shadows.is_empty() {
            own.lead_others();
        }
        Cores { own, shadows, tables: PageTables::default() }
    }

    #[inline(always)]
    fn each(&mut self, act: impl Fn(&mut Core)) {
        act(&mut self.own);
        self.each_shadow(act);
    }

    #[inline]
    fn each_shadow(&mut self, act: impl Fn(&mut Core)) {
        self.shadows.iter_mut().for_each(|shadow| act(&mut shadow.core));
    }

    /// Retires a block in the shadows. A separate function, so that only the call for the vCPU's
    /// own core is inlined in the hot path.
    #[cold]
    #[inline(never)]
    fn retire_shadows(&mut self, block: &Block, next_pc: u64) {
        self.each_shadow(|core| core.retire(block, next_pc));
    }

    /// Takes the times of instructions that retired.
    pub(crate) fn take_times(&mut self) -> Option<Drain<'_, Charge>> {
        self.own.take_times()
    }

    #[inline]
    pub(crate) fn counts(&mut self) -> &[Counts; 2] {
        self.own.counts()
    }

    #[inline]
    pub(crate) fn clock(&self) -> u64 {
        self.own.clock()
    }

    pub(crate) fn clock_at_branch(&self, is_wrong: bool) -> u64 {
        self.own.clock_at_branch(is_wrong)
    }

    pub(crate) fn flight_cycles(&self) -> Option<u64> {
        self.own.flight_cycles()
    }

    #[inline]
    pub(crate) fn needs_sizes(&self) -> bool {
        self.own.needs_sizes()
    }

    #[inline]
    pub(crate) fn fetch(&mut self, block: &Block) {
        self.each(|core| core.fetch(block));
    }

    /// The fast path of [`Self::access`]. It does not apply to a core that leads shadows.
    #[inline(always)]
    pub(crate) fn access_recent<const STORE: bool>(
        &mut self,
        ring: Privilege,
        address: u64,
    ) -> bool {
        self.own.access_recent::<STORE>(ring, address)
    }

    /// The fast path of [`Self::access`] for a repeated string instruction. It does not apply to a
    /// core that leads shadows.
    #[inline]
    pub(crate) fn access_string_again<const STORE: bool>(
        &mut self,
        block: &Block,
        address: u64,
    ) -> bool {
        self.shadows.is_empty() && self.own.access_string_again::<STORE>(block, address)
    }

    pub(crate) fn access<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: impl Fn(u64) -> u64,
    ) {
        self.each(|core| core.access::<STORE>(block, access, &translate));
    }

    #[inline(always)] // Like the core's own function.
    pub(crate) fn retire(&mut self, block: &Block, next_pc: u64) {
        self.own.retire(block, next_pc);
        if !self.shadows.is_empty() {
            self.retire_shadows(block, next_pc);
        }
    }

    pub(crate) fn retire_part(&mut self, block: &Block, range: Range<usize>) {
        self.each(|core| core.retire_part(block, range.clone()));
    }

    /// Makes the vCPU's own core note accesses for precise records, or no longer.
    pub(crate) fn note_data(&mut self, is_on: bool) {
        self.own.note_data(is_on);
    }

    /// Sets the latency above which the vCPU's own core counts a load as slow.
    pub(crate) fn set_slow_loads(&mut self, above_cycles: Option<u32>) {
        self.own.set_slow_loads(above_cycles);
    }

    /// Takes the noted access of the instruction with this index in its block.
    pub(crate) fn take_data(&mut self, insn: usize) -> Option<DataAccess> {
        self.own.take_data(insn)
    }

    /// Takes the noted fetch, in code that runs at a distance from its addresses at translation.
    pub(crate) fn take_fetch(&mut self, moved: u64) -> Option<FetchedLine> {
        let line = self.own.take_fetch()?;
        Some(FetchedLine { address: line.address.wrapping_add(moved), ..line })
    }

    /// Branches of both rings that the vCPU's own core has mispredicted.
    pub(crate) fn mispredictions(&self) -> u64 {
        self.own.mispredictions()
    }

    pub(crate) fn resolve(&mut self, block: &Block, next_pc: u64) {
        self.each(|core| core.resolve(block, next_pc));
    }

    pub(crate) fn interrupt(&mut self, cycles: u32) {
        self.each(|core| core.interrupt(cycles));
    }

    pub(crate) fn switch_space(&mut self, space: u64) {
        self.tables.load(space);
        let sizes = self.page_sizes();
        self.each(|core| {
            core.set_page_sizes(sizes);
            core.switch_space(space);
        });
    }

    /// Records the guest's write of CR4.
    pub(crate) fn set_control(&mut self, cr4: u64) {
        self.tables.set_control(cr4);
        let sizes = self.page_sizes();
        self.each(|core| core.set_page_sizes(sizes));
    }

    fn page_sizes(&self) -> PageSizes {
        PageSizes { of: guest::page_size, tables: self.tables.word() }
    }

    /// The page tables in use.
    pub(crate) fn page_tables(&self) -> PageTables {
        self.tables
    }

    pub(crate) fn flush(&mut self, global_too: bool) {
        self.each(|core| core.flush(global_too));
    }

    pub(crate) fn flush_page(&mut self, address: u64) {
        self.each(|core| core.flush_page(address));
    }

    pub(crate) fn set_prefetchers(&mut self, on: Prefetchers) {
        self.each(|core| core.set_prefetchers(on));
    }

    /// Makes shadows enter and leave regions, as their vCPU does.
    pub(crate) fn update_regions(&mut self, space: u64) {
        self.shadows.iter_mut().for_each(|shadow| shadow.update_regions(space));
    }

    /// Ends the intervals of shadows' series that are over; returns the least number of slots until
    /// another one ends. An interval of instructions ends for all cores at once.
    pub(crate) fn tick_shadows(&mut self) -> u64 {
        self.shadows.iter_mut().map(Shadow::tick).min().unwrap_or(u64::MAX)
    }

    /// Makes shadows leave every region, for good.
    pub(crate) fn end_truth(&mut self) {
        self.shadows.iter_mut().for_each(Shadow::end_truth);
    }
}

/// The truth of each shadow, on all vCPUs.
pub(crate) fn shadows(options: &PluginOptions, vcpus: &[&Cores]) -> Vec<ShadowTruth> {
    let truth = |(index, shadow): (usize, &tally_vpmu::Shadow)| {
        let parts = vcpus.iter().filter_map(|cores| cores.shadows.get(index));
        let Truth { regions, .. } = region::truth(&options.profile, parts.map(|part| &part.truth));
        ShadowTruth { perfect: shadow.name.clone(), regions }
    };
    options.shadows.iter().enumerate().map(truth).collect()
}
