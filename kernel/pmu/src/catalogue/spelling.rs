//! Spelling of an event: parses a word into its attributes, without knowledge of any table.
//!
//! - `NAME`, optionally with perf's modifiers: `NAME:u`, `NAME:k`, `NAME:uk`, `NAME/u`, and `p` to
//!   `ppp` for precise samples, `P` for those that the processor has
//! - `EVENT:UNIT_MASK:u:k:c=2:i:e`, as in libpfm4; also with the prefix `PMU::`
//! - `cpu/event=0xd1,umask=0x08,cmask=1,inv,edge,eq,offcore_rsp=0x10001,name=X/u`, as in perf
//! - `cpu/NAME,counter=2/`: on this general counter only
//! - `r08d1`, the event select in hexadecimal
//! - any of them with `@N` at its end: the number of slices of a round for its group
//!
//! Each spelling names one event and gives each attribute once; contradictions are refused.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use tally_abi::{
    Mode,
    events::{terms_begin, terms_end},
};

use crate::registers::intel::PerfEvtSel;

/// Parsed spelling of one event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spelling<'a> {
    /// Event name, with unit masks if they are separate; empty if the event is given by numbers
    /// alone.
    pub(super) name: &'a str,
    pub(super) unit_masks: Vec<&'a str>,
    /// Name of the PMU in libpfm4.
    pub(super) pmu: Option<&'a str>,
    /// Whole event select, from `r…` or `config=`.
    pub(super) config: Option<u64>,
    pub(super) fields: Fields,
    pub(super) privileges: Privileges,
    /// General counter that has to count the event.
    pub(super) counter: Option<u8>,
    /// Label from `name=`.
    pub(super) label: Option<&'a str>,
    pub(super) share: Option<u16>,
    /// Precision of the event's samples: the number of `p`, or [`BEST`]; 0 if it does not matter.
    pub(super) precision: u8,
}

/// Whether an event is to be counted in each ring: `u` and `k`, or `u=0` and `k=0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Privileges {
    user: Option<bool>,
    kernel: Option<bool>,
}

impl Privileges {
    /// Returns the requested privileges; without a request, those of the session without the
    /// excluded ones. `None` if no privilege is left.
    pub(super) fn within(self, session: Mode) -> Option<Mode> {
        let asks = self.user == Some(true) || self.kernel == Some(true);
        let has = |said: Option<bool>, of_session| said.unwrap_or(!asks && of_session);
        match (has(self.user, session.user()), has(self.kernel, session.kernel())) {
            (true, true) => Some(Mode::Full),
            (true, false) => Some(Mode::User),
            (false, true) => Some(Mode::Kernel),
            (false, false) => None,
        }
    }
}

/// Attributes of an event besides its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) code: Option<u16>,
    pub(super) umask: Option<u16>,
    pub(super) cmask: Option<u8>,
    pub(super) inv: Option<bool>,
    pub(super) edge: Option<bool>,
    pub(super) equal: Option<bool>,
    pub(super) extra: Option<Extra>,
}

/// Value of an extra register, by the term that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    /// From `offcore_rsp=`.
    OffcoreResponse(u64),
    /// From `frontend=`.
    Frontend(u64),
    /// From `ldlat=`.
    LoadLatency(u64),
    /// From `config1=`, which perf uses for the register that belongs to the event.
    Any(u64),
}

/// Wrong part of a spelling and the reason, for people.
pub(super) type Wrong = String;

fn wrong<T>(part: &str, why: impl AsRef<str>) -> Result<T, Wrong> {
    Err(format!("'{part}': {}", why.as_ref()))
}

/// Sets `place` to the value of `part`; fails if it is set already.
fn once<T>(place: &mut Option<T>, part: &str, value: T) -> Result<(), Wrong> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => wrong(part, "it is given twice; give it once"),
    }
}

