//! `cargo xtask c2c`: lines of memory that one thread writes and another accesses, as perf's
//! command of this name. On processors with several cores such a line travels between their caches.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use clap::Args;
use serde::Serialize;
use tally_abi::text::Grouped;

use super::{
    SampleArgs, Share, Weight,
    memory::{Accessed, LINE_BYTES, accessed, code},
    samples_of, short_function,
};
use crate::{Result, output, recording::Recording};

/// Lines of memory that are printed, those with the most samples first.
const LINES: usize = 10;
/// Places of a line that are printed.
const PLACES: usize = 8;

/// Heads of the columns of a line of memory. Sharing is false where no two threads access the same
/// bytes.
const HEAD: &str = "   Share   95 % interval  Cache line       Threads   Loads  Stores  Sharing";

/// Options of `cargo xtask c2c`.
#[derive(Args, Clone, Debug)]
pub struct C2cArgs {
    #[command(flatten)]
    of: SampleArgs,
}

/// The shared lines of a trace.
#[derive(Clone, Debug, Serialize)]
struct SharedLines {
    /// Samples with a memory access.
    samples: u64,
    lines: Vec<SharedLine>,
}

/// A line that one thread writes and another accesses.
#[derive(Clone, Debug, Serialize)]
struct SharedLine {
    program: u32,
    address: u64,
    threads: usize,
    loads: u64,
    stores: u64,
    /// The share of the samples with an access.
    #[serde(flatten)]
    share: Share,
    /// Whether no two threads access the same bytes, as far as samples show.
    is_false: bool,
    places: Vec<Place>,
}

/// Accesses of one thread to one address of a line, by one place of the code.
#[derive(Clone, Debug, Serialize)]
struct Place {
    offset: u64,
    thread: u32,
    is_store: bool,
    samples: u64,
    code: String,
}

/// Prints the lines.
///
/// # Errors
/// A file cannot be read, no sample has an access, or standard output cannot be written.
pub fn main(args: &C2cArgs) -> Result<u8> {
    let (recording, symbolizer) = args.of.read()?;
    let all = accessed(&recording, args.of.event.as_deref())?;
    let name = |one: &Accessed<'_>| code(&recording, &symbolizer, one.sample);
    let shared = shared(&recording, &all, name);
    output::print(args.of.json, &shared, &shared.to_string())?;
    Ok(0)
}

