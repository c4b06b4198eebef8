//! From a list of events as a program writes it to what the planner is asked.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use tally_abi::{Error, Mode, session::MAX_EVENTS};
use tally_engine::{Always, Demand, Extra, MAX_SHARE, Selector};

use super::{
    Catalogue, Counter, Entry, Flag, Vendor,
    aliases::{Alias, alias, aliases},
    nearest::nearest,
    spelling::{self, Spelling, words},
    table::Register,
};
use crate::{
    intel,
    registers::{
        amd::{CYCLES_NOT_IN_HALT, PerfCtl, RETIRED_INSTRUCTIONS},
        intel::{CORE_CYCLES, INSTRUCTIONS_RETIRED, PerfEvtSel},
    },
};

/// One event of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// What it was called with `name=`, else its name as the catalogue has it if that is all that was
    /// written, else what was written.
    pub name: String,
    /// The catalogue's name of what is counted; none if the catalogue has no such event.
    pub native: Option<&'static str>,
    /// At which privileges it is counted.
    pub mode: Mode,
    /// What to ask the planner for.
    pub demand: Demand,
}

/// Why a list cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError {
    /// The event at fault, as it was written; empty if it is the list as a whole.
    pub event: String,
    /// What a program gets to see.
    pub error: Error,
    /// One sentence for people, without the event's name.
    pub detail: String,
}

/// Why an event cannot be counted: the error, and for people.
type Refused = (Error, String);

impl Catalogue {
    /// Looks up every event of `list`, separated by commas or white space outside of `cpu/…/`, to be
    /// counted in `mode` where they do not say otherwise. `docs/abi.md` says how they are spelled.
    ///
    /// # Errors
    /// The first event at fault.
    pub fn resolve(&self, list: &str, mode: Mode) -> Result<Vec<Resolved>, ResolveError> {
        let whole =
            |error: Error, detail| Err(ResolveError { event: String::new(), error, detail });
        match words(list).count() {
            0 => return whole(Error::NoEvents, Error::NoEvents.message().into()),
            n if n > MAX_EVENTS => {
                let detail = format!("{n} events were asked for; a plan holds {MAX_EVENTS}");
                return whole(Error::TooManyEvents, detail);
            }
            _ => {}
        }
        let resolve = |word: &str| {
            self.resolve_one(word, mode).map_err(|(error, detail)| ResolveError {
                event: word.into(),
                error,
                detail,
            })
        };
        words(list).map(resolve).collect()
    }

