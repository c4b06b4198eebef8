//! Cycles of each function or source line by cause, from samples of the events by which the
//! processor distinguishes causes of lost cycles (`record --breakdown`).
//!
//! An event's number in a function is its number in the session, times the function's share of the
//! event's samples. A sample stands for the events on the counter since the sample before it; for
//! an event that is counted part of the time, these are the events of its own slices. The parts of
//! a function are computed from its numbers like those of a session, so that they add up.
//!
//! Errors: an event that is counted part of the time was observed in slices that were drawn, so the
//! samples of one slice are correlated (cluster sampling, Cochran, *Sampling Techniques*, 1977,
//! sections 6.4 and 9A.2). Samples of an event that is counted all the time are treated as
//! independent draws. Events of one group are in the same slices, so the error of a part that is
//! their difference is computed from the differences of their deviations. Then the parts are
//! adjusted to those of the session, which are known better (`raked`). At last the intervals are
//! widened by the samples that can belong to another piece, as they are late.

mod raked;
mod seen;
mod table;
mod truth;

use std::{collections::BTreeMap, fs};

use serde::Serialize;
use tally_abi::{ExitStatus, trace::SampleRecord};
use tally_breakdown::{Count, CyclePart, STACKS, Stack, cycle_parts, largest_loss_of};

use self::seen::Seen;
pub(crate) use self::truth::CodeTruth;
use super::{
    chosen::{Named, named},
    nearby::{Moved, Nearby},
};
use crate::{
    Failure, Result,
    recording::{Recording, Symbolizer},
    trace::run::TracedSession,
};

/// The fewest samples of cycles that give meaningful shares.
const LEAST_SAMPLES: u64 = 30;
/// The fewest slices of each event from which a breakdown of the whole program is made.
const LEAST_SLICES: u64 = 4;

/// Name of the piece that consists of all code without symbols. A single address is too little code
/// for a piece: samples are late by some instructions.
const NO_SYMBOLS: &str = "code without symbols";

/// The fewest samples of instructions in a piece of code for which cycles per instruction are
/// given.
const LEAST_OF_RATIO: u64 = 4;

/// Cycles of a session's functions or lines, by cause.
#[derive(Clone, Debug, Serialize)]
pub struct ByCode {
    /// The program's number and name.
    program: u32,
    pub(crate) name: String,
    /// Core cycles and instructions of the session.
    pub cycles: f64,
    instructions: f64,
    /// Number of samples of the session.
    pub(crate) samples: u64,
    /// Delay of samples.
    pub(crate) skid: Option<Skid>,
    /// Causes that the processor does not distinguish.
    pub(crate) not_told_apart: &'static str,
    /// Whether the pieces of code are lines, not functions.
    #[serde(skip)]
    is_by_line: bool,
    /// The pieces of code, in decreasing order of cycles.
    code: Vec<Code>,
}

/// Delay of samples after their events, from samples of events that are counted all the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Skid {
    /// Median and 95th percentile of the instructions from the overflow to the interrupt.
    instructions: [u64; 2],
    /// Median and 95th percentile in cycles.
    cycles: [u64; 2],
}

/// A piece of code.
#[derive(Clone, Debug, Serialize)]
pub struct Code {
    /// The function, or the line.
    pub name: String,
    /// Number of its samples.
    samples: u64,
    /// Share of the session's cycles, 0 to 1.
    pub share: f64,
    /// Half the width of the share's 95 % interval.
    pub half_width_95: f64,
    /// The virtual PMU's share, if requested (`--vpmu blocks=FILE`).
    pub truth: Option<f64>,
    /// Cycles per instruction; `None` if there are too few samples of either.
    pub(crate) cpi: Option<f64>,
    /// The cause that most of its cycles are lost to; `None` if there is none.
    pub(crate) largest_loss: Option<String>,
    /// Whether the errors tell that cause apart from each other.
    pub(crate) is_told_apart: bool,
    /// The parts of its cycles, the largest first, as shares of the piece's cycles. They add up to
    /// the whole.
    pub parts: Vec<CyclePart>,
}

