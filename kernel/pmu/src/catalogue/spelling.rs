//! How an event is spelled: from a word to what it asks for, without knowing any table.
//!
//! - `NAME`, or with modifiers as perf has them: `NAME:u`, `NAME:k`, `NAME:uk`, `NAME/u`
//! - `EVENT:UNIT_MASK:u:k:c=2:i:e`, as libpfm4 has them; also with `PMU::` before it
//! - `cpu/event=0xd1,umask=0x08,cmask=1,inv,edge,offcore_rsp=0x10001,name=X/u`, as perf has them
//! - `r08d1`, the event select in hexadecimal
//! - any of them with `@N` at its end: so many slices of a round for its group

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use tally_abi::{
    Mode,
    events::{terms_begin, terms_end},
};

/// One event as it is spelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spelling<'a> {
    /// Its name, with unit masks if they stand apart; empty if it is spelled by numbers alone.
    pub(super) name: &'a str,
    pub(super) unit_masks: Vec<&'a str>,
    /// libpfm4's name of the PMU.
    pub(super) pmu: Option<&'a str>,
    /// The whole select, from `r…` or `config=`.
    pub(super) config: Option<u64>,
    pub(super) fields: Fields,
    pub(super) privileges: Option<Mode>,
    /// What to call it.
    pub(super) label: Option<&'a str>,
    pub(super) share: Option<u16>,
}

/// What is said of an event besides its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) code: Option<u16>,
    pub(super) umask: Option<u8>,
    pub(super) cmask: Option<u8>,
    pub(super) inv: Option<bool>,
    pub(super) edge: Option<bool>,
    pub(super) extra: Option<Extra>,
}

/// The value of an extra register, and how it was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    /// `offcore_rsp=`.
    OffcoreResponse(u64),
    /// `frontend=`.
    Frontend(u64),
    /// `config1=`, which perf takes for whichever register goes with the event.
    Any(u64),
}

/// Where a spelling is wrong, and why; for people.
pub(super) type Wrong = String;

fn wrong<T>(part: &str, why: impl AsRef<str>) -> Result<T, Wrong> {
    Err(format!("'{part}': {}", why.as_ref()))
}

