//! The Firefox Profiler's processed profile format.
//!
//! A program is a process. Each of its sessions has a thread with a track for each event, whose
//! bars are the rates in the slices that counted it. Each event that was sampled has a thread for
//! each thread of the program, with its samples. Each thread of the program that made system calls
//! has these as markers.

use std::{collections::BTreeMap, time::Duration};

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, GraphColor, MarkerFieldFlags,
    MarkerFieldFormat, MarkerGraphType, MarkerLocations, MarkerTiming, ProcessHandle, Profile,
    ReferenceTimestamp, SamplingInterval, StaticSchemaMarker, StaticSchemaMarkerField,
    StaticSchemaMarkerGraph, StringHandle, ThreadHandle, Timestamp,
};
use tally_abi::ExitStatus;

use crate::{
    Failure, Result, output,
    recording::{Recording, Symbolizer},
    trace::print,
};

/// An event in a slice that counted it.
struct RateMarker {
    event: StringHandle,
    /// Rate in events per second, number of events, group.
    numbers: [f64; 3],
}

impl StaticSchemaMarker for RateMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Rate";
    const DESCRIPTION: Option<&'static str> = Some("An event in a slice that counted it.");
    const TOOLTIP_LABEL: Option<&'static str> = Some("{marker.name}: {marker.data.rate} a second");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name}: {marker.data.count}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        number("rate", "Events a second", MarkerFieldFormat::Decimal),
        number("count", "Events", MarkerFieldFormat::Integer),
        number("group", "Group", MarkerFieldFormat::Integer),
    ];
    const GRAPHS: &'static [StaticSchemaMarkerGraph] = &[StaticSchemaMarkerGraph {
        key: "rate",
        graph_type: MarkerGraphType::Bar,
        color: Some(GraphColor::Blue),
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.event
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.event
    }

    fn number_field_value(&self, field: u32) -> f64 {
        self.numbers[field as usize]
    }
}

const fn number(
    key: &'static str,
    label: &'static str,
    format: MarkerFieldFormat,
) -> StaticSchemaMarkerField {
    StaticSchemaMarkerField { key, label, format, flags: MarkerFieldFlags::empty() }
}

/// A system call.
struct CallMarker {
    name: StringHandle,
    /// Arguments and result.
    texts: [StringHandle; 2],
}

impl StaticSchemaMarker for CallMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "SystemCall";
    const DESCRIPTION: Option<&'static str> = Some("A system call.");
    const LOCATIONS: MarkerLocations = MarkerLocations::MARKER_CHART
        .union(MarkerLocations::MARKER_TABLE)
        .union(MarkerLocations::TIMELINE_OVERVIEW);
    const CHART_LABEL: Option<&'static str> = Some("{marker.name}");
    const TABLE_LABEL: Option<&'static str> =
        Some("{marker.name}({marker.data.arguments}) = {marker.data.result}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        number("arguments", "Arguments", MarkerFieldFormat::String),
        number("result", "Result", MarkerFieldFormat::String),
    ];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        self.texts[field as usize]
    }

    fn number_field_value(&self, _: u32) -> f64 {
        f64::NAN
    }
}

/// Makes the profile of a recording.
struct Writer<'a> {
    of: &'a Recording,
    profile: Profile,
    processes: BTreeMap<u32, ProcessHandle>,
    threads: BTreeMap<(u32, String), ThreadHandle>,
}

/// The largest mean number of profile entries per sample of the trace. At this mean a sample stands
/// for 2³⁷ events, which take a processor half a minute.
const ENTRIES_A_SAMPLE: u64 = 64;

/// The profile's bytes.
///
/// # Errors
/// Samples stand for more events than can have happened: the trace is damaged.
pub(super) fn write(of: &Recording, symbolizer: &Symbolizer) -> Result<Vec<u8>> {
    check_weights(of)?;
    let samples = of.records.samples.len().max(1) as u64;
    let interval = SamplingInterval::from_nanos((of.ns(of.end_tsc()) / samples).max(1));
    // The trace has no date; times count from its earliest time stamp.
    let start = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
    let mut profile = Profile::new("Tally", start, interval);
    profile.set_os_name(&of.run.command_line);
    profile.set_symbolicated(true);
    let (processes, threads) = (BTreeMap::new(), BTreeMap::new());
    let mut writer = Writer { of, profile, processes, threads };
    writer.samples(symbolizer);
    writer.slices();
    writer.syscalls();
    output::json_line(&writer.profile)
}

/// The number of profile entries of a sample that stands for this many events: the format's weights
/// have 31 bits.
fn entries(events: u64) -> u64 {
    events.div_ceil(i32::MAX as u64).max(1)
}

/// Checks that the profile is not much larger than the trace.
fn check_weights(of: &Recording) -> Result<()> {
    let samples = of.weighted_samples();
    let all: u64 = samples.iter().map(|(_, events)| entries(*events)).sum();
    if all <= ENTRIES_A_SAMPLE * samples.len() as u64 {
        return Ok(());
    }
    let most = samples.into_iter().max_by_key(|(_, events)| *events);
    let (tsc, events) = most.map_or((0, 0), |(sample, events)| (sample.tsc, events));
    let why = format!(
        "the trace is damaged: the sample at TSC {tsc} stands for {events} events; record it again"
    );
    Err(Failure::new(ExitStatus::BadTrace, why))
}

