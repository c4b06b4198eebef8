//! The Common Trace Format 1.8, which babeltrace2 and Trace Compass open.
//!
//! Source: diamon.org/ctf/v1.8.3. The trace is a folder: the text `metadata` describes the types of
//! events, and the file `cpu-N` has the records of a CPU, in the order of time. The types are taken
//! from the trace's own head, so that every record and field keeps its name; lists of counts have
//! the names of their events. The clock is the TSC.

mod metadata;

use std::collections::BTreeMap;

use tally_abi::trace::SlicePlace;

use self::metadata::{Class, metadata};
use super::bytes::Bytes;
use crate::{
    Failure, Result,
    recording::Recording,
    trace_file::{Form, Raw, Trace, Type},
};

/// The first word of each packet.
const MAGIC: u32 = 0xc1fc_1fc1;
/// The only kind of streams.
const STREAM: u32 = 0;
/// Bytes of a packet before its first event: the header's two words, the context's five double
/// words and the CPU.
const PACKET_HEAD_BYTES: u64 = 2 * 4 + 5 * 8 + 4;
const BITS: u64 = 8;

/// The files of the folder, by name.
///
/// # Errors
/// The trace cannot be read.
pub(super) fn files(of: &Recording, bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let failed = |bad: crate::trace_file::Bad| {
        Failure::new(tally_abi::ExitStatus::BadTrace, bad.to_string())
    };
    let trace = Trace::open(bytes).map_err(failed)?;
    let mut of_cpu: BTreeMap<u16, Vec<Raw>> = BTreeMap::new();
    for record in trace.clone() {
        let record = record.map_err(failed)?;
        of_cpu.entry(record.cpu).or_default().push(record);
    }
    let records = || of_cpu.values().flatten();
    let classes: Vec<Class> = trace.types.iter().map(|t| Class::of(t, records())).collect();
    let mut files = vec![("metadata".to_owned(), metadata(of, &classes).into_bytes())];
    for (cpu, mut records) in of_cpu {
        records.sort_by_key(|record| record.tsc);
        let lost = of.records.losses.iter().filter(|loss| loss.cpu == cpu);
        let lost = lost.map(|loss| loss.records).sum();
        files.push((format!("cpu-{cpu}"), packet(of, &trace, &records, cpu, lost)));
    }
    Ok(files)
}

/// The records of a CPU as one packet.
fn packet(of: &Recording, trace: &Trace<'_>, records: &[Raw], cpu: u16, lost: u64) -> Vec<u8> {
    let mut events = Bytes::default();
    for record in records {
        if let Some(t) = trace.type_of(record) {
            events = event(of, record, t, events);
        }
    }
    let times = records.iter().map(|record| record.tsc);
    let (first, last) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
    let bits = (PACKET_HEAD_BYTES + events.len()) * BITS;
    let head = Bytes::default().u32(MAGIC).u32(STREAM).u64(first).u64(last);
    head.u64(bits).u64(bits).u64(lost).u32(cpu.into()).raw(&events.0).0
}

/// Appends a record: the number of its class, its time, its fields, its list.
fn event(of: &Recording, record: &Raw, t: &Type, to: Bytes) -> Bytes {
    let mut to = to.u16(t.kind.into()).u64(record.tsc);
    for field in &t.fields {
        let bits = field.bits(record);
        to = match field.form {
            Form::Number(8) | Form::Flag | Form::Choice(_) | Form::Signal => to.u8(bits as u8),
            Form::Number(16) => to.u16(bits as u16),
            Form::Number(32) => to.u32(bits as u32),
            Form::Number(_) | Form::Address | Form::Syscall | Form::Result => to.u64(bits),
        };
    }
    if t.list.is_none() {
        return to;
    }
    let list = t.list_of(record);
    let names = names(of, record, t, list.len());
    to = to.u32(list.len() as u32);
    names.iter().zip(list).fold(to, |to, (name, count)| to.text(name).u64(*count))
}

/// The names of the events in a record's list: those of its session and group.
fn names(of: &Recording, record: &Raw, t: &Type, count: usize) -> Vec<String> {
    let number = |name| t.value(record, name).and_then(|bits| u32::try_from(bits).ok());
    let session = number("session").and_then(|session| of.session(session));
    let group = number("group");
    let name = |place: usize| {
        let is_it = |at: SlicePlace| match at {
            SlicePlace::List { group: of, index } => {
                Some(u32::from(of)) == group && usize::from(index) == place
            }
            _ => false,
        };
        let event = session.and_then(|of| of.events.iter().find(|event| is_it(event.place)));
        event.map_or_else(|| format!("count {place}"), |event| event.report.name.clone())
    };
    (0..count).map(name).collect()
}
