//! Statistics of the samples of a session's events by piece of code, with the errors of sums of
//! events.

use std::collections::BTreeMap;

use tally_abi::trace::{SampleRecord, SlicePlace};
use tally_breakdown::{Count, CyclePart, INDEPENDENT, Stack, cycle_parts};
use tally_engine::estimate::student_t_95;

use crate::{
    recording::Recording,
    report::estimate::degrees,
    trace::run::{TracedEvent, TracedSession},
};

/// Samples of an event that a piece of code may have at most, at 95 %, if none was observed: the
/// rule of three.
const UNSEEN: f64 = 3.0;

/// Source of correlation between the samples of an event: a group's slices, or none.
type Group = Option<u16>;

/// The samples of an event.
#[derive(Debug, Default)]
struct OfEvent {
    group: Group,
    /// The event's number in the session, and half the width of its 95 % interval.
    total: [f64; 2],
    /// The events that the samples stand for.
    events: f64,
    samples: u64,
    /// Events by piece of code.
    code: BTreeMap<String, f64>,
    /// By cluster: the events of all samples, and those by piece of code.
    clusters: BTreeMap<usize, (f64, BTreeMap<String, f64>)>,
}

impl OfEvent {
    /// Makes the statistics of an event without samples.
    fn of(event: &TracedEvent) -> OfEvent {
        let group = match event.place {
            SlicePlace::List { group, .. } => Some(group),
            _ => None,
        };
        let half_width = event.report.half_width_95.unwrap_or_default();
        let total = [event.report.estimate.unwrap_or_default() as f64, half_width];
        OfEvent { group, total, ..OfEvent::default() }
    }

    /// Adds a sample in this piece of code that stands for `events` events.
    fn add(&mut self, name: &str, cluster: usize, events: f64) {
        let (all, code) = self.clusters.entry(cluster).or_default();
        *all += events;
        *code.entry(name.to_owned()).or_default() += events;
        *self.code.entry(name.to_owned()).or_default() += events;
        self.events += events;
        self.samples += 1;
    }

    /// Events of the session per event that samples stand for.
    fn scale(&self) -> f64 {
        if self.events > 0.0 { self.total[0] / self.events } else { 0.0 }
    }

    fn share(&self, name: &str) -> f64 {
        let own = self.code.get(name).copied().unwrap_or_default();
        if self.events > 0.0 { own / self.events } else { 0.0 }
    }

    /// Deviation of the piece's number in a cluster from its share, in events of the session.
    fn residual(&self, cluster: usize, name: &str) -> f64 {
        let Some((all, code)) = self.clusters.get(&cluster) else { return 0.0 };
        let own = code.get(name).copied().unwrap_or_default();
        self.scale() * (own - self.share(name) * all)
    }
}

/// All samples of a session.
#[derive(Debug)]
pub(super) struct Seen {
    events: BTreeMap<&'static str, OfEvent>,
    samples: BTreeMap<String, u64>,
}

impl Seen {
    pub(super) fn of(
        of: &Recording,
        session: &TracedSession,
        stack: &'static Stack,
        key: &dyn Fn(&SampleRecord) -> String,
    ) -> Seen {
        let event = |name| {
            let found = session.events.iter().find(|it| it.report.name == name);
            found.map(|event| (name, OfEvent::of(event)))
        };
        let events = stack.of_cycles().into_iter().filter_map(event).collect();
        let mut seen = Seen { events, samples: BTreeMap::new() };
        let slices = of.records.slices.iter().filter(|slice| slice.session == session.session);
        let mut ends: Vec<u64> = slices.map(|slice| slice.end_tsc).collect();
        ends.sort_unstable();
        let mut samples: Vec<&SampleRecord> =
            of.records.samples.iter().filter(|it| it.session == session.session).collect();
        samples.sort_by_key(|sample| sample.tsc);
        let mut last: BTreeMap<u16, u64> = BTreeMap::new();
        // A sample without an address was due at a context switch or in a system call: its events
        // are part of the next sample.
        let known = samples.into_iter().filter(|sample| sample.address != 0);
        for (number, sample) in known.enumerate() {
            let Some(event) = session.events.get(usize::from(sample.event)) else { continue };
            let count = match event.place {
                SlicePlace::List { index, .. } => {
                    sample.counts.get(usize::from(index)).copied().unwrap_or_default()
                }
                _ => sample.count,
            };
            let before = last.insert(sample.event, count).unwrap_or_default();
            let Some(of) = seen.events.get_mut(&*event.report.name) else { continue };
            let cluster = match of.group {
                Some(_) => ends.partition_point(|end| *end < sample.tsc),
                None => number,
            };
            let name = key(sample);
            of.add(&name, cluster, count.saturating_sub(before) as f64);
            *seen.samples.entry(name).or_default() += 1;
        }
        seen
    }