impl<'a> Spelling<'a> {
    /// Parses one word.
    pub(super) fn parse(word: &'a str) -> Result<Self, Wrong> {
        let mut spelling = Spelling::default();
        let terms = terms_end(word).unwrap_or(0);
        let (word, share) = match word[terms..].rfind('@') {
            Some(at) => (&word[..terms + at], Some(&word[terms + at + 1..])),
            None => (word, None),
        };
        if let Some(share) = share {
            match share.parse() {
                Ok(slices) => spelling.share = Some(slices),
                Err(_) => return wrong(share, "after @ goes a number of slices, such as @3"),
            }
        }
        if let Some(begin) = terms_begin(word) {
            let Some(end) = terms_end(word) else {
                return wrong(word, "the terms of cpu/…/ have no second slash");
            };
            for term in word[begin..end - 1].split(',').filter(|term| !term.is_empty()) {
                spelling.term(term)?;
            }
            let rest = &word[end..];
            spelling.modifiers(rest.strip_prefix(':').unwrap_or(rest))?;
        } else if let Some((name, modifiers)) = word.split_once('/') {
            if modifiers.contains('/') {
                return wrong(name, ONLY_CPU);
            }
            spelling.name(name)?;
            spelling.modifiers(modifiers)?;
        } else {
            spelling.name(word)?;
        }
        spelling.check(word)?;
        Ok(spelling)
    }

    /// Checks that an event is given, and that attributes do not repeat fields of a numeric select.
    fn check(&self, word: &str) -> Result<(), Wrong> {
        let Fields { code, cmask, inv, edge, equal, .. } = self.fields;
        if !self.is_named() && code.is_none() {
            return wrong(
                word,
                "it names no event; write a name, r08d1 or cpu/event=0xd1,umask=8/",
            );
        }
        let select = PerfEvtSel::from_bits_retain(self.config.unwrap_or(0));
        let said = [
            (PerfEvtSel::CMASK, cmask.is_some()),
            (PerfEvtSel::INV, inv.is_some()),
            (PerfEvtSel::EDGE, edge.is_some()),
            (PerfEvtSel::EQUAL, equal.is_some()),
        ];
        if said.into_iter().any(|(bits, again)| again && select.intersects(bits)) {
            wrong(word, "the numeric select has that already; give it once")
        } else {
            Ok(())
        }
    }

    /// Returns whether the spelling has a name, or a whole select instead.
    fn is_named(&self) -> bool {
        self.config.is_some() || !self.name.is_empty()
    }

    /// Checks that no part before `part` has already given the event.
    fn says_no_event_before(&self, part: &str) -> Result<(), Wrong> {
        if self.is_named() || self.fields.code.is_some() || self.fields.umask.is_some() {
            wrong(part, SAID)
        } else {
            Ok(())
        }
    }

    /// Parses `NAME`, or `PMU::EVENT:MASK:ATTRIBUTE…`.
    fn name(&mut self, text: &'a str) -> Result<(), Wrong> {
        let text = match text.split_once("::") {
            Some((pmu, rest)) => {
                self.pmu = Some(pmu);
                rest
            }
            None => text,
        };
        let mut parts = text.split(':');
        self.base(parts.next().unwrap_or_default())?;
        for part in parts {
            if part.is_empty() {
                return wrong(text, "nothing after the colon");
            }
            if !self.attribute(part)? {
                if self.config.is_some() {
                    return wrong(
                        part,
                        "a select in numbers has its unit mask; after it go u, k, c=N, i and e",
                    );
                }
                self.unit_masks.push(part);
            }
        }
        Ok(())
    }

    fn base(&mut self, text: &'a str) -> Result<(), Wrong> {
        self.says_no_event_before(text)?;
        match raw(text) {
            Some(config) => self.config = Some(config),
            None => self.name = text,
        }
        Ok(())
    }

