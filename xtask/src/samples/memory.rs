//! `cargo xtask mem`: the memory accesses of precise samples, by the level that served them, by the
//! line of code, and by the line of memory, with their latencies.

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use clap::Args;
use serde::Serialize;
use tally_abi::{
    ExitStatus,
    access::{Access, Source},
    text::Grouped,
    trace::SampleRecord,
};

use super::{SampleArgs, Share, Weight, samples_of, share::Z, short_function};
use crate::{
    Failure, Result, output,
    recording::{Recording, Symbolizer},
};

/// Rows of a table, those with the most events first.
const ROWS: usize = 10;
/// Bytes of a cache line.
pub(super) const LINE_BYTES: u64 = 64;
/// Columns of a row before its name.
const HEAD_COLUMNS: usize = 50;

/// Options of `cargo xtask mem`.
#[derive(Args, Clone, Debug)]
pub struct MemArgs {
    #[command(flatten)]
    of: SampleArgs,
}

/// A sample with a memory access.
pub(super) struct Accessed<'a> {
    pub(super) sample: &'a SampleRecord,
    /// Events for which the sample stands.
    pub(super) events: u64,
    pub(super) event: String,
    pub(super) access: Access,
}

/// The samples of a trace that have a memory access, of one event if it is given.
///
/// # Errors
/// No sample has one.
pub(super) fn accessed<'a>(of: &'a Recording, event: Option<&str>) -> Result<Vec<Accessed<'a>>> {
    let with_access = |(sample, events): (&'a SampleRecord, u64)| {
        let event = of.event_name(sample.session, sample.event);
        let access = of.accesses.of_sample(sample, &event)?;
        Some(Accessed { sample, events, event, access })
    };
    let all = of.weighted_samples().into_iter().filter_map(with_access);
    let all: Vec<_> = all.filter(|it| event.is_none_or(|event| it.event == event)).collect();
    if all.is_empty() {
        let why = "no sample has a memory access: record loads and stores with `cargo xtask record -d \
                   PROGRAM`";
        return Err(Failure::new(ExitStatus::BadTrace, why));
    }
    Ok(all)
}

/// The loads, or the stores, of one event.
#[derive(Clone, Debug, Serialize)]
struct OfEvent {
    event: String,
    samples: u64,
    /// Events that the samples stand for.
    events: u64,
    is_store: bool,
    by_source: Vec<Row>,
    by_code: Vec<Row>,
    by_cache_line: Vec<Row>,
}

/// The accesses that have something in common.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: String,
    samples: u64,
    #[serde(flatten)]
    share: Share,
    /// Mean cycles until a load had its data, where they were measured, and the half width of its
    /// 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_cycles: Option<[f64; 2]>,
    /// Share of the samples whose translation missed both levels of the TLB.
    missed_tlb: f64,
}

/// Sums of accesses.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: Weight,
    missed_tlb: u64,
    latencies: u64,
    cycles: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, access: &Access, events: u64) {
        self.weight.add(events);
        self.missed_tlb += u64::from(access.missed_tlb);
        if let Some(cycles) = access.latency_cycles {
            self.latencies += 1;
            self.cycles += cycles as f64;
            self.squares += (cycles as f64).powi(2);
        }
    }

    /// Mean and half width, by the normal distribution.
    fn latency(&self) -> Option<[f64; 2]> {
        let n = self.latencies as f64;
        if self.latencies == 0 {
            return None;
        }
        let mean = self.cycles / n;
        let variance = (self.squares / n - mean * mean).max(0.0) / (n - 1.0).max(1.0);
        Some([mean, Z * variance.sqrt()])
    }
}

/// Prints the tables.
///
/// # Errors
/// A file cannot be read, no sample has an access, or standard output cannot be written.
pub fn main(args: &MemArgs) -> Result<u8> {
    let (recording, symbolizer) = args.of.read()?;
    let events = by_event(&recording, &symbolizer, args.of.event.as_deref())?;
    let text: Vec<String> = events.iter().map(OfEvent::to_string).collect();
    output::print(args.of.json, &events, &text.join("\n"))?;
    Ok(0)
}

/// The accesses of each event, its loads apart from its stores.
fn by_event(of: &Recording, symbolizer: &Symbolizer, only: Option<&str>) -> Result<Vec<OfEvent>> {
    let mut events: BTreeMap<(String, bool), Vec<Accessed<'_>>> = BTreeMap::new();
    for one in accessed(of, only)? {
        events.entry((one.event.clone(), one.access.is_store)).or_default().push(one);
    }
    let listed = |((event, is_store), all): ((String, bool), Vec<Accessed<'_>>)| OfEvent {
        event,
        samples: all.len() as u64,
        events: all.iter().map(|one| one.events).sum(),
        is_store,
        by_source: rows(&all, |one| one.access.source.name().to_owned()),
        by_code: rows(&all, |one| code(of, symbolizer, one.sample)),
        by_cache_line: rows(&all, |one| {
            format!("{:#x}", one.access.address / LINE_BYTES * LINE_BYTES)
        }),
    };
    Ok(events.into_iter().map(listed).collect())
}