/// The lines that are shared, in decreasing order of samples. A program's threads share its memory.
fn shared(
    of: &Recording,
    all: &[Accessed<'_>],
    name: impl Fn(&Accessed<'_>) -> String,
) -> SharedLines {
    let mut lines: BTreeMap<(u32, u64), Vec<&Accessed<'_>>> = BTreeMap::new();
    let mut whole = Weight::default();
    for one in all {
        let (program, _) = of.program_of(one.sample.session);
        lines.entry((program, one.access.address / LINE_BYTES)).or_default().push(one);
        // Samples of loads and of stores have different periods.
        whole.add(1);
    }
    let line = |((program, line), its): ((u32, u64), Vec<&Accessed<'_>>)| {
        shared_line(program, line * LINE_BYTES, &its, &whole, &name)
    };
    let mut lines: Vec<_> = lines.into_iter().filter_map(line).collect();
    lines.sort_by_key(|line| Reverse(line.loads + line.stores));
    SharedLines { samples: whole.samples, lines }
}

/// A line, if a thread writes it and another accesses it.
fn shared_line(
    program: u32,
    address: u64,
    its: &[&Accessed<'_>],
    whole: &Weight,
    name: &dyn Fn(&Accessed<'_>) -> String,
) -> Option<SharedLine> {
    let threads: BTreeSet<u32> = its.iter().map(|one| one.sample.thread).collect();
    let stores = its.iter().filter(|one| one.access.is_store).count() as u64;
    if threads.len() < 2 || stores == 0 {
        return None;
    }
    let mut weight = Weight::default();
    let mut places: BTreeMap<(u64, u32, bool, String), u64> = BTreeMap::new();
    let mut at: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for one in its {
        weight.add(1);
        let offset = one.access.address - address;
        at.entry(offset).or_default().insert(one.sample.thread);
        let place = (offset, one.sample.thread, one.access.is_store, name(one));
        *places.entry(place).or_default() += 1;
    }
    let mut places: Vec<Place> = places
        .into_iter()
        .map(|((offset, thread, is_store, code), samples)| Place {
            offset,
            thread,
            is_store,
            samples,
            code,
        })
        .collect();
    places.sort_by_key(|place| Reverse(place.samples));
    Some(SharedLine {
        program,
        address,
        threads: threads.len(),
        loads: its.len() as u64 - stores,
        stores,
        share: weight.share_of(whole),
        is_false: at.values().all(|threads| threads.len() == 1),
        places,
    })
}

impl fmt::Display for SharedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {} with an access to memory", samples_of(self.samples))?;
        if self.lines.is_empty() {
            return writeln!(f, "No cache line is written by one thread and accessed by another.");
        }
        writeln!(f, "{HEAD}")?;
        for line in self.lines.iter().take(LINES) {
            line.fmt(f)?;
        }
        match self.lines.len().checked_sub(LINES) {
            Some(left @ 1..) => writeln!(f, "{} other shared lines", Grouped(left as u64)),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for SharedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}  {}  {:<16} {:>7} {:>7} {:>7}  {}",
            self.share.percent(),
            self.share.interval(),
            format!("{:#x}", self.address),
            self.threads,
            Grouped(self.loads).to_string(),
            Grouped(self.stores).to_string(),
            if self.is_false { "false" } else { "true" },
        )?;
        for place in self.places.iter().take(PLACES) {
            let kind = if place.is_store { "store" } else { "load" };
            let samples = Grouped(place.samples).to_string();
            let head = format!(
                "{samples:>12}  +{:<2}  thread {:<4} {kind:<5}  ",
                place.offset, place.thread
            );
            let left = output::columns().saturating_sub(head.chars().count());
            writeln!(f, "{head}{}", short_function(&place.code, left))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording;
    use tally_abi::{
        access::{Access, Source},
        trace::SampleRecord,
    };

    /// The shared lines of accesses: thread, address, whether it is a store.
    fn lines(accesses: &[(u32, u64, bool)]) -> SharedLines {
        let of = recording::tests::sampled("mem-stores:P", [0; 16]);
        let samples: Vec<SampleRecord> = accesses
            .iter()
            .map(|(thread, ..)| SampleRecord { thread: *thread, ..of.records.samples[0] })
            .collect();
        let one = |(sample, (_, address, is_store)): (_, &(u32, u64, bool))| Accessed {
            sample,
            events: 1,
            event: "mem".into(),
            access: Access {
                address: *address,
                is_store: *is_store,
                source: Source::L1,
                missed_tlb: false,
                is_locked: false,
                latency_cycles: None,
            },
        };
        let all: Vec<_> = samples.iter().zip(accesses).map(one).collect();
        shared(&of, &all, |_| "a_function".repeat(20))
    }

    #[test]
    fn a_line_is_shared_if_one_thread_writes_it_and_another_accesses_it() {
        let found = lines(&[(1, 0x1000, true), (2, 0x1008, false), (1, 0x2000, true)]);
        assert_eq!(found.lines.len(), 1);
        let line = &found.lines[0];
        assert_eq!((line.address, line.threads, line.loads, line.stores), (0x1000, 2, 1, 1));
        assert!(line.is_false);
        assert!(!lines(&[(1, 0x1008, true), (2, 0x1008, false)]).lines[0].is_false);
        let text = found.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn lines_that_are_only_read_and_those_of_one_thread_are_not_shared() {
        assert!(lines(&[(1, 0x1000, false), (2, 0x1008, false)]).lines.is_empty());
        let text = lines(&[(1, 0x1000, true), (1, 0x1008, true)]).to_string();
        assert!(text.contains("No cache line is written"), "{text}");
    }
}
