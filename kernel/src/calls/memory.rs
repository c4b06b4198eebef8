//! Calls on a program's memory.

use tally_abi::syscall::{
    self,
    errno::{EINVAL, ENOMEM},
};

use super::Errno;
use crate::{
    memory::{
        frames::FRAME_BYTES,
        space::{Access, SpaceError},
    },
    task::Process,
};

const PROT_READ: u64 = 1;
const PROT_WRITE: u64 = 2;
const PROT_EXECUTE: u64 = 4;
const MAP_PRIVATE: u64 = 0x02;
const MAP_ANONYMOUS: u64 = 0x20;
/// `MADV_DONTNEED`.
const DONT_NEED: u64 = 4;
/// `MAP_NORESERVE`, `MAP_POPULATE` and `MAP_STACK`: every page is there from the beginning anyway.
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
        // Programs copy where it is refused.
        syscall::MREMAP => Err(Errno(ENOMEM)),
        syscall::MADVISE => advise(process, a, b, c),
        syscall::BRK => Ok(process.set_heap_end(a)),
        _ => return None,
    })
}

fn map(process: &mut Process, arguments: [u64; 6]) -> Result<u64, Errno> {
    let [_, bytes, protection, flags, ..] = arguments;
    // Only what the documentation promises: any other mapping is refused, not approximated. An address
    // without MAP_FIXED is a hint.
    if bytes == 0 || flags & !MAP_HINTS != MAP_PRIVATE | MAP_ANONYMOUS {
        return Err(Errno(EINVAL));
    }
    Ok(process.map(bytes, access(protection)?)?)
}

/// What `PROT_…` asks for: nothing becomes executable.
fn access(protection: u64) -> Result<Access, Errno> {
    match (protection & PROT_EXECUTE != 0, protection & PROT_WRITE != 0) {
        (false, true) => Ok(Access::Write),
        (false, false) if protection & PROT_READ != 0 => Ok(Access::Read),
        (false, false) => Ok(Access::Nothing),
        (true, _) => Err(Errno(EINVAL)),
    }
}

fn protect(process: &mut Process, address: u64, bytes: u64, protection: u64) -> Result<u64, Errno> {
    let access = access(protection)?;
    if !address.is_multiple_of(FRAME_BYTES) {
        return Err(Errno(EINVAL));
    }
    process.protect(address, bytes, access).map_err(|_| Errno(ENOMEM))?;
    Ok(0)
}

/// `madvise`: what is not needed any more is zeros from then on; everything else is advice indeed.
fn advise(process: &mut Process, address: u64, bytes: u64, advice: u64) -> Result<u64, Errno> {
    if advice == DONT_NEED {
        process.clear(address, bytes).map_err(|_| Errno(EINVAL))?;
    }
    Ok(0)
}

fn unmap(process: &mut Process, address: u64, bytes: u64) -> Result<u64, Errno> {
    match process.unmap(address, bytes) {
        Ok(()) if bytes > 0 => Ok(0),
        Err(SpaceError::OutOfMemory) => Err(Errno(ENOMEM)),
        _ => Err(Errno(EINVAL)),
    }
}
