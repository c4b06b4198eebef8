//! Functions in which the event of a sample can have happened. The address of a sample is some
//! instructions late, and on the way to it a function can have been entered, or have returned.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use tally_abi::trace::SampleRecord;

use super::code::{Code, Step};
use crate::recording::{LoadedFile, Recording, Symbolizer};

/// Instructions by which a sample is late at most. In the virtual PMU 95 % of the samples are
/// within 15, and all within 24.
const MOST_LATE: usize = 16;

/// A place in the files: the number of the file's code, and an address.
type Place = (usize, u64);

/// Other functions of samples, by their addresses.
pub(super) struct Nearby<'a> {
    of: &'a Recording,
    symbolizer: &'a Symbolizer,
    /// Name of the function that is shown for a sample.
    name: &'a dyn Fn(&SampleRecord) -> String,
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
    /// Reads the code of the functions with samples.
    pub(super) fn of(
        of: &'a Recording,
        symbolizer: &'a Symbolizer,
        name: &'a dyn Fn(&SampleRecord) -> String,
    ) -> Nearby<'a> {
        let mut nearby = Nearby {
            of,
            symbolizer,
            name,
            files: Vec::new(),
            steps: BTreeMap::new(),
            callers: BTreeMap::new(),
            unnamed_calls: BTreeSet::new(),
            unnamed_callers: BTreeSet::new(),
            unnamed_targets: BTreeSet::new(),
            known: BTreeMap::new(),
        };
        let mut begun = Vec::new();
        for (sample, _) in of.weighted_samples() {
            let Some(place) = nearby.function(sample) else { continue };
            if !nearby.steps.contains_key(&place) {
                nearby.add(place, sample);
            }
            if nearby.index(place, sample.address) < MOST_LATE {
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
    /// call that names no function can have been of any that no call names. In
    /// a loop the instructions before are those of the loop: what was before it is seldom near.
    pub(super) fn others(&mut self, sample: &SampleRecord) -> Rc<[String]> {
        let Some((file, start)) = self.function(sample) else { return Rc::default() };
        if let Some(known) = self.known.get(&(file, sample.address)) {
            return known.clone();
        }
        let steps = self.steps.get(&(file, start)).cloned().unwrap_or_default();
        let at = self.index((file, start), sample.address);
        let around = |step: &&Step| step.address >= sample.address;
        let back = steps.iter().filter(around).filter_map(|step| step.jumps);
        let in_loop = back.filter(|target| (start..=sample.address).contains(target)).max();
        let first = in_loop.map_or(0, |first| steps.partition_point(|step| step.address < first));
        let before = &steps[first.max(at.saturating_sub(MOST_LATE))..at];
        let mut addresses: BTreeSet<u64> = before.iter().map(|step| step.address).collect();
        addresses.extend(before.iter().filter_map(|step| step.calls));
        let mut names = BTreeSet::new();
        if before.iter().any(|step| self.unnamed_calls.contains(&(file, step.address))) {
            names.extend(self.unnamed_targets.iter().cloned());
        }
        if at < MOST_LATE && in_loop.is_none() {
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
