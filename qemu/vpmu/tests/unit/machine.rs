//! A CPU with a counter unit, a program for it, and the expected counts of the unit's counters.

use tally_model::{Core, Counts, Pipeline, PipelineMode, Privilege, Signal};
use tally_vpmu::{AccessResult, Conversion, Event, Profile, VirtualPmu};

use crate::common::{Ran, feed, stream::stream};

const CONFIG: u32 = 0x4f00_0000;
const COUNT: u32 = 0x4f00_0100;
const THRESHOLD: u32 = 0x4f00_0200;
const CONTROL: u32 = 0x4f00_0300;
const STATUS: u32 = 0x4f00_0304;
const ENABLED: u64 = 1 << 22;
const INTERRUPTS: u64 = 1 << 20;

/// Every profile with both pipelines.
pub fn profiles() -> Vec<Profile> {
    let pipelines = [Pipeline::Interval, Pipeline::OutOfOrder(PipelineMode::Real)];
    let with = |profile: &Profile, pipeline| {
        let mut profile = *profile;
        profile.geometry.pipeline = pipeline;
        profile
    };
    Profile::ALL.iter().flat_map(|profile| pipelines.map(|of| with(profile, of))).collect()
}

/// The input of a counter: an event in rings, in a mode.
#[derive(Clone, Debug)]
pub struct Selected {
    event: &'static Event,
    rings: u64,
    mode: u64,
}

impl Selected {
    /// Every event in every choice of rings, and in every mode that the model has.
    pub fn all(profile: &Profile) -> Vec<Selected> {
        let mut all = Vec::new();
        // The unit has no second unit mask.
        for event in profile.events().filter(|event| event.umask <= 0xff) {
            let stalls = |signal: &Signal| Signal::STALLS.contains(signal);
            let is_level = event.conversion == Conversion::Plain
                && !event.signals.is_empty()
                && event.signals.iter().all(stalls);
            let modes = [true, is_level, is_level, episodes(event).is_some()];
            for mode in (0..4).filter(|mode| modes[*mode as usize]) {
                all.extend((1..4).map(|rings| Selected { event, rings, mode }));
            }
        }
        all
    }

    /// The event's name.
    pub fn name(&self) -> &'static str {
        self.event.name
    }

    /// Returns whether the input is the event itself, in both rings.
    pub fn is_plain(&self) -> bool {
        (self.rings, self.mode) == (3, 0)
    }

    /// The value of `CONFIG`.
    pub fn config(&self) -> u64 {
        let Event { code, umask, cmask, inv, edge, .. } = *self.event;
        let code = u64::from(code & 0xff) | u64::from(code >> 8) << 32;
        let flags = u64::from(edge) << 18 | u64::from(inv) << 23;
        let select = code | u64::from(umask) << 8 | u64::from(cmask) << 24 | flags;
        // Rising and falling edges have the same count.
        let mode = if self.mode == 3 { 3 + (self.rings & 1) } else { self.mode };
        select | self.rings << 16 | mode << 40 | ENABLED
    }
}

/// The signal that counts the episodes of an event's cycles.
fn episodes(event: &Event) -> Option<Signal> {
    match event.signals {
        [Signal::ItlbWalkCycles] => Some(Signal::ItlbWalks),
        [Signal::DtlbLoadWalkCycles] => Some(Signal::DtlbLoadWalks),
        [Signal::DtlbStoreWalkCycles] => Some(Signal::DtlbStoreWalks),
        [Signal::DividerActive] => Some(Signal::Divisions),
        _ => None,
    }
}

/// A CPU, and the program that it repeats.
pub struct Machine {
    pmu: VirtualPmu,
    core: Core,
    counts: [Counts; 2],
    program: Vec<Ran>,
    at: usize,
}

impl Machine {
    /// Makes a CPU that is about to run a random program.
    pub fn new(profile: Profile, seed: u64) -> Machine {
        Machine {
            pmu: VirtualPmu::new(profile, profile.counters.0).with_unit(true),
            core: Core::new(&profile.geometry),
            counts: [Counts::ZERO; 2],
            program: stream(seed, 6_000),
            at: 0,
        }
    }

