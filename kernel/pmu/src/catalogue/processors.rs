//! The processors that have tables of their own, by their signatures.

use spin::Once;

use super::{pack, table::Table};

include!(concat!(env!("OUT_DIR"), "/processors.rs"));

/// Index of the architectural tables, and of Tally's own, at the end of the list.
const INTEL: usize = COUNT - 3;
const AMD: usize = COUNT - 2;
const TALLY: usize = COUNT - 1;

static TABLES: [Once<Table>; COUNT] = [const { Once::new() }; COUNT];

/// A processor with its own table, or any other one of a vendor.
#[derive(Debug)]
pub(super) struct Processor {
    /// Name of the table: the vendor's.
    pub(super) name: &'static str,
    pub(super) vendor: Vendor,
    pub(super) core: Core,
    /// Names of this PMU in libpfm4.
    pub(super) pfm: &'static [&'static str],
    signatures: &'static [Signature],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vendor {
    Intel,
    Amd,
}

/// Microarchitecture, as far as names and registers that are no part of the tables depend on it.
/// Those with the same registers and names share a value: Cougar Cove is a Lion Cove, Darkmont a
/// Skymont, Willow Cove and Cypress Cove are a Sunny Cove. `Intel` and `Amd` are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Core {
    Haswell,
    Broadwell,
    Skylake,
    SunnyCove,
    GoldenCove,
    RedwoodCove,
    LionCove,
    CoyoteCove,
    Goldmont,
    GoldmontPlus,
    Tremont,
    Gracemont,
    Crestmont,
    Skymont,
    ArcticWolf,
    KnightsLanding,
    Intel,
    Zen1,
    Zen2,
    Zen3,
    Zen4,
    Zen5,
    Zen6,
    Amd,
}

/// Processors of a table: those of a family with a model and a stepping in these ranges.
#[derive(Clone, Copy, Debug)]
struct Signature {
    family: u16,
    models: (u8, u8),
    steppings: (u8, u8),
    /// Core type (CPUID leaf 1AH, EAX bits 31 to 24) and native model (bits 23 to 0) of a hybrid
    /// processor.
    kind: Option<(u8, u32)>,
}

impl Signature {
    /// Returns how well the signature describes a processor whose CPUID leaf 1AH has `kind` in EAX,
    /// 0 if it has no such leaf: 0 not at all.
    fn rank(&self, family: u16, model: u8, stepping: u8, kind: u32) -> u8 {
        let is_in = |(first, last): (u8, u8), value| (first..=last).contains(&value);
        if self.family != family || !is_in(self.models, model) || !is_in(self.steppings, stepping) {
            return 0;
        }
        let (core, native) = ((kind >> 24) as u8, kind & 0xff_ffff);
        match self.kind {
            None => 3,
            Some(of) if of == (core, native) => 3,
            // A native model that is not listed yet.
            Some((of, _)) if of == core => 2,
            // Hypervisors may hide the leaf: a performance core is the likely one.
            Some((PERFORMANCE, _)) if kind == 0 => 1,
            Some(_) => 0,
        }
    }
}

/// Core type of a hybrid processor's performance cores.
const PERFORMANCE: u8 = 0x40;

impl Processor {
    /// Finds the processor of a signature, `architectural` if it has no table.
    pub(super) fn of(
        vendor: Vendor,
        (family, model, stepping): (u16, u8, u8),
        kind: u32,
    ) -> &'static Processor {
        let rank = |of: &Processor| {
            let ranks = of.signatures.iter().map(|it| it.rank(family, model, stepping, kind));
            ranks.max().unwrap_or(0)
        };
        let own = PROCESSORS.iter().filter(|of| of.vendor == vendor && rank(of) > 0);
        own.max_by_key(|of| rank(of)).unwrap_or(
            &PROCESSORS[match vendor {
                Vendor::Intel => INTEL,
                Vendor::Amd => AMD,
            }],
        )
    }

    /// Finds a processor by the name of its table, or by one of libpfm4's names of it.
    pub(super) fn named(name: &str) -> Option<&'static Processor> {
        let own = &PROCESSORS[..INTEL];
        let by_name = own.iter().find(|of| of.name == name);
        by_name.or_else(|| own.iter().find(|of| of.pfm.contains(&name)))
    }

    /// Returns the processors that have a table of their own.
    pub(super) fn all() -> &'static [Processor] {
        &PROCESSORS[..INTEL]
    }

    /// Returns EAX of CPUID leaves 1 and 1AH of the first processor that has the table; the second
    /// is 0 for a processor without core types.
    pub(super) fn cpuid(&self) -> [u32; 2] {
        let Some(Signature { family, models, steppings, kind }) = self.signatures.first() else {
            return [0; 2];
        };
        let (family, model) = (u32::from(*family), u32::from(models.0));
        let (base, extended) = (family.min(0xf), family.saturating_sub(0xf));
        let model = (model & 0xf) << 4 | (model >> 4) << 16;
        let kind = kind.map_or(0, |(core, native)| u32::from(core) << 24 | native);
        [extended << 20 | base << 8 | model | u32::from(steppings.0), kind]
    }

    /// Returns the table, which is made at the first call.
    pub(super) fn table(&'static self) -> &'static Table {
        let index = PROCESSORS.iter().position(|of| core::ptr::eq(of, self)).unwrap_or(INTEL);
        of(index)
    }
}

