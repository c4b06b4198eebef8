//! Calls of a program's handler each time an event has been counted another threshold.
//!
//! A threshold of the kernel fires once, in whichever thread runs, when the session's counter
//! reaches a count. A threshold of PAPI fires repeatedly, in the thread that started the set, by
//! that thread's own count. Therefore an upcall compares the thread's count with the next multiple,
//! calls the handler if it is reached, and sets the kernel's threshold to the remaining number of
//! events. An upcall runs between any two instructions of the program: it takes no lock and uses no
//! heap.

use core::{
    arch::naked_asm,
    ffi::{c_int, c_void},
    mem, ptr,
    sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use tally_abi::thread::{COUNTED_CYCLES, CYCLES, EVENT_WORDS, EVENTS, HEADER_WORDS};
use tally_rust::{Session, sys};

use crate::{
    answer::Code,
    histogram::{self, Histograms},
    layout::OverflowHandler,
    machine,
};

/// Maximum number of thresholds of all sets together.
const SLOTS: usize = 64;
/// Number of events whose counts an upcall can read; higher indices cannot have thresholds.
const READABLE: usize = 64;
/// Word of the instruction pointer in a `ucontext_t`.
const INSTRUCTION_POINTER: usize = 5 + 16;
/// Marks a free slot: no session has this number.
const FREE: u64 = u64::MAX;

/// Number of threads that are in the library, or wait to enter it: a handler that called the
/// library would wait for a thread that it interrupted.
pub(crate) static IN_LIBRARY: AtomicU32 = AtomicU32::new(0);

/// An event with a threshold. Upcalls read it, so its fields are atomics; the library writes it
/// only while the session of the slot has no threshold. Relaxed: threads take turns on one CPU, and
/// an upcall comes after the call that set its threshold.
struct Slot {
    session: AtomicU64,
    /// Index in the set, which equals that in the session's list.
    event: AtomicUsize,
    set: AtomicI32,
    thread: AtomicU64,
    threshold: AtomicU64,
    /// Count of the thread at which the handler is called next.
    next: AtomicU64,
    /// An [`OverflowHandler`], or null.
    handler: AtomicPtr<c_void>,
    histograms: AtomicPtr<Histograms>,
}

static PLACES: [Slot; SLOTS] = [const {
    Slot {
        session: AtomicU64::new(FREE),
        event: AtomicUsize::new(0),
        set: AtomicI32::new(0),
        thread: AtomicU64::new(0),
        threshold: AtomicU64::new(0),
        next: AtomicU64::new(0),
        handler: AtomicPtr::new(ptr::null_mut()),
        histograms: AtomicPtr::new(ptr::null_mut()),
    }
}; SLOTS];

/// Action each time an event has been counted another threshold.
pub(crate) struct Overflow {
    pub(crate) set: c_int,
    pub(crate) event: usize,
    pub(crate) threshold: u64,
    pub(crate) handler: Option<OverflowHandler>,
    /// Null, or valid until [`end`].
    pub(crate) histograms: *mut Histograms,
}

/// Starts watching an event of a mapped session for the calling thread.
pub(crate) fn begin(session: &Session, overflow: &Overflow) -> Result<(), Code> {
    let free = |slot: &&Slot| slot.session.load(Relaxed) == FREE;
    let (index, slot) =
        (PLACES.iter().enumerate().find(|(_, slot)| free(slot))).ok_or(Code::Cnflct)?;
    slot.session.store(session.id(), Relaxed);
    slot.event.store(overflow.event, Relaxed);
    slot.set.store(overflow.set, Relaxed);
    slot.thread.store(machine::thread(), Relaxed);
    slot.threshold.store(overflow.threshold, Relaxed);
    slot.next.store(overflow.threshold, Relaxed);
    let handler = overflow.handler.map_or(ptr::null_mut(), |handler| handler as *mut c_void);
    slot.handler.store(handler, Relaxed);
    slot.histograms.store(overflow.histograms, Relaxed);
    match slot.arm(index, overflow.threshold) {
        0 => Ok(()),
        _ => {
            slot.session.store(FREE, Relaxed);
            Err(Code::Cnflct)
        }
    }
}

/// Stops watching the events of a session.
pub(crate) fn end(session: &Session) {
    for slot in PLACES.iter().filter(|slot| slot.session.load(Relaxed) == session.id()) {
        slot.session.store(FREE, Relaxed);
    }
}

impl Slot {
    /// Sets the kernel's threshold.
    fn arm(&self, index: usize, count: u64) -> i64 {
        let (session, event) = (self.session.load(Relaxed), self.event.load(Relaxed) as u64);
        let arguments = [session, event, count, enter as *const () as u64, index as u64, 0];
        // SAFETY: the call has no buffer, and the entry point may be called anywhere (see the
        // module).
        unsafe { sys::tally_call(sys::SESSION_THRESHOLD, arguments) }
    }

    /// Calls the handler if the thread's count has reached the next multiple. Returns the number of
    /// events after which to check again.
    fn look(&self, context: *mut c_void) -> u64 {
        let threshold = self.threshold.load(Relaxed);
        if IN_LIBRARY.load(Relaxed) > 0 {
            return (threshold / 64).clamp(1, 5000);
        }
        // The watched thread may have counted none of the events meanwhile, or all of them.
        if machine::thread() != self.thread.load(Relaxed) {
            return (threshold / 8).max(1);
        }
        let (own, next) = (self.own_count(), self.next.load(Relaxed));
        if own < next {
            return next - own;
        }
        let later = (own / threshold + 1) * threshold;
        self.next.store(later, Relaxed);
        self.call(context);
        later - own
    }

    fn call(&self, context: *mut c_void) {
        // SAFETY: the kernel's frame has a context there, which is 8-byte aligned.
        let address = unsafe { context.cast::<*mut c_void>().add(INSTRUCTION_POINTER).read() };
        histogram::add(self.histograms.load(Relaxed), address as usize);
        let handler = self.handler.load(Relaxed);
        if !handler.is_null() {
            // SAFETY: `begin` stored a handler there.
            let handler = unsafe { mem::transmute::<*mut c_void, OverflowHandler>(handler) };
            handler(self.set.load(Relaxed), address, 1 << self.event.load(Relaxed), context);
        }
    }

    /// Returns the count of the calling thread, scaled if the event shares its counter.
    fn own_count(&self) -> u64 {
        let mut words = [0_u64; HEADER_WORDS + READABLE * EVENT_WORDS];
        let event = self.event.load(Relaxed);
        let arguments =
            [self.session.load(Relaxed), words.as_mut_ptr() as u64, words.len() as u64, 0, 0, 0];
        // SAFETY: the buffer is valid for writing its length.
        unsafe { sys::tally_call(sys::SESSION_THREAD, arguments) };
        let first = HEADER_WORDS + event * EVENT_WORDS;
        let (events, counted) = (words[first + EVENTS], words[first + COUNTED_CYCLES]);
        if counted == 0 || counted >= words[CYCLES] {
            return events;
        }
        (u128::from(events) * u128::from(words[CYCLES]) / u128::from(counted)) as u64
    }
}

/// Returns whether the event with this index can have a threshold.
pub(crate) fn is_readable(event: usize) -> bool {
    event < READABLE
}

extern "C" fn dispatch(_event: u64, count: u64, index: u64, context: *mut c_void) {
    let Some(slot) = PLACES.get(index as usize) else { return };
    if slot.session.load(Relaxed) == FREE {
        return;
    }
    let later = slot.look(context);
    if slot.session.load(Relaxed) != FREE {
        // An error means that the set ended in the handler.
        let _ = slot.arm(index as usize, count.saturating_add(later));
    }
}

/// Entry point of upcalls. The kernel leaves a word below the signal frame, whose first word is for
/// a return address: the context follows.
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        "lea rcx, [rsp + 16]",
        "call {dispatch}",
        "mov eax, {back}",
        "syscall",
        "ud2",
        dispatch = sym dispatch,
        back = const sys::UPCALL_RETURN,
    )
}
