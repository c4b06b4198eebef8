//! The Chrome trace event format, which Perfetto and chrome://tracing open.
//!
//! Source: "Trace Event Format", linked from perfetto.dev/docs/getting-started/other-formats. Times
//! are microseconds from the trace's earliest time stamp. A program is a process. Its threads
//! contain its system calls and signals. Each of its sessions has a counter track for each event,
//! and three more threads: for slices, samples and thresholds. The CPUs are threads of a further
//! process, with the program that ran on each.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tally_abi::{
    signal,
    trace::{LostRecord, SampleRecord, SliceRecord, SwitchRecord, SyscallRecord},
};

use crate::{
    Result, output,
    recording::{Recording, Symbolizer},
    trace::{print, run::Run},
};

/// The process whose threads are the CPUs.
const CPUS: u32 = 1_000_000;
/// First thread numbers for sessions: the session's number is added. A program's own threads have
/// smaller numbers.
const SLICES: u32 = 1_000_000;
const SAMPLES: u32 = 2_000_000;
const THRESHOLDS: u32 = 3_000_000;

/// An event of the format.
#[derive(Clone, Debug, Serialize)]
struct Event {
    name: String,
    /// Kind of the event: `X`, a span; `C`, a counter; `i`, an instant; `M`, a name.
    ph: &'static str,
    cat: &'static str,
    pid: u32,
    tid: u32,
    /// Start in microseconds.
    ts: f64,
    /// Duration in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    /// The scope of an instant: `t`, its thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    args: Map<String, Value>,
}

/// The whole file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    display_time_unit: &'static str,
    other_data: &'a Run,
    trace_events: Vec<Event>,
}

/// Makes the events of a recording.
struct Writer<'a> {
    of: &'a Recording,
    symbolizer: &'a Symbolizer,
    events: Vec<Event>,
    /// The threads that have events.
    threads: BTreeSet<(u32, u32)>,
}