    fn resolve_one(&self, word: &str, session: Mode) -> Result<Resolved, Refused> {
        let spelling = Spelling::parse(word).map_err(|why| (Error::BadArgument, why))?;
        if let Some(pmu) = spelling.pmu
            && !self.pfm.contains(&pmu)
        {
            let known = self.pfm.join(", ");
            return Err((
                Error::UnknownEvent,
                format!("'{pmu}::' is not this processor; the catalogue {} is {known}", self.name),
            ));
        }
        let share = spelling.share.unwrap_or(1);
        if !(1..=MAX_SHARE).contains(&share) {
            let why = format!("'@{share}': a group has 1 to {MAX_SHARE} slices of a round");
            return Err((Error::BadArgument, why));
        }
        let mode = spelling.privileges.unwrap_or(session);
        let entry = self.entry(&spelling)?;
        let demand = self.demand(&entry, mode, session).map_err(|why| match why {
            Why::NotSupported(why) => (Error::EventNotSupported, why),
            Why::Bad(why) => (Error::BadArgument, why),
        })?;
        let native = self.entries().find(|native| native.is_same(&entry)).map(|e| e.name);
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

    /// What is spelled, as a line of the table would have it; nameless if the spelling is an alias
    /// or changes what the table says.
    fn entry(&self, spelling: &Spelling<'_>) -> Result<Entry<'static>, Refused> {
        let mut entry = match (spelling.config, spelling.name) {
            (Some(config), _) => self.raw(config)?,
            (None, "") => EMPTY,
            (None, _) => self.named(spelling)?,
        };
        let fields = spelling.fields;
        let changes = fields != spelling::Fields::default();
        if let Some(code) = fields.code {
            if self.vendor == Vendor::Intel && code > 0xff {
                return Err((Error::BadArgument, format!("'event={code:#x}': more than 0xff")));
            }
            entry.code = code;
        }
        entry.umask = fields.umask.unwrap_or(entry.umask);
        entry.cmask = fields.cmask.unwrap_or(entry.cmask);
        entry.inv = fields.inv.unwrap_or(entry.inv);
        entry.edge = fields.edge.unwrap_or(entry.edge);
        if spelling.config.is_some() || changes || entry.extra.is_none() && self.wants_extra(&entry)
        {
            entry.name = "";
            self.constrain(&mut entry, fields.extra)?;
        }
        Ok(entry)
    }

    /// Whether events of the same code and unit mask need a value in an extra register.
    fn wants_extra(&self, entry: &Entry<'_>) -> bool {
        let same = |e: &Entry<'_>| (e.code, e.umask) == (entry.code, entry.umask);
        self.entries().any(|e| e.extra.is_some() && same(&e))
    }

    /// The event of this name: the table's, or an alias's.
    fn named(&self, spelling: &Spelling<'_>) -> Result<Entry<'static>, Refused> {
        let name = spelling.full_name();
        if let Some(entry) = self.find(&name).or_else(|| self.find_masks(spelling)) {
            return Ok(entry);
        }
        match alias(self.processor, &name) {
            Some(Alias::Event(event)) => {
                let target = Spelling::parse(event).map_err(|why| (Error::BadArgument, why))?;
                let entry = self.entry(&target)?;
                Ok(Entry { name: "", ..entry })
            }
            Some(Alias::Refused(why)) => Err((Error::EventNotSupported, why.into())),
            None => {
                let names = self.entries().map(|entry| entry.name).chain(aliases(self.processor));
                let names = nearest(&name, names).join(", ");
                let table = self.name;
                let why = format!("the catalogue {table} has no such event; nearest: {names}");
                Err((Error::UnknownEvent, why))
            }
        }
    }

    /// An event with several unit masks, whose bits are joined as libpfm4 does.
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

    /// An event select as a number, without what the table knows besides.
    fn raw(&self, config: u64) -> Result<Entry<'static>, Refused> {
        let own = self.vendor.event_bits();
        if config & !own != 0 {
            let bits = config & !own;
            let why = format!(
                "bits {bits:#x} of the event select are not the event's; \
                 privileges are said by :u and :k"
            );
            return Err((Error::BadArgument, why));
        }
        Ok(Entry {
            code: (config & 0xff | config >> 24 & 0xf00) as u16,
            umask: (config >> 8) as u8,
            cmask: (config >> 24) as u8,
            inv: config & PerfEvtSel::INV.bits() != 0,
            edge: config & PerfEvtSel::EDGE.bits() != 0,
            ..EMPTY
        })
    }

    /// Gives `entry` the counters and the extra register of the table's events that are most like it.
    fn constrain(
        &self,
        entry: &mut Entry<'static>,
        extra: Option<spelling::Extra>,
    ) -> Result<(), Refused> {
        let code = entry.code;
        let is_code = |e: &Entry<'_>| {
            e.code == code || e.extra.is_some_and(|x| x.second.is_some_and(|s| s.1 == code))
        };
        let same = |e: &Entry<'_>| is_code(e) && e.umask == entry.umask;
        let exact = |e: &Entry<'_>| {
            same(e) && (e.cmask, e.inv, e.edge) == (entry.cmask, entry.inv, entry.edge)
        };
        let with_register = |e: &Entry<'_>| same(e) && e.extra.is_some();
        let find = |most_like: &dyn Fn(&Entry<'_>) -> bool| self.entries().find(|e| most_like(e));
        let known = find(&with_register).or_else(|| find(&exact)).or_else(|| find(&same));
        let wants = known.and_then(|known| known.extra);
        if let Some(known) = known {
            (entry.counter, entry.flag, entry.code) = (known.counter, known.flag, known.code);
        } else if code == 0 && self.vendor == Vendor::Intel {
            let why = "code 0 is that of fixed counters; this is none of theirs";
            return Err((Error::EventNotSupported, why.into()));
        } else {
            // Nobody says what this unit mask needs: what every event of the code can do, it can.
            let mask = |all: u8, e: Entry<'_>| match e.counter {
                Counter::General(counters) => all & counters,
                Counter::Fixed(_) => all,
            };
            let common = self.entries().filter(is_code).fold(0xff, mask);
            entry.counter = Counter::General(if common == 0 { 0xff } else { common });
        }
        entry.extra = match (wants, extra) {
            (Some(register), Some(extra)) => Some(named_register(register, extra)?),
            (Some(register), None) if entry.extra.is_some_and(|x| x.msr == register.msr) => {
                entry.extra
            }
            (Some(register), None) => {
                let term = term_of(register.msr);
                let why =
                    format!("it counts nothing without {term}= (register {:#x})", register.msr);
                return Err((Error::BadArgument, why));
            }
            (None, Some(_)) => {
                let why = "it takes no value in an extra register (offcore_rsp, frontend, config1)";
                return Err((Error::BadArgument, why.into()));
            }
            (None, None) => None,
        };
        Ok(())
    }

