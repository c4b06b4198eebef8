//! perf's own file, `perf.data`, which `perf report`, `perf script` and `perf annotate` open.
//!
//! Sources: Linux 6.12, tools/perf/Documentation/perf.data-file-format.txt for the file, and
//! include/uapi/linux/perf_event.h for attributes and records. The maintained crate that writes
//! such files, `tracepoint_perf`, leaves records to its caller and writes to a named file only.
//!
//! A sampled event of a session is an event of the file; a program is a process, whose threads have
//! its name or their own. Times are nanoseconds from the trace's earliest time stamp. The period of
//! a sample is the number of events for which it stands.

mod data_source;
mod events;
mod features;
mod records;

use self::events::{ATTR_BYTES, attribute, events};
use super::bytes::Bytes;
use crate::{
    Result,
    recording::{Recording, Symbolizer},
};

const MAGIC: &[u8; 8] = b"PERFILE2";
/// Bytes of the file's header.
const HEADER_BYTES: u64 = 104;
/// Bytes of a section's descriptor: its offset and its length, both of 64 bits.
const SECTION_BYTES: u64 = 16;
/// Bytes of an event's id.
const ID_BYTES: u64 = 8;

/// The file's bytes.
///
/// # Errors
/// The trace has no samples.
pub(super) fn write(of: &Recording, symbolizer: &Symbolizer) -> Result<Vec<u8>> {
    of.has_samples()?;
    let events = events(of);
    let count = events.len() as u64;
    let attrs_bytes = count * (u64::from(ATTR_BYTES) + SECTION_BYTES);
    let ids_at = HEADER_BYTES + attrs_bytes;
    let (mut attrs, mut ids) = (Bytes::default(), Bytes::default());
    for event in events.values() {
        attrs = section(attribute(event, attrs), ids_at + ids.len(), ID_BYTES);
        ids = ids.u64(event.id);
    }
    let records = records::records(of, symbolizer, &events);
    let features = features::features(of, symbolizer, &events);
    let records_at = ids_at + ids.len();
    let mut file = Bytes::default().raw(MAGIC).u64(HEADER_BYTES);
    file = file.u64(u64::from(ATTR_BYTES) + SECTION_BYTES);
    file = section(file, HEADER_BYTES, attrs_bytes);
    file = section(file, records_at, records.len());
    // A section that current versions do not read, then a bit for each feature.
    file = section(file, 0, 0);
    file = file.u64(features.keys().map(|bit| 1 << bit).sum()).u64(0).u64(0).u64(0);
    file = file.raw(&attrs.0).raw(&ids.0).raw(&records.0);
    let mut at = file.len() + features.len() as u64 * SECTION_BYTES;
    for feature in features.values() {
        file = section(file, at, feature.len());
        at += feature.len();
    }
    Ok(features.values().fold(file, |file, feature| file.raw(&feature.0)).0)
}

/// Appends a section's descriptor.
fn section(file: Bytes, at: u64, bytes: u64) -> Bytes {
    file.u64(at).u64(bytes)
}
