//! Robust mutexes of a thread that ends (Linux's `Documentation/locking/robust-futexes.rst`): the
//! thread keeps a list of its held mutexes in the program's memory.

use super::process::Process;

/// Maximum entries of a list: the program writes it, and it may be circular.
const MAX_ENTRIES: usize = 2048;
/// `FUTEX_WAITERS`, `FUTEX_OWNER_DIED` and `FUTEX_TID_MASK`, in a mutex' word.
const WAITERS: u32 = 1 << 31;
const OWNER_DIED: u32 = 1 << 30;
const OWNER: u32 = OWNER_DIED - 1;

impl Process {
    /// Marks the robust mutexes held by the running thread, which ends, and wakes a waiter of each.
    /// An address outside the program's memory ends the list.
    pub fn release_robust_mutexes(&mut self) {
        let thread = self.threads.running();
        let (head, tid) = (thread.robust_list, thread.tid);
        let Ok([first, offset, pending]) = self.memory.read_words(head) else { return };
        let mut at = first;
        for _ in 0..MAX_ENTRIES {
            // The lowest bit marks mutexes with priority inheritance, which the kernel does not
            // have.
            let entry = at & !1;
            let Ok([next]) = self.memory.read_words(entry) else { break };
            if entry == head {
                break;
            }
            self.release_robust_mutex(entry.wrapping_add(offset), tid);
            at = next;
        }
        if pending != 0 {
            self.release_robust_mutex((pending & !1).wrapping_add(offset), tid);
        }
    }

    fn release_robust_mutex(&mut self, word: u64, tid: u32) {
        let mut bytes = [0; 4];
        if self.memory.read(word, &mut bytes).is_err() {
            return;
        }
        let value = u32::from_le_bytes(bytes);
        let released = value & WAITERS | OWNER_DIED;
        if value & OWNER == tid
            && self.memory.write(word, &released.to_le_bytes()).is_ok()
            && value & WAITERS != 0
        {
            self.threads.wake_futex(word, u32::MAX, 1);
        }
    }
}