impl Writer<'_> {
    fn time(&self, tsc: u64) -> Timestamp {
        Timestamp::from_nanos_since_reference(self.of.ns(tsc))
    }

    /// The thread of this name in a program's process.
    fn thread(&mut self, program: u32, name: &str) -> ThreadHandle {
        let start = Timestamp::from_nanos_since_reference(0);
        if let Some(known) = self.threads.get(&(program, name.to_owned())) {
            return *known;
        }
        let (profile, text) = (&mut self.profile, self.of.program_name(program));
        let new = || profile.add_process(&text, program, start);
        let process = *self.processes.entry(program).or_insert_with(new);
        // Threads have names; their numbers only need to differ. A main thread would have the
        // program's name.
        let number = self.threads.len() as u32 + 1;
        let thread = self.profile.add_thread(process, number, start, false);
        self.profile.set_thread_name(thread, name);
        self.threads.insert((program, name.to_owned()), thread);
        thread
    }

    /// Adds the samples. A sample's weight is the number of events for which it stands.
    fn samples(&mut self, symbolizer: &Symbolizer) {
        for (sample, mut events) in self.of.weighted_samples() {
            let (program, _) = self.of.program_of(sample.session);
            let event = self.of.event_name(sample.session, sample.event);
            let title = self.of.thread_title(program, sample.thread);
            let name = format!("session {}, {title}: samples of {event}", sample.session);
            let (thread, time) = (self.thread(program, &name), self.time(sample.tsc));
            let functions = symbolizer.stack_functions(self.of, sample);
            let frames: Vec<FrameInfo> = functions
                .iter()
                .map(|function| FrameInfo {
                    frame: Frame::Label(self.profile.intern_string(function)),
                    category_pair: CategoryHandle::OTHER.into(),
                    flags: FrameFlags::empty(),
                })
                .collect();
            let stack = self.profile.intern_stack_frames(thread, frames.into_iter());
            for _ in 0..entries(events) {
                let weight = i32::try_from(events).unwrap_or(i32::MAX);
                self.profile.add_sample(thread, time, stack, CpuDelta::ZERO, weight);
                events -= weight as u64;
            }
        }
    }

    fn slices(&mut self) {
        for slice in &self.of.records.slices {
            let (program, _) = self.of.program_of(slice.session);
            let thread = self.thread(program, &format!("session {}: rates", slice.session));
            let (start, end) = (self.time(slice.start_tsc), self.time(slice.end_tsc));
            for counted in self.of.counted(slice) {
                let Some(rate) = self.of.per_second(slice, counted.count) else { continue };
                let event = self.profile.intern_string(&counted.name);
                let numbers = [rate, counted.count as f64, slice.group.into()];
                let (timing, marker) =
                    (MarkerTiming::Interval(start, end), RateMarker { event, numbers });
                self.profile.add_marker(thread, timing, marker);
            }
        }
    }

    fn syscalls(&mut self) {
        for call in &self.of.records.syscalls {
            let thread =
                self.thread(call.program, &self.of.thread_title(call.program, call.thread));
            let (start, end) = (self.time(call.start_tsc), self.time(call.tsc));
            let arguments = [call.rdi, call.rsi, call.rdx, call.r10, call.r8, call.r9];
            let arguments = arguments.map(|word| format!("{word:#x}")).join(", ");
            let result =
                if call.returned { print::result(call.result) } else { "did not return".into() };
            let name = self.profile.intern_string(&print::call(call.call));
            let texts = [arguments, result].map(|text| self.profile.intern_string(&text));
            let timing = MarkerTiming::Interval(start, end);
            self.profile.add_marker(thread, timing, CallMarker { name, texts });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::breakdown::tests::recording;

    /// The sum of events over all profile entries, for samples of which the last stands for
    /// `events` more.
    fn profile(events: u64) -> Result<u64> {
        let mut of = recording(8);
        let last = of.records.samples.last_mut().expect("there are samples");
        last.count += events;
        let bytes = write(&of, &Symbolizer::default())?;
        let profile: serde_json::Value = serde_json::from_slice(&bytes).expect("it is JSON");
        let threads = profile["threads"].as_array().expect("there are threads");
        let weights = threads.iter().filter_map(|of| of["samples"]["weight"].as_array());
        Ok(weights.flatten().filter_map(serde_json::Value::as_u64).sum())
    }

    #[test]
    fn weights_of_more_than_31_bits_are_divided_and_a_flipped_bit_is_refused() {
        let none = profile(0).unwrap();
        for events in [1, 1 << 33, 40 << 31] {
            assert_eq!(profile(events), Ok(none + events), "{events}");
        }
        for bit in 45..63 {
            let refused = profile(1 << bit).unwrap_err();
            assert_eq!(refused.status, ExitStatus::BadTrace, "{bit}");
            assert!(refused.message.starts_with("the trace is damaged: "), "{refused}");
            assert!(!refused.message.contains('\n'), "{refused}");
        }
    }
}