/// Table of Tally's own events.
pub(super) fn tallys() -> &'static Table {
    of(TALLY)
}

fn of(index: usize) -> &'static Table {
    TABLES[index].call_once(|| pack::table(index, SETS))
}

impl Core {
    /// Returns the number of fractions in PERF_METRICS; 0 without the register (Linux,
    /// `intel_pmu_init`: `num_topdown_events`).
    pub(super) fn metrics(self) -> u8 {
        match self {
            Core::SunnyCove => 4,
            Core::GoldenCove | Core::RedwoodCove | Core::LionCove | Core::CoyoteCove => 8,
            _ => 0,
        }
    }

    /// Returns whether the driver takes this processor's records of precise samples.
    pub(super) fn is_precise(self) -> bool {
        let samples_ops = matches!(self, Core::Zen3 | Core::Zen4 | Core::Zen5);
        matches!(self, Core::SunnyCove) || self.first_is_exact() || samples_ops
    }

    /// Returns whether precise samples of general counter 0 are those of the overflowing
    /// instruction (Linux, `glc_get_event_constraints`, also for Lion Cove).
    pub(super) fn first_is_exact(self) -> bool {
        matches!(self, Core::GoldenCove | Core::RedwoodCove | Core::LionCove)
    }

    /// Returns whether records of slow loads are complete only beside another event (Linux,
    /// `PMU_FL_MEM_LOADS_AUX`, of Alder Lake and Sapphire Rapids).
    pub(super) fn pairs_slow_loads(self) -> bool {
        matches!(self, Core::GoldenCove)
    }

    /// Returns the valid bits of an extra register, 0 if it does not exist (Linux,
    /// arch/x86/events/intel/core.c: `intel_knl_extra_regs` to `intel_lnc_extra_regs`).
    pub(super) fn extra_bits(self, msr: u32) -> u64 {
        const RESPONSE_0: u32 = 0x1a6;
        const RESPONSE_1: u32 = 0x1a7;
        const FRONTEND: u32 = 0x3f7;
        match (self, msr) {
            (Core::Haswell | Core::Broadwell | Core::Skylake, RESPONSE_0 | RESPONSE_1) => {
                0x3f_ffff_8fff
            }
            (Core::SunnyCove, RESPONSE_0 | RESPONSE_1) => 0x3f_ffff_bfff,
            (Core::GoldenCove | Core::RedwoodCove | Core::Gracemont, RESPONSE_0 | RESPONSE_1) => {
                0x3f_ffff_ffff
            }
            (Core::LionCove, RESPONSE_0 | RESPONSE_1) => 0xfff_ffff_ffff,
            (Core::KnightsLanding, RESPONSE_0) => 0x79_9ffb_b6e7,
            (Core::KnightsLanding, RESPONSE_1) => 0x39_9ffb_ffe7,
            (Core::Goldmont | Core::GoldmontPlus, RESPONSE_0) => 0x76_0005_ffbf,
            (Core::Goldmont | Core::GoldmontPlus, RESPONSE_1) => 0x36_0005_ffbf,
            (Core::Tremont, RESPONSE_0) => 0x800f_f0ff_ffff_9fff,
            (Core::Tremont, RESPONSE_1) => 0xf_f0ff_ffff_9fff,
            (Core::Crestmont | Core::Skymont, RESPONSE_0) => 0x800f_f3ff_ffff_ffff,
            (Core::Crestmont | Core::Skymont, RESPONSE_1) => 0xf_f3ff_ffff_ffff,
            (Core::Skylake | Core::SunnyCove, FRONTEND) => 0x7f_ff17,
            (
                Core::GoldenCove | Core::RedwoodCove | Core::LionCove | Core::CoyoteCove,
                FRONTEND,
            ) => 0x7f_ff1f,
            _ => 0,
        }
    }
}