/// The file's bytes.
///
/// # Errors
/// Never: the types have a form in JSON.
pub(super) fn write(of: &Recording, symbolizer: &Symbolizer) -> Result<Vec<u8>> {
    let mut writer = Writer { of, symbolizer, events: Vec::new(), threads: BTreeSet::new() };
    let records = &of.records;
    records.slices.iter().for_each(|slice| writer.slice(slice));
    records.samples.iter().for_each(|sample| writer.sample(sample));
    records.syscalls.iter().for_each(|call| writer.syscall(call));
    records.losses.iter().for_each(|loss| writer.loss(loss));
    writer.thresholds();
    writer.signals();
    writer.switches();
    writer.events.sort_by(|a, b| a.ts.total_cmp(&b.ts));
    let mut events = writer.names();
    events.append(&mut writer.events);
    output::json_line(&File { display_time_unit: "ns", other_data: &of.run, trace_events: events })
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// A thread, by its process and its number.
type Thread = (u32, u32);

impl Writer<'_> {
    /// A time stamp in microseconds.
    fn us(&self, tsc: u64) -> f64 {
        self.of.ns(tsc) as f64 / 1000.0
    }

    /// Adds an event of kind `ph` at one point in time.
    fn add(&mut self, ph: &'static str, cat: &'static str, name: String, at: Thread, tsc: u64) {
        let (pid, tid) = at;
        let (ts, s) = (self.us(tsc), (ph == "i").then_some("t"));
        // A counter belongs to its process.
        if ph != "C" {
            self.threads.insert(at);
        }
        self.events.push(Event { name, ph, cat, pid, tid, ts, dur: None, s, args: Map::new() });
    }

    /// Makes the last event a span up to this time stamp.
    fn until(&mut self, end_tsc: u64) {
        let end = self.us(end_tsc);
        if let Some(event) = self.events.last_mut() {
            let nanoseconds = ((end - event.ts) * 1000.0).round();
            (event.ph, event.s, event.dur) = ("X", None, Some(nanoseconds / 1000.0));
        }
    }

    /// Sets the arguments of the last event.
    fn with(&mut self, args: Value) {
        if let Some(event) = self.events.last_mut() {
            event.args = fields(args);
        }
    }

    /// Adds a span of the slice's session, and the rate of each event that was counted in the
    /// slice.
    fn slice(&mut self, slice: &SliceRecord) {
        let (program, _) = self.of.program_of(slice.session);
        let counted = self.of.counted(slice);
        let thread = (program, SLICES.saturating_add(slice.session));
        self.add("X", "slice", format!("group {}", slice.group), thread, slice.start_tsc);
        self.until(slice.end_tsc);
        let counts: Map<String, Value> =
            counted.iter().map(|event| (event.name.clone(), event.count.into())).collect();
        self.with(json!({
            "cpu": slice.cpu,
            "mode": slice.mode,
            "end": slice.end.word(),
            "sequence": slice.sequence,
            "slice_multiplier": slice.slice_multiplier,
            "address_space": slice.address_space,
            "cycles": slice.cycles,
            "instructions": slice.instructions,
            "counts": counts,
        }));
        for event in &counted {
            let Some(rate) = self.of.per_second(slice, event.count) else { continue };
            let name = format!("{} (session {})", event.name, slice.session);
            self.add("C", "rate", name, (program, 0), slice.start_tsc);
            self.with(json!({ "per second": rate }));
        }
    }

    fn sample(&mut self, sample: &SampleRecord) {
        let (program, _) = self.of.program_of(sample.session);
        let event = self.of.event_name(sample.session, sample.event);
        let name = self.symbolizer.function(self.of, sample);
        self.add(
            "i",
            "sample",
            name,
            (program, SAMPLES.saturating_add(sample.session)),
            sample.tsc,
        );
        self.with(json!({
            "event": event,
            "address": format!("{:#x}", sample.address),
            "user": sample.user,
            "thread": sample.thread,
            "thread name": self.of.thread_name(program, sample.thread),
            "cpu": sample.cpu,
            "count": sample.count,
            "cycles": sample.cycles,
            "instructions": sample.instructions,
        }));
    }

    fn syscall(&mut self, call: &SyscallRecord) {
        self.add(
            "X",
            "syscall",
            print::call(call.call),
            (call.program, call.thread),
            call.start_tsc,
        );
        self.until(call.tsc);
        let result = call.returned.then(|| print::result(call.result));
        let arguments = [call.rdi, call.rsi, call.rdx, call.r10, call.r8, call.r9];
        let arguments = arguments.map(|word| format!("{word:#x}"));
        self.with(json!({ "cpu": call.cpu, "arguments": arguments, "result": result }));
    }

    fn thresholds(&mut self) {
        for fired in &self.of.records.thresholds {
            let (program, _) = self.of.program_of(fired.session);
            let name = self.of.event_name(fired.session, fired.event);
            let thread = (program, THRESHOLDS.saturating_add(fired.session));
            self.add("i", "threshold", name, thread, fired.tsc);
            let (cpu, threshold, count) = (fired.cpu, fired.threshold, fired.count);
            self.with(json!({ "cpu": cpu, "threshold": threshold, "count": count }));
        }
    }

    fn signals(&mut self) {
        for of in &self.of.records.signals {
            let name = signal::name(of.signal.into()).map(str::to_owned);
            let name = name.unwrap_or_else(|| format!("signal {}", of.signal));
            self.add("i", "signal", name, (of.program, of.thread), of.tsc);
            let (action, address) = (of.action.word(), format!("{:#x}", of.address));
            self.with(json!({ "cpu": of.cpu, "action": action, "address": address }));
        }
    }

    /// Adds a span for the time that a thread was on a CPU: from its switch to the CPU's next one.
    /// The end of the last span of each CPU is unknown.
    fn switches(&mut self) {
        let mut of_cpu: BTreeMap<u16, Vec<&SwitchRecord>> = BTreeMap::new();
        for switch in &self.of.records.switches {
            of_cpu.entry(switch.cpu).or_default().push(switch);
        }
        for (cpu, switches) in of_cpu {
            for (at, switch) in switches.iter().enumerate().filter(|(_, s)| s.program != 0) {
                let (program, thread) = (switch.program, switch.thread);
                let title = self.of.thread_title(program, thread);
                let name = format!("{} {title}", self.of.program_name(program));
                self.add("i", "switch", name, (CPUS, cpu.into()), switch.tsc);
                if let Some(next) = switches.get(at + 1) {
                    self.until(next.tsc);
                }
                self.with(json!({ "program": program, "thread": thread }));
            }
        }
    }

    fn loss(&mut self, loss: &LostRecord) {
        let name = format!("{} records lost", loss.records);
        self.add("i", "lost", name, (CPUS, loss.cpu.into()), loss.tsc);
    }

    /// The names of processes and threads.
    fn names(&self) -> Vec<Event> {
        let name = |what: &str, (pid, tid): Thread, name: String| Event {
            name: what.to_owned(),
            ph: "M",
            cat: "__metadata",
            pid,
            tid,
            ts: 0.0,
            dur: None,
            s: None,
            args: fields(json!({ "name": name })),
        };
        let processes: BTreeSet<u32> = self.threads.iter().map(|(pid, _)| *pid).collect();
        let processes = processes.into_iter().map(|pid| {
            let text = if pid == CPUS { "CPUs".into() } else { self.of.program_name(pid) };
            name("process_name", (pid, 0), text)
        });
        let threads = self.threads.iter().map(|(pid, tid)| {
            let text = match *tid {
                tid if *pid == CPUS => format!("CPU {tid}"),
                tid if tid >= THRESHOLDS => format!("session {} thresholds", tid - THRESHOLDS),
                tid if tid >= SAMPLES => format!("session {} samples", tid - SAMPLES),
                tid if tid >= SLICES => format!("session {} slices", tid - SLICES),
                tid => self.of.thread_title(*pid, tid),
            };
            name("thread_name", (*pid, *tid), text)
        });
        processes.chain(threads).collect()
    }
}
