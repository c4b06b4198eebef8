//! Penalties: as published, or fitted to the runs of programs.

use serde::Serialize;
use tally_abi::phase::Bottleneck;
use tally_engine::phase::{
    Formula, Model,
    cost::{CYCLE, formula},
};

use super::{
    interval::Interval,
    nnls::Rows,
    terms::{CAUSES, Source, Term},
};

/// Weight of the published values: a penalty of twice the published one, or 0, counts as this error
/// of every interval.
const PULL: f64 = 0.002;
/// Number of times that the set of intervals in which a full queue has its own cost is computed
/// again.
const ROUNDS: usize = 12;

/// Method of finding a model's penalties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// The catalogue's events and penalties: those with which `run --phases` starts.
    Catalogue,
    /// All events, with published penalties.
    Published,
    /// The processor's events, with penalties fitted to the other programs' cycles.
    Vendor,
    /// All events, with penalties fitted to the other programs' cycles.
    Cycles,
    /// All events, with penalties fitted to the other programs' cycles and savings.
    Savings,
    /// The catalogue's events, with the catalogue's penalties calibrated on line: `run --phases`.
    Calibrated,
}

impl Way {
    /// All methods, in the order of the tables.
    pub(super) const ALL: [Way; 6] =
        [Way::Catalogue, Way::Published, Way::Vendor, Way::Cycles, Way::Savings, Way::Calibrated];

    /// The method's name in tables.
    pub(super) fn word(self) -> &'static str {
        match self {
            Way::Catalogue => "catalogue",
            Way::Published => "published",
            Way::Vendor => "vendor's",
            Way::Cycles => "cycles",
            Way::Savings => "savings",
            Way::Calibrated => "on-line",
        }
    }

    fn uses(self, term: &Term) -> bool {
        match self {
            Way::Catalogue | Way::Calibrated => term.source == Source::Catalogue,
            Way::Vendor => term.source != Source::TruthOnly,
            Way::Published | Way::Cycles | Way::Savings => true,
        }
    }

    /// The penalties of a model, in cycles in the order of the terms, for a program that is not
    /// among `others`.
    pub(super) fn penalties(self, width: u32, terms: &[Term], others: &[&[Interval]]) -> Vec<f64> {
        let published = |term: &Term| {
            if self.uses(term) { f64::from(term.published_cycles) } else { 0.0 }
        };
        let start: Vec<f64> = terms.iter().map(published).collect();
        if matches!(self, Way::Catalogue | Way::Published | Way::Calibrated) {
            return start;
        }
        let fit = Fit { width, terms, way: self };
        fit.from(start, others)
    }
}

/// Makes the engine's model with these penalties.
pub(super) fn model(width: u32, terms: &[Term], penalties: &[f64]) -> Model {
    let mut model = Model { width, ..Model::default() };
    for (slot, (term, penalty)) in model.terms.iter_mut().zip(terms.iter().zip(penalties)) {
        *slot = Some((term.kind, (penalty * f64::from(CYCLE)).round() as u32));
    }
    model
}

/// A fit of penalties. The cost of a full queue is the part beyond the costs of execution, so the
/// model is linear only for a known set of intervals with such a rest. The set and the penalties
/// are computed alternately.
struct Fit<'a> {
    width: u32,
    terms: &'a [Term],
    way: Way,
}

