//! Detection of the processor's PMU by CPUID. Runs once, at boot.

mod absent;
mod branches;
mod errata;
mod extended;
mod ops;
mod records;

use core::fmt;

use raw_cpuid::CpuIdReader;
use tally_abi::{Error, wire::PmuInfo};
use tally_engine::{Layout, MAX_GENERAL, Widths, plan::CounterAssignment};

use crate::{
    Amd, Bus, Catalogue, Driver, HaltTimer, InitError, Intel, amd, bus::CountingBus,
    halt_timer::Registers, init::ControlValue, intel, registers::intel::PebsEnable,
};
use absent::absent_events;
use errata::erratum;
use extended::Extended;

/// A PMU that this crate can drive.
#[derive(Clone, Copy, Debug)]
pub struct DetectedPmu {
    kind: Kind,
    catalogue: Catalogue,
    /// Display family and model in CPUID.
    family: u16,
    model: u8,
    /// Remark for the log.
    pub note: Option<&'static str>,
    /// Core type and native model of a hybrid processor, from CPUID, or 0.
    core: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Intel { features: intel::Features, version: u8, width_bits: u8 },
    Amd(amd::Features),
}

/// Reason why there is no usable PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPmu {
    /// The processor is neither Intel's nor AMD's.
    Vendor([u8; 12]),
    /// CPUID reports no PMU, or one without counters.
    Missing {
        /// Whether a hypervisor controls the output of CPUID.
        hypervisor: bool,
    },
    /// Version 1 of Intel's architectural performance monitoring, which has no fixed counters.
    TooOld,
    /// Fixed counters for instructions and cycles, or AMD's counters 0 and 1, are not both present,
    /// or no other counter is.
    TooFewCounters,
}

impl NoPmu {
    /// Returns the error code that programs get.
    pub fn error(self) -> Error {
        Error::NoPmu
    }
}

impl fmt::Display for NoPmu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPmu::Vendor(name) => {
                let name = str::from_utf8(name).unwrap_or("?");
                write!(f, "the processor is from {name}; Tally drives Intel's and AMD's PMUs")
            }
            NoPmu::Missing { hypervisor: true } => f.write_str(
                "the hypervisor shows no PMU; pass the PMU through to the guest, or run under the \
                 virtual PMU",
            ),
            NoPmu::Missing { hypervisor: false } => {
                f.write_str("the processor shows no PMU; look for a firmware setting that hides it")
            }
            NoPmu::TooOld => f.write_str(
                "the PMU is of architectural version 1; Tally needs version 2, with fixed counters",
            ),
            NoPmu::TooFewCounters => f.write_str(
                "the PMU shows too few counters: cycles, instructions and one more are needed; the \
                 firmware or a hypervisor may keep the others",
            ),
        }
    }
}

/// Detects the PMU of the processor that `cpuid` reads.
///
/// # Errors
/// See [`NoPmu`].
pub fn detect<R: CpuIdReader>(cpuid: R) -> Result<DetectedPmu, NoPmu> {
    let leaf = cpuid.cpuid1(0);
    let mut vendor = [0; 12];
    for (four, register) in vendor.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        four.copy_from_slice(&register.to_le_bytes());
    }
    let signature = cpuid.cpuid1(1);
    let hypervisor = signature.ecx >> 31 & 1 == 1;
    let (family, model) = family_and_model(signature.eax);
    // Intel SDM volume 2, CPUID leaf 1AH: EAX.
    let has_core = vendor == *b"GenuineIntel" && leaf.eax >= 0x1a;
    let core = if has_core { cpuid.cpuid1(0x1a).eax } else { 0 };
    let mut more = None;
    let (mut kind, catalogue) = match &vendor {
        b"GenuineIntel" => {
            let catalogue = Catalogue::intel(family, model, signature.eax as u8 & 0xf, core);
            let extra = catalogue.extra_registers();
            let extended = Extended::of(&cpuid, leaf.eax);
            let known = Known { extra, metrics: catalogue.metrics() > 0, exact: catalogue.exact() };
            let found = detect_intel(&cpuid, leaf.eax, hypervisor, known, &extended)?;
            let catalogue = catalogue.without(absent_events(&cpuid));
            let FoundIntel { features, version, width_bits, remark } = found;
            more = remark;
            let catalogue = catalogue.with_metrics(features.metrics).with_records(features.records);
            let catalogue = catalogue.with_fields(extended.has_second_umask, extended.has_equal);
            (Kind::Intel { features, version, width_bits }, catalogue)
        }
        // Hygon's family 18h is AMD's Zen 1 (Linux, arch/x86/events/core.c).
        b"AuthenticAMD" | b"HygonGenuine" => {
            (detect_amd(&cpuid, hypervisor)?, Catalogue::amd(family, model))
        }
        _ => return Err(NoPmu::Vendor(vendor)),
    };
    let tsx = leave_counter_3(&mut kind, &cpuid, leaf.eax);
    let note = tsx.or(more).or(erratum(&vendor, family, model));
    Ok(DetectedPmu { kind, catalogue, family, model, note, core })
}

