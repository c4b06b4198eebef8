//! The records: programs, locations of their code, and samples.

use std::collections::{BTreeMap, BTreeSet};

use tally_abi::{boot::KERNEL_BASE, text::short_name, trace::SampleRecord};

use super::{
    data_source::data_source,
    events::{Events, Sampled},
};
use crate::{
    export::bytes::Bytes,
    recording::{CodeSegment, Recording, Symbolizer},
};

/// Kinds of records: `PERF_RECORD_LOST`, `COMM`, `SAMPLE`, `MMAP2`.
const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
/// Values of records' `misc`: the address is in the kernel, it is in user mode, the program is new
/// in its process, a mapping is of data, a build id is present, a sample's address is that of its
/// event.
const IN_KERNEL: u16 = 1;
pub(super) const IN_USER: u16 = 2;
const EXEC: u16 = 1 << 13;
const DATA: u16 = 1 << 13;
const WITH_BUILD_ID: u16 = 1 << 14;
const EXACT_ADDRESS: u16 = 1 << 14;
/// Bytes of a build id's field.
pub(super) const BUILD_ID_BYTES: usize = 20;
/// `PROT_READ | PROT_EXEC`, `MAP_PRIVATE`.
const PROTECTION: u32 = 5;
const PRIVATE: u32 = 2;
/// Markers before the addresses of a stack: in user mode or in the kernel (`PERF_CONTEXT_USER`,
/// `PERF_CONTEXT_KERNEL`).
const CONTEXT_USER: u64 = -512_i64 as u64;
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
/// Process number for any process.
pub(super) const ANY: u32 = u32::MAX;
/// Bytes of a record's header.
const HEADER_BYTES: usize = 8;
/// The user half of the address space, without its first page.
const USER_HALF: CodeSegment =
    CodeSegment { start: 0x1000, bytes: 0x7fff_ffff_e000, file_offset: 0x1000 };
/// The addresses that the kernel's code can have.
const KERNEL: CodeSegment =
    CodeSegment { start: KERNEL_BASE, bytes: 1 << 40, file_offset: KERNEL_BASE };

/// Trailer of every record except samples: its time, its process and thread.
#[derive(Clone, Copy)]
struct Tag {
    program: u32,
    thread: u32,
    ns: u64,
    cpu: u16,
}

/// All records in the order of time.
pub(super) fn records(of: &Recording, symbolizer: &Symbolizer, events: &Events) -> Bytes {
    let mut timed = Vec::new();
    for (sample, period) in of.weighted_samples() {
        let misc = if sample.user || sample.address == 0 { IN_USER } else { IN_KERNEL };
        let exact = if sample.precise { EXACT_ADDRESS } else { 0 };
        let event = events.get(&(sample.session, sample.event));
        let body = sampled(of, symbolizer, event, sample, period);
        timed.push((of.ns(sample.tsc), record(SAMPLE, misc | exact, &body)));
    }
    for lost in &of.records.losses {
        let tag = Tag { program: 0, thread: 0, ns: of.ns(lost.tsc), cpu: lost.cpu };
        let body = Bytes::default().u64(0).u64(lost.records);
        timed.push((tag.ns, tagged(LOST, 0, body, tag)));
    }
    timed.sort_by_key(|(ns, _)| *ns);
    let first = programs(of, symbolizer);
    timed.into_iter().fold(first, |all, (_, record)| all.raw(&record.0))
}

/// The body of a sample, with the fields of its event.
fn sampled(
    of: &Recording,
    symbolizer: &Symbolizer,
    event: Option<&Sampled>,
    sample: &SampleRecord,
    period: u64,
) -> Bytes {
    let (program, _) = of.program_of(sample.session);
    let id = event.map_or(0, |event| event.id);
    let body = Bytes::default().u64(id).u64(sample.address).u32(program).u32(sample.thread);
    let access = event.filter(|event| event.has_accesses);
    let access = access.map(|event| of.accesses.of_sample(sample, &event.name));
    let mut body = body.u64(of.ns(sample.tsc));
    if let Some(access) = access {
        body = body.u64(access.map_or(0, |access| access.address));
    }
    body = body.u32(sample.cpu.into()).u32(0).u64(period);
    if event.is_some_and(|event| event.has_callers) {
        let levels = symbolizer.stack(of, sample);
        let is_user = sample.user || sample.address == 0;
        let context = if is_user { CONTEXT_USER } else { CONTEXT_KERNEL };
        body = body.u64(1 + levels.len() as u64).u64(context);
        body = levels.iter().rev().fold(body, |body, level| body.u64(level.at.address));
    }
    if event.is_some_and(|event| event.has_branches) {
        let branches = of.branches.of_sample(sample);
        let words = branches.iter().flat_map(|branch| branch.to_words());
        body = words.fold(body.u64(branches.len() as u64), Bytes::u64);
    }
    if let Some(access) = access {
        let latency = access.and_then(|access| access.latency_cycles);
        body = body.u64(latency.unwrap_or(0)).u64(data_source(access.as_ref()));
    }
    body
}