/// The function and the line of a sample.
pub(super) fn code(of: &Recording, symbolizer: &Symbolizer, sample: &SampleRecord) -> String {
    let function = symbolizer.function(of, sample);
    let place = symbolizer.place(of, sample);
    let file = place.as_ref().and_then(|place| place.file.as_deref());
    let line = place.as_ref().and_then(|place| place.line);
    match (file, line) {
        (Some(file), Some(line)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{file}:{line} {function}")
        }
        _ => format!("{:#x} {function}", sample.address),
    }
}

/// The rows of what `name` puts together, in decreasing order of events.
fn rows(all: &[Accessed<'_>], name: impl Fn(&Accessed<'_>) -> String) -> Vec<Row> {
    let mut named: BTreeMap<String, Sums> = BTreeMap::new();
    let mut whole = Weight::default();
    for one in all {
        whole.add(one.events);
        named.entry(name(one)).or_default().add(&one.access, one.events);
    }
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_by_key(|(_, sums)| Reverse(sums.weight.events));
    let row = |(name, sums): (String, Sums)| Row {
        name,
        samples: sums.weight.samples,
        share: sums.weight.share_of(&whole),
        latency_cycles: sums.latency(),
        missed_tlb: sums.missed_tlb as f64 / sums.weight.samples.max(1) as f64,
    };
    named.into_iter().map(row).collect()
}

impl fmt::Display for OfEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (samples, events) = (samples_of(self.samples), Grouped(self.events));
        let what = if self.is_store { "stores" } else { "loads" };
        writeln!(f, "# {samples} of {}: {what}, for {events} events", self.event)?;
        let has_latency = self.by_source.iter().any(|row| row.latency_cycles.is_some());
        let heads = [
            ("Served by", &self.by_source),
            ("Code", &self.by_code),
            ("Cache line", &self.by_cache_line),
        ];
        for (head, rows) in heads {
            // Intel's records have the source of loads with a latency alone.
            if head == "Served by" && rows.iter().all(|row| row.name == Source::Unknown.name()) {
                continue;
            }
            let latency = if has_latency { "Latency ± 95 %" } else { "" };
            writeln!(f, "Overhead   95 % interval   Walks {latency:>15}  {head}")?;
            rows.iter().take(ROWS).try_for_each(|row| writeln!(f, "{}", row.text()))?;
            if let Some(left) = rows.len().checked_sub(ROWS).filter(|left| *left > 0) {
                writeln!(f, "{:HEAD_COLUMNS$}{} others", "", Grouped(left as u64))?;
            }
        }
        Ok(())
    }
}

impl Row {
    fn text(&self) -> String {
        let latency = self
            .latency_cycles
            .map_or_else(String::new, |[mean, half]| format!("{mean:.0} ± {half:.0}"));
        let head = format!(
            "{}  {}  {:>5.1}% {latency:>15}  ",
            self.share.percent(),
            self.share.interval(),
            100.0 * self.missed_tlb,
        );
        let left = output::columns().saturating_sub(head.chars().count());
        format!("{head}{}", short_function(&self.name, left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(address: u64, source: Source, latency_cycles: Option<u64>) -> Access {
        let (is_store, missed_tlb, is_locked) = (false, source == Source::Memory, false);
        Access { address, is_store, source, missed_tlb, is_locked, latency_cycles }
    }

    #[test]
    fn sums_have_the_mean_latency_and_its_interval() {
        let mut sums = Sums::default();
        assert_eq!(sums.latency(), None);
        for cycles in [10, 20, 30, 40] {
            sums.add(&load(0, Source::L2, Some(cycles)), 100);
        }
        let [mean, half] = sums.latency().unwrap();
        // The standard deviation of four values is 12.91, their mean's is 6.45.
        assert!((mean - 25.0).abs() < 1e-9 && (half - 1.96 * 6.455).abs() < 0.01, "{mean} {half}");
    }

    #[test]
    fn a_table_is_80_columns_wide_and_has_the_largest_first() {
        let of = crate::recording::tests::sampled("mem-loads:P", [0; 16]);
        let sample = of.records.samples[0];
        let one = |(address, source, cycles)| Accessed {
            sample: &sample,
            events: 1_000,
            event: "cpu/mem-loads,ldlat=30/P".into(),
            access: load(address, source, Some(cycles)),
        };
        let all: Vec<_> = [
            (0x1000, Source::Memory, 300),
            (0x1008, Source::Memory, 310),
            (0x2040, Source::L3, 70),
        ]
        .map(one)
        .into();
        let of = OfEvent {
            event: all[0].event.clone(),
            samples: 3,
            events: 3_000,
            is_store: false,
            by_source: rows(&all, |one| one.access.source.name().to_owned()),
            by_code: rows(&all, |_| "a_long_function_name_".repeat(9)),
            by_cache_line: rows(&all, |one| format!("{:#x}", one.access.address / 64 * 64)),
        };
        assert_eq!(of.by_source[0].name, "memory");
        assert_eq!((of.by_cache_line[0].samples, of.by_cache_line[0].missed_tlb), (2, 1.0));
        let text = of.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