    fn demand(&self, entry: &Entry<'_>, mode: Mode, session: Mode) -> Result<Demand, Why> {
        let not_supported = |why: &str| Err(Why::NotSupported(why.into()));
        if entry.flag == Flag::Threads {
            return not_supported("it counts the other thread of the core too (AnyThread)");
        }
        let always = self.always(entry).filter(|_| mode == session);
        if let Some(always) = always {
            return Ok(Demand::always(always));
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
        let extra = match entry.extra {
            None => None,
            Some(register) => Some(self.extra(&entry, register, mode)?),
        };
        Ok(Demand {
            extra,
            alone: entry.flag == Flag::Alone,
            kernel: mode.kernel(),
            ..Demand::general(self.selector(&entry, entry.code, mode), counters)
        })
    }

    /// What to ask of an extra register.
    fn extra(&self, entry: &Entry<'_>, register: Register, mode: Mode) -> Result<Extra, Why> {
        let Register { msr, second, value } = register;
        let Some(number) = intel::extra_register(msr) else {
            return Err(Why::NotSupported(format!(
                "register {msr:#x} (load latency) works by PEBS alone, which the engine does not \
                 drive"
            )));
        };
        let valid = self.processor.extra_bits(msr);
        if value & !valid != 0 {
            let bits = value & !valid;
            return Err(Why::Bad(format!("register {msr:#x} has no bits {bits:#x}")));
        }
        let second = second.and_then(|(msr, code)| Some((intel::extra_register(msr)?, code)));
        let (also, code) = second.map_or((0, entry.code), |(number, code)| (1 << number, code));
        Ok(Extra { value, registers: 1 << number | also, second: self.selector(entry, code, mode) })
    }

    /// The event on general counters: itself, or the twin that the vendors name with `_P`.
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

    /// The always-counted event that `entry` is, if it is one.
    fn always(&self, entry: &Entry<'_>) -> Option<Always> {
        if (entry.cmask, entry.inv, entry.edge) != (0, false, false) {
            return None;
        }
        match (self.vendor, entry.counter, entry.code, entry.umask) {
            (Vendor::Intel, Counter::Fixed(0), 0, 1) if !entry.name.ends_with("PREC_DIST") => {
                Some(Always::Instructions)
            }
            (Vendor::Intel, Counter::Fixed(1), 0, 2) => Some(Always::Cycles),
            (Vendor::Intel, Counter::Fixed(2), 0, 3) => Some(Always::Reference),
            // Their twins on general counters: what a fixed counter counts needs none.
            (Vendor::Intel, Counter::General(_), INSTRUCTIONS_RETIRED, 0)
            | (Vendor::Amd, _, RETIRED_INSTRUCTIONS, 0) => Some(Always::Instructions),
            (Vendor::Intel, Counter::General(_), CORE_CYCLES, 0)
            | (Vendor::Amd, _, CYCLES_NOT_IN_HALT, 0) => Some(Always::Cycles),
            _ => None,
        }
    }

    fn selector(&self, entry: &Entry<'_>, code: u16, mode: Mode) -> Selector {
        Selector(match self.vendor {
            Vendor::Intel => {
                let mut select = PerfEvtSel::event(code as u8, entry.umask).with_cmask(entry.cmask)
                    | PerfEvtSel::EN;
                select.set(PerfEvtSel::USR, mode.user());
                select.set(PerfEvtSel::OS, mode.kernel());
                select.set(PerfEvtSel::INV, entry.inv);
                select.set(PerfEvtSel::EDGE, entry.edge);
                select.bits()
            }
            Vendor::Amd => {
                let mut select =
                    PerfCtl::event(code, entry.umask).with_cmask(entry.cmask) | PerfCtl::EN;
                select.set(PerfCtl::USR, mode.user());
                select.set(PerfCtl::OS, mode.kernel());
                select.set(PerfCtl::INV, entry.inv);
                select.set(PerfCtl::EDGE, entry.edge);
                select.bits()
            }
        })
    }
}

/// Why an event cannot be asked for: it cannot be counted here, or what was said of it is wrong.
enum Why {
    NotSupported(String),
    Bad(String),
}

const EMPTY: Entry<'static> = Entry {
    name: "",
    code: 0,
    umask: 0,
    cmask: 0,
    inv: false,
    edge: false,
    counter: Counter::General(0xff),
    flag: Flag::None,
    extra: None,
};

