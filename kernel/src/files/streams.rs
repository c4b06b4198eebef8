//! Streams: objects without a place in the tree that a program reads, writes and waits for. Pipes
//! and socket pairs are channels; there are event counters, timers and signals.
//!
//! Operations do not wait: the caller retries an operation that would block. Programs do not share
//! streams with each other.

use alloc::{collections::VecDeque, sync::Arc};
use core::{
    mem::take,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use spin::Mutex;

use super::expiry::Expiry;

/// Maximum bytes in a channel: Linux's default.
pub const CHANNEL_BYTES: usize = 64 << 10;
/// Free bytes required before a channel is ready for a writer, so that small writes are not split
/// (`PIPE_BUF`).
const ATOMIC_BYTES: usize = 4096;

/// Events of `poll`: `POLLIN`, `POLLOUT`, `POLLERR`, `POLLHUP` and `POLLRDHUP`.
pub const IN: u32 = 0x001;
/// See [`IN`].
pub const OUT: u32 = 0x004;
/// See [`IN`].
pub const ERROR: u32 = 0x008;
/// See [`IN`].
pub const HANG_UP: u32 = 0x010;
/// See [`IN`].
pub const READ_HANG_UP: u32 = 0x2000;

/// Reason why an operation on a stream moved no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// No bytes to read, or no room to write.
    WouldBlock,
    /// The channel has no reader any more.
    NoReader,
    /// The stream does not have this direction.
    Direction,
    /// The stream is of another kind, or the buffer is too small.
    Invalid,
    /// No memory is left.
    OutOfMemory,
}

/// An open stream. Copies of a descriptor share it.
pub struct Stream {
    /// The kind of stream.
    pub kind: Kind,
    /// Whether operations that would block fail (`O_NONBLOCK`). Relaxed order is enough: one
    /// program uses it, on one CPU at a time.
    nonblocking: AtomicBool,
}

/// A kind of stream.
pub enum Kind {
    /// A pipe's end, or a socket of a pair.
    Channel(Channel),
    /// `eventfd`.
    Event(EventCounter),
    /// `timerfd`.
    Timer(Timer),
    /// `signalfd`: the signals that can be read. The caller reads them, as they belong to the
    /// program.
    Signals(AtomicU64),
}

/// A direction of a channel.
#[derive(Default)]
struct Flow {
    bytes: VecDeque<u8>,
    has_reader: bool,
    has_writer: bool,
    /// Number of changes, so that a waiter for changes sees each.
    changes: u64,
}

/// An end of a channel: its source and its destination.
pub struct Channel {
    from: Option<Arc<Mutex<Flow>>>,
    to: Option<Arc<Mutex<Flow>>>,
    /// Whether the end is a socket.
    pub is_socket: bool,
}

/// A counter: writers add to it, a reader takes its value.
pub struct EventCounter {
    count: Mutex<u64>,
    /// Whether a reader takes 1 instead of the whole value.
    is_semaphore: bool,
    changes: AtomicU64,
}

/// A timer.
#[derive(Default)]
pub struct Timer {
    /// The next expiry.
    due: Mutex<Option<Expiry>>,
    /// The clock for which the timer was made.
    pub clock: u64,
    changes: AtomicU64,
}

impl Stream {
    /// A new open stream.
    pub fn new(kind: Kind, nonblocking: bool) -> Arc<Stream> {
        Arc::new(Stream { kind, nonblocking: AtomicBool::new(nonblocking) })
    }

