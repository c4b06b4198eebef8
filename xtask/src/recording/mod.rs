//! A trace in the form that exports and the commands on samples need: the run, all records, names,
//! and times in nanoseconds.

mod accesses;
mod branches;
mod host_files;
mod loaded;
mod perf_map;
mod stacks;
mod symbolizer;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use tally_abi::{
    ExitStatus,
    trace::{SampleRecord, SlicePlace, SliceRecord},
};

pub(crate) use self::{
    accesses::Accesses,
    branches::SampledBranches,
    loaded::{CodeSegment, FileKey, KERNEL_MARK, LoadedFile},
    stacks::Stacks,
    symbolizer::{Identity, Level, Symbolizer},
};
use crate::{
    Failure, Result, output, project,
    trace::run::{Run, TracedEvent, TracedSession},
    trace_file::{Records, Trace},
    visible::visible,
};

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// A complete trace.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    /// Description of the run from the trace's head.
    pub(crate) run: Run,
    /// The records; those of one CPU are in the order of time.
    pub(crate) records: Records,
    /// The stacks of samples.
    pub(crate) stacks: Stacks,
    /// The memory accesses of samples.
    pub(crate) accesses: Accesses,
    /// The branches of samples.
    pub(crate) branches: SampledBranches,
    /// The earliest time stamp, from which times count.
    pub(crate) start_tsc: u64,
    /// Frequency of the TSC, in Hz.
    pub(crate) tsc_hz: u64,
}

/// The number of lost records; `None` if a sum of the records' counts exceeds 64 bits, which no
/// kernel writes.
fn plausible(records: &Records) -> Option<u64> {
    let sum = |mut counts: &mut dyn Iterator<Item = u64>| {
        (&mut counts).try_fold(0_u64, |sum, count| sum.checked_add(count))
    };
    let slices = || records.slices.iter();
    sum(&mut slices().map(|slice| slice.cycles))?;
    sum(&mut slices().map(|slice| slice.instructions))?;
    sum(&mut slices().flat_map(|slice| slice.counts))?;
    sum(&mut weighted(records).into_iter().map(|(_, events)| events))?;
    sum(&mut records.losses.iter().map(|loss| loss.records))
}

/// The samples, each with the number of events for which it stands: those since the last sample of
/// the same event of the same session.
fn weighted(records: &Records) -> Vec<(&SampleRecord, u64)> {
    let mut last = BTreeMap::new();
    let mut samples: Vec<&SampleRecord> = records.samples.iter().collect();
    // A session moves between CPUs, whose records are in no common order.
    samples.sort_by_key(|sample| sample.tsc);
    let weighted = samples.into_iter().map(|sample| {
        let before = last.insert((sample.session, sample.event), sample.count);
        (sample, sample.count.saturating_sub(before.unwrap_or_default()))
    });
    weighted.collect()
}

/// An event that was counted in a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Index in the session's list; `None` if the trace does not describe the session.
    pub(crate) index: Option<usize>,
    /// Name of the event.
    pub(crate) name: String,
    /// Count in the slice.
    pub(crate) count: u64,
}

impl Recording {
    /// Reads a trace file.
    ///
    /// # Errors
    /// The file cannot be read, is no trace, is incomplete, or does not describe its run.
    pub(crate) fn read(path: &Path) -> Result<Recording> {
        let bytes = project::read(path)?;
        Recording::of(&bytes).map_err(|Failure { status, message }| {
            Failure::new(status, format!("{}: {message}", path.display()))
        })
    }

    /// Reads a trace.
    ///
    /// # Errors
    /// As [`Recording::read`].
    pub(crate) fn of(bytes: &[u8]) -> Result<Recording> {
        let refused = |why: String| Failure::new(ExitStatus::BadTrace, why);
        let trace = Trace::open(bytes).map_err(|bad| refused(bad.to_string()))?;
        let run = Run::read(&trace)?;
        let Some(tsc_hz) = run.tsc_hz.filter(|hz| *hz > 0) else {
            return Err(refused("the trace does not say the TSC's frequency".into()));
        };
        let (records, bad) = Records::read(trace.clone());
        if let Some(bad) = bad {
            return Err(refused(bad.to_string()));
        }
        if records.unreadable > 0 {
            let unreadable = records.unreadable;
            return Err(refused(format!("{unreadable} records are of another version of Tally")));
        }
        let Some(lost) = plausible(&records) else {
            return Err(refused("the trace is damaged: its counts have more than 64 bits".into()));
        };
        if lost > 0 {
            output::note(format_args!("xtask: the trace lacks {lost} records, which were lost"));
        }
        let start_tsc = records.start_tsc().unwrap_or_default();
        Ok(Recording::made(run, records, (start_tsc, tsc_hz)))
    }

