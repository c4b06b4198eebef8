//! Comparison of intervals with the truth, summed over runs.

use serde::Serialize;
use tally_abi::phase::{PREDICTORS, Predictor};
use tally_engine::phase::{Counted, Model, classify::classes};
use xtask::report::{Hits, PhaseReport};

use super::compared::Compared;
use crate::median::median;

/// Number of intervals within which a change must be found.
pub(super) const SOON: usize = 3;
/// Number of intervals that a phase must last before and after its end to make that a change.
const LASTS: usize = 3;

/// Numbers of a program, or of all.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Judgement {
    pub(super) intervals: usize,
    /// Intervals whose class is sure, and the number of those whose true vector has the same class.
    pub(super) sure: usize,
    pub(super) same: usize,
    /// Costs with a bar, and the number of those whose bar contains the truth.
    pub(super) bars: usize,
    pub(super) held: usize,
    /// Intervals whose largest cost is the truth's.
    pub(super) largest: usize,
    /// True changes, those found within [`SOON`] intervals, and false alarms.
    pub(super) changes: usize,
    pub(super) found: usize,
    pub(super) false_alarms: usize,
    /// Pairs of consecutive intervals, and those with two different phases.
    pub(super) pairs: usize,
    pub(super) transitions: usize,
    /// Right predictions of each predictor, for all intervals and for those whose phase differs
    /// from that of the one before.
    pub(super) right: [usize; PREDICTORS],
    pub(super) right_at_transitions: [usize; PREDICTORS],
    /// Pairs whose next phase any predictor predicted: the bound for a choice among predictors.
    pub(super) any_right: usize,
    /// Results of the classifiers on the true vectors.
    pub(super) compared: Compared,
}

impl Judgement {
    /// Judges a run: its intervals against their true counts.
    pub(super) fn of(found: &PhaseReport, model: &Model, truth: &[Counted]) -> Judgement {
        let judged = found.judge(model, truth);
        let mut known = classes(found.classes, found.unit);
        let vectors: Vec<_> = truth.iter().map(|counted| model.vector(counted)).collect();
        let truly: Vec<u8> = vectors.iter().map(|vector| known.classify(vector).phase).collect();
        let alarms: Vec<bool> = found.intervals.iter().map(|interval| interval.changed).collect();
        let [changes, found_soon, false_alarms] = changes(&truly, &alarms);
        let hits = Predictor::ALL.map(|name| Hits::of(name, &found.intervals));
        let pairs = found.intervals.iter().zip(found.intervals.iter().skip(1));
        Judgement {
            intervals: judged.intervals,
            sure: judged.sure,
            same: judged.same,
            bars: judged.bars,
            held: judged.held,
            largest: judged.bottleneck,
            changes,
            found: found_soon,
            false_alarms,
            pairs: pairs.len(),
            transitions: found.transitions as usize,
            right: hits.map(|hits| hits.all[0]),
            right_at_transitions: hits.map(|hits| hits.at_transitions[0]),
            any_right: pairs.filter(|(one, next)| one.predicted.contains(&next.phase)).count(),
            compared: Compared::of(&vectors),
        }
    }

    /// The sum of several judgements.
    pub(super) fn sum<'a>(all: impl IntoIterator<Item = &'a Judgement>) -> Judgement {
        all.into_iter().fold(Judgement::default(), |mut sum, one| {
            sum.intervals += one.intervals;
            sum.sure += one.sure;
            sum.same += one.same;
            sum.bars += one.bars;
            sum.held += one.held;
            sum.largest += one.largest;
            sum.changes += one.changes;
            sum.found += one.found;
            sum.false_alarms += one.false_alarms;
            sum.pairs += one.pairs;
            sum.transitions += one.transitions;
            sum.any_right += one.any_right;
            sum.compared.add(&one.compared);
            for index in 0..PREDICTORS {
                sum.right[index] += one.right[index];
                sum.right_at_transitions[index] += one.right_at_transitions[index];
            }
            sum
        })
    }
}

/// True changes, those that an alarm follows within [`SOON`] intervals, and alarms that follow
/// none. A change is where the true phase differs from the one before, and both last.
fn changes(truly: &[u8], alarms: &[bool]) -> [usize; 3] {
    let lasts = |phases: Option<&[u8]>| {
        phases.is_some_and(|phases| phases.iter().all(|phase| *phase == phases[0]))
    };
    let is_change = |at: &usize| {
        let before = at.checked_sub(LASTS).and_then(|from| truly.get(from..*at));
        let after = truly.get(*at..at + LASTS);
        lasts(before) && lasts(after) && truly[at - 1] != truly[*at]
    };
    let real: Vec<usize> = (1..truly.len()).filter(is_change).collect();
    let alarm_at = |at: usize| alarms.get(at).copied().unwrap_or_default();
    let found = real.iter().filter(|&&at| (at..at + SOON).any(alarm_at)).count();
    // An alarm at a true phase that does not last is not false.
    let differs = |at: usize| at > 0 && truly.get(at) != truly.get(at - 1);
    let is_false = |at: &usize| alarm_at(*at) && !(at.saturating_sub(SOON)..=*at).any(differs);
    [real.len(), found, (0..alarms.len()).filter(is_false).count()]
}