impl Fit<'_> {
    fn from(&self, start: Vec<f64>, programs: &[&[Interval]]) -> Vec<f64> {
        let mut penalties = start;
        let mut best = (f64::INFINITY, penalties.clone());
        for _ in 0..ROUNDS {
            penalties = self.rows(&penalties, programs).solve();
            let error = self.error(&penalties, programs);
            if error >= best.0 {
                break;
            }
            best = (error, penalties.clone());
        }
        best.1
    }

    /// The rows of all intervals, in shares of their cycles. All programs have the same weight.
    fn rows(&self, penalties: &[f64], programs: &[&[Interval]]) -> Rows {
        let mut rows = Rows::new(self.terms.len());
        self.published(&mut rows, programs.len());
        for program in programs {
            for interval in *program {
                let weight = 1.0 / (interval.cycles.max(1) as f64).powi(2) / program.len() as f64;
                let is_full = self.rest(penalties, interval) > 0.0;
                let beyond = interval.cycles as f64 - self.ideal(interval);
                rows.add(&self.factors(interval, is_full, &Bottleneck::ALL), beyond, weight);
                if self.way != Way::Savings {
                    continue;
                }
                for (cause, saved) in CAUSES.iter().zip(interval.saved) {
                    rows.add(&self.factors(interval, is_full, cause.kinds), saved as f64, weight);
                }
            }
        }
        rows
    }

    /// Adds rows that pull penalties to the published ones, for events on which programs say
    /// little.
    fn published(&self, rows: &mut Rows, programs: usize) {
        for (index, term) in self.terms.iter().enumerate().filter(|(_, term)| self.way.uses(term)) {
            let published = f64::from(term.published_cycles);
            let scale = published.max(1.0);
            let mut factors = vec![0.0; self.terms.len()];
            factors[index] = 1.0 / scale;
            rows.add(&factors, published / scale, PULL * PULL * programs as f64);
        }
    }

    /// The contribution of a cycle of each penalty to the sum of these costs.
    fn factors(&self, interval: &Interval, is_full: bool, kinds: &[Bottleneck]) -> Vec<f64> {
        let fills = is_full && kinds.contains(&Bottleneck::QueueFull);
        let factor = |(term, count): (&Term, &u64)| {
            let (count, is_own) = (*count as f64, kinds.contains(&term.kind));
            if !self.way.uses(term) {
                return 0.0;
            }
            match formula(term.kind) {
                Formula::Stops => count * f64::from(u8::from(is_own)),
                // The rest that is a full queue's own cost is reduced by these costs.
                Formula::Overlaps => {
                    let parts = f64::from(u8::from(is_own)) - f64::from(u8::from(fills));
                    parts * count / interval.parallelism()
                }
                Formula::Remains => count * f64::from(u8::from(fills)),
            }
        };
        self.terms.iter().zip(&interval.events).map(factor).collect()
    }

    fn ideal(&self, interval: &Interval) -> f64 {
        interval.instructions as f64 / f64::from(self.width)
    }

    /// The cost of full queues beyond the costs of execution; negative if there is none.
    fn rest(&self, penalties: &[f64], interval: &Interval) -> f64 {
        let factors = self.factors(interval, true, &[Bottleneck::QueueFull]);
        factors.iter().zip(penalties).map(|(factor, penalty)| factor * penalty).sum()
    }

    /// Half the sum of squares of the model's relative errors, and of the causes' errors if they
    /// are part of the fit.
    fn error(&self, penalties: &[f64], programs: &[&[Interval]]) -> f64 {
        let of = |interval: &Interval, kinds: &[Bottleneck], target: f64| -> f64 {
            let is_full = self.rest(penalties, interval) > 0.0;
            let factors = self.factors(interval, is_full, kinds);
            let cost: f64 = factors.iter().zip(penalties).map(|(factor, p)| factor * p).sum();
            ((cost - target) / interval.cycles.max(1) as f64).powi(2)
        };
        let interval = |interval: &Interval| {
            let beyond = interval.cycles as f64 - self.ideal(interval);
            let causes = CAUSES.iter().zip(interval.saved);
            let causes = causes.filter(|_| self.way == Way::Savings);
            of(interval, &Bottleneck::ALL, beyond)
                + causes.map(|(cause, saved)| of(interval, cause.kinds, saved as f64)).sum::<f64>()
        };
        let mean = |program: &&[Interval]| {
            program.iter().map(interval).sum::<f64>() / program.len().max(1) as f64
        };
        programs.iter().map(mean).sum()
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::phase::COSTS;

    use super::*;

    /// Terms of these kinds; the last is counted by the truth alone.
    fn terms(kinds: &[Bottleneck]) -> Vec<Term> {
        let term = |(index, kind): (usize, &Bottleneck)| Term {
            kind: *kind,
            name: index.to_string(),
            source: if index + 1 < kinds.len() { Source::Catalogue } else { Source::TruthOnly },
            published_cycles: 10,
            columns: Vec::new(),
        };
        kinds.iter().enumerate().map(term).collect()
    }

    /// A pseudo-random number below 10,000.
    fn event(key: u64) -> u64 {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).wrapping_mul(2_654_435_761) % 10_000
    }

    /// Intervals whose cycles are those of the model with these penalties.
    fn planted(terms: &[Term], penalties: &[f64], seed: u64) -> Vec<Interval> {
        let model = model(4, terms, penalties);
        let of = |number: u64| {
            let mut interval = Interval {
                cycles: 600_000,
                instructions: 1_000_000,
                events: (0..terms.len() as u64)
                    .map(|n| event(seed << 32 | n << 16 | number))
                    .collect(),
                ..Interval::default()
            };
            // The cycles are on both sides of the equation, as f depends on them.
            for _ in 0..40 {
                interval.cycles = model.time(&interval.counted());
            }
            let costs = model.cycles(&interval.counted());
            for (saved, cause) in interval.saved.iter_mut().zip(&CAUSES) {
                *saved = cause.kinds.iter().map(|kind| costs[*kind as usize].cycles).sum();
            }
            interval
        };
        (0..100).map(of).collect()
    }

    #[test]
    fn planted_penalties_are_found_and_what_a_way_does_not_use_is_0() {
        let kinds = [Bottleneck::DirectMisprediction, Bottleneck::Dl1Miss, Bottleneck::DtlbMiss];
        let (terms, penalties) = (terms(&kinds), [17.0, 14.0, 9.0]);
        let programs = [planted(&terms, &penalties, 3), planted(&terms, &penalties, 5)];
        let programs = [&programs[0][..], &programs[1][..]];
        for way in [Way::Cycles, Way::Savings] {
            let found = way.penalties(4, &terms, &programs);
            for (found, planted) in found.iter().zip(penalties) {
                assert!((found / planted - 1.0).abs() < 0.03, "{way:?} {found} {planted}");
            }
        }
        assert_eq!(Way::Catalogue.penalties(4, &terms, &programs), [10.0, 10.0, 0.0]);
        assert_eq!(Way::Published.penalties(4, &terms, &programs), [10.0; 3]);
        assert_eq!(Way::Vendor.penalties(4, &terms, &programs)[2], 0.0);
    }

    #[test]
    fn penalties_are_never_negative_and_an_event_that_never_happens_keeps_the_published_one() {
        let terms = terms(&Bottleneck::ALL);
        for seed in 1..20 {
            let mut intervals = planted(&terms, &[3.0; COSTS], seed);
            for (index, interval) in intervals.iter_mut().enumerate() {
                interval.cycles = 100_000 + (index as u64 * seed * 7919) % 900_000;
                interval.events[0] = 0;
            }
            let found = Way::Cycles.penalties(4, &terms, &[&intervals]);
            assert!(found.iter().all(|penalty| *penalty >= 0.0), "{found:?}");
            assert!((found[0] - 10.0).abs() < 1e-3, "{found:?}");
        }
    }
}
