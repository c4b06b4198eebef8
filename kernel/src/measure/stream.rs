//! Sends the trace to the host ([`tally_abi::trace`]): from the rings, page by page.
//!
//! Each CPU drains its own ring at every turn of the scheduler and at every switch out, unless the
//! command line asks only for the last records. With `trace=halt`, a CPU whose ring is half full
//! drains it completely before it continues. At the end the last CPU drains all rings. If the host
//! stops reading, records stay in their ring, which loses and counts those without room.
//!
//! One lock guards the stream; interrupts are off while a CPU holds it. The overflow path does not
//! take it, and may write to a ring that is being drained.

use alloc::{boxed::Box, string::String, vec::Vec};

use spin::Mutex;
use tally_abi::{
    record::describe,
    ring::Header,
    trace::{Chunk, LostRecord, RING_PAGES, RING_WORDS, RingRecord, TYPES},
    wire::Message,
};
use tally_engine::Clock;
use tally_ring::{Item, Reader};

use super::{
    memory::MemoryTransport,
    port::PortTransport,
    trace_ring::{ProcessorClock, TraceRing},
    transport::{Load, PAGE_WORDS, RecordPage, Transport},
};
use crate::machine::{port::fill, serial};

/// Maximum number of words of a record of any type.
const RECORD_WORDS: usize = {
    let mut most = 0;
    let mut i = 0;
    while i < TYPES.len() {
        // A field takes at most a word.
        let words = 1 + TYPES[i].fields.len() + TYPES[i].most;
        most = if words > most { words } else { most };
        i += 1;
    }
    most
};

static STREAM: Mutex<Option<TraceStream>> = Mutex::new(None);

struct TraceStream {
    transport: Box<dyn Transport>,
    /// The rings, in the order in which their CPUs started: that of their numbers.
    sources: Vec<RingSource>,
}

/// The reading end of a CPU's ring.
struct RingSource {
    cpu: u16,
    ring: &'static TraceRing,
    reader: Box<Reader<'static, RING_WORDS, RING_PAGES>>,
    /// Number of records passed to the transport.
    sent: u64,
    /// Number of times that the CPU has waited for the host.
    waits: u64,
}

/// Starts a trace with the description of its records.
pub(super) fn init() {
    let transport: Box<dyn Transport> = match PortTransport::find() {
        Some(port) => Box::new(port),
        None => Box::new(MemoryTransport::default()),
    };
    let mut stream = TraceStream { transport, sources: Vec::new() };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = describe(&TYPES, &mut text);
    for piece in text.as_bytes().chunks(8 * PAGE_WORDS) {
        let Some(page) = stream.transport.page() else { break };
        fill(page, piece);
        stream.transport.send(Load { bytes: piece.len(), ..Load::default() });
    }
    *STREAM.lock() = Some(stream);
}

/// Adds a CPU's ring.
pub(super) fn add(cpu: u16, ring: &'static TraceRing) {
    let reader = Box::new(Reader::consume(ring));
    if let Some(stream) = STREAM.lock().as_mut() {
        stream.sources.push(RingSource { cpu, ring, reader, sent: 0, waits: 0 });
    }
}

/// Sends the records of a CPU's ring, as many as the transport has room for.
pub(super) fn drain(cpu: u16) {
    if let Some(stream) = STREAM.lock().as_mut() {
        while stream.send_page(cpu, RingSource::fill) {}
    }
}

/// Sends all records of a CPU's ring, and waits for the transport's room as long as the host reads.
#[cold]
pub(super) fn drain_whole(cpu: u16) {
    let mut guard = STREAM.lock();
    let Some(stream) = guard.as_mut() else { return };
    let own = stream.sources.iter_mut().find(|source| source.cpu == cpu);
    own.into_iter().for_each(|source| source.waits += 1);
    while stream.transport.wait_for_page() && stream.send_page(cpu, RingSource::fill) {}
}

/// Ends the trace: sends the rest of all rings, and the number of lost records of each. Nothing may
/// write to a ring any more.
pub fn finish() {
    let mut guard = STREAM.lock();
    let Some(stream) = guard.as_mut() else { return };
    for cpu in stream.sources.iter().map(|source| source.cpu).collect::<Vec<u16>>() {
        while stream.transport.wait_for_page() && stream.send_page(cpu, RingSource::fill) {}
        stream.send_page(cpu, RingSource::fill_rest);
    }
    let arrived = stream.transport.wait_for_all();
    let totals = |source: &RingSource| source.totals(stream.transport.in_flight(source.cpu));
    let rings: Vec<RingRecord> = stream.sources.iter().map(totals).collect();
    for (ring, RingSource { waits, .. }) in rings.iter().zip(&stream.sources) {
        let (RingRecord { cpu, written, read, lost, .. }, waits) = (*ring, *waits);
        serial::send(&Message::Ring { cpu, written, read, lost, waits });
        if waits > 0 {
            log::info!("CPU {cpu}: waited {waits} times until the host had its trace");
        }
    }
    if arrived {
        stream.send_end(&rings);
    }
    stream.transport.finish();
}

