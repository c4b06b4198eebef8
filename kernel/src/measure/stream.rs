//! The trace on its way to the host ([`tally_abi::trace`]): out of the rings, page by page.
//!
//! Each CPU drains its own ring at every scheduler turn and when a program leaves it, unless only the last
//! records are wanted. At the end the last CPU drains all rings. Where the host takes no more, records stay in
//! their ring, and what there is no room for is lost there and counted. One lock guards all; interrupts are off
//! whenever it is held, and the overflow path never comes here: it may write to a ring that is being drained.

use alloc::{boxed::Box, string::String};

use spin::Mutex;
use tally_abi::{
    boot::MAX_CPUS,
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
    trace_ring::{TraceRing, Tsc},
    transport::{Load, PAGE_WORDS, Page, Transport},
};
use crate::machine::serial;

/// The most words of a record that the engine writes, or this module.
const RECORD_WORDS: usize = {
    let mut most = 0;
    let mut i = 0;
    while i < TYPES.len() {
        let list = if TYPES[i].list.is_some() { tally_abi::trace::MAX_COUNTS } else { 0 };
        // A field takes a word at most.
        let words = 1 + TYPES[i].fields.len() + list;
        most = if words > most { words } else { most };
        i += 1;
    }
    most
};

static STREAM: Mutex<Option<Stream>> = Mutex::new(None);

struct Stream {
    transport: Box<dyn Transport>,
    ends: [Option<End>; MAX_CPUS],
}

/// The drained end of a CPU's ring.
struct End {
    ring: &'static TraceRing,
    reader: Box<Reader<'static, RING_WORDS, RING_PAGES>>,
    /// Records that were handed over.
    sent: u64,
}

/// Begins a trace: what it is comes first.
pub(super) fn init() {
    let transport: Box<dyn Transport> = match PortTransport::find() {
        Some(port) => Box::new(port),
        None => Box::new(MemoryTransport::default()),
    };
    let mut stream = Stream { transport, ends: [const { None }; MAX_CPUS] };
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = describe(&TYPES, &mut text);
    for piece in text.as_bytes().chunks(8 * PAGE_WORDS) {
        let Some(page) = stream.transport.page() else { break };
        for (word, bytes) in page.iter_mut().zip(piece.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        stream.transport.send(Load { bytes: piece.len(), ..Load::default() });
    }
    *STREAM.lock() = Some(stream);
}

/// A CPU's ring takes part.
pub(super) fn add(cpu: u16, ring: &'static TraceRing) {
    let end = End { ring, reader: Box::new(Reader::consume(ring)), sent: 0 };
    if let Some(stream) = STREAM.lock().as_mut()
        && let Some(slot) = stream.ends.get_mut(usize::from(cpu))
    {
        *slot = Some(end);
    }
}

/// Sends what a CPU's ring holds, as far as there is room for it.
pub(super) fn drain(cpu: u16) {
    if let Some(stream) = STREAM.lock().as_mut() {
        while stream.send_page(cpu, End::fill) {}
    }
}

/// The last of the trace: what is left in all rings, and how each fared. Nothing writes to a ring any more.
pub fn finish() {
    let mut guard = STREAM.lock();
    let Some(stream) = guard.as_mut() else { return };
    for cpu in 0..MAX_CPUS as u16 {
        while stream.transport.wait_for_page() && stream.send_page(cpu, End::fill) {}
        stream.send_page(cpu, End::fill_rest);
    }
    let arrived = stream.transport.wait_for_all();
    let mut rings = [const { None }; MAX_CPUS];
    for (cpu, (end, ring)) in (0..).zip(stream.ends.iter().zip(&mut rings)) {
        *ring = end.as_ref().map(|end| end.fate(cpu, stream.transport.in_flight(cpu)));
    }
    for RingRecord { cpu, written, read, lost, .. } in rings.iter().flatten().copied() {
        serial::send(&Message::Ring { cpu, written, read, lost });
    }
    if arrived {
        stream.send_end(rings.iter().flatten());
    }
    stream.transport.finish();
}

impl Stream {
    /// Sends one page of a CPU's records, as `fill` takes them: whether there were any, and room.
    fn send_page(&mut self, cpu: u16, fill: impl FnOnce(&mut End, u16, &mut Page) -> Load) -> bool {
        let Some(Some(end)) = self.ends.get_mut(usize::from(cpu)) else { return false };
        let Some(page) = self.transport.page() else { return false };
        let load = fill(end, cpu, page);
        if load.bytes > 0 {
            self.transport.send(load);
        }
        load.bytes > 0
    }

    /// Sends how the rings fared, and the mark of a trace's end.
    fn send_end<'a>(&mut self, rings: impl Iterator<Item = &'a RingRecord>) {
        for ring in rings {
            let Some(page) = self.transport.last_page() else { return };
            let mut filling = Filling::new(page);
            filling.put(RingRecord::KIND, ring.tsc, &ring.head());
            let bytes = filling.close(ring.cpu);
            self.transport.send(Load { bytes, ..Load::default() });
        }
        if let Some(page) = self.transport.last_page() {
            page[..Chunk::WORDS].copy_from_slice(&Chunk::END.to_words());
            self.transport.send(Load { bytes: 8 * Chunk::WORDS, ..Load::default() });
        }
    }
}

impl End {
    /// Fills a page with records.
    fn fill(&mut self, cpu: u16, page: &mut Page) -> Load {
        let mut filling = Filling::new(page);
        let mut records = 0;
        while filling.has_room() {
            match self.reader.take() {
                None => break,
                Some(Item::Record { tsc, words, .. }) => {
                    filling.put_words(tsc, words);
                    records += 1;
                }
                Some(Item::Lost(lost)) => filling.put_lost(lost, cpu, self.reader.near_tsc()),
            }
        }
        self.sent += records;
        Load { bytes: filling.close(cpu), cpu, records }
    }

    /// Fills a page with how many records were lost behind the last one, where all that is in the ring was taken.
    fn fill_rest(&mut self, cpu: u16, page: &mut Page) -> Load {
        let mut filling = Filling::new(page);
        let lost = self.reader.rest();
        if lost > 0 {
            filling.put_lost(lost, cpu, Tsc.tsc());
        }
        Load { bytes: filling.close(cpu), cpu, records: 0 }
    }

    /// How the ring fared, if so many of its records never arrived.
    fn fate(&self, cpu: u16, in_flight: u64) -> RingRecord {
        let written = self.ring.status().written;
        let read = self.sent - in_flight;
        RingRecord { written, read, lost: written - read, cpu, tsc: Tsc.tsc() }
    }
}

/// A page that is being filled: a chunk, whose own words come last.
struct Filling<'a> {
    page: &'a mut Page,
    used: usize,
    near_tsc: Option<u64>,
}

impl<'a> Filling<'a> {
    fn new(page: &'a mut Page) -> Self {
        Filling { page, used: Chunk::WORDS, near_tsc: None }
    }

    fn has_room(&self) -> bool {
        self.used + RECORD_WORDS <= PAGE_WORDS
    }

    /// Says that so many records were lost before that time.
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

    /// Bytes of the whole; 0 if there is no record in it.
    fn close(self, cpu: u16) -> usize {
        let Some(near_tsc) = self.near_tsc else { return 0 };
        let chunk = Chunk { cpu, words: (self.used - Chunk::WORDS) as u32, near_tsc };
        self.page[..Chunk::WORDS].copy_from_slice(&chunk.to_words());
        8 * self.used
    }
}