    /// The pieces of code with samples.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(String::as_str)
    }

    /// The samples of an event in a piece of code.
    pub(super) fn samples_of(&self, event: &str, name: &str) -> u64 {
        let Some(of) = self.events.get(event) else { return 0 };
        of.clusters.values().filter(|(_, code)| code.contains_key(name)).count() as u64
    }

    /// The samples in a piece of code.
    pub(super) fn samples(&self, name: &str) -> u64 {
        self.samples.get(name).copied().unwrap_or_default()
    }

    /// The number of samples of an event.
    pub(super) fn of_event(&self, event: &str) -> u64 {
        self.events.get(event).map_or(0, |of| of.samples)
    }

    /// Adds to each other event one sample that is spread like the code of `event`. In a piece of
    /// code without samples of two events, whose ratio divides a part, the ratio is then nearly the
    /// session's, not that of 0 and 0. Events without any sample are so few that their place hardly
    /// matters; their half width is set to at least their whole number.
    pub(super) fn spread_like(&mut self, event: &str) {
        let Some(known) = self.events.get(event).filter(|known| known.events > 0.0) else { return };
        let (events, code) = (known.events, known.code.clone());
        for of in self.events.iter_mut().filter(|(name, _)| **name != event).map(|(_, of)| of) {
            let each = if of.samples == 0 { 1.0 } else { of.events / of.samples as f64 };
            for (name, own) in &code {
                *of.code.entry(name.clone()).or_default() += each * own / events;
            }
            of.events += each;
            if of.samples == 0 {
                of.total[1] = of.total[1].max(of.total[0]);
            }
        }
    }

    /// An event's number in the session.
    pub(super) fn total(&self, event: &str) -> f64 {
        self.events.get(event).map_or(0.0, |of| of.total[0])
    }

    /// The parts of the session.
    pub(super) fn session(&self, stack: &'static Stack) -> Vec<CyclePart> {
        let counts = |event: &str| {
            let [estimate, half_width_95] = self.events.get(event)?.total;
            Some(Count { estimate, half_width_95, truth: None })
        };
        cycle_parts(&counts, INDEPENDENT, stack)
    }

    /// An event's number in a piece of code, and half the width of its 95 % interval.
    pub(super) fn number(&self, event: &str, name: &str) -> Option<(f64, f64)> {
        let (known, of) = self.events.get_key_value(event)?;
        Some((of.scale() * of.code.get(name).unwrap_or(&0.0), self.error(&[(known, 1.0)], name)))
    }

    /// Half the width of the 95 % interval of a sum of events in a piece of code, each times its
    /// factor.
    pub(super) fn error(&self, terms: &[(&'static str, f64)], name: &str) -> f64 {
        let known = terms.iter().filter_map(|(event, by)| Some((self.events.get(event)?, *by)));
        let known: Vec<(&OfEvent, f64)> = known.collect();
        let mut groups: Vec<Group> = known.iter().map(|(of, _)| of.group).collect();
        groups.sort_unstable();
        groups.dedup();
        let mut square = 0.0;
        for group in groups {
            let own: Vec<(&OfEvent, f64)> =
                known.iter().filter(|(of, _)| of.group == group).copied().collect();
            let mut clusters: Vec<usize> =
                own.iter().flat_map(|(of, _)| of.clusters.keys().copied()).collect();
            clusters.sort_unstable();
            clusters.dedup();
            let number = clusters.len() as f64;
            let residual = |cluster: &usize| {
                own.iter().map(|(of, by)| by * of.residual(*cluster, name)).sum::<f64>().powi(2)
            };
            let squares: Vec<f64> = clusters.iter().map(residual).collect();
            if number > 1.0 {
                // Few clusters contain most of a piece of code that runs seldom, which limits the
                // degrees of freedom (decision 28).
                let t = student_t_95(degrees(&squares).min(number - 1.0));
                square += t * t * squares.iter().sum::<f64>() * number / (number - 1.0);
            }
        }
        for (of, by) in known {
            let each = by * of.scale() * of.events / of.samples.max(1) as f64;
            square += (UNSEEN * each).powi(2);
            square += (by * of.share(name) * of.total[1]).powi(2);
        }
        square.sqrt()
    }
}
