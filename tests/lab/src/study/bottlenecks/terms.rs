//! The events of the cost model, and the causes whose removal they are judged against.
//!
//! The catalogue has the events of each processor (`kernel/pmu/src/catalogue/costs.rs`). Events
//! that it lacks are added here from the model's signals: under the vendor's name if the processor
//! has such an event, else as truth alone, which no program can count.

use serde::Serialize;
use tally_abi::{ExitStatus, phase::Bottleneck};
use tally_engine::phase::MAX_TERMS;
use tally_model::Signal;
use tally_vpmu::{Conversion, Profile, VirtualPmu};
use xtask::{Failure, Result, phases, report::GROUPS};

/// A term of the model: an event that costs cycles.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Term {
    /// Kind of the cost.
    pub(super) kind: Bottleneck,
    /// The vendor's name, or the signal's.
    pub(super) name: String,
    /// Source of the event.
    pub(super) source: Source,
    /// The published penalty per event, in cycles.
    pub(super) published_cycles: u32,
    /// The columns of a series of signals whose sum is the event.
    #[serde(skip)]
    pub(super) columns: Vec<String>,
}

/// Source of an event of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// The catalogue's table of costs.
    Catalogue,
    /// The processor has the event, but the catalogue's table of costs does not.
    Vendor,
    /// The processor has no one event for it: the virtual PMU's truth alone counts it.
    TruthOnly,
}

/// A group of causes of lost cycles, and its costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    /// Name: that of a group of `--what-if`.
    pub(super) name: &'static str,
    /// The costs that one core with perfect structures removes together.
    pub(super) kinds: &'static [Bottleneck],
}

impl Cause {
    /// The perfect structures of the shadow core for this cause.
    pub(super) fn perfect(&self) -> &'static str {
        let found = GROUPS.iter().find(|group| group.name == self.name);
        found.map_or("none", |group| group.perfect)
    }
}

/// The causes.
pub(super) const CAUSES: [Cause; GROUPS.len()] = {
    use Bottleneck as B;
    const fn cause(name: &'static str, kinds: &'static [B]) -> Cause {
        Cause { name, kinds }
    }
    [
        cause("branches", &[B::DirectMisprediction, B::IndirectMisprediction]),
        cause("code", &[B::ItlbMiss, B::Il1Miss, B::Il2Miss]),
        cause("data", &[B::DtlbMiss, B::Dl1Miss, B::Dl2Miss]),
        cause("units", &[B::ResourceContention, B::ExpensiveInstructions]),
        cause("queues", &[B::QueueFull]),
    ]
};

/// Terms that the catalogue's tables lack: a cost, signals whose sum is its event, a published
/// penalty. A full queue costs its cycles, and so does a busy port; floating-point additions and
/// multiplications have a latency of 4. Loads that hit the first level, and taken branches, after
/// which fetch delivers nothing in their cycle, cost nothing in the paper: their penalties are only
/// fitted.
const LACKING: [(Bottleneck, &[Signal], u32); 9] = [
    (Bottleneck::QueueFull, &[Signal::FullReorder], 1),
    (Bottleneck::QueueFull, &[Signal::FullScheduler], 1),
    (Bottleneck::QueueFull, &[Signal::FullLoads], 1),
    (Bottleneck::QueueFull, &[Signal::FullStores], 1),
    (Bottleneck::ExpensiveInstructions, &[Signal::FpScalarDouble, Signal::FpScalarSingle], 3),
    (Bottleneck::ExpensiveInstructions, &[Signal::FpPackedDouble, Signal::FpPackedSingle], 3),
    (Bottleneck::ExpensiveInstructions, &[Signal::LoadL1Hit], 0),
    (Bottleneck::ResourceContention, &[Signal::PortContention], 1),
    (Bottleneck::ResourceContention, &[Signal::Taken], 0),
];

fn columns(signals: &[Signal]) -> Vec<String> {
    signals.iter().map(|signal| format!("{signal:?}")).collect()
}

/// The terms of a processor: those of the catalogue that the virtual PMU counts, then those that it
/// lacks.
///
/// # Errors
/// The catalogue has no costs of this processor.
pub(super) fn terms(pmu: &VirtualPmu) -> Result<Vec<Term>> {
    let (table, profile) = (phases::costs(pmu)?, pmu.profile());
    let counted = table.terms.iter().filter_map(|term| {
        let event = profile.events().find(|event| event.name == term.event)?;
        (event.conversion == Conversion::Plain && !event.signals.is_empty()).then(|| Term {
            kind: term.kind,
            name: term.event.to_owned(),
            source: Source::Catalogue,
            published_cycles: term.penalty_cycles,
            columns: columns(event.signals),
        })
    });
    let mut terms: Vec<Term> = counted.collect();
    for (kind, signals, published_cycles) in LACKING {
        let own = columns(signals);
        if terms.iter().any(|term| term.kind == kind && term.columns == own) {
            continue;
        }
        let vendors = vendors(profile, signals);
        terms.push(Term {
            kind,
            name: vendors.map_or_else(|| own.join(" + "), str::to_owned),
            source: if vendors.is_some() { Source::Vendor } else { Source::TruthOnly },
            published_cycles,
            columns: own,
        });
    }
    if terms.len() > MAX_TERMS {
        let why = format!("the cost model has {} events, {MAX_TERMS} at most", terms.len());
        return Err(Failure::new(ExitStatus::CheckFailed, why));
    }
    Ok(terms)
}

/// The name of the processor's event that counts exactly these signals.
fn vendors(profile: &Profile, signals: &[Signal]) -> Option<&'static str> {
    let is_it = |event: &&'static tally_vpmu::Event| {
        event.signals == signals && event.conversion == Conversion::Plain && !event.is_tallys()
    };
    profile.events().find(is_it).map(|event| event.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::machine::{Pmu, virtual_pmu_of};

    #[test]
    fn each_cost_has_an_event_and_a_cause() {
        for pmu in [Pmu::Intel, Pmu::Amd] {
            let terms = terms(&virtual_pmu_of(pmu, &["pipeline=ooo".into()]).unwrap()).unwrap();
            for kind in Bottleneck::ALL {
                let has = terms.iter().any(|term| term.kind == kind);
                assert!(has, "{pmu:?} {kind:?}");
                let of = CAUSES.iter().filter(|cause| cause.kinds.contains(&kind)).count();
                assert_eq!(of, 1, "{kind:?}");
            }
            assert!(CAUSES.iter().all(|cause| cause.perfect() != "none"));
            // In the model no vendor's event counts a full scheduler.
            let scheduler = terms.iter().find(|term| term.columns == ["FullScheduler"]).unwrap();
            assert_eq!(scheduler.source, Source::TruthOnly);
            for (index, term) in terms.iter().enumerate() {
                let same =
                    |other: &Term| (other.kind, &other.columns) == (term.kind, &term.columns);
                assert!(!terms[..index].iter().any(same), "{term:?}");
            }
        }
        assert!(self::terms(&virtual_pmu_of(Pmu::Zen3, &[]).unwrap()).is_err());
    }
}