/// Reserves general counter 3 for TSX microcode, which may use it for transactions, and returns a
/// remark about that. The condition in CPUID leaf 7's EDX: bit 13 is set (MSR_TSX_FORCE_ABORT
/// exists; its RTM_FORCE_ABORT is 0 after reset), and bit 11, RTM_ALWAYS_ABORT, is not. (Intel,
/// "Performance Monitoring Impact of Intel Transactional Synchronization Extension Memory Ordering
/// Issue", 604224.)
fn leave_counter_3<R: CpuIdReader>(
    kind: &mut Kind,
    cpuid: &R,
    leaves: u32,
) -> Option<&'static str> {
    const COUNTER_3: u16 = 1 << 3;
    let Kind::Intel { features, .. } = kind else { return None };
    let flags = if leaves >= 7 { cpuid.cpuid1(7).edx } else { 0 };
    let is_microcodes = flags >> 13 & 1 == 1 && flags >> 11 & 1 == 0;
    if !is_microcodes || features.general & COUNTER_3 == 0 {
        return None;
    }
    features.general &= !COUNTER_3;
    Some("general counter 3 is left to microcode, which may use it for transactions (TSX)")
}

/// Computes display family and model, after both vendors' manuals (CPUID Fn0000_0001_EAX).
pub(crate) fn family_and_model(eax: u32) -> (u16, u8) {
    let field = |shift: u32, bits: u32| eax >> shift & ((1 << bits) - 1);
    let (family, model) = (field(8, 4), field(4, 4));
    let extended = if family == 0xf { field(20, 8) } else { 0 };
    let high = if matches!(family, 6 | 0xf) { field(16, 4) } else { 0 };
    ((family + extended) as u16, (high << 4 | model) as u8)
}

/// Remark on two leaves that disagree.
const DIFFERS: &str = "CPUID leaf 0AH has counters that leaf 23H does not have: they are not used";

/// Registers that CPUID does not enumerate.
struct Known {
    /// Mask of extra registers.
    extra: u8,
    /// Whether PERF_METRICS exists.
    metrics: bool,
    /// Counters whose precise samples are those of the overflowing instruction.
    exact: PebsEnable,
}

/// PMU of Intel's as CPUID reports it, and a remark if two leaves disagree.
struct FoundIntel {
    features: intel::Features,
    version: u8,
    width_bits: u8,
    remark: Option<&'static str>,
}

