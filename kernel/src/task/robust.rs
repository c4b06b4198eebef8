//! Robust mutexes of a thread that ends (Linux's `Documentation/locking/robust-futexes.rst`): the
//! thread keeps a list of its held mutexes in the program's memory.

use super::{
    mutex::{OWNER, OWNER_DIED, WAITERS},
    process::Process,
};

/// Maximum entries of a list: the program writes it, and it may be circular.
const MAX_ENTRIES: usize = 2048;
/// The bit of an entry's address that marks a mutex that the kernel hands over.
const HANDED_OVER: u64 = 1;

impl Process {
    /// Marks the robust mutexes held by the running thread, which ends, and wakes a waiter of each.
    /// An address outside the program's memory ends the list.
    pub fn release_robust_mutexes(&mut self) {
        let thread = self.threads.running();
        let (head, tid) = (thread.robust_list, thread.tid);
        let Ok([first, offset, pending]) = self.memory.read_words(head) else { return };
        let mut at = first;
        for _ in 0..MAX_ENTRIES {
            let entry = at & !HANDED_OVER;
            let Ok([next]) = self.memory.read_words(entry) else { break };
            if entry == head {
                break;
            }
            self.release_robust_mutex(at, offset, tid);
            at = next;
        }
        if pending != 0 {
            self.release_robust_mutex(pending, offset, tid);
        }
    }

    fn release_robust_mutex(&mut self, entry: u64, offset: u64, tid: u32) {
        let word = (entry & !HANDED_OVER).wrapping_add(offset);
        let Ok(value) = self.mutex_word(word) else { return };
        if value & OWNER != tid {
            return;
        }
        if entry & HANDED_OVER != 0 {
            // An address that the program cannot write is no mutex.
            let _ = self.hand_over_mutex(word, OWNER_DIED);
            return;
        }
        let released = value & WAITERS | OWNER_DIED;
        if self.memory.write(word, &released.to_le_bytes()).is_ok() && value & WAITERS != 0 {
            self.threads.wake_futex(word, u32::MAX, 1);
        }
    }
}
