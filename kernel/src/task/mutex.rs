//! Mutexes whose owner is in their word (`FUTEX_LOCK_PI`, Linux's
//! `Documentation/locking/pi-futex.rst`). The kernel hands a mutex over to the thread that has
//! waited longest; no thread inherits a priority, because the order of turns does not depend on
//! priorities.

use super::process::Process;
use crate::memory::space::SpaceError;

/// `FUTEX_WAITERS`, `FUTEX_OWNER_DIED` and `FUTEX_TID_MASK`, in a mutex' word.
pub const WAITERS: u32 = 1 << 31;
pub const OWNER_DIED: u32 = 1 << 30;
pub const OWNER: u32 = OWNER_DIED - 1;

impl Process {
    /// The word of a mutex in the program's memory.
    ///
    /// # Errors
    /// The program has no memory there, or none is left.
    pub fn mutex_word(&mut self, address: u64) -> Result<u32, SpaceError> {
        let mut bytes = [0; 4];
        self.memory.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Hands the mutex at `address` over to its first waiter, or frees it if there is none. `mark`
    /// is 0, or [`OWNER_DIED`].
    ///
    /// # Errors
    /// The program may not write there, or no memory is left.
    pub fn hand_over_mutex(&mut self, address: u64, mark: u32) -> Result<(), SpaceError> {
        let mut waiting = self.threads.waiting_for_mutex(address);
        let (next, others) = (waiting.next(), waiting.next().is_some());
        drop(waiting);
        let word = next.unwrap_or(0) | mark | if others { WAITERS } else { 0 };
        self.memory.write(address, &word.to_le_bytes())?;
        if let Some(next) = next {
            self.threads.wake(next, 0);
            self.threads.set_mutex_owner(address, next);
        }
        Ok(())
    }

    /// Hands over the mutexes of the running thread, which ends, for which others wait. A library
    /// may have removed the owner from the word before, as musl does.
    pub fn hand_over_held_mutexes(&mut self) {
        let (tid, mut from) = (self.threads.running().tid, 0);
        while let Some(address) = self.threads.awaited_mutex_of(tid, from) {
            // The waiters of a mutex that the program made read-only keep waiting.
            let _ = self.hand_over_mutex(address, OWNER_DIED);
            from = address + 1;
        }
    }
}