    /// Makes a trace of records, with its first time stamp and the TSC's frequency.
    pub(crate) fn made(run: Run, records: Records, (start_tsc, tsc_hz): (u64, u64)) -> Recording {
        let stacks = Stacks::of(&records);
        let accesses = Accesses::of(&records, run.processor.as_ref());
        let branches = SampledBranches::of(&records);
        Recording { run, records, stacks, accesses, branches, start_tsc, tsc_hz }
    }

    /// The latest time stamp of a slice or a sample.
    pub(crate) fn end_tsc(&self) -> u64 {
        let slices = self.records.slices.iter().map(|slice| slice.end_tsc);
        slices.chain(self.records.samples.iter().map(|sample| sample.tsc)).max().unwrap_or_default()
    }

    /// Nanoseconds from the trace's earliest time stamp.
    pub(crate) fn ns(&self, tsc: u64) -> u64 {
        let ticks = u128::from(tsc.saturating_sub(self.start_tsc));
        (ticks * u128::from(SECOND_NS) / u128::from(self.tsc_hz)) as u64
    }

    /// Events per second of a slice's time by the TSC; `None` if the slice took no time.
    pub(crate) fn per_second(&self, slice: &SliceRecord, count: u64) -> Option<f64> {
        let ticks = slice.end_tsc.saturating_sub(slice.start_tsc);
        (ticks > 0).then(|| count as f64 * self.tsc_hz as f64 / ticks as f64)
    }

    /// A session's description, if the trace has it.
    pub(crate) fn session(&self, session: u32) -> Option<&TracedSession> {
        self.run.sessions.iter().find(|of| of.session == session)
    }

    /// The number and name of the program that a session measured; 0 if that is unknown.
    pub(crate) fn program_of(&self, session: u32) -> (u32, &str) {
        self.session(session).map_or((0, "unknown"), |of| (of.program, &of.name))
    }

    /// A program's name, or its number if the name is unknown.
    pub(crate) fn program_name(&self, program: u32) -> String {
        let known = self.run.programs.iter().find(|of| of.program == program);
        known.map_or_else(|| format!("program {program}"), |of| of.name.clone())
    }

    /// The last name that a thread gave itself, if it did.
    pub(crate) fn thread_name(&self, program: u32, thread: u32) -> Option<String> {
        let named = self.records.thread_names.iter();
        let named = named.filter(|of| (of.program, of.thread) == (program, thread));
        let name = named.max_by_key(|of| of.tsc)?.name();
        let text = name.split(|byte| *byte == 0).next().filter(|text| !text.is_empty())?;
        Some(visible(&String::from_utf8_lossy(text)).into_owned())
    }

    /// A thread's name with its number, `worker (thread 3)`, or only the number.
    pub(crate) fn thread_title(&self, program: u32, thread: u32) -> String {
        match self.thread_name(program, thread) {
            Some(name) => format!("{name} (thread {thread})"),
            None => format!("thread {thread}"),
        }
    }

    /// The name of a session's event, or its number if the name is unknown.
    pub(crate) fn event_name(&self, session: u32, event: u16) -> String {
        let known = self.session(session).and_then(|of| of.events.get(usize::from(event)));
        known.map_or_else(|| format!("event {event}"), |of| of.report.name.clone())
    }

    /// Whether a session's event counts in ring 0.
    pub(crate) fn counts_ring_0(&self, session: u32, event: u16) -> bool {
        let known = self.session(session).and_then(|of| of.events.get(usize::from(event)));
        known.is_some_and(|of| of.mode.kernel())
    }

    /// The events that a slice counted, in the order of the session's list.
    pub(crate) fn counted(&self, slice: &SliceRecord) -> Vec<Counted> {
        let listed = slice.counts.get(..usize::from(slice.events)).unwrap_or_default();
        let Some(session) = self.session(slice.session) else {
            let named = |name: String, count| Counted { index: None, name, count };
            let group = slice.group;
            let by_place = (0..).zip(listed);
            let listed =
                by_place.map(|(n, count)| named(format!("group {group} count {n}"), *count));
            let cycles = named("cycles".into(), slice.cycles);
            return [cycles, named("instructions".into(), slice.instructions)]
                .into_iter()
                .chain(listed)
                .collect();
        };
        let counted = |(index, event): (usize, &TracedEvent)| {
            let count = match event.place {
                SlicePlace::Cycles => slice.cycles,
                SlicePlace::Instructions => slice.instructions,
                SlicePlace::List { group, index } if group == slice.group => {
                    *listed.get(usize::from(index))?
                }
                SlicePlace::List { .. } | SlicePlace::None => return None,
            };
            Some(Counted { index: Some(index), name: event.report.name.clone(), count })
        };
        session.events.iter().enumerate().filter_map(counted).collect()
    }

