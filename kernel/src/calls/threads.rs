//! Calls on threads: creation, numbers, lists of robust mutexes.

use tally_abi::syscall::{
    self,
    errno::{EAGAIN, EINVAL, ENOSYS, ESRCH},
};

use super::{
    answer::{Answer, Errno},
    futex,
};
use crate::{
    arch::frame::Frame,
    memory::{heap, space::USER_END},
    sched::table,
    task::{Process, thread::MAX_THREADS},
};

/// `CLONE_VM`, `CLONE_SIGHAND` and `CLONE_THREAD`: without these `clone` would make a process.
const THREAD_FLAGS: u64 = 0x100 | 0x800 | 0x1_0000;
/// `CLONE_FS`, `CLONE_FILES`, `CLONE_SYSVSEM` and `CLONE_DETACHED`: they hold for every thread
/// here, so they have no effect.
const NO_FLAGS: u64 = 0x200 | 0x400 | 0x4_0000 | 0x40_0000;
const SET_TLS: u64 = 0x8_0000;
const PARENT_SET_TID: u64 = 0x10_0000;
const CHILD_CLEAR_TID: u64 = 0x20_0000;
const CHILD_SET_TID: u64 = 0x100_0000;
const CLONE_FLAGS: u64 =
    THREAD_FLAGS | NO_FLAGS | SET_TLS | PARENT_SET_TID | CHILD_CLEAR_TID | CHILD_SET_TID;

/// Bytes of the head of a list of robust mutexes.
const ROBUST_LIST_BYTES: u64 = 24;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    arguments: [u64; 6],
) -> Option<Result<Answer, Errno>> {
    let [a, b, c, ..] = arguments;
    Some(Ok(Answer::Value(match number {
        syscall::FUTEX => return Some(futex::call(process, arguments)),
        syscall::GETTID => process.threads.running().tid.into(),
        syscall::SET_TID_ADDRESS => {
            let thread = process.threads.running();
            thread.clear_tid = a;
            thread.tid.into()
        }
        syscall::SET_ROBUST_LIST if b != ROBUST_LIST_BYTES => return Some(Err(Errno(EINVAL))),
        syscall::SET_ROBUST_LIST => {
            process.threads.running().robust_list = a;
            0
        }
        syscall::GET_ROBUST_LIST if a != 0 => return Some(Err(Errno(ESRCH))),
        syscall::GET_ROBUST_LIST => {
            let head = process.threads.running().robust_list;
            let written = process.memory.write_words(b, [head]);
            let written = written.and_then(|()| process.memory.write_words(c, [ROBUST_LIST_BYTES]));
            match written {
                Ok(()) => 0,
                Err(error) => return Some(Err(error.into())),
            }
        }
        // C libraries use `clone` if this call is missing.
        syscall::CLONE3 => return Some(Err(Errno(ENOSYS))),
        _ => return None,
    })))
}

/// `clone(flags, stack, parent_tid, child_tid, tls)` for a thread.
pub(super) fn clone(
    process: &mut Process,
    frame: &Frame,
    [flags, stack, parent_tid, child_tid, tls, _]: [u64; 6],
) -> Result<u64, Errno> {
    if flags & THREAD_FLAGS != THREAD_FLAGS {
        return Err(Errno(ENOSYS));
    }
    if flags & !CLONE_FLAGS != 0 || tls >= USER_END && flags & SET_TLS != 0 {
        return Err(Errno(EINVAL));
    }
    if process.threads.len() >= MAX_THREADS || !heap::has_room() {
        return Err(Errno(EAGAIN));
    }
    let tid = table::lock().allocate_number().ok_or(Errno(EAGAIN))?;
    let rsp = if stack == 0 { frame.rsp } else { stack };
    let mut new = process.threads.running().fork(tid, Frame { rax: 0, rsp, ..*frame });
    if flags & SET_TLS != 0 {
        new.fs_base = tls;
    }
    if flags & CHILD_CLEAR_TID != 0 {
        new.clear_tid = child_tid;
    }
    for (flag, word) in [(PARENT_SET_TID, parent_tid), (CHILD_SET_TID, child_tid)] {
        if flags & flag != 0 {
            process.memory.write(word, &tid.to_le_bytes())?;
        }
    }
    process.threads.add(new);
    Ok(tid.into())
}
