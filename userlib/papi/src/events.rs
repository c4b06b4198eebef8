//! Codes and names of events: PAPI's presets, and native events. Native events are those of the
//! processor's table, followed by others that the program named.

use alloc::{format, string::String, vec::Vec};
use core::ffi::{c_int, c_uint};

use tally_abi::{Error, Mode};
use tally_engine::{Layout, plan};
use tally_pmu::{Catalogue, Derived, DetectedPmu, ResolveError, Resolved, virtual_pmu};

use crate::{
    answer::Code,
    layout::EventInfo,
    pointers::{put, zeros},
    presets::PRESETS,
};

const PRESET: c_uint = 0x8000_0000;
const NATIVE: c_uint = 0x4000_0000;
/// Upper bound of preset codes without their mask.
const MAX_PRESETS: usize = 128;
/// Modifiers of enumerations.
pub(crate) const FIRST: c_int = 1;
const AVAILABLE: c_int = 2;
const ALL: c_int = 0;
const UNIT_MASKS: c_int = 15;

/// Code without its mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Preset(usize),
    Native(usize),
    /// User-defined events from a file, and numbers that are no code.
    Other,
}

fn kind(code: c_int) -> Kind {
    let code = code as c_uint;
    match (code & PRESET != 0, code & NATIVE != 0) {
        (true, false) => Kind::Preset((code & !PRESET) as usize),
        (false, true) => Kind::Native((code & !NATIVE) as usize),
        _ => Kind::Other,
    }
}

fn native_code(index: usize) -> c_int {
    (NATIVE | index as c_uint) as c_int
}

fn preset_code(index: usize) -> c_int {
    (PRESET | index as c_uint) as c_int
}

/// Returns whether a number is the code of a preset or of a native event.
pub(crate) fn is_code(code: c_int) -> bool {
    kind(code) != Kind::Other
}

/// Events of this processor.
pub(crate) struct Events {
    catalogue: Option<Catalogue>,
    layout: Option<Layout>,
    /// Whether the PMU is the virtual one, which does not count events that it does not model.
    is_virtual: bool,
    /// Native events that are not in the table, as the program spelled them.
    named: Vec<String>,
}

impl Events {
    pub(crate) fn new(pmu: Option<DetectedPmu>) -> Events {
        let (catalogue, layout) = pmu.map(|pmu| (pmu.catalogue(), pmu.layout())).unzip();
        Events { catalogue, layout, is_virtual: virtual_pmu::is_there(), named: Vec::new() }
    }

    fn table_len(&self) -> usize {
        self.catalogue.map_or(0, |catalogue| catalogue.entries().count())
    }

    /// Finds a single event by its spelling that this PMU can count.
    fn resolve(&self, name: &str) -> Result<Resolved, Code> {
        let catalogue = self.catalogue.ok_or(Code::NoEvnt)?;
        // A refusal names the most similar events, which takes long, and PAPI has no place for
        // them.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let is_number = name.starts_with('r');
        if name.bytes().all(is_plain) && !is_number && !catalogue.has(name) {
            return Err(Code::NoEvnt);
        }
        let found = catalogue.resolve(name, Mode::User).map_err(
            |ResolveError { error, .. }| match error {
                Error::TooManyEvents => Code::Count,
                _ => Code::NoEvnt,
            },
        )?;
        let Ok([one]) = <[Resolved; 1]>::try_from(found) else { return Err(Code::NoEvnt) };
        let layout = self.layout.as_ref().ok_or(Code::NoEvnt)?;
        plan(core::slice::from_ref(&one.demand), layout).map_err(|_| Code::Cnflct)?;
        if self.is_virtual && !virtual_pmu::models(&one.demand) {
            return Err(Code::NoEvnt);
        }
        Ok(one)
    }

    /// Checks that this PMU can count the event, or both events of a derived preset.
    fn require(&self, name: &str) -> Result<(), Code> {
        match self.derived(name) {
            Some(Derived { terms, .. }) => terms.iter().try_for_each(|term| self.require(term)),
            None => self.resolve(name).map(drop),
        }
    }

    /// Returns the two events of a derived preset; `None` for another event.
    pub(crate) fn derived(&self, name: &str) -> Option<Derived> {
        self.catalogue?.derived(name)
    }

    /// Returns the number of presets that this processor has.
    pub(crate) fn presets(&self) -> usize {
        PRESETS.iter().filter(|(name, _)| self.require(name).is_ok()).count()
    }

    /// Returns the name of a code.
    pub(crate) fn name(&self, code: c_int) -> Result<&str, Code> {
        match kind(code) {
            Kind::Preset(index) => PRESETS.get(index).map(|(name, _)| *name).ok_or(Code::NotPreset),
            Kind::Native(index) => self.native(index).ok_or(Code::NoEvnt),
            Kind::Other => Err(Code::NoEvnt),
        }
    }

    fn native(&self, index: usize) -> Option<&str> {
        let table = self.table_len();
        match index.checked_sub(table) {
            None => self.catalogue?.entries().nth(index).map(|entry| entry.name),
            Some(index) => self.named.get(index).map(String::as_str),
        }
    }

    /// Returns the code of a name, ignoring case.
    pub(crate) fn code(&mut self, name: &str) -> Result<c_int, Code> {
        let is_it = |other: &str| other.eq_ignore_ascii_case(name);
        if let Some(preset) = PRESETS.iter().position(|(preset, _)| is_it(preset)) {
            return Ok(preset_code(preset));
        }
        let mut entries = self.catalogue.ok_or(Code::NoEvnt)?.entries();
        if let Some(index) = entries.position(|entry| is_it(entry.name)) {
            return Ok(native_code(index));
        }
        self.resolve(name)?;
        let index = self.named.iter().position(|other| other == name).unwrap_or_else(|| {
            self.named.push(name.into());
            self.named.len() - 1
        });
        Ok(native_code(self.table_len() + index))
    }