    /// Returns whether operations that would block fail.
    pub fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    /// Sets whether operations that would block fail.
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }

    /// Reads up to `to.len()` bytes; 0 at the end.
    ///
    /// # Errors
    /// No bytes were read.
    pub fn read(&self, to: &mut [u8], now_ns: u64) -> Result<usize, StreamError> {
        match &self.kind {
            Kind::Channel(channel) => channel.read(to),
            Kind::Event(counter) => put_word(to, || counter.take()),
            Kind::Timer(timer) => put_word(to, || timer.take(now_ns)),
            Kind::Signals(_) => Err(StreamError::Invalid),
        }
    }

    /// Writes up to `from.len()` bytes.
    ///
    /// # Errors
    /// No bytes were written.
    pub fn write(&self, from: &[u8]) -> Result<usize, StreamError> {
        match &self.kind {
            Kind::Channel(channel) => channel.write(from),
            Kind::Event(counter) => {
                let word = from.first_chunk().ok_or(StreamError::Invalid)?;
                counter.add(u64::from_le_bytes(*word)).map(|()| size_of::<u64>())
            }
            Kind::Timer(_) | Kind::Signals(_) => Err(StreamError::Invalid),
        }
    }

    /// The signals that can be read; `None` for other kinds of streams.
    pub fn signals(&self) -> Option<u64> {
        match &self.kind {
            Kind::Signals(set) => Some(set.load(Ordering::Relaxed)),
            _ => None,
        }
    }

    /// The events for which the stream is ready while `signals` are pending for the calling thread.
    pub fn ready(&self, now_ns: u64, signals: u64) -> u32 {
        match &self.kind {
            Kind::Channel(channel) => channel.ready(),
            Kind::Event(counter) => {
                let count = *counter.count.lock();
                let writable = if count < u64::MAX - 1 { OUT } else { 0 };
                writable | if count > 0 { IN } else { 0 }
            }
            Kind::Timer(timer) => {
                if timer.expirations(now_ns) > 0 {
                    IN
                } else {
                    0
                }
            }
            Kind::Signals(set) => {
                if set.load(Ordering::Relaxed) & signals != 0 {
                    IN
                } else {
                    0
                }
            }
        }
    }

    /// Number of changes so far. A timer changes when it expires. For `signalfd`, a number that
    /// changes with the pending signals.
    pub fn changes(&self, now_ns: u64, signals: u64) -> u64 {
        match &self.kind {
            Kind::Channel(channel) => {
                let flows = channel.from.iter().chain(&channel.to);
                flows.map(|flow| flow.lock().changes).sum()
            }
            Kind::Event(counter) => counter.changes.load(Ordering::Relaxed),
            Kind::Timer(timer) => {
                timer.changes.load(Ordering::Relaxed).wrapping_add(timer.expirations(now_ns))
            }
            Kind::Signals(set) => set.load(Ordering::Relaxed) & signals,
        }
    }

    /// Time at which the stream becomes ready by itself, in nanoseconds.
    pub fn due(&self) -> Option<u64> {
        match &self.kind {
            Kind::Timer(timer) => Some((*timer.due.lock())?.at_ns),
            _ => None,
        }
    }
}

/// Writes a word to the start of a buffer.
fn put_word(
    to: &mut [u8],
    word: impl FnOnce() -> Result<u64, StreamError>,
) -> Result<usize, StreamError> {
    let place = to.first_chunk_mut::<8>().ok_or(StreamError::Invalid)?;
    *place = word()?.to_le_bytes();
    Ok(place.len())
}

impl Channel {
    /// The two ends of a pipe: for reading and for writing.
    pub fn pipe() -> [Channel; 2] {
        let flow = Flow::open();
        let end = |from, to| Channel { from, to, is_socket: false };
        [end(Some(flow.clone()), None), end(None, Some(flow))]
    }

    /// Two sockets, connected.
    pub fn sockets() -> [Channel; 2] {
        let (one, other) = (Flow::open(), Flow::open());
        let end = |from, to| Channel { from: Some(from), to: Some(to), is_socket: true };
        [end(one.clone(), other.clone()), end(other, one)]
    }

    /// Returns whether the channel can be read, and written.
    pub fn directions(&self) -> (bool, bool) {
        (self.from.is_some(), self.to.is_some())
    }

    /// The number of bytes to read.
    pub fn len(&self) -> usize {
        self.from.as_ref().map_or(0, |flow| flow.lock().bytes.len())
    }

    fn read(&self, to: &mut [u8]) -> Result<usize, StreamError> {
        let mut flow = self.from.as_ref().ok_or(StreamError::Direction)?.lock();
        let bytes = to.len().min(flow.bytes.len());
        if bytes == 0 && flow.has_writer && flow.has_reader && !to.is_empty() {
            return Err(StreamError::WouldBlock);
        }
        for (place, byte) in to.iter_mut().zip(flow.bytes.drain(..bytes)) {
            *place = byte;
        }
        flow.changes += 1;
        Ok(bytes)
    }

