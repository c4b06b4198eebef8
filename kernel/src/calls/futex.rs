//! `futex`: waits and wake-ups at words of the program's memory, and mutexes that the kernel hands
//! over. All futexes are private: the word's address in the program identifies the futex.

use tally_abi::syscall::errno::{EAGAIN, EDEADLK, EINVAL, ENOSYS, EPERM, ESRCH};

use super::{
    answer::{Answer, Errno},
    time::{REAL, SINCE_BOOT, deadline_if_any},
};
use crate::task::{
    Process,
    mutex::{OWNER, OWNER_DIED, WAITERS},
    thread::Wait,
};

/// `FUTEX_WAIT`, …: operations, without the flags.
const WAIT: u64 = 0;
const WAKE: u64 = 1;
const REQUEUE: u64 = 3;
const COMPARE_REQUEUE: u64 = 4;
const WAKE_OPERATION: u64 = 5;
const LOCK: u64 = 6;
const UNLOCK: u64 = 7;
const TRY_LOCK: u64 = 8;
const WAIT_BITS: u64 = 9;
const WAKE_BITS: u64 = 10;
/// `FUTEX_LOCK_PI2`: [`LOCK`] with a choice of the clock.
const LOCK_BY_CLOCK: u64 = 13;
/// `FUTEX_CLOCK_REALTIME`.
const OF_REAL_TIME: u64 = 0x100;
/// Flags of operations; `FUTEX_PRIVATE_FLAG` has no effect.
const FLAGS: u64 = 0x80 | OF_REAL_TIME;

/// `futex(word, operation, value, timeout or most, other, third)`.
pub(super) fn call(process: &mut Process, arguments: [u64; 6]) -> Result<Answer, Errno> {
    let [word, operation, value, fourth, other, third] = arguments;
    let clock = if operation & OF_REAL_TIME != 0 { REAL } else { SINCE_BOOT };
    let operation = operation & 0xffff_ffff & !FLAGS;
    let (value, third) = (value as u32, third as u32);
    let found = read(process, word)?;
    let woken = match operation {
        WAIT | WAIT_BITS => {
            let clock = (operation == WAIT_BITS).then_some(clock);
            let until = deadline_if_any(process, clock, fourth)?;
            let bits = if operation == WAIT { u32::MAX } else { third };
            return match (bits, found == value) {
                (0, _) => Err(Errno(EINVAL)),
                (_, false) => Err(Errno(EAGAIN)),
                _ => Ok(Answer::Wait(Wait::Futex { address: word, bits, until })),
            };
        }
        LOCK | LOCK_BY_CLOCK => {
            let clock = if operation == LOCK { REAL } else { clock };
            let until = deadline_if_any(process, Some(clock), fourth)?;
            return lock(process, word, found, Some(until));
        }
        TRY_LOCK => return lock(process, word, found, None),
        UNLOCK => return unlock(process, word, found),
        WAKE => process.threads.wake_futex(word, u32::MAX, value),
        WAKE_BITS if third == 0 => return Err(Errno(EINVAL)),
        WAKE_BITS => process.threads.wake_futex(word, third, value),
        WAKE_OPERATION => {
            let most = if change(process, other, third)? { fourth as u32 } else { 0 };
            let woken = process.threads.wake_futex(word, u32::MAX, value);
            woken + process.threads.wake_futex(other, u32::MAX, most)
        }
        COMPARE_REQUEUE if found != third => return Err(Errno(EAGAIN)),
        REQUEUE | COMPARE_REQUEUE => {
            read(process, other)?;
            let woken = process.threads.wake_futex(word, u32::MAX, value);
            woken + process.threads.requeue_futex(word, other, fourth as u32)
        }
        _ => return Err(Errno(ENOSYS)),
    };
    Ok(Answer::Value(woken.into()))
}

fn read(process: &mut Process, word: u64) -> Result<u32, Errno> {
    if !word.is_multiple_of(4) {
        return Err(Errno(EINVAL));
    }
    Ok(process.mutex_word(word)?)
}

/// Locks the mutex at `word`, which has the value `found`. If another thread holds it, waits until
/// a time, if there is one; does not wait without `until`.
fn lock(
    process: &mut Process,
    word: u64,
    found: u32,
    until: Option<Option<u64>>,
) -> Result<Answer, Errno> {
    let (own, owner) = (process.threads.running().tid, found & OWNER);
    if owner == own {
        return Err(Errno(EDEADLK));
    }
    if owner == 0 {
        let is_awaited = process.threads.waiting_for_mutex(word).next().is_some();
        let value = own | found & OWNER_DIED | if is_awaited { WAITERS } else { 0 };
        process.memory.write(word, &value.to_le_bytes())?;
        process.threads.set_mutex_owner(word, own);
        return Ok(Answer::Value(0));
    }
    if process.threads.all().all(|thread| thread.tid != owner) {
        return Err(Errno(ESRCH));
    }
    let until = until.ok_or(Errno(EAGAIN))?;
    process.memory.write(word, &(found | WAITERS).to_le_bytes())?;
    Ok(Answer::Wait(Wait::Mutex { address: word, owner, until }))
}

fn unlock(process: &mut Process, word: u64, found: u32) -> Result<Answer, Errno> {
    if found & OWNER != process.threads.running().tid {
        return Err(Errno(EPERM));
    }
    process.hand_over_mutex(word, 0)?;
    Ok(Answer::Value(0))
}

/// Changes the word of `FUTEX_WAKE_OP` as `code` says. Returns whether its value before compares as
/// `code` asks.
fn change(process: &mut Process, word: u64, code: u32) -> Result<bool, Errno> {
    let before = read(process, word)?;
    // Both operands are signed, of 12 bits; the highest bit of the operation makes the first one
    // the number of a bit (futex(2)).
    let [operand, compared] = [code << 8, code << 20].map(|bits| bits as i32 >> 20);
    let operand = if code >> 31 == 1 { 1 << (operand & 31) } else { operand } as u32;
    let after = match code >> 28 & 7 {
        0 => operand,
        1 => before.wrapping_add(operand),
        2 => before | operand,
        3 => before & !operand,
        4 => before ^ operand,
        _ => return Err(Errno(ENOSYS)),
    };
    let value = before as i32;
    let holds = match code >> 24 & 15 {
        0 => value == compared,
        1 => value != compared,
        2 => value < compared,
        3 => value <= compared,
        4 => value > compared,
        5 => value >= compared,
        _ => return Err(Errno(ENOSYS)),
    };
    process.memory.write(word, &after.to_le_bytes())?;
    Ok(holds)
}