/// Reads Intel SDM volume 2, CPUID leaf 0AH. Leaf 23H wins over it.
///
/// [`Known`] registers follow from the model, and each CPU's driver tries them, as KVM reports the
/// model without all of the registers.
fn detect_intel<R: CpuIdReader>(
    cpuid: &R,
    leaves: u32,
    hypervisor: bool,
    Known { extra, metrics, exact }: Known,
    extended: &Extended,
) -> Result<FoundIntel, NoPmu> {
    if leaves < 0xa {
        return Err(NoPmu::Missing { hypervisor });
    }
    let leaf = cpuid.cpuid1(0xa);
    let byte = |register: u32, shift: u32| (register >> shift) as u8;
    let (version, general) = (byte(leaf.eax, 0), byte(leaf.eax, 8));
    match (version, general) {
        (0, _) | (_, 0) => return Err(NoPmu::Missing { hypervisor }),
        (1, _) => return Err(NoPmu::TooOld),
        _ => {}
    }
    // From version 5 on, ECX is a mask of fixed counters in addition to EDX's number of them.
    let mask = if version >= 5 { leaf.ecx } else { 0 };
    let first = |count: u32| 1_u32.checked_shl(count).map_or(u32::MAX, |bit| bit - 1);
    let common = [first(general.into()), first(leaf.edx & 0x1f) | mask];
    let ([general, fixed], differs) = extended.or(common);
    let general = (general & first(MAX_GENERAL as u32)) as u16;
    let fixed = |index: u32| fixed >> index & 1 == 1;
    if !fixed(0) || !fixed(1) || general == 0 {
        return Err(NoPmu::TooFewCounters);
    }
    let width_bits = byte(leaf.eax, 16).clamp(32, 48);
    let fixed_bits = ((leaf.edx >> 5) as u8).clamp(32, 48);
    let widths = Widths { pinned: (1 << fixed_bits) - 1, general: (1 << width_bits) - 1 };
    // Bit 15 of the feature flags: IA32_PERF_CAPABILITIES exists.
    let store = cpuid.cpuid1(1);
    let capabilities = store.ecx >> 15 & 1 == 1;
    let records = records::of_intel(store, extended.records, exact, general);
    let features = intel::Features {
        general,
        branches: branches::of_intel(cpuid, leaves, version),
        reserved: 0,
        reference: fixed(2),
        capabilities,
        extra,
        widths,
        metrics: fixed(3) && metrics,
        records,
        addresses: intel::Addresses::of_version(version),
    };
    Ok(FoundIntel { features, version, width_bits, remark: differs.then_some(DIFFERS) })
}

/// Reads AMD64 Architecture Programmer's Manual volume 3, CPUID Fn8000_0001_ECX and Fn8000_0022.
fn detect_amd<R: CpuIdReader>(cpuid: &R, hypervisor: bool) -> Result<Kind, NoPmu> {
    let leaves = cpuid.cpuid1(0x8000_0000).eax;
    if leaves < 0x8000_0001 || cpuid.cpuid1(0x8000_0001).ecx >> 23 & 1 == 0 {
        return Err(NoPmu::Missing { hypervisor });
    }
    // The core extension has six counters; PerfMonV2 reports their number.
    let v2 = if leaves >= 0x8000_0022 { cpuid.cpuid1(0x8000_0022) } else { cpuid_nothing() };
    let global = v2.eax & 1 == 1;
    let count = if global { (v2.ebx & 0xf).min(6) } else { 6 };
    let counters = (1_u16 << count) - 1;
    if counters & !amd::PINNED == 0 {
        return Err(NoPmu::TooFewCounters);
    }
    // The bit LbrAndPmcFreeze.
    let freeze = global && v2.eax >> 2 & 1 == 1;
    let branches = branches::of_amd(v2, freeze);
    let samples_ops = ops::of_amd(cpuid, leaves);
    Ok(Kind::Amd(amd::Features { counters, reserved: 0, global, branches, samples_ops, freeze }))
}

fn cpuid_nothing() -> raw_cpuid::CpuIdResult {
    raw_cpuid::CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 }
}

