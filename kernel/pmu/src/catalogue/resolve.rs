//! From a list of events as a program writes it to what the planner is asked.

use alloc::{format, string::String, vec::Vec};

use tally_abi::{Error, Mode, session::MAX_EVENTS};
use tally_engine::{Always, Demand, Selector};

use super::{Catalogue, Counter, Entry, Vendor, nearest::nearest};
use crate::registers::{
    amd::{CYCLES_NOT_IN_HALT, PerfCtl, RETIRED_INSTRUCTIONS},
    intel::PerfEvtSel,
};

/// One event of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Its name as the catalogue has it, or a raw event's as it was written.
    pub name: String,
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

impl Catalogue {
    /// Looks up every event of `list`: names in whatever case, or raw events as perf writes them
    /// (`r` and the event select in hexadecimal: `r01c2` is code C2, unit mask 01), separated by
    /// commas or white space, to be counted in `mode`.
    ///
    /// # Errors
    /// The first event at fault.
    pub fn resolve(&self, list: &str, mode: Mode) -> Result<Vec<Resolved>, ResolveError> {
        let words =
            || list.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty());
        let whole =
            |error: Error, detail| Err(ResolveError { event: String::new(), error, detail });
        match words().count() {
            0 => return whole(Error::NoEvents, Error::NoEvents.message().into()),
            n if n > MAX_EVENTS => {
                let detail = format!("{n} events were asked for; a plan holds {MAX_EVENTS}");
                return whole(Error::TooManyEvents, detail);
            }
            _ => {}
        }
        words().map(|word| self.resolve_one(word, mode)).collect()
    }

    fn resolve_one(&self, word: &str, mode: Mode) -> Result<Resolved, ResolveError> {
        let fail = |error, detail| Err(ResolveError { event: word.into(), error, detail });
        let demand = if let Some(entry) = self.find(word) {
            match self.demand(&entry, mode) {
                Ok(demand) => return Ok(Resolved { name: entry.name.into(), demand }),
                Err(why) => return fail(Error::EventNotSupported, why),
            }
        } else if let Some(raw) = raw(word) {
            self.raw_demand(raw, mode)
        } else {
            let names = nearest(word, self.entries().map(|entry| entry.name)).join(", ");
            let detail = format!("the catalogue {} has no such event; nearest: {names}", self.name);
            return fail(Error::UnknownEvent, detail);
        };
        match demand {
            Some(demand) => Ok(Resolved { name: word.into(), demand }),
            None => fail(Error::BadArgument, "the raw event sets bits that are not its own".into()),
        }
    }

    fn demand(&self, entry: &Entry<'_>, mode: Mode) -> Result<Demand, String> {
        if let Some(msr) = entry.extra_msr {
            let what = match msr {
                0x1a6 | 0x1a7 => "an off-core response register",
                0x3f6 => "the load-latency threshold register",
                0x3f7 => "the front-end event register",
                _ => "an extra register",
            };
            return Err(format!("it needs {what} ({msr:#x}), which the engine does not drive yet"));
        }
        let always = self.always(entry);
        let counters = match (entry.counter, always) {
            (Counter::General(counters), _) => counters,
            (Counter::Fixed(_), Some(_)) => 0,
            (Counter::Fixed(index), None) => {
                return Err(format!(
                    "it is counted on fixed counter {index} in a way that the engine does not \
                     drive yet"
                ));
            }
        };
        Ok(Demand { selector: self.selector(entry, mode), counters, always })
    }

    /// The always-counted event that `entry` is, if it is one.
    fn always(&self, entry: &Entry<'_>) -> Option<Always> {
        let plain = (entry.cmask, entry.inv, entry.edge) == (0, false, false);
        match (self.vendor, entry.counter, entry.code, entry.umask) {
            (Vendor::Intel, Counter::Fixed(0), 0, 1) if !entry.name.ends_with("PREC_DIST") => {
                Some(Always::Instructions)
            }
            (Vendor::Intel, Counter::Fixed(1), 0, 2) => Some(Always::Cycles),
            (Vendor::Intel, Counter::Fixed(2), 0, 3) => Some(Always::Reference),
            (Vendor::Amd, _, RETIRED_INSTRUCTIONS, 0) if plain => Some(Always::Instructions),
            (Vendor::Amd, _, CYCLES_NOT_IN_HALT, 0) if plain => Some(Always::Cycles),
            _ => None,
        }
    }

    fn selector(&self, entry: &Entry<'_>, mode: Mode) -> Selector {
        Selector(match self.vendor {
            Vendor::Intel => {
                let mut select = PerfEvtSel::event(entry.code as u8, entry.umask)
                    .with_cmask(entry.cmask)
                    | PerfEvtSel::EN;
                select.set(PerfEvtSel::USR, mode.user());
                select.set(PerfEvtSel::OS, mode.kernel());
                select.set(PerfEvtSel::INV, entry.inv);
                select.set(PerfEvtSel::EDGE, entry.edge);
                select.bits()
            }
            Vendor::Amd => {
                let mut select =
                    PerfCtl::event(entry.code, entry.umask).with_cmask(entry.cmask) | PerfCtl::EN;
                select.set(PerfCtl::USR, mode.user());
                select.set(PerfCtl::OS, mode.kernel());
                select.set(PerfCtl::INV, entry.inv);
                select.set(PerfCtl::EDGE, entry.edge);
                select.bits()
            }
        })
    }

    /// A raw event, on the counters that the catalogue's events of the same code and unit mask can
    /// use, or on any if it has none. `None` if bits are set that are not the event's.
    fn raw_demand(&self, raw: u64, mode: Mode) -> Option<Demand> {
        if raw & !self.vendor.event_bits() != 0 {
            return None;
        }
        let code = (raw & 0xff | raw >> 24 & 0xf00) as u16;
        let mut entry = Entry {
            name: "",
            code,
            umask: (raw >> 8) as u8,
            cmask: (raw >> 24) as u8,
            inv: raw & PerfEvtSel::INV.bits() != 0,
            edge: raw & PerfEvtSel::EDGE.bits() != 0,
            counter: Counter::General(0xff),
            extra_msr: None,
        };
        let same = |e: &Entry<'_>| {
            e.code == entry.code
                && e.umask == entry.umask
                && matches!(e.counter, Counter::General(_))
        };
        if let Some(known) = self.entries().find(same) {
            entry.counter = known.counter;
        }
        let Counter::General(counters) = entry.counter else { return None };
        Some(Demand {
            selector: self.selector(&entry, mode),
            counters,
            always: self.always(&entry),
        })
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

fn raw(word: &str) -> Option<u64> {
    let digits = word.strip_prefix(['r', 'R'])?;
    let hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    hex.then(|| u64::from_str_radix(digits, 16).ok())?
}
