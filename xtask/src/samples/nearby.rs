//! Functions in which the event of a sample can have happened. The address of a sample is some
//! instructions late, unless it is precise, and on the way to it a function can have been entered,
//! or have returned.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    rc::Rc,
};

use tally_abi::trace::SampleRecord;

use super::{
    code::{Code, Step},
    share::Weight,
};
use crate::recording::{LoadedFile, Recording, Symbolizer};

/// Instructions by which a sample is late at most, where the trace does not tell, besides those up
/// to the next branch: in the virtual PMU an interrupt waits for it.
const MOST_LATE: usize = 16;
/// Upper bound of the instructions that are searched for calls.
const MOST_SEARCHED: usize = 1024;

/// Stands for functions without samples, whose events can be in samples elsewhere.
const NOT_SAMPLED: &str = "";

/// A place in the files: the number of the file's code, and an address.
type Place = (usize, u64);

/// Other functions of samples, by their addresses.
pub(super) struct Nearby<'a> {
    of: &'a Recording,
    symbolizer: &'a Symbolizer,
    /// Name of the function that is shown for a sample.
    name: &'a dyn Fn(&SampleRecord) -> String,
    most_late: usize,
    files: Vec<(&'a LoadedFile, Option<Code>)>,
    /// Instructions of functions, by the function's start.
    steps: BTreeMap<Place, Rc<[Step]>>,
    /// Addresses of the direct calls of a function, by its start.
    callers: BTreeMap<Place, BTreeSet<u64>>,
    /// Places of calls whose target no instruction names, and the functions that have them.
    unnamed_calls: BTreeSet<Place>,
    unnamed_callers: BTreeSet<String>,
    /// Functions that no call names, with samples near their starts: targets of those calls.
    unnamed_targets: BTreeSet<String>,
    known: BTreeMap<Place, Rc<[String]>>,
}

impl<'a> Nearby<'a> {
    /// Reads the code of the functions with samples. 95 % of the samples are within `late`
    /// instructions of their events, if that is known.
    pub(super) fn of(
        of: &'a Recording,
        symbolizer: &'a Symbolizer,
        name: &'a dyn Fn(&SampleRecord) -> String,
        late: Option<u64>,
    ) -> Nearby<'a> {
        let mut nearby = Nearby {
            of,
            symbolizer,
            name,
            most_late: late
                .map_or(MOST_LATE, |late| MOST_LATE.max(late as usize))
                .min(MOST_SEARCHED),
            files: Vec::new(),
            steps: BTreeMap::new(),
            callers: BTreeMap::new(),
            unnamed_calls: BTreeSet::new(),
            unnamed_callers: BTreeSet::new(),
            unnamed_targets: BTreeSet::new(),
            known: BTreeMap::new(),
        };
        let mut begun = Vec::new();
        let samples = of.weighted_samples().into_iter().map(|(sample, _)| sample);
        for sample in samples.filter(|sample| !sample.precise) {
            let Some(place) = nearby.function(sample) else { continue };
            if !nearby.steps.contains_key(&place) {
                nearby.add(place, sample);
            }
            if nearby.index(place, sample.address) < nearby.most_late {
                begun.push((place, sample));
            }
        }
        begun.retain(|(place, _)| !nearby.callers.contains_key(place));
        nearby.unnamed_targets = begun.into_iter().map(|(_, sample)| name(sample)).collect();
        nearby
    }

    /// The file and the start of the function at a sample's address; `None` without its code.
    fn function(&mut self, sample: &SampleRecord) -> Option<Place> {
        let file = self.symbolizer.file(self.of, sample, sample.address)?;
        let known = self.files.iter().position(|(own, _)| own.key() == file.key());
        let number = known.unwrap_or_else(|| {
            // A file that cannot be read leaves the samples where they are.
            self.files.push((file, Code::read(file).ok()));
            self.files.len() - 1
        });
        Some((number, self.files[number].1.as_ref()?.at(sample.address)?.start))
    }

    /// Number of a function's instructions before an address.
    fn index(&self, place: Place, address: u64) -> usize {
        self.steps.get(&place).map_or(0, |of| of.partition_point(|step| step.address < address))
    }

    /// Adds the instructions of the function of a sample, and what it calls.
    fn add(&mut self, (file, start): Place, sample: &SampleRecord) {
        let code = self.files[file].1.as_ref();
        let steps = code.and_then(|code| Some(code.steps(code.at(start)?))).unwrap_or_default();
        let is_stub = |target| code.is_some_and(|code| code.is_stub(target));
        for &Step { address, calls, calls_any, .. } in &steps {
            if calls_any || calls.is_some_and(is_stub) {
                self.unnamed_calls.insert((file, address));
                self.unnamed_callers.insert((self.name)(&SampleRecord { address, ..*sample }));
            } else if let Some(target) = calls {
                self.callers.entry((file, target)).or_default().insert(address);
            }
        }
        self.steps.insert((file, start), steps.into());
    }

    /// The other functions in which the event of a sample can have happened: those that were called
    /// in the instructions before its address, and where its function begins there, the callers. A
    /// call that names no function can have been of any that no call names. In a loop the
    /// instructions before are those of the loop, and before its first its last: what was before
    /// the loop is seldom near.
    pub(super) fn others(&mut self, sample: &SampleRecord) -> Rc<[String]> {
        if sample.precise {
            return Rc::default();
        }
        let Some((file, start)) = self.function(sample) else { return Rc::default() };
        if let Some(known) = self.known.get(&(file, sample.address)) {
            return known.clone();
        }
        let steps = self.steps.get(&(file, start)).cloned().unwrap_or_default();
        let at = self.index((file, start), sample.address);
        let of_loop = innermost_loop(&steps, at);
        let first = of_loop.as_ref().map_or(0, |of| of.start);
        let latest = latest_start(&steps, at, self.most_late);
        let before = &steps[first.max(latest)..at];
        // Before the loop's first instruction was its last one.
        let end = of_loop.as_ref().map_or(at, |of| of.end);
        let again =
            &steps[at.max(end.saturating_sub(self.most_late.saturating_sub(before.len())))..end];
        let near = || before.iter().chain(again);
        let mut addresses: BTreeSet<u64> = near().map(|step| step.address).collect();
        addresses.extend(near().filter_map(|step| step.calls));
        let mut names = BTreeSet::new();
        let is_unnamed = |step: &Step| self.unnamed_calls.contains(&(file, step.address));
        if near().any(is_unnamed) {
            names.extend(self.unnamed_targets.iter().cloned());
            // Or of a function without a sample of its own.
            names.insert(NOT_SAMPLED.to_owned());
        }
        if latest == 0 && of_loop.is_none() {
            match self.callers.get(&(file, start)) {
                Some(callers) => addresses.extend(callers),
                None => names.extend(self.unnamed_callers.iter().cloned()),
            }
        }
        let own = (self.name)(sample);
        let name = |address| (self.name)(&SampleRecord { address, ..*sample });
        names.extend(addresses.into_iter().map(name));
        let others: Rc<[String]> = names.into_iter().filter(|name| *name != own).collect();
        self.known.insert((file, sample.address), others.clone());
        others
    }
}