    /// Checks that the processor has an event with this code.
    pub(crate) fn query(&self, code: c_int) -> Result<(), Code> {
        match kind(code) {
            Kind::Preset(index) if index >= MAX_PRESETS => Err(Code::NotPreset),
            Kind::Preset(index) => {
                let (name, _) = PRESETS.get(index).ok_or(Code::NoEvnt)?;
                self.require(name)
            }
            Kind::Native(index) => self.native(index).map(drop).ok_or(Code::NoEvnt),
            Kind::Other => Err(Code::NoEvnt),
        }
    }

    /// Checks that the PMU can count an event with this code.
    pub(crate) fn check(&self, code: c_int) -> Result<(), Code> {
        self.query(code)?;
        self.require(self.name(code)?)
    }

    /// Returns the code after `code` in an enumeration.
    pub(crate) fn after(&self, code: c_int, modifier: c_int) -> Result<c_int, Code> {
        match kind(code) {
            Kind::Preset(_) if modifier == FIRST => Ok(preset_code(0)),
            Kind::Preset(index) => {
                let mut later = (index + 1..PRESETS.len()).map(preset_code);
                let is_wanted =
                    |code: &c_int| modifier & AVAILABLE == 0 || self.query(*code).is_ok();
                later.find(is_wanted).ok_or(Code::NoEvnt)
            }
            // Unit masks are parts of the names.
            Kind::Native(_) if modifier == UNIT_MASKS => Err(Code::Inval),
            Kind::Native(index) => {
                let next = match modifier {
                    FIRST => 0,
                    ALL => index + 1,
                    _ => return Err(Code::Inval),
                };
                Some(next)
                    .filter(|next| *next < self.table_len())
                    .map(native_code)
                    .ok_or(Code::Inval)
            }
            Kind::Other => Err(Code::NoEvnt),
        }
    }

    /// Returns the description of a code.
    pub(crate) fn info(&self, code: c_int) -> Result<EventInfo, Code> {
        let name = match kind(code) {
            Kind::Other => return Err(Code::NotPreset),
            _ => self.name(code)?,
        };
        let mut info: EventInfo = zeros();
        info.event_code = code as c_uint;
        put(&mut info.symbol, name);
        put(&mut info.short_descr, name);
        match kind(code) {
            Kind::Preset(index) => self.describe_preset(&mut info, index),
            _ => put(&mut info.long_descr, &self.describe_native(name)),
        }
        Ok(info)
    }

    /// Describes a preset, which is one native event or two, or which the processor does not have.
    fn describe_preset(&self, info: &mut EventInfo, index: usize) {
        let (name, about) = PRESETS[index];
        put(&mut info.short_descr, about);
        put(&mut info.long_descr, about);
        info.event_type = category(name);
        let derived = self.derived(name);
        put(&mut info.derived, derived.map_or("NOT_DERIVED", kind_of_derived));
        if self.require(name).is_err() {
            return put(&mut info.note, "this processor does not count it");
        }
        let one = [name];
        for term in derived.as_ref().map_or(&one[..], |derived| &derived.terms) {
            self.add_native(info, term);
        }
    }

    /// Adds the native event with this name to a preset's description.
    fn add_native(&self, info: &mut EventInfo, name: &str) {
        let native = self.resolve(name).ok().and_then(|resolved| resolved.native).unwrap_or(name);
        let mut entries = self.catalogue.into_iter().flat_map(|of| of.entries());
        let at = entries.position(|entry| entry.name == native);
        let index = info.count as usize;
        info.code[index] = at.map_or(info.event_code, |at| native_code(at) as c_uint);
        put(&mut info.name[index], native);
        info.count += 1;
    }

    /// Describes a native event by its fields, because the tables have no descriptions.
    fn describe_native(&self, name: &str) -> String {
        let entry = self.catalogue.and_then(|catalogue| catalogue.find(name));
        match (self.catalogue, entry) {
            (Some(table), Some(of)) => {
                let (table, code, mask) = (table.name(), of.code, of.umask);
                format!("{name}: code {code:02x}H, unit mask {mask:02x}H in the table {table}")
            }
            _ => format!("{name}: spelled by the program"),
        }
    }
}

/// Returns PAPI's word for the kind of a derived preset.
fn kind_of_derived(derived: Derived) -> &'static str {
    if derived.subtracts { "DERIVED_SUB" } else { "DERIVED_ADD" }
}

/// Returns the bits of a preset's categories.
fn category(name: &str) -> c_uint {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let bits = [
        (has(&["_INS", "_IIS", "_OPS", "_VEC"]), 4),
        (has(&["_IDL", "_STL", "ICY", "CCY", "STAL"]), 5),
        (has(&["_BR", "_BTAC"]), 6),
        (has(&["_CSR"]), 7),
        (has(&["_MEM_"]), 8),
        (has(&["_L1_", "_L2_", "_L3_", "_CA_"]), 9),
        (has(&["_L1_"]), 10),
        (has(&["_L2_"]), 11),
        (has(&["_L3_"]), 12),
        (has(&["_TLB"]), 13),
        (has(&["_FP", "_FM", "_FAD", "_FDV", "_FSQ", "_FNV", "_SP", "_DP"]), 14),
    ];
    let set = bits.into_iter().filter(|(is_in, _)| *is_in);
    let mask = set.fold(0, |mask, (_, bit)| mask | 1 << bit);
    if mask == 0 { 1 << 3 } else { mask }
}