/// The study's results on one PMU, with the aims.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PmuStudy {
    pub(super) pmu: &'static str,
    pub(super) programs: Vec<(String, Judgement)>,
    pub(super) all: Judgement,
    /// The median over programs of the centroids' gain over the hash, as a share.
    pub(super) gain: f64,
    pub(super) holds: bool,
}

/// Smallest gain that is required.
pub(super) const LEAST_GAIN: f64 = 0.05;

impl PmuStudy {
    pub(super) fn of<'a>(
        pmu: &'static str,
        programs: impl Iterator<Item = (&'a str, Judgement)>,
    ) -> PmuStudy {
        let programs: Vec<_> =
            programs.map(|(program, judged)| (program.to_owned(), judged)).collect();
        let all = Judgement::sum(programs.iter().map(|(_, judged)| judged));
        let gains = programs.iter().map(|(_, judged)| judged.compared.gain());
        let gain = median(gains.collect()).unwrap_or_default();
        let holds = all.wanted().iter().all(|(_, _, holds)| *holds) && gain >= LEAST_GAIN;
        PmuStudy { pmu, programs, all, gain, holds }
    }
}

/// The study's results on all PMUs. Each must hold by itself, as a sum can hide a vendor.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Study {
    pub(super) pmus: Vec<PmuStudy>,
    pub(super) all: Judgement,
    pub(super) holds: bool,
}

impl Study {
    pub(super) fn of(pmus: Vec<PmuStudy>) -> Study {
        let all = Judgement::sum(pmus.iter().map(|of| &of.all));
        Study { holds: pmus.iter().all(|of| of.holds), pmus, all }
    }
}

impl Judgement {
    /// The aims, their results, and whether they are met.
    pub(super) fn wanted(&self) -> [(&'static str, f64, bool); 5] {
        let held = share(self.held, self.bars);
        let same = share(self.same, self.sure);
        let found = share(self.found, self.changes);
        let alarms = 1000.0 * share(self.false_alarms, self.intervals);
        let largest = share(self.largest, self.intervals);
        [
            (
                "bars of costs that contain the truth: 93 to 97 %",
                held,
                (0.93..=0.97).contains(&held),
            ),
            ("sure phases that are the truth's: 95 %", same, same >= 0.95),
            (
                "largest costs by counts that are those by true counts: 90 %",
                largest,
                largest >= 0.9,
            ),
            ("changes found within 3 intervals: 90 %", found, found >= 0.9),
            ("false alarms in 1,000 intervals: at most 1", alarms, alarms <= 1.0),
        ]
    }
}

/// A share; 0 for none of none.
pub(super) fn share(some: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { some as f64 / of as f64 }
}

#[cfg(test)]
mod tests {
    use super::{super::compared::Classified, *};

    #[test]
    fn one_vendor_cannot_hide_behind_the_other() {
        let of = |found, gained| Judgement {
            intervals: 1_000,
            sure: 100,
            same: 100,
            bars: 100,
            held: 95,
            largest: 1_000,
            changes: 100,
            found,
            compared: Compared {
                hash: Classified { pairs: 100, last: 50, ..Classified::default() },
                centroid: Classified { pairs: 100, last: gained, ..Classified::default() },
            },
            ..Judgement::default()
        };
        let study = |founds: [usize; 2]| {
            let pmus =
                founds.map(|found| PmuStudy::of("pmu", [("one", of(found, 55))].into_iter()));
            Study::of(pmus.to_vec())
        };
        assert!(study([90, 90]).holds);
        // Both together have 92 %.
        let hidden = study([100, 84]);
        assert!(hidden.all.wanted().iter().all(|(_, _, holds)| *holds));
        assert!(!hidden.holds);
        assert!(!PmuStudy::of("pmu", [("one", of(90, 54))].into_iter()).holds);
    }

    #[test]
    fn a_change_lasts_and_is_found_soon() {
        let truly = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0];
        let alarms = |at: &[usize]| -> Vec<bool> {
            (0..truly.len()).map(|index| at.contains(&index)).collect()
        };
        assert_eq!(changes(&truly, &alarms(&[5, 14])), [2, 2, 0]);
        // One late alarm, and one without any change.
        assert_eq!(changes(&truly, &alarms(&[7, 10])), [2, 0, 1]);
        // A phase of one interval is no change, and an alarm at it is not false.
        let mixture = [0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        assert_eq!(changes(&mixture, &alarms(&[4])), [0, 0, 0]);
    }
}
