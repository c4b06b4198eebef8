//! The true counts of a session's events.

use tally_abi::{
    Mode,
    truth::{Count, Region},
};

use crate::machine::EventReading;

/// An event's true count. The truth has one of the event's several names. A modifier for rings does
/// not change the event; a counter mask, an invert or an edge does.
pub(super) fn truth_of(region: &Region, event: &EventReading) -> Option<u64> {
    let EventReading { name, native, mode, .. } = event;
    let named = |name: &str| true_count(Some(region), name, *mode);
    let without_rings = || {
        let (name, rings) = name.rsplit_once(':')?;
        rings.chars().all(|ring| "ukh".contains(ring)).then(|| named(name))?
    };
    named(name).or_else(|| named(native.as_ref()?)).or_else(without_rings)
}

/// An event's true count in a session of this mode. In ring 0 it excludes the PMI handlers, in
/// which the session's counters are disabled.
fn true_count(region: Option<&Region>, event: &str, mode: Mode) -> Option<u64> {
    let region = region?;
    let Count { user, kernel } = *region.events.get(event)?;
    let handlers = region.pmi.events.get(event).map_or(0, |count| count.kernel);
    let kernel = kernel.saturating_sub(handlers);
    Some(match mode {
        Mode::User => user,
        Mode::Kernel => kernel,
        Mode::Full => user + kernel,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use tally_abi::truth::{PmiCost, RegionKind};

    #[test]
    fn the_truth_is_of_the_session_s_mode() {
        let events = BTreeMap::from([("E".to_owned(), Count { user: 0, kernel: 1 })]);
        let pmi = PmiCost { events, ..PmiCost::default() };
        let events = BTreeMap::from([("E".to_owned(), Count { user: 3, kernel: 4 })]);
        let kind = RegionKind::Session;
        let cpus = Vec::new();
        let region = Region { kind, tag: 1, address_space: 0, closed: true, events, cpus, pmi };
        let of = |event, mode| true_count(Some(&region), event, mode);
        assert_eq!(of("E", Mode::User), Some(3));
        assert_eq!(of("E", Mode::Kernel), Some(3), "without the handlers");
        assert_eq!(of("E", Mode::Full), Some(6));
        assert_eq!(of("F", Mode::Full), None);
    }
}