impl<'a> Spelling<'a> {
    /// Reads one word.
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
                return wrong(name, "the only PMU here is cpu, as in cpu/event=0xd1,umask=0x08/");
            }
            spelling.name(name)?;
            spelling.modifiers(modifiers)?;
        } else {
            spelling.name(word)?;
        }
        if spelling == (Spelling { share: spelling.share, ..Spelling::default() }) {
            return wrong(word, "it names no event");
        }
        Ok(spelling)
    }

    /// `NAME`, or `PMU::EVENT:MASK:ATTRIBUTE…`.
    fn name(&mut self, text: &'a str) -> Result<(), Wrong> {
        let text = match text.split_once("::") {
            Some((pmu, rest)) => {
                self.pmu = Some(pmu);
                rest
            }
            None => text,
        };
        let mut parts = text.split(':');
        self.base(parts.next().unwrap_or_default());
        for part in parts {
            if !self.attribute(part)? {
                self.unit_masks.push(part);
            }
        }
        Ok(())
    }

    fn base(&mut self, text: &'a str) {
        match raw(text) {
            Some(config) => self.config = Some(config),
            None => self.name = text,
        }
    }

    /// One of libpfm4's attributes or perf's modifiers; whether it is.
    fn attribute(&mut self, part: &'a str) -> Result<bool, Wrong> {
        let (key, value) = part.split_once('=').map_or((part, None), |(k, v)| (k, Some(v)));
        match key {
            "i" => self.fields.inv = Some(flag(part, value)?),
            "e" => self.fields.edge = Some(flag(part, value)?),
            "c" => self.fields.cmask = Some(number(part, value, 0xff)? as u8),
            "u" | "k" if value.is_some() => {
                if flag(part, value)? {
                    self.modifiers(key)?;
                }
            }
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

    /// `u`, `k` and what perf has besides.
    fn modifiers(&mut self, text: &str) -> Result<(), Wrong> {
        for modifier in text.chars().filter(|c| *c != ':') {
            let why = match modifier {
                'u' | 'k' => {
                    let (user, kernel) = (modifier == 'u', modifier == 'k');
                    let has = |mode: Option<Mode>, of: fn(Mode) -> bool| mode.is_some_and(of);
                    let user = user || has(self.privileges, Mode::user);
                    let kernel = kernel || has(self.privileges, Mode::kernel);
                    self.privileges = Some(match (user, kernel) {
                        (true, true) => Mode::Full,
                        (true, false) => Mode::User,
                        _ => Mode::Kernel,
                    });
                    continue;
                }
                'p' | 'P' => "precise events need PEBS or IBS, which the engine does not drive",
                'h' | 'G' | 'H' => "hypervisors, hosts and guests are not told apart",
                'I' => "idle time is not told apart: a program that waits is not counted",
                'S' | 'D' | 'W' | 'e' | 'b' | 'R' => "groups are the planner's to make",
                _ => "modifiers are u for ring 3 and k for ring 0",
            };
            return wrong(modifier.encode_utf8(&mut [0; 4]), why);
        }
        Ok(())
    }

    /// One term of `cpu/…/`.
    fn term(&mut self, term: &'a str) -> Result<(), Wrong> {
        let (key, value) = term.split_once('=').map_or((term, None), |(k, v)| (k, Some(v)));
        let fields = &mut self.fields;
        let wide = |value| number(term, value, u64::MAX);
        match (key, value) {
            ("event", Some(_)) => fields.code = Some(number(term, value, 0xfff)? as u16),
            ("umask", Some(_)) => fields.umask = Some(number(term, value, 0xff)? as u8),
            ("cmask", Some(_)) => fields.cmask = Some(number(term, value, 0xff)? as u8),
            ("inv", _) => fields.inv = Some(flag(term, value)?),
            ("edge", _) => fields.edge = Some(flag(term, value)?),
            ("offcore_rsp", _) => fields.extra = Some(Extra::OffcoreResponse(wide(value)?)),
            ("frontend", _) => fields.extra = Some(Extra::Frontend(wide(value)?)),
            ("config1", _) => fields.extra = Some(Extra::Any(wide(value)?)),
            ("config", _) => self.config = Some(wide(value)?),
            ("name", Some(name)) => self.label = Some(name),
            ("any", _) if flag(term, value)? => return wrong(term, THREADS),
            ("pc", _) if flag(term, value)? => {
                return wrong(term, "nothing is on the processor's pins to see it");
            }
            ("in_tx" | "in_tx_cp", _) if flag(term, value)? => return wrong(term, TRANSACTIONS),
            ("any" | "pc" | "in_tx" | "in_tx_cp", _) => {}
            ("ldlat", _) => return wrong(term, LATENCY),
            ("period" | "freq" | "precise" | "call-graph" | "stack-size", _) => {
                return wrong(term, "that is for sampling; events are counted here");
            }
            (name, None) if self.name.is_empty() => self.base(name),
            _ => {
                return wrong(
                    term,
                    "terms are event, umask, cmask, inv, edge, offcore_rsp, frontend, config, \
                     config1 and name",
                );
            }
        }
        Ok(())
    }
}

const MODIFIERS: &str = "ukhpPGHISDWbR";
const THREADS: &str = "it would count the other thread of the core too, which is nobody's here";
const TRANSACTIONS: &str = "transactions are not told apart";
const LATENCY: &str = "load latencies are counted by PEBS alone, which the engine does not drive";

fn flag(part: &str, value: Option<&str>) -> Result<bool, Wrong> {
    Ok(value.is_none() || number(part, value, 1)? == 1)
}

/// A number of at most `most`, decimal or with 0x.
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

/// Digits alone: no sign.
fn digits(text: &str, radix: u32) -> Option<u64> {
    let all = !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    all.then(|| u64::from_str_radix(text, radix).ok())?
}

/// `r` and digits in hexadecimal.
fn raw(word: &str) -> Option<u64> {
    digits(word.strip_prefix(['r', 'R'])?, 16)
}

impl Spelling<'_> {
    /// The name with its unit masks, as tables have it.
    pub(super) fn full_name(&self) -> String {
        let mut name = self.name.to_string();
        for mask in &self.unit_masks {
            name = name + "." + mask;
        }
        name
    }
}