impl DetectedPmu {
    /// Returns a description for messages.
    pub fn info(&self) -> PmuInfo<'static> {
        let layout = self.layout();
        let (name, width_bits) = match self.kind {
            Kind::Intel { version, width_bits, .. } => (intel_name(version), width_bits),
            Kind::Amd(amd::Features { global: true, .. }) => ("AMD PerfMonV2", amd::WIDTH_BITS),
            Kind::Amd(_) => ("AMD core performance counter extension", amd::WIDTH_BITS),
        };
        PmuInfo {
            vendor: match self.kind {
                Kind::Intel { .. } => "GenuineIntel",
                Kind::Amd(_) => "AuthenticAMD",
            },
            family: self.family,
            model: self.model,
            name,
            catalogue: self.catalogue.name(),
            general: layout.general.count_ones() as u8,
            pinned: 2 + u8::from(layout.reference),
            width_bits,
        }
    }

    /// Returns the counters for groups.
    pub fn layout(&self) -> Layout {
        match self.kind {
            Kind::Intel { features, .. } => {
                let intel::Features { general, reference, extra, widths, .. } = features;
                Layout { general, reference, extra, widths }
            }
            Kind::Amd(features) => Layout {
                general: features.counters & !amd::PINNED,
                reference: false,
                extra: 0,
                widths: Widths::of(amd::WIDTH_BITS.into()),
            },
        }
    }

    /// Returns the same PMU with its highest general counter reserved for a [`HaltTimer`].
    ///
    /// # Errors
    /// Fails if no counter would be left for groups.
    pub fn with_halt_timer(mut self) -> Result<DetectedPmu, NoPmu> {
        let general = self.layout().general;
        let taken = 1_u16 << general.ilog2();
        if general == taken {
            return Err(NoPmu::TooFewCounters);
        }
        match &mut self.kind {
            Kind::Intel { features, .. } => {
                (features.general, features.reserved) = (features.general & !taken, taken);
            }
            Kind::Amd(features) => {
                (features.counters, features.reserved) = (features.counters & !taken, taken);
            }
        }
        Ok(self)
    }

    /// Returns the halt timer of the CPU that `bus` accesses, after [`Self::init_cpu`]; `None`
    /// unless this PMU was made by [`Self::with_halt_timer`].
    pub fn halt_timer<B: Bus>(&self, bus: B) -> Option<HaltTimer<B>> {
        let (reserved, registers) = match self.kind {
            Kind::Intel { features, .. } => {
                let intel::Features { widths, addresses, reserved, .. } = features;
                (reserved, Registers::Intel { width: widths.general, addresses })
            }
            Kind::Amd(features) => (features.reserved, Registers::Amd { global: features.global }),
        };
        (reserved != 0).then(|| HaltTimer::new(bus, registers, reserved.trailing_zeros() as u8))
    }

    /// Returns the ECX operand of RDPMC for an event's counter.
    pub fn rdpmc(&self, place: CounterAssignment) -> u32 {
        match (place, self.kind) {
            (CounterAssignment::General { counter, .. }, _) => counter.into(),
            (CounterAssignment::Metric(_), _) => intel::RDPMC_METRICS,
            (CounterAssignment::Pinned(event), Kind::Intel { .. }) => intel::rdpmc_pinned(event),
            (CounterAssignment::Pinned(event), Kind::Amd(_)) => amd::rdpmc_pinned(event),
        }
    }

    /// Returns whether another CPU has the same counters and events. Cores of another type or
    /// native model do not.
    pub fn is_like(&self, other: &DetectedPmu) -> bool {
        (self.kind, self.core) == (other.kind, other.core)
    }

    /// Adds the events that only Tally's virtual PMU has, for a machine that has it.
    #[must_use]
    pub fn with_tallys_events(self) -> DetectedPmu {
        DetectedPmu { catalogue: self.catalogue.with_tallys(), ..self }
    }

    /// Returns the catalogue of the processor's events.
    pub fn catalogue(&self) -> Catalogue {
        self.catalogue
    }

    /// Returns the control of a counter that is on. To be called on each CPU before
    /// [`Self::init_cpu`], which turns all counters off.
    pub fn left_on<B: Bus>(&self, bus: B) -> Option<ControlValue> {
        let bus = &mut CountingBus::new(bus);
        match &self.kind {
            Kind::Intel { features, .. } => intel::left_on(bus, features),
            Kind::Amd(features) => amd::left_on(bus, features),
        }
    }

    /// Takes over the PMU of the CPU that `bus` accesses, and leaves all counters disabled.
    ///
    /// # Errors
    /// See [`InitError`].
    pub fn init_cpu<B: Bus>(&self, bus: B) -> Result<Driver<B>, InitError> {
        match self.kind {
            Kind::Intel { features, .. } => Intel::new(bus, features).map(Driver::Intel),
            Kind::Amd(features) => Amd::new(bus, features).map(Driver::Amd),
        }
    }
}

fn intel_name(version: u8) -> &'static str {
    match version {
        2 => "Intel architectural performance monitoring, version 2",
        3 => "Intel architectural performance monitoring, version 3",
        4 => "Intel architectural performance monitoring, version 4",
        5 => "Intel architectural performance monitoring, version 5",
        _ => "Intel architectural performance monitoring, version 6 or later",
    }
}

#[cfg(test)]
mod tests;
