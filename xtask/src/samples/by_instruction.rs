//! Samples of an event by function and instruction.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
};

use tally_abi::ExitStatus;

use super::{
    code::{Code, Instruction},
    exposed,
    share::{Share, Weight},
};
use crate::{
    Failure, Result,
    recording::{LoadedFile, Recording, Symbolizer},
    trace::run::Processor,
};

/// A function that was sampled.
pub(super) struct Sampled<'a> {
    pub(super) file: &'a LoadedFile,
    /// The function's name.
    pub(super) function: String,
    /// All names of its address.
    pub(super) aliases: &'a [String],
    pub(super) instructions: Vec<Instruction>,
    pub(super) weight: Weight,
    pub(super) by_address: BTreeMap<u64, Weight>,
    /// Whether every sample is precise.
    pub(super) is_precise: bool,
    /// The cycles that each instruction exposes, if the recording has what this needs.
    pub(super) times: Option<Vec<f64>>,
}

/// The functions with samples of an event, in decreasing order of events.
pub(super) struct Found<'a> {
    pub(super) functions: Vec<Sampled<'a>>,
    /// Samples in code whose function is not known.
    pub(super) elsewhere: BTreeMap<u64, Weight>,
    /// Whether precise samples are of ops that the processor tagged when they were dispatched.
    pub(super) tags_ops: bool,
}

/// The time at an address.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeAt {
    /// Address of an instruction.
    pub address: u64,
    /// Cycles for which its samples stand.
    pub sampled: f64,
    /// Cycles that it exposes, as `annotate` prints them: corrected as far as the recording has
    /// what this needs.
    pub exposed: f64,
}

impl<'a> Found<'a> {
    /// Finds the functions with samples of an event.
    ///
    /// # Errors
    /// A file cannot be read, or no sample is in a function that is known.
    pub(super) fn of(of: &Recording, symbolizer: &'a Symbolizer, event: &str) -> Result<Found<'a>> {
        let mut found = Found::unsorted(of, symbolizer, event)?;
        found.functions.sort_by_key(|of| std::cmp::Reverse(of.weight.events));
        if found.functions.is_empty() {
            let why = "no sample is in a function that is known: add --symbols FILE with the file \
                       of the program, not stripped";
            return Err(Failure::new(ExitStatus::BadTrace, why));
        }
        let sampled = of.sampled_events();
        let of_cycles = exposed::is_cycles(event);
        if let Some(executions) = exposed::executions(sampled.iter()).filter(|_| of_cycles) {
            let executions = Found::unsorted(of, symbolizer, executions)?;
            found.functions.iter_mut().filter(|of| of.is_precise).for_each(|of| {
                of.times =
                    executions.functions.iter().find(|it| it.is_same(of)).map(|it| of.exposed(it));
            });
        }
        Ok(found)
    }

    /// Finds the functions in the order of their files and addresses.
    fn unsorted(of: &Recording, symbolizer: &'a Symbolizer, event: &str) -> Result<Found<'a>> {
        let mut elsewhere: BTreeMap<u64, Weight> = BTreeMap::new();
        let mut codes: BTreeMap<(&Path, u64), Code> = BTreeMap::new();
        let mut found: BTreeMap<(&Path, u64), Sampled<'a>> = BTreeMap::new();
        let of_cycles = exposed::is_cycles(event);
        for (sample, events) in of.weighted_samples() {
            if of.event_name(sample.session, sample.event) != event {
                continue;
            }
            let address = if of_cycles { exposed::place(of, sample) } else { sample.address };
            let file = symbolizer.file(of, sample, address);
            let code = match file.map(|file| (file, codes.entry(file.key()))) {
                Some((_, Entry::Occupied(known))) => Some(known.into_mut()),
                Some((file, Entry::Vacant(new))) => Some(new.insert(Code::read(file)?)),
                None => None,
            };
            let function = code.and_then(|code| Some((code.at(address)?, &*code)));
            let Some((file, (function, code))) = file.zip(function) else {
                elsewhere.entry(address).or_default().add(events);
                continue;
            };
            let of = found.entry((file.key().0, function.start)).or_insert_with(|| Sampled {
                file,
                function: symbolizer.named(file, function.start, || function.name()),
                aliases: file.aliases(function.start),
                instructions: code.instructions(function),
                weight: Weight::default(),
                by_address: BTreeMap::new(),
                is_precise: true,
                times: None,
            });
            of.weight.add(events);
            of.is_precise &= sample.precise;
            of.by_address.entry(address).or_default().add(events);
        }
        let tags_ops = of.run.processor.as_ref().is_some_and(Processor::is_amd);
        Ok(Found { functions: found.into_values().collect(), elsewhere, tags_ops })
    }

    /// The time at each address.
    fn times(&self) -> Vec<TimeAt> {
        let functions = self.functions.iter().flat_map(Sampled::times_at);
        let elsewhere = self.elsewhere.iter().map(|(address, weight)| {
            let events = weight.events as f64;
            TimeAt { address: *address, sampled: events, exposed: events }
        });
        functions.chain(elsewhere).collect()
    }
}

impl Sampled<'_> {
    fn start(&self) -> Option<u64> {
        self.instructions.first().map(|it| it.step.address)
    }

    fn is_same(&self, as_in: &Sampled<'_>) -> bool {
        self.file.key() == as_in.file.key() && self.start() == as_in.start()
    }

    /// The cycles that each instruction exposes, with samples of executions.
    fn exposed(&self, executions: &Sampled<'_>) -> Vec<f64> {
        let events = |of: &Sampled<'_>, address| {
            of.by_address.get(&address).map_or(0.0, |weight| weight.events as f64)
        };
        let sampled = self.instructions.iter().map(|Instruction { step, .. }| exposed::Sampled {
            step: *step,
            cycles: events(self, step.address),
            executions: events(executions, step.address),
        });
        exposed::exposed(&sampled.collect::<Vec<_>>())
    }

    /// The share of the function's events at an instruction.
    pub(super) fn share(&self, index: usize) -> Share {
        let at = self.by_address.get(&self.instructions[index].step.address);
        match &self.times {
            None => at.copied().unwrap_or_default().share_of(&self.weight),
            Some(times) => {
                let share = times[index] / (self.weight.events.max(1) as f64);
                Share::of_draws(share.min(1.0), self.weight.draws())
            }
        }
    }

    fn times_at(&self) -> impl Iterator<Item = TimeAt> {
        self.instructions.iter().enumerate().map(|(index, instruction)| {
            let address = instruction.step.address;
            let sampled = self.by_address.get(&address).map_or(0.0, |of| of.events as f64);
            let exposed = self.times.as_ref().map_or(sampled, |times| times[index]);
            TimeAt { address, sampled, exposed }
        })
    }
}

/// The time at each address by the samples of an event.
///
/// # Errors
/// A file cannot be read, or no sample is in a function that is known.
pub(crate) fn times(of: &Recording, symbolizer: &Symbolizer, event: &str) -> Result<Vec<TimeAt>> {
    Ok(Found::of(of, symbolizer, event)?.times())
}