/// Samples that are late by some instructions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    /// Samples in a piece of code whose events can have happened in another.
    pub(super) leaving: Weight,
    /// Samples in others whose events can have happened in this one.
    pub(super) coming: Weight,
}

impl Nearby<'_> {
    /// The samples, with the events that they stand for, that can belong to another piece of code.
    pub(super) fn moved<'b>(
        &mut self,
        samples: impl IntoIterator<Item = (&'b SampleRecord, u64)>,
    ) -> BTreeMap<String, Moved> {
        let mut moved: BTreeMap<String, Moved> = BTreeMap::new();
        for (sample, weight) in samples {
            let others = self.others(sample);
            if !others.is_empty() {
                moved.entry((self.name)(sample)).or_default().leaving.add(weight);
            }
            for other in others.iter() {
                moved.entry(other.clone()).or_default().coming.add(weight);
            }
        }
        moved
    }
}

/// The first instruction that a sample at `at` can be of: `late` before it, and from there back to
/// a branch.
fn latest_start(steps: &[Step], at: usize, late: usize) -> usize {
    let start = at.saturating_sub(late);
    let is_branch = |step: &Step| step.calls_any || step.calls.or(step.jumps).is_some();
    let last = steps[..start].iter().rposition(is_branch).map_or(0, |last| last + 1);
    last.max(at.saturating_sub(MOST_SEARCHED))
}

/// The innermost loop around an instruction, both by their numbers: from the target of a jump back
/// to the last such jump.
fn innermost_loop(steps: &[Step], at: usize) -> Option<Range<usize>> {
    let address = steps.get(at)?.address;
    let start = steps.first()?.address;
    let jumps = || steps[at..].iter().filter_map(|step| Some((step.address, step.jumps?)));
    let back = jumps().map(|(_, target)| target);
    let first = back.filter(|target| (start..=address).contains(target)).max()?;
    let (last, _) = jumps().rfind(|(_, target)| *target == first)?;
    let number = |address: u64| steps.partition_point(|step| step.address < address);
    Some(number(first)..number(last) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(address: u64, jumps: Option<u64>) -> Step {
        Step { jumps, ..Step::at(address) }
    }

    #[test]
    fn a_sample_can_be_of_all_up_to_the_branch_before() {
        let steps: Vec<Step> = (0..400).map(|at| step(at, (at == 50).then_some(0))).collect();
        assert_eq!([40, 60, 100, 399].map(|at| latest_start(&steps, at, 16)), [0, 0, 51, 51]);
    }

    #[test]
    fn a_loop_is_from_its_first_instruction_to_its_last_jump_back() {
        // 2 to 6, with 3 to 4 within it, and a jump forward.
        let jumps = [(4, 3), (5, 2), (6, 2), (7, 9)];
        let jump = |at| jumps.iter().find(|(from, _)| *from == at).map(|(_, to)| 10 * to);
        let steps: Vec<Step> = (0..10).map(|at| step(10 * at, jump(at))).collect();
        let of = |at| innermost_loop(&steps, at);
        assert_eq!([0, 1, 7, 9].map(of), [None, None, None, None]);
        assert_eq!([2, 5, 6].map(of), [Some(2..7), Some(2..7), Some(2..7)]);
        assert_eq!([3, 4].map(of), [Some(3..5), Some(3..5)]);
    }
}