impl TraceStream {
    /// Sends a page of a CPU's records, which `fill` fills. Returns whether there were any records,
    /// and room for them.
    fn send_page(
        &mut self,
        cpu: u16,
        fill: impl FnOnce(&mut RingSource, &mut RecordPage) -> Load,
    ) -> bool {
        let source = self.sources.iter_mut().find(|source| source.cpu == cpu);
        let Some((source, page)) = source.zip(self.transport.page()) else { return false };
        let load = fill(source, page);
        if load.bytes > 0 {
            self.transport.send(load);
        }
        load.bytes > 0
    }

    /// Sends the rings' totals, and the end mark of the trace.
    fn send_end(&mut self, rings: &[RingRecord]) {
        for ring in rings {
            let Some(page) = self.transport.last_page() else { return };
            let mut chunk = ChunkWriter::new(page);
            chunk.put(RingRecord::KIND, ring.tsc, &ring.head());
            let bytes = chunk.close(ring.cpu);
            self.transport.send(Load { bytes, ..Load::default() });
        }
        if let Some(page) = self.transport.last_page() {
            page[..Chunk::WORDS].copy_from_slice(&Chunk::END.to_words());
            self.transport.send(Load { bytes: 8 * Chunk::WORDS, ..Load::default() });
        }
    }
}

impl RingSource {
    /// Fills a page with records.
    fn fill(&mut self, page: &mut RecordPage) -> Load {
        let (cpu, mut chunk, mut records) = (self.cpu, ChunkWriter::new(page), 0);
        while chunk.has_room() {
            match self.reader.take() {
                None => break,
                Some(Item::Record { tsc, words, .. }) => {
                    chunk.put_words(tsc, words);
                    records += 1;
                }
                Some(Item::Lost(lost)) => chunk.put_lost(lost, cpu, self.reader.near_tsc()),
            }
        }
        self.sent += records;
        Load { bytes: chunk.close(cpu), cpu, records }
    }

    /// Fills a page with the number of records lost after the last one; the ring is empty.
    fn fill_rest(&mut self, page: &mut RecordPage) -> Load {
        let (cpu, mut chunk) = (self.cpu, ChunkWriter::new(page));
        let lost = self.reader.rest();
        if lost > 0 {
            chunk.put_lost(lost, cpu, ProcessorClock.tsc());
        }
        Load { bytes: chunk.close(cpu), cpu, records: 0 }
    }

    /// The ring's totals; `in_flight` of its records never arrived.
    fn totals(&self, in_flight: u64) -> RingRecord {
        let (cpu, written) = (self.cpu, self.ring.status().written);
        let read = self.sent - in_flight;
        RingRecord { written, read, lost: written - read, cpu, tsc: ProcessorClock.tsc() }
    }
}

/// Fills a page with a chunk of records. [`Self::close`] writes the chunk's own words last.
struct ChunkWriter<'a> {
    page: &'a mut RecordPage,
    /// Number of words in use.
    used: usize,
    /// Time stamp of the first record.
    near_tsc: Option<u64>,
}

impl<'a> ChunkWriter<'a> {
    fn new(page: &'a mut RecordPage) -> Self {
        ChunkWriter { page, used: Chunk::WORDS, near_tsc: None }
    }

    fn has_room(&self) -> bool {
        self.used + RECORD_WORDS <= PAGE_WORDS
    }

    /// Adds a record of `records` lost records before `tsc`.
    fn put_lost(&mut self, records: u64, cpu: u16, tsc: u64) {
        let lost = LostRecord { records, cpu, tsc };
        self.put(LostRecord::KIND, tsc, &lost.head());
    }

    fn put(&mut self, kind: u8, tsc: u64, payload: &[u64]) {
        self.put_words(tsc, &[Header::new(kind, 1 + payload.len(), tsc).0]);
        self.put_words(tsc, payload);
    }

    fn put_words(&mut self, tsc: u64, words: &[u64]) {
        self.near_tsc.get_or_insert(tsc);
        let end = self.used + words.len();
        self.page[self.used..end].copy_from_slice(words);
        self.used = end;
    }

    /// Writes the chunk's own words. Returns the bytes of the whole chunk; 0 if it has no record.
    fn close(self, cpu: u16) -> usize {
        let Some(near_tsc) = self.near_tsc else { return 0 };
        let chunk = Chunk { cpu, words: (self.used - Chunk::WORDS) as u32, near_tsc };
        self.page[..Chunk::WORDS].copy_from_slice(&chunk.to_words());
        8 * self.used
    }
}
