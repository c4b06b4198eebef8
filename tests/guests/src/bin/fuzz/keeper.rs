//! The keeper of a program: a thread that makes no random calls. Random calls soon wait for an
//! event that never happens. The keeper interrupts them with a signal, so that the program makes
//! its other calls too.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tally::sys;
use tally_test_guests::threads::action;

use crate::calls::{SIGUSR1, handle};

/// Maximum number of threads that make random calls.
pub const THREADS: usize = 4;
/// Pause between two looks: a `struct timespec` of five milliseconds.
static PAUSE: [u64; 2] = [0, 5_000_000];
/// Looks without a call of any thread after which the program ends, because all threads block the
/// signal.
const IDLE_LOOKS: u32 = 50;

/// Thread that makes random calls.
struct Kept {
    /// Thread number; 0 before its start and after its end.
    tid: AtomicU64,
    /// Number of calls made.
    made: AtomicU64,
}

static KEPT: [Kept; THREADS] =
    [const { Kept { tid: AtomicU64::new(0), made: AtomicU64::new(0) } }; THREADS];

/// Registers the calling thread under this index before its first call.
pub fn begin(index: usize) {
    // SAFETY: the call touches no memory.
    KEPT[index].tid.store(unsafe { sys::call(sys::GETTID, [0; 6]) } as u64, Relaxed);
}

/// Counts a call of the thread with this index. Returns the number of calls of all threads.
pub fn made(index: usize) -> u64 {
    KEPT[index].made.fetch_add(1, Relaxed);
    KEPT.iter().map(|kept| kept.made.load(Relaxed)).sum()
}

/// Unregisters the thread with this index after its last call.
pub fn finish(index: usize) {
    KEPT[index].tid.store(0, Relaxed);
}

/// Unblocks the keeper's signal in the calling thread.
pub fn unblock() {
    let set = 1_u64 << (SIGUSR1 - 1);
    let unblock = 1;
    // SAFETY: the word is valid for reading.
    unsafe { sys::call(sys::RT_SIGPROCMASK, [unblock, &raw const set as u64, 0, 8, 0, 0]) };
}

/// Entry of the keeper's thread.
pub extern "C" fn keep(_: u64) -> ! {
    let (mut seen, mut idle) = ([0; THREADS], 0);
    loop {
        // SAFETY: the words are valid for reading.
        unsafe { sys::call(sys::NANOSLEEP, [PAUSE.as_ptr() as u64, 0, 0, 0, 0, 0]) };
        idle += 1;
        for (kept, seen) in KEPT.iter().zip(&mut seen) {
            let (tid, made) = (kept.tid.load(Relaxed), kept.made.load(Relaxed));
            if made != *seen {
                (*seen, idle) = (made, 0);
            } else if tid != 0 {
                interrupt(tid);
            }
        }
        if idle > IDLE_LOOKS {
            sys::exit(6);
        }
    }
}

/// Sends the signal to a thread, after restoring its handler, which random calls may have changed.
fn interrupt(tid: u64) {
    let action = action(handle, 0, 0);
    // SAFETY: the words are valid for reading; the other call touches no memory.
    unsafe {
        sys::call(sys::RT_SIGACTION, [SIGUSR1, action.as_ptr() as u64, 0, 8, 0, 0]);
        sys::call(sys::TKILL, [tid, SIGUSR1, 0, 0, 0, 0]);
    }
}
