//! Conversion of an event of the table into the planner's input.

use alloc::{borrow::Cow, format, string::String};

use tally_abi::Mode;
use tally_engine::{Demand, Extra, Metric, Pinned, Selector};

use super::{
    Catalogue, Counter, Entry, ExtraRegister, Flag,
    processors::{Core, Vendor},
};
use crate::{
    intel,
    registers::{
        Register,
        amd::{
            CYCLES_NOT_IN_HALT, EVEN_COUNTERS, MERGE, MERGED, PerfCtl, RETIRED,
            RETIRED_INSTRUCTIONS, RETIRED_SSE_AVX_FLOPS,
        },
        architectural::{
            ARCHITECTURAL_EVENTS, BRANCHES_RETIRED, CORE_CYCLES, INSTRUCTIONS_RETIRED,
        },
        intel::{PebsLdLat, PerfEvtSel},
    },
};

const MODIFIED_PAIR: &str = "it takes two counters that the event Merge joins, and AMD documents no counter mask, \
    invert or edge for such a pair: leave them out";
const UNKNOWN_PAIR: &str = "it takes two counters that the event Merge joins since family 17H, and this processor has \
    no table that says what it is";
/// Unit mask of the first metric.
const FIRST_METRIC: u8 = 0x80;
const MERGES: &str =
    "Merge counts nothing itself: it would change what the counter below it counts";

impl Catalogue {
    pub(super) fn demand(
        &self,
        entry: &Entry<'_>,
        mode: Mode,
        session: Mode,
    ) -> Result<Demand, Why> {
        if let Some(metric) = self.metric(entry) {
            return if mode == session {
                Ok(Demand::metric(metric))
            } else {
                Err(of_session(mode))
            };
        }
        let always = self.always(entry).filter(|_| mode == session);
        match always.filter(|_| entry.flag != Flag::Threads) {
            Some(always) => Ok(Demand::pinned(always)),
            None => self.general_demand(entry, mode),
        }
    }

    /// Returns the demand for the event on one general counter, even if it is a pinned event.
    pub(super) fn demand_on(
        &self,
        counter: u8,
        entry: &Entry<'_>,
        mode: Mode,
    ) -> Result<Demand, Why> {
        let demand = self.general_demand(entry, mode)?;
        match demand.counters & 1_u16.checked_shl(counter.into()).unwrap_or(0) {
            0 => Err(Why::NotSupported(format!(
                "general counter {counter} cannot count it; those of the mask {:#x} can",
                demand.counters
            ))),
            counters => Ok(Demand { counters, ..demand }),
        }
    }

    pub(super) fn general_demand(&self, entry: &Entry<'_>, mode: Mode) -> Result<Demand, Why> {
        let not_supported = |why: &str| Err(Why::NotSupported(why.into()));
        if entry.flag == Flag::Threads {
            return not_supported("it counts the other thread of the core too (AnyThread)");
        }
        let Some(entry) = self.on_general(entry) else {
            let why = format!(
                "only a fixed counter counts it, and that at the session's privileges: \
                 instructions, cycles and reference cycles, unmodified; this is {}",
                entry.what(mode)
            );
            return Err(Why::NotSupported(why));
        };
        let Counter::General(counters) = entry.counter else {
            return not_supported("only a fixed counter counts it");
        };
        self.refuse_what_counts_nothing(&entry)?;
        let takes_two = self.takes_two_counters(&entry);
        let extra = match entry.extra {
            // A session has one value of it, which its group switches do not write.
            Some(ExtraRegister { msr: PebsLdLat::FIRST, .. }) => None,
            None => None,
            Some(register) => Some(self.extra(&entry, register, mode)?),
        };
        Ok(Demand {
            extra,
            alone: entry.flag == Flag::Alone,
            kernel: mode.kernel(),
            retired: self.is_retired(&entry),
            pair: takes_two.then_some(Selector(MERGED.bits())),
            ..Demand::general(
                self.selector(&entry, mode),
                if takes_two { counters & EVEN_COUNTERS } else { counters },
            )
        })
    }

    /// Returns whether the event can happen more often in a cycle than one counter can add.
    fn takes_two_counters(&self, entry: &Entry<'_>) -> bool {
        self.processor.vendor == Vendor::Amd && entry.code == RETIRED_SSE_AVX_FLOPS
    }