impl ByCode {
    /// Breaks down the session that sampled a processor's stack, by the piece of code that `key`
    /// returns for a sample.
    ///
    /// # Errors
    /// No session did, or it has too few samples.
    pub(crate) fn of(
        of: &Recording,
        key: &dyn Fn(&SampleRecord) -> String,
        truth: Option<&CodeTruth>,
    ) -> Result<ByCode> {
        let refused = |why: &str| Failure::new(ExitStatus::BadTrace, why);
        let (session, stack) = sampled(of).ok_or_else(|| {
            refused(
                "the trace has no samples of what cycles are lost to: record it with `cargo xtask \
                 record --breakdown PROGRAM`",
            )
        })?;
        let samples: Vec<&SampleRecord> =
            of.records.samples.iter().filter(|it| it.session == session.session).collect();
        let mut seen = Seen::of(of, session, stack, key);
        let taken = seen.of_event(stack.cycles);
        if taken < LEAST_SAMPLES {
            return Err(refused(&format!(
                "the program ran too short for a breakdown by function: {taken} samples of cycles, \
                 and {LEAST_SAMPLES} are needed; give it more work, or sample more often: record \
                 --breakdown -c 1000 --budget 50; `run --breakdown` needs {LEAST_SLICES} slices \
                 only"
            )));
        }
        seen.spread_like(stack.cycles);
        // By the last sample all libraries are mapped.
        let last = samples.iter().max_by_key(|sample| sample.tsc);
        let truth = truth.zip(last).map(|(truth, last)| truth.by_code(stack, last, key));
        let mut code: Vec<Code> =
            seen.keys().map(|name| Code::of(name, &seen, stack, truth.as_ref())).collect();
        adjust(&mut code, &seen.session(stack));
        code.sort_by(|a, b| b.share.total_cmp(&a.share));
        Ok(ByCode {
            program: session.program,
            name: session.name.clone(),
            cycles: seen.total(stack.cycles),
            instructions: seen.total(stack.instructions),
            samples: samples.len() as u64,
            skid: Skid::of(&samples, session, stack),
            not_told_apart: stack.missing(),
            is_by_line: false,
            code,
        })
    }

    /// Breaks down by function.
    ///
    /// # Errors
    /// As [`ByCode::of`].
    pub(crate) fn functions(
        of: &Recording,
        symbolizer: &Symbolizer,
        inlined: bool,
        truth: Option<&CodeTruth>,
    ) -> Result<ByCode> {
        let key = |sample: &SampleRecord| {
            let is_code = sample.user && sample.address != 0;
            if is_code && symbolizer.place(of, sample).is_none() {
                return NO_SYMBOLS.to_owned();
            }
            let mut functions = symbolizer.functions(of, sample);
            if inlined { functions.pop() } else { functions.drain(..).next() }.unwrap_or_default()
        };
        let mut by = ByCode::of(of, &key, truth)?;
        by.admit_skid(of, symbolizer, &key);
        Ok(by)
    }

    /// Breaks down by source line of a function; of the one with the most cycles, if none is named.
    ///
    /// # Errors
    /// As [`ByCode::of`], or there are no samples in such a function.
    pub(crate) fn lines(
        of: &Recording,
        symbolizer: &Symbolizer,
        function: Option<&str>,
    ) -> Result<ByCode> {
        let first = ByCode::functions(of, symbolizer, false, None)?;
        let names: Vec<&str> = first.code.iter().map(|code| &*code.name).collect();
        let all: Vec<_> = names.iter().map(|name| Named { name, aliases: &[] }).collect();
        let asked = function.map_or(Some(0), |text| named(&all, text).first().copied());
        let Some(asked) = asked.and_then(|place| names.get(place).copied()) else {
            let (part, names) = (function.unwrap_or_default(), names.join(", "));
            let why = format!("no sample is in a function '{part}'; there are some in {names}");
            return Err(Failure::new(ExitStatus::Usage, why));
        };
        if asked == NO_SYMBOLS {
            let why = "most cycles are in code without symbols: link the program without -s, and do \
                       not strip it";
            return Err(Failure::new(ExitStatus::BadTrace, why));
        }
        let key = |sample: &SampleRecord| {
            let functions = symbolizer.functions(of, sample);
            if functions.first().is_none_or(|function| function != asked) {
                return String::new();
            }
            let place = symbolizer.place(of, sample);
            let line = place.and_then(|place| Some((place.file?, place.line?)));
            line.map_or_else(
                || format!("{asked}, line unknown"),
                |(file, line)| source(&file, line),
            )
        };
        let mut by = ByCode::of(of, &key, None)?;
        by.admit_skid(of, symbolizer, &key);
        by.code.retain(|code| !code.name.is_empty());
        by.is_by_line = true;
        Ok(by)
    }
}

impl ByCode {
    /// Widens the intervals by the samples that can belong to another piece, which `key` names, as
    /// samples are late by some instructions.
    fn admit_skid(
        &mut self,
        of: &Recording,
        symbolizer: &Symbolizer,
        key: &dyn Fn(&SampleRecord) -> String,
    ) {
        let Some((session, stack)) = sampled(of) else { return };
        let is_of_cycles = |(sample, _): &(&SampleRecord, u64)| {
            let event = session.events.get(usize::from(sample.event));
            let is_cycles = event.is_some_and(|event| event.report.name == stack.cycles);
            is_cycles && sample.session == session.session && sample.address != 0
        };
        let samples: Vec<_> = of.weighted_samples().into_iter().filter(is_of_cycles).collect();
        let all: f64 = samples.iter().map(|(_, weight)| *weight as f64).sum();
        let late = self.skid.map(|skid| skid.instructions[1]);
        let moved = Nearby::of(of, symbolizer, key, late).moved(samples);
        let causes: BTreeMap<String, f64> = {
            let parts = self.code.iter().flat_map(|code| &code.parts);
            parts.fold(BTreeMap::new(), |mut sums, part| {
                *sums.entry(part.name.to_string()).or_default() += part.cycles / self.cycles;
                sums
            })
        };
        for code in &mut self.code {
            let Moved { leaving, coming } = moved.get(&code.name).copied().unwrap_or_default();
            let [leaving, coming] = [leaving, coming].map(|of| of.events as f64 / all.max(1.0));
            // More than the distance to none and to all says nothing.
            let most = code.share.max(1.0 - code.share);
            code.half_width_95 = (code.half_width_95 + leaving.max(coming)).min(most);
            let share = (leaving / code.share.max(f64::MIN_POSITIVE)).min(1.0);
            // A part is at most the whole piece.
            let highest = self.cycles * (code.share + code.half_width_95).min(1.0);
            for part in &mut code.parts {
                let cause = causes.get(&*part.name).copied().unwrap_or_default();
                let late = part.cycles * share + self.cycles * coming * cause;
                let most = part.cycles.max(highest - part.cycles);
                part.half_width_95 = (part.half_width_95 + late).min(most);
            }
        }
        find_losses(&mut self.code);
    }
}

