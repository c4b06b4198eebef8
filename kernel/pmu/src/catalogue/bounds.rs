//! Upper bounds between the events of a list: by the vendors' definitions of the events
//! (`bounds.tsv`), and by privilege, because the count of one ring is at most that of both.

use alloc::{collections::BTreeMap, vec::Vec};

use tally_abi::Mode;
use tally_engine::bounds::{Bound, Whole};

use super::{Catalogue, Resolved};

/// Returns all lines, for all vendors: the whole, its parts, and the source.
pub(super) fn lines() -> impl Iterator<Item = [&'static str; 3]> {
    let lines = include_str!("bounds.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut fields = line.split('\t');
        Some([fields.next()?, fields.next()?, fields.next()?])
    })
}

impl Catalogue {
    /// Returns the bounds between the events of a list that was resolved for a session in mode
    /// `session`.
    pub fn bounds(&self, events: &[Resolved], session: Mode) -> Vec<Bound> {
        let mut bounds = Vec::new();
        let list = &ByName::of(events);
        for [whole, names, _] in lines() {
            if let Some(always) = self.find(whole).and_then(|entry| self.always(&entry)) {
                let parts = parts(list, names, session);
                bounds.extend(bound(parts, Whole::Pinned(always)));
            }
            for (event, whole) in list.named(whole) {
                bounds.extend(bound(parts(list, names, whole.mode), Whole::Event(event)));
            }
        }
        for (event, whole) in (0..).zip(events).filter(|(_, whole)| whole.mode == Mode::Full) {
            let rings = [Mode::User, Mode::Kernel];
            let part = |ring| list.first(whole.native?, ring);
            let parts = rings.into_iter().filter_map(part).collect();
            bounds.extend(bound(parts, Whole::Event(event)));
        }
        bounds
    }
}

fn bound(parts: Vec<u16>, whole: Whole) -> Option<Bound> {
    (!parts.is_empty()).then_some(Bound { parts, whole })
}

/// Events of a list by their names in the table.
struct ByName<'a> {
    list: &'a [Resolved],
    names: BTreeMap<&'static str, Named>,
}

/// Indices of the events of one name.
#[derive(Default)]
struct Named {
    all: Vec<u16>,
    /// First event of each mode.
    first: Vec<(Mode, u16)>,
}

impl<'a> ByName<'a> {
    fn of(list: &'a [Resolved]) -> Self {
        let mut names: BTreeMap<&'static str, Named> = BTreeMap::new();
        for (index, event) in (0..).zip(list) {
            let Some(name) = event.native else { continue };
            let named = names.entry(name).or_default();
            named.all.push(index);
            if named.first.iter().all(|(mode, _)| *mode != event.mode) {
                named.first.push((event.mode, index));
            }
        }
        ByName { list, names }
    }

    /// Returns the events that are called `name` in the table, with their indices.
    fn named(&self, name: &str) -> impl Iterator<Item = (u16, &'a Resolved)> {
        let all = self.names.get(name).into_iter().flat_map(|named| &named.all);
        all.map(|index| (*index, &self.list[usize::from(*index)]))
    }

    /// Returns the first event of a name and mode.
    fn first(&self, name: &str, mode: Mode) -> Option<u16> {
        let first = &self.names.get(name)?.first;
        first.iter().find(|(of, _)| *of == mode).map(|(_, index)| *index)
    }
}

/// Returns an event in `mode` for each name. If `mode` is both rings and no event counts both,
/// returns the event of each ring, if it exists.
fn parts(list: &ByName<'_>, names: &str, mode: Mode) -> Vec<u16> {
    let find = |name| match (list.first(name, mode), mode) {
        (None, Mode::Full) => [list.first(name, Mode::User), list.first(name, Mode::Kernel)],
        (event, _) => [event, None],
    };
    names.split('+').flat_map(find).flatten().collect()
}
