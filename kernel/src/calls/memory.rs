//! Calls on a program's memory.

use tally_abi::syscall::{
    self,
    errno::{EFAULT, EINVAL, ENOMEM},
};

use super::answer::Errno;
use crate::{
    memory::{
        frames::FRAME_BYTES,
        space::{PageAccess, SpaceError},
    },
    task::Process,
};

const PROT_READ: u64 = 1;
const PROT_WRITE: u64 = 2;
const PROT_EXECUTE: u64 = 4;
const MAP_PRIVATE: u64 = 0x02;
const MAP_ANONYMOUS: u64 = 0x20;
/// `MADV_DONTNEED`, and the advice that changes nothing that a program sees: `MADV_NORMAL` to
/// `MADV_WILLNEED`, `MADV_FREE`, and, as there is no fork and no dump, `MADV_DONTFORK` to
/// `MADV_PAGEOUT`.
const DONT_NEED: u64 = 4;
const NORMAL: u64 = 0;
const WILL_NEED: u64 = 3;
const FREE: u64 = 8;
const DONT_FORK: u64 = 10;
const PAGE_OUT: u64 = 21;
/// `MAP_NORESERVE`, `MAP_POPULATE` and `MAP_STACK`: every page is allocated at once anyway.
const MAP_HINTS: u64 = 0x4000 | 0x8000 | 0x2_0000;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    arguments: [u64; 6],
) -> Option<Result<u64, Errno>> {
    let [a, b, c, ..] = arguments;
    Some(match number {
        syscall::MMAP => map(process, arguments),
        syscall::MPROTECT => protect(process, a, b, c),
        syscall::MUNMAP => unmap(process, a, b),
        syscall::MREMAP => remap(process, a, c),
        syscall::MADVISE => advise(process, a, b, c),
        syscall::BRK => Ok(process.memory.set_heap_end(a)),
        _ => return None,
    })
}

fn map(process: &mut Process, arguments: [u64; 6]) -> Result<u64, Errno> {
    let [_, bytes, protection, flags, ..] = arguments;
    // Every other kind of mapping is refused, not approximated (`docs/abi.md`). An address without
    // MAP_FIXED is a hint.
    if bytes == 0 || flags & !MAP_HINTS != MAP_PRIVATE | MAP_ANONYMOUS {
        return Err(Errno(EINVAL));
    }
    Ok(process.memory.map(bytes, access(protection)?)?)
}

/// The access that `PROT_…` flags ask for; executable memory is refused.
fn access(protection: u64) -> Result<PageAccess, Errno> {
    match (protection & PROT_EXECUTE != 0, protection & PROT_WRITE != 0) {
        (false, true) => Ok(PageAccess::Write),
        (false, false) if protection & PROT_READ != 0 => Ok(PageAccess::Read),
        (false, false) => Ok(PageAccess::Nothing),
        (true, _) => Err(Errno(EINVAL)),
    }
}

fn protect(process: &mut Process, address: u64, bytes: u64, protection: u64) -> Result<u64, Errno> {
    let access = access(protection)?;
    if !address.is_multiple_of(FRAME_BYTES) {
        return Err(Errno(EINVAL));
    }
    process.memory.protect(address, bytes, access).map_err(|_| Errno(ENOMEM))?;
    Ok(0)
}

/// `mremap`: refused, upon which C libraries copy. musl finds the end of a stack by its errors.
fn remap(process: &Process, address: u64, bytes: u64) -> Result<u64, Errno> {
    if !address.is_multiple_of(FRAME_BYTES) || bytes == 0 {
        return Err(Errno(EINVAL));
    }
    Err(Errno(if process.memory.is_own(address) { ENOMEM } else { EFAULT }))
}

/// `madvise`: `MADV_DONTNEED` zeroes the range, hints are ignored.
fn advise(process: &mut Process, address: u64, bytes: u64, advice: u64) -> Result<u64, Errno> {
    match advice {
        DONT_NEED => process.memory.clear(address, bytes).map(|()| 0).map_err(|_| Errno(EINVAL)),
        NORMAL..=WILL_NEED | FREE | DONT_FORK..=PAGE_OUT => Ok(0),
        _ => Err(Errno(EINVAL)),
    }
}

fn unmap(process: &mut Process, address: u64, bytes: u64) -> Result<u64, Errno> {
    match process.memory.unmap(address, bytes) {
        Ok(()) if bytes > 0 => Ok(0),
        Err(SpaceError::OutOfMemory) => Err(Errno(ENOMEM)),
        _ => Err(Errno(EINVAL)),
    }
}
