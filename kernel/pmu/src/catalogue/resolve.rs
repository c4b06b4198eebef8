//! Resolution of a list of events, as a program spells it, to the planner's input.

use alloc::{format, string::String, vec::Vec};

use tally_abi::{
    Error, Mode,
    command::SOFTWARE,
    events::{BadBraces, Listed, listed, with_modifiers_inside, words},
    session::MAX_EVENTS,
};
use tally_engine::{Demand, MAX_SHARE};

use super::{
    Catalogue, Counter, Entry, Flag,
    aliases::{Alias, Derived, alias, aliases},
    demand::Why,
    extra::extra_of,
    precise::refuse_latencies,
    processors::{Core, Vendor},
    resolved::{ResolveError, Resolved},
    spelling::{self, Spelling},
    table::{ExtraRegister, Second},
    unknown::unknown,
};
use crate::{intel, registers::intel::PerfEvtSel};

/// Maximum length of one event's spelling: it has to fit into messages.
const MAX_SPELLING_BYTES: usize = 255;

/// Reason why an event cannot be counted: the error code, and a text for people.
type Refused = (Error, String);

fn refused(why: Why) -> Refused {
    match why {
        Why::NotSupported(why) => (Error::EventNotSupported, why),
        Why::Bad(why) => (Error::BadArgument, why),
    }
}

impl Catalogue {
    /// Looks up every event of `list`, separated by commas or white space outside of `cpu/…/`.
    /// Events are counted in `mode` unless they name other privileges; events between braces are
    /// counted in the same slices. `docs/abi.md` defines the spelling.
    ///
    /// # Errors
    /// Returns the error of the first event that is refused.
    pub fn resolve(&self, list: &str, mode: Mode) -> Result<Vec<Resolved>, ResolveError> {
        let list = &with_modifiers_inside(list);
        let whole = |error: Error, detail| ResolveError { event: String::new(), error, detail };
        spelling::check_pmus(list).map_err(|(event, detail)| ResolveError {
            event: event.into(),
            error: Error::BadArgument,
            detail,
        })?;
        match words(list).count() {
            0 => return Err(whole(Error::NoEvents, Error::NoEvents.message().into())),
            n if n > MAX_EVENTS => {
                let detail = format!("{n} events were asked for; a plan holds {MAX_EVENTS}");
                return Err(whole(Error::TooManyEvents, detail));
            }
            _ => {}
        }
        let resolve = |listed: Result<Listed<'_>, BadBraces<'_>>| match listed {
            Err(bad) => Err(whole(Error::BadArgument, format!("{bad}"))),
            Ok((word, together)) => {
                let one = self.resolve_one(word, mode);
                let mut resolved = one.map_err(|(error, detail)| ResolveError {
                    event: word.into(),
                    error,
                    detail,
                })?;
                resolved.demand.together = together;
                Ok(resolved)
            }
        };
        let resolved: Vec<Resolved> = listed(list).map(resolve).collect::<Result<_, _>>()?;
        refuse_latencies(&resolved)?;
        Ok(resolved)
    }