    fn write(&self, from: &[u8]) -> Result<usize, StreamError> {
        let mut flow = self.to.as_ref().ok_or(StreamError::Direction)?.lock();
        if !flow.has_reader || !flow.has_writer {
            return Err(StreamError::NoReader);
        }
        let room = CHANNEL_BYTES - flow.bytes.len();
        let is_atomic = from.len() <= ATOMIC_BYTES;
        if room == 0 || is_atomic && from.len() > room {
            return Err(StreamError::WouldBlock);
        }
        let bytes = from.len().min(room);
        flow.bytes.try_reserve(bytes).map_err(|_| StreamError::OutOfMemory)?;
        flow.bytes.extend(&from[..bytes]);
        flow.changes += 1;
        Ok(bytes)
    }

    /// Ends reading, writing or both.
    pub fn shut_down(&self, reading: bool, writing: bool) {
        if let Some(flow) = self.from.as_ref().filter(|_| reading) {
            let mut flow = flow.lock();
            flow.has_reader = false;
            flow.changes += 1;
        }
        if let Some(flow) = self.to.as_ref().filter(|_| writing) {
            let mut flow = flow.lock();
            flow.has_writer = false;
            flow.changes += 1;
        }
    }

    fn ready(&self) -> u32 {
        let mut events = 0;
        if let Some(flow) = &self.from {
            let flow = flow.lock();
            let is_over = !flow.has_writer;
            events |= if !flow.bytes.is_empty() || is_over && self.is_socket { IN } else { 0 };
            events |= match (is_over, self.is_socket) {
                (true, true) => READ_HANG_UP,
                (true, false) => HANG_UP,
                (false, _) => 0,
            };
        }
        if let Some(flow) = &self.to {
            let flow = flow.lock();
            let has_room = CHANNEL_BYTES - flow.bytes.len() >= ATOMIC_BYTES;
            events |= match (flow.has_reader, self.is_socket) {
                (true, _) => {
                    if has_room {
                        OUT
                    } else {
                        0
                    }
                }
                (false, true) => OUT | HANG_UP,
                (false, false) => OUT | ERROR,
            };
        }
        events
    }
}

impl Flow {
    fn open() -> Arc<Mutex<Flow>> {
        Arc::new(Mutex::new(Flow { has_reader: true, has_writer: true, ..Flow::default() }))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.shut_down(true, true);
    }
}

impl EventCounter {
    /// Makes a counter; a reader of a semaphore takes 1.
    pub fn new(count: u64, is_semaphore: bool) -> EventCounter {
        EventCounter { count: Mutex::new(count), is_semaphore, changes: AtomicU64::new(1) }
    }

    fn take(&self) -> Result<u64, StreamError> {
        let mut count = self.count.lock();
        if *count == 0 {
            return Err(StreamError::WouldBlock);
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
        if self.is_semaphore {
            *count -= 1;
            return Ok(1);
        }
        Ok(take(&mut count))
    }

    fn add(&self, more: u64) -> Result<(), StreamError> {
        let mut count = self.count.lock();
        let sum = count.checked_add(more).filter(|sum| *sum < u64::MAX);
        match sum {
            None if more == u64::MAX => Err(StreamError::Invalid),
            None => Err(StreamError::WouldBlock),
            Some(sum) => {
                *count = sum;
                self.changes.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

impl Timer {
    /// Makes a timer that is not set.
    pub fn new(clock: u64) -> Timer {
        Timer { clock, ..Timer::default() }
    }

    /// Sets the expiry. Returns the former remaining time and interval.
    pub fn set(&self, due: Option<Expiry>, now_ns: u64) -> (u64, u64) {
        let before = self.rest(now_ns);
        *self.due.lock() = due;
        self.changes.fetch_add(1, Ordering::Relaxed);
        before
    }

    /// The remaining time until the expiry, and the interval; 0 if the timer is not set.
    pub fn rest(&self, now_ns: u64) -> (u64, u64) {
        self.due.lock().map_or((0, 0), |due| due.rest(now_ns))
    }

    /// Number of expiries since the last read.
    fn expirations(&self, now_ns: u64) -> u64 {
        self.due.lock().map_or(0, |due| due.count(now_ns))
    }

    fn take(&self, now_ns: u64) -> Result<u64, StreamError> {
        let count = self.expirations(now_ns);
        if count == 0 {
            return Err(StreamError::WouldBlock);
        }
        let mut due = self.due.lock();
        *due = due.and_then(|due| due.after(count));
        self.changes.fetch_add(count, Ordering::Relaxed);
        Ok(count)
    }
}
