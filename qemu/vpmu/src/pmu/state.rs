//! The PMU's state: its registers and counters.

use tally_model::{Counts, Geometry};

use crate::{
    counter::Counter,
    event::Event,
    ibs::Ibs,
    lbr::Lbr,
    metrics::Metrics,
    pebs::Pebs,
    pmu::{
        access::{DEBUGCTL_FREEZE_ON_PMI, STATUS_FROZEN, Unmodelled, select},
        cycles::CycleRegisters,
        prefetch,
    },
    profile::Profile,
    quirks::{Held, Left, Quirks},
    unit::{Moment, Unit},
};

/// The PMU of one virtual CPU.
#[derive(Clone, Debug)]
pub struct VirtualPmu {
    pub(crate) profile: Profile,
    pub(crate) counters: Vec<Counter>,
    pub(crate) selects: Vec<u64>,
    pub(crate) fixed: Vec<Counter>,
    pub(crate) fixed_ctrl: u64,
    pub(crate) global_ctrl: u64,
    pub(crate) status: u64,
    pub(crate) debugctl: u64,
    /// The register that turns prefetchers off.
    pub(crate) prefetch_control: u64,
    /// Extra registers: two off-core response filters, and two that only store their value.
    pub(crate) extra: [u64; 4],
    pub(crate) metrics: Option<Metrics>,
    /// Precise event-based sampling, if the processor has it.
    pub(crate) pebs: Option<Pebs>,
    /// Instruction-based sampling, if the processor has it.
    pub(crate) ibs: Option<Ibs>,
    /// Last branch records, if the processor has them.
    pub(crate) lbr: Option<Lbr>,
    pub(crate) cycles: CycleRegisters,
    /// The counter unit, if there is one.
    pub(crate) unit: Option<Unit>,
    pub(crate) interrupt_pending: bool,
    /// Whether the interrupt of a sample of IBS is pending.
    pub(crate) sampler_pending: bool,
    /// The general counter that counts nothing, from a given time on.
    pub(crate) held: Option<Held>,
    /// Whether that time has come.
    pub(crate) is_holding: bool,
    /// The general counter whose registers ignore writes.
    pub(crate) locked: Option<u8>,
    /// The event whose select counts nothing.
    pub(crate) missing: Option<&'static Event>,
    /// The distance of system-management interrupts, in instructions, and the number of them up to
    /// now.
    pub(crate) smi: Option<u64>,
    pub(crate) smis: u64,
    /// Whether their handler turns general counter 0 on again.
    pub(crate) is_owned: bool,
    /// Registers whose accesses fault.
    pub(crate) absent: Vec<u32>,
    /// Whether interrupts in ring 3 are counted as instructions.
    overcounts: bool,
    pub(crate) unmodelled: Vec<Unmodelled>,
}

impl VirtualPmu {
    /// Makes a PMU after reset, with `counters` general counters.
    pub fn new(profile: Profile, counters: u8) -> VirtualPmu {
        let all = (1u64 << counters) - 1;
        VirtualPmu {
            counters: vec![Counter::default(); counters.into()],
            selects: vec![0; counters.into()],
            fixed: vec![Counter::default(); profile.fixed.into()],
            fixed_ctrl: 0,
            // Both vendors' global control enables every general counter after reset, for older
            // software.
            global_ctrl: all,
            status: 0,
            debugctl: 0,
            prefetch_control: prefetch::initial(&profile),
            extra: [0; 4],
            metrics: profile.has_metrics().then(|| Metrics::new(profile.second_level)),
            pebs: profile.pebs.filter(|_| profile.has_pebs()).map(Pebs::new),
            ibs: profile.ibs.map(Ibs::new),
            lbr: profile.lbr_kind().map(Lbr::new),
            cycles: CycleRegisters::default(),
            unit: None,
            interrupt_pending: false,
            sampler_pending: false,
            held: None,
            is_holding: false,
            locked: None,
            missing: None,
            smi: None,
            smis: 0,
            is_owned: false,
            absent: Vec::new(),
            overcounts: false,
            unmodelled: Vec::new(),
            profile,
        }
    }