    /// Returns the names that are not the vendor's: perf's generic events, and PAPI's presets. Some
    /// are refused when they are resolved.
    pub fn generic_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        aliases(self)
    }

    /// Returns whether `name`, ignoring case, is an entry's or an alias of a single event. Unlike
    /// [`Self::resolve`] it does not search for similar names.
    pub fn has(&self, name: &str) -> bool {
        let is_event = |alias| matches!(alias, Alias::Event(_));
        self.find(name).is_some() || alias(self, name).is_some_and(is_event)
    }

    /// Returns the two events whose sum or difference `name`, ignoring case, stands for.
    pub fn derived(&self, name: &str) -> Option<Derived> {
        match alias(self, name) {
            Some(Alias::Derived(derived)) => Some(derived),
            _ => None,
        }
    }

    fn resolve_one(&self, word: &str, session: Mode) -> Result<Resolved, Refused> {
        if word.len() > MAX_SPELLING_BYTES {
            let why = format!("an event is spelled in at most {MAX_SPELLING_BYTES} bytes");
            return Err((Error::BadArgument, why));
        }
        let spelling = Spelling::parse(word).map_err(|why| (Error::BadArgument, why))?;
        if let Some(pmu) = spelling.pmu
            && !self.pfm_names().contains(&pmu)
        {
            let known = self.pfm_names().join(", ");
            return Err((
                Error::UnknownEvent,
                format!(
                    "'{pmu}::' is not this processor; the catalogue {} is {known}",
                    self.name()
                ),
            ));
        }
        let share = spelling.share.unwrap_or(1);
        if !(1..=MAX_SHARE).contains(&share) {
            let why = format!("'@{share}': a group has 1 to {MAX_SHARE} slices of a round");
            return Err((Error::BadArgument, why));
        }
        let Some(mode) = spelling.privileges.within(session) else {
            let why = format!("no privilege is left to count at, in a session in {session:?} mode");
            return Err((Error::BadArgument, why));
        };
        let entry = self.entry(&spelling)?;
        let demand = self.demand_of(&spelling, &entry, mode, session)?;
        let demand = self.precise(demand, spelling.precision, &entry, mode).map_err(refused)?;
        let native = self.with_code(entry.code).find(|e| e.is_same(&entry)).map(|e| e.name);
        let plain = Spelling { name: spelling.name, share: spelling.share, ..Spelling::default() };
        let name = match spelling.label {
            Some(label) => label,
            None if plain == spelling && !entry.name.is_empty() => entry.name,
            None => {
                word.rsplit_once('@').filter(|_| spelling.share.is_some()).map_or(word, |w| w.0)
            }
        };
        let demand = Demand { share, ..demand };
        Ok(Resolved { name: name.into(), native, mode, demand })
    }

    /// Returns the planner's input for an event, on the counter that the spelling names, if any.
    fn demand_of(
        &self,
        spelling: &Spelling<'_>,
        entry: &Entry<'_>,
        mode: Mode,
        session: Mode,
    ) -> Result<Demand, Refused> {
        let demand = match spelling.counter {
            None => self.demand(entry, mode, session),
            Some(counter) => self.demand_on(counter, entry, mode),
        };
        demand.map_err(refused)
    }

    /// Returns the table entry for a spelling; its name is empty if the spelling is an alias or
    /// changes values of the table.
    fn entry(&self, spelling: &Spelling<'_>) -> Result<Entry<'static>, Refused> {
        let mut entry = match (spelling.config, spelling.name) {
            (Some(config), _) => self.raw(config)?,
            (None, "") => EMPTY,
            (None, _) => self.spelled(spelling)?,
        };
        let fields = spelling.fields;
        let changes = fields != spelling::Fields::default();
        if let Some(code) = fields.code {
            if self.processor.vendor == Vendor::Intel && code > 0xff {
                return Err((Error::BadArgument, format!("'event={code:#x}': more than 0xff")));
            }
            entry.code = code;
        }
        if let Some(umask) = fields.umask
            && umask > 0xff
            && !(self.has_second_umask || self.table.has_second_umask)
        {
            let why = format!("'umask={umask:#x}': this processor's unit masks are at most 0xff");
            return Err((Error::BadArgument, why));
        }
        entry.umask = fields.umask.unwrap_or(entry.umask);
        entry.cmask = fields.cmask.unwrap_or(entry.cmask);
        entry.inv = fields.inv.unwrap_or(entry.inv);
        entry.edge = fields.edge.unwrap_or(entry.edge);
        entry.equal = fields.equal.unwrap_or(entry.equal);
        if entry.equal && self.processor.vendor == Vendor::Amd {
            return Err((Error::BadArgument, "'eq': AMD's selects have no equal flag".into()));
        }
        if spelling.config.is_some() || changes || entry.extra.is_none() && self.wants_extra(&entry)
        {
            entry.name = "";
            self.constrain(&mut entry, fields.extra)?;
        }
        Ok(entry)
    }

    /// Returns whether events of the same code and unit mask need a value in an extra register.
    fn wants_extra(&self, entry: &Entry<'_>) -> bool {
        let same = |e: &Entry<'_>| (e.code, e.umask) == (entry.code, entry.umask);
        self.table.with_code(entry.code).any(|e| e.extra.is_some() && same(e))
    }

    /// Returns the event with this name: an entry of the table, or an alias's event.
    fn spelled(&self, spelling: &Spelling<'_>) -> Result<Entry<'static>, Refused> {
        let name = spelling.full_name();
        if let Some(entry) = self.find(&name).or_else(|| self.find_masks(spelling)) {
            return Ok(entry);
        }
        match alias(self, &name) {
            Some(Alias::Event(event)) => {
                let target = Spelling::parse(event).map_err(|why| (Error::BadArgument, why))?;
                let entry = self.entry(&target)?;
                Ok(Entry { name: "", ..entry })
            }
            Some(Alias::Derived(Derived { terms: [a, b], subtracts })) => {
                let what = if subtracts { "difference" } else { "sum" };
                Err((Error::EventNotSupported, format!("it is a {what}: count {a} and {b}")))
            }
            Some(Alias::Refused(why)) => Err((Error::EventNotSupported, why.into())),
            None if Self::is_tallys(&name) => {
                let why = "it is an event of Tally's virtual PMU, which this machine does not have: \
                           count it under `cargo xtask run`";
                Err((Error::EventNotSupported, why.into()))
            }
            None if SOFTWARE.iter().any(|(software, _)| *software == name) => {
                let why =
                    format!("the kernel counts it, and no counter: use `tally stat -e {name}`");
                Err((Error::EventNotSupported, why))
            }
            None if name.starts_with("topdown-") || name.starts_with("tma_") => {
                let why = "it is a metric, of several events: `tally stat --topdown`, or -M METRIC";
                Err((Error::EventNotSupported, why.into()))
            }
            None => Err(unknown(self, spelling)),
        }
    }

    /// Returns an event with several unit masks, whose bits are combined as libpfm4 does.
    fn find_masks(&self, spelling: &Spelling<'_>) -> Option<Entry<'static>> {
        let mut masks =
            spelling.unit_masks.iter().map(|mask| self.find(&format!("{}.{mask}", spelling.name)));
        let first = masks.next()??;
        let joined = masks.try_fold(first, |all, mask| {
            let mask = mask?;
            let joined = Entry { umask: all.umask | mask.umask, ..all };
            let same = Entry { umask: mask.umask, name: mask.name, ..all } == mask;
            (same && all.extra.is_none()).then_some(joined)
        })?;
        (spelling.unit_masks.len() > 1).then_some(Entry { name: "", ..joined })
    }

    /// Returns the event for a numeric event select, without the table's constraints.
    fn raw(&self, config: u64) -> Result<Entry<'static>, Refused> {
        let mut own = self.processor.vendor.event_bits();
        if self.has_second_umask || self.table.has_second_umask {
            own |= PerfEvtSel::SECOND_UMASK.bits();
        }
        if self.has_equal {
            own |= PerfEvtSel::EQUAL.bits();
        }
        if config & !own != 0 {
            let bits = config & !own;
            let why = format!(
                "bits {bits:#x} of the event select are not the event's; \
                 privileges are said by :u and :k"
            );
            return Err((Error::BadArgument, why));
        }
        let (code_high, umask_high) = match self.processor.vendor {
            Vendor::Intel => (0, 0xff00),
            Vendor::Amd => (0xf00, 0),
        };
        Ok(Entry {
            code: (config & 0xff | config >> 24 & code_high) as u16,
            umask: (config >> 8 & 0xff | config >> 32 & umask_high) as u16,
            cmask: (config >> 24) as u8,
            inv: config & PerfEvtSel::INV.bits() != 0,
            edge: config & PerfEvtSel::EDGE.bits() != 0,
            equal: self.has_equal && config & PerfEvtSel::EQUAL.bits() != 0,
            ..EMPTY
        })
    }

    /// Returns whether an Intel event depends on an extra register: off-core responses, retired
    /// front-end events, load latency (Linux's `intel_skl_extra_regs` to `intel_glc_extra_regs`).
    /// A processor without a table is a recent one, with more of them, and snoop responses
    /// (`intel_rwc_…` to `intel_pnc_extra_regs`, `intel_grt_…` to `intel_arw_extra_regs`).
    fn wants_some_register(&self, code: u16, umask: u16) -> bool {
        let always = matches!((code, umask), (0xb7 | 0xbb | 0x2a | 0x2b | 0xcd, 1) | (0xc6, 1 | 3));
        let recently = matches!(
            (code, umask),
            (0x2a, 2 | 4 | 8)
                | (0xc6 | 0xb7 | 0x27, 2)
                | (0xad, 0x40)
                | (0xc2, 4)
                | (0x27, 1)
                | (0xd0, 5)
        );
        let is = always || recently && self.processor.core == Core::Intel;
        is && self.processor.vendor == Vendor::Intel
    }

    /// Returns the extra register of off-core responses, for a table that has the event without
    /// values.
    fn response(&self, entry: &Entry<'_>) -> Option<ExtraRegister> {
        let is_response = matches!(entry.code, 0xb7 | 0xbb) && entry.umask == 1;
        let [first, second] = [0, 1].map(intel::extra_address);
        let has_it = self.processor.core.extra_bits(first) != 0;
        (is_response && has_it).then_some(ExtraRegister {
            msr: first,
            second: Some(Second { msr: second, code: 0xbb, umask: 1 }),
            value: 0,
        })
    }

    /// Gives `entry` the counters and the extra register of the most similar event of the table.
    fn constrain(
        &self,
        entry: &mut Entry<'static>,
        extra: Option<spelling::Extra>,
    ) -> Result<(), Refused> {
        if self.metric(entry).is_some() {
            entry.counter = Counter::Fixed(SLOTS);
            return Ok(());
        }
        let code = entry.code;
        let same = |e: &Entry<'_>| e.umask == entry.umask;
        let exact = |e: &Entry<'_>| {
            let modifiers = |e: &Entry<'_>| (e.cmask, e.inv, e.edge, e.equal);
            same(e) && modifiers(e) == modifiers(entry)
        };
        let with_register = |e: &Entry<'_>| same(e) && e.extra.is_some();
        let of_code = || self.table.with_code(code);
        let find =
            |most_like: &dyn Fn(&Entry<'_>) -> bool| of_code().find(|e| most_like(e)).copied();
        let known = find(&with_register).or_else(|| find(&exact)).or_else(|| find(&same));
        if let Some(known) = known {
            (entry.counter, entry.flag, entry.code) = (known.counter, known.flag, known.code);
        } else {
            entry.counter = Counter::General(self.counters_of_unknown(entry)?);
        }
        let wants = known.and_then(|known| known.extra).or_else(|| self.response(entry));
        entry.extra = extra_of(entry, wants, extra)?;
        Ok(())
    }

    /// Returns the counters for an event whose unit mask is not in the table: those on which every
    /// event of its code can be counted.
    fn counters_of_unknown(&self, entry: &Entry<'_>) -> Result<u16, Refused> {
        if entry.code == 0 && self.processor.vendor == Vendor::Intel {
            let why = "code 0 is that of fixed counters and of metrics (topdown-…), and the processor, or \
                       a hypervisor, shows none with this unit mask";
            return Err((Error::EventNotSupported, why.into()));
        }
        if self.extra_registers() == 0 && self.wants_some_register(entry.code, entry.umask) {
            let why = "it needs an extra register, and this processor's are not known";
            return Err((Error::EventNotSupported, why.into()));
        }
        let same_code = self.table.with_code(entry.code);
        let counters = same_code.filter_map(|e| match e.counter {
            Counter::General(counters) => Some(counters),
            Counter::Fixed(_) => None,
        });
        let common = counters.reduce(|all, counters| all & counters);
        Ok(common.filter(|counters| *counters != 0).unwrap_or(self.processor.vendor.any_counter()))
    }
}

/// The fixed counter of slots, of which metrics are fractions.
const SLOTS: u8 = 3;

const EMPTY: Entry<'static> = Entry {
    name: "",
    code: 0,
    umask: 0,
    cmask: 0,
    inv: false,
    edge: false,
    equal: false,
    counter: Counter::General(0xffff),
    flag: Flag::None,
    extra: None,
};

impl Entry<'_> {
    /// Returns whether both entries count the same, apart from their names.
    fn is_same(&self, other: &Entry<'_>) -> bool {
        let named_apart = self.name.ends_with("PREC_DIST") && self.name != other.name;
        !named_apart
            && Entry { name: "", counter: EMPTY.counter, ..*self }
                == Entry { name: "", counter: EMPTY.counter, ..*other }
    }
}