    /// Checks that there are samples.
    ///
    /// # Errors
    /// There are no samples: the message says how to take some.
    pub(crate) fn has_samples(&self) -> Result<()> {
        if !self.records.samples.is_empty() {
            return Ok(());
        }
        let why = "the trace has no samples: take some with `cargo xtask record -e EVENT PROGRAM`";
        Err(Failure::new(ExitStatus::BadTrace, why))
    }

    /// Returns whether samples have callers.
    pub(crate) fn has_callers(&self) -> bool {
        !self.stacks.is_empty() || self.branches.has_calls()
    }

    /// The events that were sampled.
    pub(crate) fn sampled_events(&self) -> BTreeSet<String> {
        let samples = self.records.samples.iter();
        samples.map(|sample| self.event_name(sample.session, sample.event)).collect()
    }

    /// The chosen event, or the only one that was sampled.
    ///
    /// # Errors
    /// There are no samples, or none of the event, or several events have some and none is chosen.
    pub(crate) fn sampled_event(&self, chosen: Option<&str>) -> Result<String> {
        self.has_samples()?;
        let mut sampled = self.sampled_events();
        let names = sampled.iter().cloned().collect::<Vec<_>>().join(", ");
        let usage = |why: String| Err(Failure::new(ExitStatus::Usage, why));
        match (chosen, sampled.len()) {
            (Some(event), _) => match sampled.take(event) {
                Some(event) => Ok(event),
                None => usage(format!("--event: no samples of {event}, but of {names}")),
            },
            (None, 1) => Ok(names),
            (None, _) => usage(format!("samples of several events: add --event, one of {names}")),
        }
    }

    /// The samples, each with the number of events for which it stands: those since the last sample
    /// of the same event of the same session.
    pub(crate) fn weighted_samples(&self) -> Vec<(&SampleRecord, u64)> {
        weighted(&self.records)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tally_abi::{Mode, trace::ThreadNameRecord};

    use super::*;
    use crate::report::{EventReport, Kind};

    fn sample() -> SampleRecord {
        loaded::tests::made_up_sample(0x1000, true)
    }

    /// A sample of this event in ring 3, of a thread of this name.
    pub(crate) fn sampled(event: &str, thread: [u8; 16]) -> Recording {
        sampled_in(Mode::User, event, thread)
    }

    /// A sample in ring 3 of this event, which counts at this privilege.
    pub(crate) fn sampled_in(mode: Mode, event: &str, thread: [u8; 16]) -> Recording {
        let report = EventReport {
            name: event.into(),
            kind: Kind::NotMeasured,
            estimate: None,
            stderr: None,
            half_width_95: None,
            low_95: None,
            high_95: None,
            coverage: None,
            truth: None,
            lacks_truth: false,
            unit: None,
            reason: None,
            likely_added: None,
            unobserved: None,
            refined: None,
        };
        let event = TracedEvent { native: None, mode, place: SlicePlace::None, report };
        let (name, events) = ("prog".to_owned(), vec![event]);
        let session = TracedSession { session: 1, program: 2, name, address_space: 3, events };
        let thread_names = vec![ThreadNameRecord::new(2, 2, thread)];
        let records = Records { samples: vec![sample()], thread_names, ..Records::default() };
        let run = Run { sessions: vec![session], ..Run::default() };
        Recording::made(run, records, (0, 1))
    }

    #[test]
    fn a_trace_without_samples_names_the_command_that_takes_some() {
        let mut of = sampled("cycles", [0; 16]);
        assert_eq!(of.has_samples(), Ok(()));
        of.records.samples.clear();
        let why = of.has_samples().unwrap_err().message;
        assert!(why.ends_with("take some with `cargo xtask record -e EVENT PROGRAM`"), "{why}");
    }

    #[test]
    fn a_thread_has_the_last_name_that_it_gave_itself() {
        let named = |tsc, thread, name: &[u8; 8]| {
            let mut whole = [0; 16];
            whole[..8].copy_from_slice(name);
            ThreadNameRecord { tsc, ..ThreadNameRecord::new(2, thread, whole) }
        };
        let thread_names = vec![
            named(9, 3, b"reader\0\0"),
            named(5, 3, b"thr\0\0\0\0\0"),
            named(7, 4, b"\x1bnamed\0\0"),
        ];
        let records = Records { thread_names, ..Records::default() };
        let of = Recording::made(Run::default(), records, (0, 1));
        assert_eq!(of.thread_name(2, 3).as_deref(), Some("reader"));
        assert!(of.thread_name(2, 4).is_some_and(|name| !name.contains('\x1b')));
        assert_eq!(of.thread_title(2, 3), "reader (thread 3)");
        assert_eq!((of.thread_name(1, 3), of.thread_title(2, 5)), (None, "thread 5".into()));
    }
}