    /// Adds hardware quirks.
    #[must_use]
    pub fn with_quirks(mut self, quirks: &Quirks) -> VirtualPmu {
        self.held = quirks.held;
        self.locked = quirks.locked;
        self.missing = quirks.missing;
        self.smi = quirks.smi;
        self.absent = quirks.absent.into_iter().filter(|msr| *msr != 0).collect();
        self.overcounts = quirks.overcount;
        match quirks.left {
            None => {}
            Some(left @ (Left::Running | Left::Owned)) => {
                self.is_owned = left == Left::Owned;
                self.turn_on(&[Counts::ZERO; 2]);
            }
            Some(Left::Frozen) => {
                self.debugctl = DEBUGCTL_FREEZE_ON_PMI;
                self.status = STATUS_FROZEN | 1;
            }
        }
        self
    }

    /// Lets general counter 0 count retired instructions, as firmware does.
    pub(crate) fn turn_on(&mut self, counts: &[Counts; 2]) {
        let instructions = 0xc0;
        self.selects[0] = select::EN | select::OS | select::USR | instructions;
        self.restart(counts);
    }

    /// Handles an interrupt or exception in ring 3. With the overcount quirk, the running counters
    /// of retired instructions in ring 3 count one more.
    pub fn interrupted_in_ring_3(&mut self) {
        if !self.overcounts {
            return;
        }
        for counter in self.counters.iter_mut().chain(&mut self.fixed) {
            counter.overcount();
        }
    }

    /// The profile that the PMU implements.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns whether any counter counts.
    pub fn is_counting(&self) -> bool {
        self.counters.iter().chain(&self.fixed).any(Counter::is_running)
            || self.unit.as_ref().is_some_and(Unit::is_counting)
    }

    /// Returns whether an interrupt became pending since the last call.
    pub fn take_interrupt(&mut self) -> bool {
        std::mem::take(&mut self.interrupt_pending)
    }

    /// Minimum number of slots before any counter can overflow.
    pub fn slots_to_overflow(&self, counts: &[Counts; 2]) -> u64 {
        let (geometry, width) = (self.geometry(), self.profile.width);
        let running =
            self.counters.iter().chain(&self.fixed).filter(|counter| counter.is_running());
        let overflows = running.map(|counter| counter.slots_to_overflow(counts, geometry, width));
        let fires = self.unit.as_ref().map(|unit| unit.slots_to_fire(self.moment(counts)));
        overflows.chain(fires).min().unwrap_or(u64::MAX >> 1)
    }

    /// The guest's selections and writes since the last call that the profile does not model.
    pub fn take_unmodelled(&mut self) -> Vec<Unmodelled> {
        std::mem::take(&mut self.unmodelled)
    }

    /// The counts with the geometry that is needed to read them.
    pub(crate) fn moment<'a>(&'a self, counts: &'a [Counts; 2]) -> Moment<'a> {
        Moment { counts, geometry: self.geometry() }
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.profile.geometry
    }

    fn is_locked(&self, index: usize) -> bool {
        self.locked.map(usize::from) == Some(index)
    }

    pub(crate) fn value(&self, index: usize, counts: &[Counts; 2]) -> u64 {
        self.counters[index].value(counts, self.geometry(), self.profile.width)
    }

    /// Writes a general counter's event select, and starts or stops it.
    pub(crate) fn set_select(&mut self, index: usize, value: u64, counts: &[Counts; 2]) {
        if !self.is_locked(index) {
            self.selects[index] = value;
            self.restart(counts);
        }
    }

    /// Writes a general counter.
    pub(crate) fn set_value(&mut self, index: usize, value: u64, counts: &[Counts; 2]) {
        if self.is_locked(index) {
            return;
        }
        self.counters[index].set(
            value & ((1 << self.profile.width) - 1),
            counts,
            &self.profile.geometry,
        );
    }
}
