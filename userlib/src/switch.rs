//! The word that starts and stops all logical counters at once: [`tally_abi::bank`] has its rules.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tally_abi::{
    Error,
    bank::{BUSY, DETACHED, PAGE_WORDS, PINNED_SLOT, RESTARTED, SLOTS, STOPPED, header, writable},
};

use crate::{bank::Bank, error::check, rdpmc::rdpmc, sys};

// All accesses are relaxed: the kernel, which writes the same words, does so on this CPU.

impl Bank<'_> {
    /// Stops all logical counters: what happens from here on is not in their values. No system
    /// call.
    ///
    /// Each hardware counter stops where this function reads it, so two of them stop some ten
    /// instructions apart, and it itself is counted up to there; that is the same at each call, but
    /// for calls that an interrupt of the kernel's comes into, which begin again. A program that is
    /// stopped for long is not interrupted for its counters.
    pub fn stop(&self) {
        loop {
            let switch = self.own(writable::CONTROL).load(Relaxed);
            match switch as u32 {
                BUSY => {}
                state if state & STOPPED != 0 => return,
                _ if self.note(writable::HELD, writable::SKIPPED, switch)
                    && self.exchange(writable::CONTROL, switch, switch | u64::from(STOPPED)) =>
                {
                    return;
                }
                _ => {}
            }
        }
    }

    /// Starts all logical counters, for the first time or again. A system call only where the
    /// kernel has taken them off the hardware: before the first time, and where a slice or the
    /// program's turn ended while they were stopped.
    ///
    /// # Errors
    /// This CPU cannot count.
    pub fn start(&self) -> Result<(), Error> {
        loop {
            let switch = self.own(writable::CONTROL).load(Relaxed);
            match switch as u32 {
                BUSY => {}
                DETACHED => {
                    // SAFETY: the call has no buffer.
                    let result =
                        unsafe { sys::call(sys::SESSION_START, [self.session, 0, 0, 0, 0, 0]) };
                    match check(result) {
                        // Another thread, or a handler, came between and started them.
                        Err(Error::WrongState) => {}
                        result => return result.map(|_| ()),
                    }
                }
                state if state & STOPPED == 0 => return Ok(()),
                _ => {
                    let started = switch & !u64::from(STOPPED) | u64::from(RESTARTED) << 32;
                    if self.note(writable::SKIPPED, writable::HELD, switch)
                        && self.exchange(writable::CONTROL, switch, started)
                    {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether the counters are stopped.
    pub fn is_stopped(&self) -> bool {
        self.own(writable::CONTROL).load(Relaxed) as u32 & STOPPED != 0
    }

    /// Notes in the words `to` what each counter in use shows beyond its base and its word of
    /// `less`; whether the switch is still the same.
    fn note(&self, to: usize, less: usize, switch: u64) -> bool {
        let used = self.header(header::USED);
        (0..SLOTS).filter(|slot| used >> slot & 1 == 1).all(|slot| {
            let word = self.own(to + slot);
            let old = word.load(Relaxed);
            if self.own(writable::CONTROL).load(Relaxed) != switch {
                return false;
            }
            let number = match slot.checked_sub(PINNED_SLOT) {
                Some(event) => self.header(header::PINNED_RDPMC + event) as u32,
                None => slot as u32,
            };
            // SAFETY: the program may use RDPMC (`Bank::new`), and these counters are there.
            let count = unsafe { rdpmc(number) }
                .wrapping_sub(self.header(header::BASE + slot) as u32)
                .wrapping_sub(self.own(less + slot).load(Relaxed) as u32);
            let new = switch >> 32 << 32 | u64::from(count);
            word.compare_exchange(old, new, Relaxed, Relaxed).is_ok()
        })
    }

    fn exchange(&self, word: usize, old: u64, new: u64) -> bool {
        self.own(word).compare_exchange(old, new, Relaxed, Relaxed).is_ok()
    }

    /// A word of the program's own page.
    fn own(&self, index: usize) -> &AtomicU64 {
        // SAFETY: (1) the page lies there (`Bank::new`), aligned; (2) all write it atomically.
        unsafe { AtomicU64::from_ptr(self.words.sub(PAGE_WORDS).add(index).cast_mut()) }
    }

    fn header(&self, index: usize) -> u64 {
        // SAFETY: the header has this word (`Bank::new`), aligned; the kernel writes it atomically.
        unsafe { AtomicU64::from_ptr(self.words.add(index).cast_mut()) }.load(Relaxed)
    }
}