    pub fn profile(&self) -> &Profile {
        self.pmu.profile()
    }

    /// Runs instructions, in blocks that also end where `cut` returns true.
    pub fn run(&mut self, mut instructions: usize, mut cut: impl FnMut(usize) -> bool) {
        while instructions > 0 {
            let part = instructions.min(self.program.len() - self.at);
            feed(&mut self.core, &self.program[self.at..self.at + part], &mut cut);
            self.at = (self.at + part) % self.program.len();
            instructions -= part;
        }
        self.counts = self.core.counts().clone();
    }

    /// The model's sum up to now for a counter's input.
    pub fn sum(&self, selected: &Selected) -> u64 {
        let counts = &self.counts;
        let geometry = &self.profile().geometry;
        let rings = [Privilege::User, Privilege::Kernel].into_iter();
        let in_ring = |ring: Privilege| {
            let sum = selected.event.in_ring(counts, ring, geometry);
            let counts = &counts[ring as usize];
            match selected.mode {
                2 => counts[Signal::Slots] / u64::from(geometry.width) - sum,
                3 => episodes(selected.event).map_or(0, |signal| counts[signal]),
                _ => sum,
            }
        };
        rings.filter(|ring| selected.rings >> *ring as u32 & 1 == 1).map(in_ring).sum()
    }

    /// WRMSR, which must succeed.
    pub fn write(&mut self, msr: u32, value: u64) {
        let access = self.pmu.wrmsr(msr, value, &self.counts);
        assert_eq!(access, AccessResult::Done(0), "{msr:#x} <- {value:#x}");
    }

    /// RDMSR, which must succeed.
    pub fn read(&mut self, msr: u32) -> u64 {
        match self.pmu.rdmsr(msr, &self.counts) {
            AccessResult::Done(value) => value,
            other => panic!("{msr:#x}: {other:?}"),
        }
    }

    /// Programs a counter; returns whether it is supported.
    pub fn program(&mut self, index: u32, config: u64) -> bool {
        self.write(CONFIG + index, config);
        self.read(CONFIG + index) >> 63 == 1
    }

    /// Programs a counter with a threshold and a preload.
    pub fn program_threshold(&mut self, index: u32, config: u64, threshold: u64, preload: u64) {
        self.write(COUNT + index, preload);
        self.write(THRESHOLD + index, threshold);
        assert!(self.program(index, config | INTERRUPTS));
    }

    /// Starts or stops all counters.
    pub fn run_unit(&mut self, runs: bool) {
        self.write(CONTROL, runs.into());
    }

    /// RDPMC, which must succeed.
    pub fn rdpmc(&mut self, index: u32) -> u64 {
        match self.pmu.rdpmc(index, &self.counts) {
            AccessResult::Done(value) => value,
            other => panic!("RDPMC {index:#x}: {other:?}"),
        }
    }

    /// A counter of the unit, by RDMSR and RDPMC.
    pub fn count(&mut self, index: u32) -> u64 {
        let read = self.read(COUNT + index);
        assert_eq!(self.rdpmc(COUNT + index), read);
        read
    }

    /// The bits of the thresholds that have fired.
    pub fn fired(&mut self) -> [u64; 4] {
        [0, 1, 2, 3].map(|word| self.read(STATUS + word))
    }

    pub fn sync(&mut self) {
        self.pmu.sync(&self.counts);
    }

    pub fn take_interrupt(&mut self) -> bool {
        self.pmu.take_interrupt()
    }

    /// The clock up to which no threshold can fire.
    pub fn deadline(&self) -> u64 {
        self.core.clock() + self.pmu.slots_to_overflow(&self.counts)
    }

    /// Core cycles so far.
    pub fn cycle(&self) -> u64 {
        self.core.clock() / u64::from(self.profile().geometry.width)
    }

    pub fn clock(&self) -> u64 {
        self.core.clock()
    }
}