impl Entry<'_> {
    /// Whether the same is counted, whatever it is called.
    fn is_same(&self, other: &Entry<'_>) -> bool {
        let named_apart = self.name.ends_with("PREC_DIST") && self.name != other.name;
        !named_apart
            && Entry { name: "", counter: EMPTY.counter, ..*self }
                == Entry { name: "", counter: EMPTY.counter, ..*other }
    }

    fn what(&self, mode: Mode) -> Cow<'static, str> {
        match self.counter {
            _ if (self.cmask, self.inv, self.edge) != (0, false, false) => {
                "a modified event".into()
            }
            Counter::Fixed(index @ 0..=2) if !self.name.ends_with("PREC_DIST") => {
                format!("fixed counter {index} in {mode:?} mode").into()
            }
            Counter::Fixed(index) => format!("another event of fixed counter {index}").into(),
            Counter::General(_) => "none of them".into(),
        }
    }
}

/// `register` with the value that was named for it.
fn named_register(register: Register, extra: spelling::Extra) -> Result<Register, Refused> {
    let (value, term) = match extra {
        spelling::Extra::OffcoreResponse(value) => (value, "offcore_rsp"),
        spelling::Extra::Frontend(value) => (value, "frontend"),
        spelling::Extra::Any(value) => (value, term_of(register.msr)),
    };
    if term != term_of(register.msr) {
        let why = format!("'{term}': this event takes {}", term_of(register.msr));
        return Err((Error::BadArgument, why));
    }
    Ok(Register { value, ..register })
}

/// perf's term for a register's value.
fn term_of(msr: u32) -> &'static str {
    match msr {
        0x1a6 | 0x1a7 => "offcore_rsp",
        0x3f7 => "frontend",
        _ => "ldlat",
    }
}

impl Vendor {
    /// The bits of an event select that say which event, not when it is counted.
    fn event_bits(self) -> u64 {
        let select = PerfEvtSel::CODE
            | PerfEvtSel::UMASK
            | PerfEvtSel::EDGE
            | PerfEvtSel::INV
            | PerfEvtSel::CMASK;
        match self {
            Vendor::Intel => select.bits(),
            // The same places, and four more bits of code.
            Vendor::Amd => select.bits() | PerfCtl::CODE_HIGH.bits(),
        }
    }
}