    /// Parses one of libpfm4's attributes or perf's modifiers. Returns whether `part` is one.
    fn attribute(&mut self, part: &'a str) -> Result<bool, Wrong> {
        let (key, value) = part.split_once('=').map_or((part, None), |(k, v)| (k, Some(v)));
        match key {
            "i" => once(&mut self.fields.inv, part, flag(part, value)?)?,
            "e" => once(&mut self.fields.edge, part, flag(part, value)?)?,
            "c" => once(&mut self.fields.cmask, part, number(part, value, 0xff)? as u8)?,
            "u" => once(&mut self.privileges.user, part, flag(part, value)?)?,
            "k" => once(&mut self.privileges.kernel, part, flag(part, value)?)?,
            "t" if value.is_none_or(|value| value != "0") => return wrong(part, THREADS),
            "t" | "intx" | "intxcp" | "h" | "g" if value == Some("0") => {}
            "intx" | "intxcp" => return wrong(part, TRANSACTIONS),
            "ldlat" => return wrong(part, LATENCY),
            _ if value.is_some() => return wrong(part, "attributes are u, k, c=N, i and e"),
            _ if part.chars().all(|c| MODIFIERS.contains(c)) => self.modifiers(part)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Parses `u`, `k` and perf's other modifiers.
    fn modifiers(&mut self, text: &str) -> Result<(), Wrong> {
        for modifier in text.chars().filter(|c| *c != ':') {
            let why = match modifier {
                'u' => {
                    once(&mut self.privileges.user, "u", true)?;
                    continue;
                }
                'k' => {
                    once(&mut self.privileges.kernel, "k", true)?;
                    continue;
                }
                'p' if self.precision < MOST_PRECISE => {
                    self.precision += 1;
                    continue;
                }
                'p' => "p is for precise samples, up to three times",
                'P' => {
                    self.precision = BEST;
                    continue;
                }
                'h' | 'G' | 'H' => "hypervisors, hosts and guests are not told apart",
                'I' => "idle time is not told apart: a program that waits is not counted",
                'S' | 'D' | 'W' | 'e' | 'b' | 'R' => GROUPS,
                _ => "modifiers are u for ring 3, k for ring 0, and p for precise samples",
            };
            return wrong(modifier.encode_utf8(&mut [0; 4]), why);
        }
        Ok(())
    }

    /// Parses one term of `cpu/…/`.
    fn term(&mut self, term: &'a str) -> Result<(), Wrong> {
        let (key, value) = term.split_once('=').map_or((term, None), |(k, v)| (k, Some(v)));
        if matches!((key, value), ("event" | "umask", Some(_))) && self.is_named() {
            return wrong(term, SAID);
        }
        let fields = &mut self.fields;
        let byte = |value| number(term, value, 0xff).map(|number| number as u8);
        let short = |value| number(term, value, 0xffff).map(|number| number as u16);
        let wide = |value| number(term, value, u64::MAX);
        match (key, value) {
            ("event", Some(_)) => once(&mut fields.code, term, number(term, value, 0xfff)? as u16)?,
            ("umask", Some(_)) => once(&mut fields.umask, term, short(value)?)?,
            ("cmask", Some(_)) => once(&mut fields.cmask, term, byte(value)?)?,
            ("inv", _) => once(&mut fields.inv, term, flag(term, value)?)?,
            ("edge", _) => once(&mut fields.edge, term, flag(term, value)?)?,
            ("eq", _) => once(&mut fields.equal, term, flag(term, value)?)?,
            ("offcore_rsp", _) => {
                once(&mut fields.extra, term, Extra::OffcoreResponse(wide(value)?))?;
            }
            ("frontend", _) => once(&mut fields.extra, term, Extra::Frontend(wide(value)?))?,
            ("ldlat", _) => once(&mut fields.extra, term, Extra::LoadLatency(wide(value)?))?,
            ("config1", _) => once(&mut fields.extra, term, Extra::Any(wide(value)?))?,
            ("config", _) => {
                self.says_no_event_before(term)?;
                self.config = Some(wide(value)?);
            }
            ("counter", _) => once(&mut self.counter, term, byte(value)?)?,
            ("name", Some("")) => return wrong(term, "it has no name to give"),
            ("name", Some(name)) => once(&mut self.label, term, name)?,
            ("any" | "pc" | "in_tx" | "in_tx_cp", _) => {
                if flag(term, value)? {
                    return wrong(term, not_for_here(key));
                }
            }
            ("period" | "freq" | "precise" | "call-graph" | "stack-size", _) => {
                return wrong(term, not_for_here(key));
            }
            (name, None) => self.base(name)?,
            _ => return wrong(term, TERMS),
        }
        Ok(())
    }
}

/// Checks that a list has no numeric terms of another PMU than `cpu`, as in `imc/event=4,umask=3/`:
/// it is split at their commas.
///
/// # Errors
/// The spelling with such terms, and the reason.
pub(super) fn check_pmus(list: &str) -> Result<(), (&str, Wrong)> {
    let separates = |c: char| c.is_whitespace() || ",{}".contains(c);
    for (slash, _) in list.match_indices('/') {
        let name = list[..slash].rsplit(separates).next().unwrap_or_default();
        let (start, terms) = (slash - name.len(), &list[slash + 1..]);
        let end = terms.find('/').map_or(list.len(), |end| slash + 1 + end + 1);
        let is_number = terms.split([',', '/']).next().is_some_and(|term| term.contains('='));
        let is_name = !name.is_empty() && !name.contains(['/', '=']);
        if is_number && is_name && !name.eq_ignore_ascii_case("cpu") {
            return wrong(name, ONLY_CPU).map_err(|why| (&list[start..end], why));
        }
    }
    Ok(())
}

const ONLY_CPU: &str = "the only PMU here is cpu, as in cpu/event=0xd1,umask=0x08/";
/// Number of `p` that ask for the very instruction at which the counter overflowed.
pub(super) const MOST_PRECISE: u8 = 3;
/// Precision of `P`: what the processor has, or none.
pub(super) const BEST: u8 = 4;
const MODIFIERS: &str = "ukhpPGHISDWbR";
const TERMS: &str = "terms are event, umask, cmask, inv, edge, eq, offcore_rsp, frontend, config, config1, counter and name";
const SAID: &str = "the event is given twice: give a name, a numeric select, or event= and umask=";
const GROUPS: &str = "modifiers are u and k; events between braces are counted in the same slices, and \
                      no group of them is preferred";
const THREADS: &str = "it would count the other thread of the core too; leave it out";
const TRANSACTIONS: &str = "transactions are not told apart";
const LATENCY: &str = "write cpu/mem-loads,ldlat=N/pp: loads above N cycles, for precise samples";

/// Reason why a perf term is unsupported.
fn not_for_here(key: &str) -> &'static str {
    match key {
        "any" => THREADS,
        "pc" => "nothing is on the processor's pins to see it",
        "in_tx" | "in_tx_cp" => TRANSACTIONS,
        _ => "that is for sampling; events are counted here",
    }
}

fn flag(part: &str, value: Option<&str>) -> Result<bool, Wrong> {
    Ok(value.is_none() || number(part, value, 1)? == 1)
}

/// Parses a number of at most `most`, decimal or with 0x.
fn number(part: &str, value: Option<&str>, most: u64) -> Result<u64, Wrong> {
    let value = value.unwrap_or_default();
    let parsed = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(hex) => digits(hex, 16),
        None => digits(value, 10),
    };
    match parsed {
        Some(number) if number <= most => Ok(number),
        Some(_) => wrong(part, format!("more than {most:#x}")),
        None => wrong(part, format!("'{value}' is no number; write 12 or 0xc")),
    }
}

/// Parses digits without a sign.
fn digits(text: &str, radix: u32) -> Option<u64> {
    let all = !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    all.then(|| u64::from_str_radix(text, radix).ok())?
}

/// Parses `r` with hexadecimal digits.
fn raw(word: &str) -> Option<u64> {
    digits(word.strip_prefix(['r', 'R'])?, 16)
}

impl Spelling<'_> {
    /// Returns the name with its unit masks, as in the tables.
    pub(super) fn full_name(&self) -> String {
        let mut name = self.name.to_string();
        for mask in &self.unit_masks {
            name = name + "." + mask;
        }
        name
    }
}
