//! Which of a list's events are never more than others: by the vendors' definitions of what they count
//! (`bounds.tsv`), and by privilege, as what happens in ring 3 is a part of what happens.

use alloc::vec::Vec;

use tally_abi::Mode;
use tally_engine::bounds::{Bound, Whole};

use super::{Catalogue, Resolved};

/// All lines, of all vendors: whole, parts, and what says so.
pub(super) fn lines() -> impl Iterator<Item = [&'static str; 3]> {
    let lines = include_str!("bounds.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut fields = line.split('\t');
        Some([fields.next()?, fields.next()?, fields.next()?])
    })
}

impl Catalogue {
    /// What holds between the events of a list that was resolved for a session in mode `session`.
    pub fn bounds(&self, list: &[Resolved], session: Mode) -> Vec<Bound> {
        let mut bounds = Vec::new();
        for [whole, names, _] in lines() {
            if let Some(always) = self.find(whole).and_then(|entry| self.always(&entry)) {
                let parts = parts(list, names, session);
                bounds.extend(bound(parts, Whole::Pinned(always)));
            }
            for (event, whole) in named(list, whole) {
                bounds.extend(bound(parts(list, names, whole.mode), Whole::Event(event)));
            }
        }
        bounds.extend((0..).zip(list).filter_map(|(event, whole)| {
            let native = whole.native.filter(|_| whole.mode == Mode::Full)?;
            let rings = [Mode::User, Mode::Kernel];
            let ring = |ring| named(list, native).find(|(_, part)| part.mode == ring);
            let parts = rings.into_iter().filter_map(ring).map(|(part, _)| part);
            bound(parts.collect(), Whole::Event(event))
        }));
        bounds
    }
}

fn bound(parts: Vec<u16>, whole: Whole) -> Option<Bound> {
    (!parts.is_empty()).then_some(Bound { parts, whole })
}

/// The list's events that are called `name` in the table.
fn named<'a>(list: &'a [Resolved], name: &'a str) -> impl Iterator<Item = (u16, &'a Resolved)> {
    (0..).zip(list).filter(move |(_, event)| event.native == Some(name))
}

/// For each of these names an event of the privileges of `mode`; where both rings are meant and no event is
/// of both, one of each, as far as there are such.
fn parts(list: &[Resolved], names: &str, mode: Mode) -> Vec<u16> {
    let of = |name, mode| named(list, name).find(|(_, part)| part.mode == mode);
    let find = |name| match (of(name, mode), mode) {
        (None, Mode::Full) => [of(name, Mode::User), of(name, Mode::Kernel)],
        (event, _) => [event, None],
    };
    names.split('+').flat_map(find).flatten().map(|(part, _)| part).collect()
}
