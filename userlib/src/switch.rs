//! The control word, by which a program stops and starts all logical counters at once.
//! [`tally_abi::bank`] gives the rules.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tally_abi::{
    Error,
    bank::{BUSY, DETACHED, PAGE_WORDS, PINNED_SLOT, RESTARTED, SLOTS, STOPPED, header, writable},
};

use crate::{bank::Bank, error::check, rdpmc::rdpmc, sys};

// Relaxed is enough for every access: the kernel writes these words on the same CPU.

impl Bank<'_> {
    /// Stops all logical counters: their values contain no later event. Makes a system call only if
    /// the session is on no counter: it is stopped, or another session has its turn.
    ///
    /// Each hardware counter stops where this function reads it with RDPMC, so two counters stop
    /// about ten instructions apart. The instructions of this function up to that point are
    /// counted. Their number is the same at each call, unless the kernel publishes during the call,
    /// which makes the function begin again. While the counters are stopped, at most one more
    /// overflow interrupt occurs.
    pub fn stop(&self) {
        loop {
            let control = self.own(writable::CONTROL).load(Relaxed);
            match control as u32 {
                BUSY => {}
                DETACHED => {
                    // Another session may have its turn on the counters. An error means that this
                    // one is stopped. Not `tally_call`: no other kernel maps a bank.
                    // SAFETY: the call has no buffer.
                    unsafe { sys::call(sys::SESSION_STOP, [self.session, 0, 0, 0, 0, 0]) };
                    return;
                }
                state if state & STOPPED != 0 => return,
                _ if self.save_counts(writable::HELD, writable::SKIPPED, control)
                    && self.exchange(writable::CONTROL, control, control | u64::from(STOPPED)) =>
                {
                    return;
                }
                _ => {}
            }
        }
    }

    /// Starts all logical counters, for the first time or again. Makes a system call only if the
    /// session is on no CPU: before the first start, and after a slice or the program's turn ended
    /// while the counters were stopped.
    ///
    /// # Errors
    /// This CPU cannot count.
    pub fn start(&self) -> Result<(), Error> {
        loop {
            let control = self.own(writable::CONTROL).load(Relaxed);
            match control as u32 {
                BUSY => {}
                DETACHED => {
                    // Not `tally_call`: no other kernel maps a bank.
                    let arguments = [self.session, 0, 0, 0, 0, 0];
                    // SAFETY: the call has no buffer.
                    match check(unsafe { sys::call(sys::SESSION_START, arguments) }) {
                        // They are started: another session has its turn on the counters.
                        Err(Error::WrongState) => return Ok(()),
                        result => return result.map(|_| ()),
                    }
                }
                state if state & STOPPED == 0 => return Ok(()),
                _ => {
                    let started = control & !u64::from(STOPPED) | u64::from(RESTARTED) << 32;
                    if self.save_counts(writable::SKIPPED, writable::HELD, control)
                        && self.exchange(writable::CONTROL, control, started)
                    {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Returns whether the counters are stopped.
    pub fn is_stopped(&self) -> bool {
        self.own(writable::CONTROL).load(Relaxed) as u32 & STOPPED != 0
    }

    /// Saves in the words `to`, by slot, what each counter in use shows beyond its base and its
    /// word of `less`. Returns whether the control word is still `control`.
    fn save_counts(&self, to: usize, less: usize, control: u64) -> bool {
        let used = self.header(header::USED);
        (0..SLOTS).filter(|slot| used >> slot & 1 == 1).all(|slot| {
            let word = self.own(to + slot);
            let old = word.load(Relaxed);
            if self.own(writable::CONTROL).load(Relaxed) != control {
                return false;
            }
            let number = match slot.checked_sub(PINNED_SLOT) {
                Some(event) => self.header(header::PINNED_RDPMC + event) as u32,
                None => slot as u32,
            };
            // SAFETY: the program may use RDPMC, and the kernel wrote the numbers of existing
            // counters into the bank (`Bank::new`).
            let count = unsafe { rdpmc(number) }
                .wrapping_sub(self.header(header::BASE + slot) as u32)
                .wrapping_sub(self.own(less + slot).load(Relaxed) as u32);
            let new = control >> 32 << 32 | u64::from(count);
            word.compare_exchange(old, new, Relaxed, Relaxed).is_ok()
        })
    }

    fn exchange(&self, word: usize, old: u64, new: u64) -> bool {
        self.own(word).compare_exchange(old, new, Relaxed, Relaxed).is_ok()
    }

    /// A word of the program's own page.
    fn own(&self, index: usize) -> &AtomicU64 {
        // SAFETY: (1) the page lies there, aligned (`Bank::new`); (2) every writer writes it
        // atomically.
        unsafe { AtomicU64::from_ptr(self.words.sub(PAGE_WORDS).add(index).cast_mut()) }
    }

    fn header(&self, index: usize) -> u64 {
        // SAFETY: the header has this word (`Bank::new`), aligned; the kernel writes it atomically.
        unsafe { AtomicU64::from_ptr(self.words.add(index).cast_mut()) }.load(Relaxed)
    }
}
