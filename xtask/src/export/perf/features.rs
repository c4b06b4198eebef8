//! The features: sections about the machine, the command and the events.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    events::{ATTR_BYTES, Events, attribute},
    records::{ANY, BUILD_ID_BYTES, IN_USER, record},
};
use crate::{
    export::bytes::Bytes,
    recording::{Recording, Symbolizer},
};

/// Numbers of features: `HEADER_BUILD_ID` and so on.
const BUILD_ID: u8 = 2;
const HOSTNAME: u8 = 3;
const VERSION: u8 = 5;
const ARCH: u8 = 6;
const CPUS: u8 = 7;
const CPU_DESCRIPTION: u8 = 8;
const CPUID: u8 = 9;
const COMMAND_LINE: u8 = 11;
const EVENTS: u8 = 12;
const NODES: u8 = 14;
const BRANCH_STACK: u8 = 15;
const SAMPLE_TIME: u8 = 21;
/// `PERF_RECORD_HEADER_BUILD_ID`, and the flag that the build id's size is present.
const BUILD_ID_RECORD: u32 = 67;
const WITH_SIZE: u16 = 1 << 15;
/// Alignment of texts' lengths in bytes (`NAME_ALIGN`).
const TEXT_ALIGN: usize = 64;

/// The known features by their numbers.
pub(super) fn features(
    of: &Recording,
    symbolizer: &Symbolizer,
    events: &Events,
) -> BTreeMap<u8, Bytes> {
    let run = &of.run;
    let mut all = BTreeMap::from([
        (HOSTNAME, text("tally")),
        (VERSION, text(concat!("tally ", env!("CARGO_PKG_VERSION")))),
        (ARCH, text("x86_64")),
        (COMMAND_LINE, Bytes::default().u32(1).raw(&text(&run.command_line).0)),
        (EVENTS, descriptions(events)),
    ]);
    if let Some(cpus) = run.cpus {
        all.insert(CPUS, Bytes::default().u32(cpus).u32(cpus));
        // One node has all CPUs. perf's c2c needs it; the memory's size is not known.
        let node = Bytes::default().u32(1).u32(0).u64(0).u64(0);
        all.insert(NODES, node.raw(&text(&format!("0-{}", cpus.saturating_sub(1))).0));
    }
    if let Some(of) = &run.processor {
        all.insert(CPU_DESCRIPTION, text(&format!("{}, {}", of.catalogue, of.pmu)));
        // The stepping is not known, but perf does not disassemble without one.
        all.insert(CPUID, text(&format!("{},{},{},0", of.vendor, of.family, of.model)));
    }
    let times = of.records.samples.iter().map(|sample| of.ns(sample.tsc));
    if let Some((first, last)) = times.clone().min().zip(times.max()) {
        all.insert(SAMPLE_TIME, Bytes::default().u64(first).u64(last));
    }
    if of.branches.has_branches() {
        all.insert(BRANCH_STACK, Bytes::default());
    }
    let build_ids = build_ids(of, symbolizer);
    if build_ids.len() > 0 {
        all.insert(BUILD_ID, build_ids);
    }
    all
}

/// A text preceded by its length.
fn text(text: &str) -> Bytes {
    let text = Bytes::default().text(text).align(TEXT_ALIGN);
    Bytes::default().u32(text.len() as u32).raw(&text.0)
}

/// Each event's attribute, name and id.
fn descriptions(events: &Events) -> Bytes {
    let head = Bytes::default().u32(events.len() as u32).u32(ATTR_BYTES);
    events.values().fold(head, |all, event| {
        attribute(event, all).u32(1).raw(&text(&event.name).0).u64(event.id)
    })
}

/// The build ids of the programs that were sampled and have a file.
fn build_ids(of: &Recording, symbolizer: &Symbolizer) -> Bytes {
    let programs = of.records.samples.iter().map(|sample| of.program_of(sample.session).0);
    let programs: BTreeSet<_> = programs.collect();
    let files = programs.into_iter().flat_map(|program| symbolizer.files(program));
    let ids: BTreeSet<_> = files.map(|file| (&file.path, &file.build_id)).collect();
    let mut all = Bytes::default();
    for (path, id) in ids {
        if !(1..=BUILD_ID_BYTES).contains(&id.len()) {
            continue;
        }
        let mut padded = id.clone();
        padded.resize(BUILD_ID_BYTES, 0);
        let body = Bytes::default().u32(ANY).raw(&padded).u32(id.len() as u32);
        let body = body.text(&path.display().to_string()).align(TEXT_ALIGN);
        all = all.raw(&record(BUILD_ID_RECORD, IN_USER | WITH_SIZE, &body).0);
    }
    all
}
