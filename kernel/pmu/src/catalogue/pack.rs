//! The packed pool of all processors' events (`build.rs` makes it), and the table of one processor
//! out of it.
//!
//! Many processors have most events alike, so an event is in the pool once, with the set of its
//! processors. Events are in the order of their names in upper case:
//!
//! | Bytes | Meaning |
//! |---|---|
//! | 1, 1, n | bytes that the name shares with the name before, further bytes, these |
//! | number | index of the set of processors |
//! | 1 | flags; from bit 6 on the number of extra registers |
//! | numbers | counters' mask or fixed counter, code, unit masks, counter mask with equal flag |
//! | numbers | of the first register: address, value; of the second: address, code, unit masks |
//!
//! A number has seven bits a byte, the low ones first.

use alloc::{boxed::Box, string::String, vec::Vec};

use super::table::{Counter, Entry, ExtraRegister, Flag, Second, Table};

static POOL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/events.bin"));

const INVERTED: u8 = 1;
const EDGES: u8 = 1 << 1;
const ALONE: u8 = 1 << 2;
const THREADS: u8 = 1 << 3;
const LATER: u8 = 1 << 4;
const FIXED: u8 = 1 << 5;
/// Flag beside the counter mask.
const EQUAL: u64 = 1 << 8;

/// Makes the table of the processor whose bit in the `sets` is `processor`. Its names stay in
/// memory: a processor's table is made once.
pub(super) fn table(processor: usize, sets: &[u64]) -> Table {
    let mut reader = Reader(POOL);
    let (mut name, mut names, mut found) = (String::new(), String::new(), Vec::new());
    while let Some((set, entry, is_later)) = reader.event(&mut name, sets) {
        if set >> processor & 1 == 1 {
            found.push((names.len(), name.len(), entry, is_later));
            names += &name;
        }
    }
    let names: &'static str = Box::leak(names.into_boxed_str());
    let named = |(at, length, entry, _): &(usize, usize, Entry<'static>, bool)| Entry {
        name: names.get(*at..at + length).unwrap_or_default(),
        ..*entry
    };
    let mut codes: Vec<(u16, bool, u16)> = Vec::new();
    for (index, (.., entry, is_later)) in (0..).zip(&found) {
        codes.push((entry.code, *is_later, index));
        let second = entry.extra.and_then(|extra| extra.second);
        if let Some(second) = second.filter(|second| second.code != entry.code) {
            codes.push((second.code, *is_later, index));
        }
    }
    codes.sort_unstable();
    Table {
        has_second_umask: found.iter().any(|(_, _, entry, _)| entry.umask > 0xff),
        entries: found.iter().map(named).collect(),
        by_code: codes.into_iter().map(|(code, _, index)| (code, index)).collect(),
    }
}

/// Finds an event of any processor by its name, ignoring case. Returns it without the name, and the
/// set of the processors that have an event of the name.
pub(super) fn named(name: &str, sets: &[u64]) -> Option<(Entry<'static>, u64)> {
    let (mut reader, mut this, mut found) = (Reader(POOL), String::new(), None);
    while let Some((set, entry, _)) = reader.event(&mut this, sets) {
        if this.eq_ignore_ascii_case(name) {
            let (first, all) = found.unwrap_or((entry, 0));
            found = Some((first, all | set));
        }
    }
    found
}

/// Reader of the pool.
struct Reader(&'static [u8]);

impl Reader {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self, count: usize) -> &'static [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        while let Some(byte) = self.byte() {
            number |= u64::from(byte & 0x7f) << shift;
            shift = (shift + 7) % u64::BITS;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }

    /// Reads the next event. `name` has the name of the event before, and gets its own. Returns the
    /// set of its processors among the `sets`, the event without its name, and whether that is a
    /// later one.
    fn event(&mut self, name: &mut String, sets: &[u64]) -> Option<(u64, Entry<'static>, bool)> {
        name.truncate(self.byte()?.into());
        let more = self.byte().unwrap_or_default();
        *name += str::from_utf8(self.bytes(more.into())).unwrap_or_default();
        let set = sets.get(self.number() as usize).copied().unwrap_or_default();
        let (entry, is_later) = self.entry();
        Some((set, entry, is_later))
    }

    /// Reads an event's fields. Returns the event without its name, and whether that is a later
    /// one.
    fn entry(&mut self) -> (Entry<'static>, bool) {
        let flags = self.byte().unwrap_or_default();
        let is_set = |flag: u8| flags & flag != 0;
        let counters = self.number() as u16;
        let (code, umask) = (self.number() as u16, self.number() as u16);
        let cmask = self.number();
        let extra = (flags >> 6 != 0).then(|| {
            let (msr, value) = (self.number() as u32, self.number());
            let second = (flags >> 6 == 2).then(|| Second {
                msr: self.number() as u32,
                code: self.number() as u16,
                umask: self.number() as u16,
            });
            ExtraRegister { msr, second, value }
        });
        let entry = Entry {
            name: "",
            code,
            umask,
            cmask: cmask as u8,
            equal: cmask & EQUAL != 0,
            inv: is_set(INVERTED),
            edge: is_set(EDGES),
            counter: if is_set(FIXED) {
                Counter::Fixed(counters as u8)
            } else {
                Counter::General(counters)
            },
            flag: match flags {
                _ if is_set(THREADS) => Flag::Threads,
                _ if is_set(ALONE) => Flag::Alone,
                _ => Flag::None,
            },
            extra,
        };
        (entry, is_set(LATER))
    }
}