/// Adjusts the parts of all pieces to those of the session, and finds the largest losses.
fn adjust(code: &mut [Code], session: &[CyclePart]) {
    let mut parts: Vec<_> = code.iter_mut().map(|of| &mut of.parts).collect();
    raked::rake(&mut parts, session);
    find_losses(code);
}

fn find_losses(code: &mut [Code]) {
    for of in code {
        let largest = largest_loss_of(&of.parts);
        of.is_told_apart = largest.is_some_and(|(_, is_told_apart)| is_told_apart);
        of.largest_loss = largest.map(|(part, _)| part.name.to_string());
    }
}

/// A line of the source: its place, and its text if the file exists.
fn source(file: &str, line: u32) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    let text = fs::read_to_string(file).unwrap_or_default();
    let text = (line as usize).checked_sub(1).and_then(|index| text.lines().nth(index));
    format!("{name}:{line} {}", text.unwrap_or_default().trim()).trim_end().to_owned()
}

/// The first session that sampled all events of a stack, and the stack.
fn sampled(of: &Recording) -> Option<(&TracedSession, &'static Stack)> {
    let of_session = |session: &'_ TracedSession| {
        let has = |name: &&str| session.events.iter().any(|event| event.report.name == **name);
        let is_sampled = of.records.samples.iter().any(|it| it.session == session.session);
        let stack = STACKS.into_iter().find(|stack| stack.of_cycles().iter().all(has));
        stack.filter(|_| is_sampled)
    };
    of.run.sessions.iter().find_map(|session| Some((session, of_session(session)?)))
}

impl Code {
    fn of(
        name: &str,
        seen: &Seen,
        stack: &'static Stack,
        truth: Option<&BTreeMap<String, BTreeMap<&'static str, f64>>>,
    ) -> Code {
        let own = truth.and_then(|truth| truth.get(name));
        let counts = |event: &str| {
            let truth = truth.map(|_| own.and_then(|own| own.get(event)).copied());
            let (estimate, half_width_95) = seen.number(event, name)?;
            Some(Count { estimate, half_width_95, truth: truth.map(Option::unwrap_or_default) })
        };
        let errors = |terms: &[(&'static str, f64)]| Some(seen.error(terms, name));
        let mut parts = cycle_parts(&counts, &errors, stack);
        parts.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
        let [cycles, instructions] =
            [stack.cycles, stack.instructions].map(|event| counts(event).unwrap_or_default());
        let all = seen.total(stack.cycles).max(1.0);
        let all_true: Option<f64> =
            truth.map(|truth| truth.values().filter_map(|own| own.get(stack.cycles)).sum());
        Code {
            name: name.to_owned(),
            samples: seen.samples(name),
            share: cycles.estimate / all,
            half_width_95: cycles.half_width_95 / all,
            truth: cycles.truth.zip(all_true).map(|(own, all)| own / all.max(1.0)),
            cpi: (seen.samples_of(stack.instructions, name) >= LEAST_OF_RATIO)
                .then(|| cycles.estimate / instructions.estimate.max(1.0)),
            largest_loss: None,
            is_told_apart: false,
            parts,
        }
    }
}

impl Skid {
    fn of(samples: &[&SampleRecord], session: &TracedSession, stack: &Stack) -> Option<Skid> {
        let late = |event: &str| {
            let is = |sample: &&&SampleRecord| {
                let of = session.events.get(usize::from(sample.event));
                sample.address != 0 && of.is_some_and(|of| of.report.name == event)
            };
            let mut late: Vec<u64> =
                samples.iter().filter(is).map(|sample| sample.late.into()).collect();
            late.sort_unstable();
            let at = |share: f64| late.get((share * (late.len() as f64 - 1.0)) as usize).copied();
            Some([at(0.5)?, at(0.95)?])
        };
        Some(Skid { instructions: late(stack.instructions)?, cycles: late(stack.cycles)? })
    }
}

#[cfg(test)]
pub(crate) mod tests;