    /// Returns whether the event counts retired instructions or branches of any kind.
    fn is_retired(&self, entry: &Entry<'_>) -> bool {
        match self.processor.vendor {
            Vendor::Intel => [INSTRUCTIONS_RETIRED, BRANCHES_RETIRED].contains(&entry.code),
            Vendor::Amd => RETIRED.contains(&entry.code),
        }
    }

    /// Refuses an event that a general counter cannot count by itself.
    fn refuse_what_counts_nothing(&self, entry: &Entry<'_>) -> Result<(), Why> {
        let not_supported = |why: &str| Err(Why::NotSupported(why.into()));
        match (self.processor.vendor, entry.code) {
            (Vendor::Amd, MERGE) => return not_supported(MERGES),
            _ if !self.takes_two_counters(entry) => {}
            _ if self.processor.core == Core::Amd => return not_supported(UNKNOWN_PAIR),
            _ if entry.is_modified() => return not_supported(MODIFIED_PAIR),
            _ => {}
        }
        let lacks = |what: &str| {
            Err(Why::NotSupported(format!(
                "the processor, or a hypervisor, says that selects have no {what} (CPUID leaf 23H)"
            )))
        };
        if !self.has_second_umask && entry.umask > 0xff {
            return lacks("second unit mask");
        }
        if !self.has_equal && entry.equal {
            return lacks("equal flag");
        }
        let is_this =
            |(code, umask): &(u16, u8)| (*code, u16::from(*umask)) == (entry.code, entry.umask);
        match ARCHITECTURAL_EVENTS.iter().position(is_this) {
            Some(bit) if self.absent >> bit & 1 == 1 => Err(Why::NotSupported(format!(
                "the processor, or a hypervisor, says that it has no such event (CPUID leaf 0AH, EBX \
                 bit {bit})"
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the value that the event needs in an extra register.
    fn extra(&self, entry: &Entry<'_>, register: ExtraRegister, mode: Mode) -> Result<Extra, Why> {
        let ExtraRegister { msr, second, value } = register;
        let Some(number) = intel::extra_register(msr) else {
            let why = format!("register {msr:#x} is one that the engine does not drive");
            return Err(Why::NotSupported(why));
        };
        let valid = self.processor.core.extra_bits(msr);
        if value & !valid != 0 {
            let bits = value & !valid;
            let why = format!("register {msr:#x} has no bits {bits:#x}");
            // A value of the table that Linux's mask of the register does not permit.
            let is_listed = !entry.name.is_empty();
            return Err(if is_listed { Why::NotSupported(why) } else { Why::Bad(why) });
        }
        let second = second.and_then(|of| Some((1 << intel::extra_register(of.msr)?, of)));
        let (also, other) = second.map_or((0, *entry), |(also, of)| {
            (also, Entry { code: of.code, umask: of.umask, ..*entry })
        });
        let second = self.selector(&other, mode);
        Ok(Extra { value, registers: 1 << number | also, second })
    }

    /// Returns the event for general counters: itself, or its twin that the vendors name with `_P`.
    fn on_general<'a>(&self, entry: &Entry<'a>) -> Option<Entry<'a>> {
        let Counter::Fixed(_) = entry.counter else { return Some(*entry) };
        let is_fixed = |e: &Entry<'_>| {
            (e.code, e.umask, e.counter) == (entry.code, entry.umask, entry.counter)
        };
        let mut names = self.entries().filter(is_fixed).map(|e| e.name);
        if entry.name.is_empty() {
            names.find_map(|name| self.twin(name))
        } else {
            self.twin(entry.name)
        }
        .map(|twin| Entry {
            code: twin.code,
            umask: twin.umask,
            counter: twin.counter,
            ..*entry
        })
    }

    fn twin(&self, name: &str) -> Option<Entry<'static>> {
        self.find(&format!("{name}_P")).filter(|e| matches!(e.counter, Counter::General(_)))
    }

    /// Returns the metric that `entry` is, if PERF_METRICS has it: perf gives these events code 0.
    pub(super) fn metric(&self, entry: &Entry<'_>) -> Option<Metric> {
        let place = u8::try_from(entry.umask).ok()?.checked_sub(FIRST_METRIC)?;
        let is_one = entry.code == 0 && !entry.is_modified() && place < self.metrics;
        is_one.then_some(Metric(place))
    }

    /// Returns the pinned event that `entry` is equivalent to, if any.
    pub(super) fn always(&self, entry: &Entry<'_>) -> Option<Pinned> {
        if entry.is_modified() {
            return None;
        }
        match (self.processor.vendor, entry.counter, entry.code, entry.umask) {
            (Vendor::Intel, Counter::Fixed(0), 0, 1) if !entry.name.ends_with("PREC_DIST") => {
                Some(Pinned::Instructions)
            }
            (Vendor::Intel, Counter::Fixed(1), 0, 2) => Some(Pinned::Cycles),
            (Vendor::Intel, Counter::Fixed(2), 0, 3) => Some(Pinned::Reference),
            // Twins of fixed-counter events on general counters: the fixed counter counts them
            // already.
            (Vendor::Intel, Counter::General(_), INSTRUCTIONS_RETIRED, 0)
            | (Vendor::Amd, _, RETIRED_INSTRUCTIONS, 0) => Some(Pinned::Instructions),
            (Vendor::Intel, Counter::General(_), CORE_CYCLES, 0)
            | (Vendor::Amd, _, CYCLES_NOT_IN_HALT, 0) => Some(Pinned::Cycles),
            _ => None,
        }
    }

    pub(super) fn selector(&self, entry: &Entry<'_>, mode: Mode) -> Selector {
        Selector(match self.processor.vendor {
            Vendor::Intel => {
                let mut select = PerfEvtSel::event(entry.code as u8, entry.umask as u8)
                    .with_cmask(entry.cmask)
                    .with_second_umask((entry.umask >> 8) as u8)
                    | PerfEvtSel::EN;
                select.set(PerfEvtSel::USR, mode.user());
                select.set(PerfEvtSel::OS, mode.kernel());
                select.set(PerfEvtSel::INV, entry.inv);
                select.set(PerfEvtSel::EDGE, entry.edge);
                select.set(PerfEvtSel::EQUAL, entry.equal);
                select.bits()
            }
            Vendor::Amd => {
                let mut select = PerfCtl::event(entry.code, entry.umask as u8)
                    .with_cmask(entry.cmask)
                    | PerfCtl::EN;
                select.set(PerfCtl::USR, mode.user());
                select.set(PerfCtl::OS, mode.kernel());
                select.set(PerfCtl::INV, entry.inv);
                select.set(PerfCtl::EDGE, entry.edge);
                select.bits()
            }
        })
    }
}

fn of_session(mode: Mode) -> Why {
    Why::NotSupported(format!(
        "PERF_METRICS counts it at the session's privileges; this is in {mode:?} mode"
    ))
}

/// Reason why an event is refused: it cannot be counted here, or its attributes are wrong.
pub(super) enum Why {
    NotSupported(String),
    Bad(String),
}

impl Entry<'_> {
    /// Returns whether cycles or edges are counted instead of the event itself.
    pub(super) fn is_modified(&self) -> bool {
        (self.cmask, self.inv, self.edge, self.equal) != (0, false, false, false)
    }