/// The programs that were sampled, with their code; and the kernel's code, if it was sampled.
fn programs(of: &Recording, symbolizer: &Symbolizer) -> Bytes {
    let mut sampled: BTreeMap<(u32, &str), BTreeSet<u32>> = BTreeMap::new();
    for sample in &of.records.samples {
        sampled.entry(of.program_of(sample.session)).or_default().insert(sample.thread);
    }
    let mut all = Bytes::default();
    for ((program, name), mut threads) in sampled {
        let tag = Tag { program, thread: program, ns: 0, cpu: 0 };
        let short = short_name(name);
        all = all.raw(&comm(tag, EXEC, short).0);
        // The first thread has its program's number.
        threads.remove(&program);
        for thread in threads {
            let own = of.thread_name(program, thread);
            all = all.raw(&comm(Tag { thread, ..tag }, 0, own.as_deref().unwrap_or(short)).0);
        }
        if symbolizer.files(program).next().is_none() {
            // A name that is no path: perf must not look for the file on the host.
            all = all.raw(&mapping(tag, IN_USER, USER_HALF, &format!("[{short}]"), &[]).0);
        }
        if !of.accesses.is_empty() {
            // First, because later mappings replace parts of earlier ones.
            all = all.raw(&mapping(tag, IN_USER | DATA, USER_HALF, "//anon", &[]).0);
        }
        for file in symbolizer.files(program) {
            let path = file.path.display().to_string();
            for segment in &file.code {
                all = all.raw(&mapping(tag, IN_USER, *segment, &path, &file.build_id).0);
            }
        }
    }
    if of.records.samples.iter().any(|sample| !sample.user && sample.address != 0) {
        let tag = Tag { program: ANY, thread: ANY, ns: 0, cpu: 0 };
        all = all.raw(&mapping(tag, IN_KERNEL, KERNEL, "[tally-kernel]", &[]).0);
    }
    all
}

/// Names a thread.
fn comm(tag: Tag, misc: u16, name: &str) -> Bytes {
    let body = Bytes::default().u32(tag.program).u32(tag.thread);
    tagged(COMM, misc, body.text(name).align(HEADER_BYTES), tag)
}

/// Maps a file's code into a process.
fn mapping(tag: Tag, misc: u16, at: CodeSegment, path: &str, build_id: &[u8]) -> Bytes {
    let body = Bytes::default().u32(tag.program).u32(tag.thread);
    let body = body.u64(at.start).u64(at.bytes).u64(at.file_offset);
    let has_build_id = (1..=BUILD_ID_BYTES).contains(&build_id.len());
    let build_id = if has_build_id { build_id } else { &[] };
    // Without a build id these bytes are the device and the inode, which are not known.
    let mut id = Bytes::default().u32(build_id.len() as u32).raw(build_id);
    id.0.resize(size_of::<u32>() + BUILD_ID_BYTES, 0);
    let misc = misc | if has_build_id { WITH_BUILD_ID } else { 0 };
    let body = body.raw(&id.0).u32(PROTECTION).u32(PRIVATE).text(path).align(HEADER_BYTES);
    tagged(MMAP2, misc, body, tag)
}

/// Appends the tag to a record: process, thread, time, CPU, and the id of no event.
fn tagged(kind: u32, misc: u16, body: Bytes, tag: Tag) -> Bytes {
    let body = body.u32(tag.program).u32(tag.thread).u64(tag.ns);
    record(kind, misc, &body.u32(tag.cpu.into()).u32(0).u64(0))
}

/// Adds the header to a record.
pub(super) fn record(kind: u32, misc: u16, body: &Bytes) -> Bytes {
    let bytes = HEADER_BYTES + body.0.len();
    Bytes::default().u32(kind).u16(misc).u16(bytes as u16).raw(&body.0)
}