    fn what(&self, mode: Mode) -> Cow<'static, str> {
        match self.counter {
            _ if self.is_modified() => "a modified event".into(),
            Counter::Fixed(index @ 0..=2) if !self.name.ends_with("PREC_DIST") => {
                format!("fixed counter {index} in {mode:?} mode").into()
            }
            Counter::Fixed(index) => format!("another event of fixed counter {index}").into(),
            Counter::General(_) => "none of them".into(),
        }
    }
}

impl Vendor {
    /// Mask of the counters that can count any event. Of Intel's eight, counters 4 to 7 support
    /// fewer events: Linux's `intel_icl_event_constraints` and `intel_glc_event_constraints`
    /// exclude whole ranges of codes from them.
    pub(super) fn any_counter(self) -> u16 {
        match self {
            Vendor::Intel => 0x0f,
            Vendor::Amd => 0x3f,
        }
    }

    /// Bits of an event select that identify the event, as opposed to when it is counted.
    pub(super) fn event_bits(self) -> u64 {
        let select = PerfEvtSel::CODE
            | PerfEvtSel::UMASK
            | PerfEvtSel::EDGE
            | PerfEvtSel::INV
            | PerfEvtSel::CMASK;
        match self {
            Vendor::Intel => select.bits(),
            // Same layout, and four more bits of the event code.
            Vendor::Amd => select.bits() | PerfCtl::CODE_HIGH.bits(),
        }
    }
}
