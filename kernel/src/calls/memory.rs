//! Calls on a program's memory. They may be long, so they work in steps (decision 21); their
//! progress is the first page of the next step.

use tally_abi::syscall::{
    self,
    errno::{EFAULT, EINVAL, ENOMEM},
};

use super::answer::{Answer, Errno};
use crate::{
    memory::{
        frames::{Claim, FRAME_BYTES},
        space::{PageAccess, SpaceError},
        user::FillStep,
    },
    task::{Process, thread::Progress},
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
    Progress { at, claim, .. }: Progress,
) -> Option<Result<Answer, Errno>> {
    let [a, b, c, ..] = arguments;
    // No page of a program's is at 0.
    let from = (at != 0).then_some(at);
    Some(match number {
        syscall::MMAP => map(process, arguments, from.zip(Some(claim))),
        syscall::MPROTECT => protect(process, [a, b, c], from, claim),
        syscall::MUNMAP => unmap(process, a, b, from),
        syscall::MREMAP => remap(process, a, c).map(Answer::Value),
        syscall::MADVISE => advise(process, a, b, c, from),
        syscall::BRK => Ok(set_heap_end(process, a, from.zip(Some(claim)))),
        _ => return None,
    })
}

/// The answer after a step of a call that returns 0.
fn after(next: Option<u64>) -> Answer {
    next.map_or(Answer::Value(0), Answer::continue_at)
}

/// The first page of the next step, and the memory claimed for the remaining steps.
type Rest = Option<(u64, Option<Claim>)>;

fn map(process: &mut Process, arguments: [u64; 6], rest: Rest) -> Result<Answer, Errno> {
    let [_, bytes, protection, flags, ..] = arguments;
    // Every other kind of mapping is refused, not approximated (`docs/abi.md`). An address without
    // MAP_FIXED is a hint.
    if bytes == 0 || flags & !MAP_HINTS != MAP_PRIVATE | MAP_ANONYMOUS {
        return Err(Errno(EINVAL));
    }
    let access = access(protection)?;
    let (from, mut claim) = match rest {
        Some(rest) => rest,
        None => process.memory.reserve(bytes, access)?,
    };
    match process.memory.fill(from, access, &mut claim) {
        Ok(FillStep::Next(at)) => {
            Ok(Answer::Continue(Progress { at, claim, ..Progress::default() }))
        }
        Ok(FillStep::Done(address)) => Ok(Answer::Value(address)),
        Err(error) => Err(error.into()),
    }
}

/// `brk`: returns the end of the heap, moved or not.
fn set_heap_end(process: &mut Process, end: u64, rest: Rest) -> Answer {
    let first = |(from, claim)| (from, Some(claim));
    let rest = rest.or_else(|| process.memory.move_heap_end(end).map(first));
    if let Some((from, mut claim)) = rest
        && let Some(at) = process.memory.fill_heap(from, &mut claim)
    {
        return Answer::Continue(Progress { at, claim, ..Progress::default() });
    }
    Answer::Value(process.memory.heap_end())
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

fn protect(
    process: &mut Process,
    [address, bytes, protection]: [u64; 3],
    from: Option<u64>,
    mut claim: Option<Claim>,
) -> Result<Answer, Errno> {
    let access = access(protection)?;
    if !address.is_multiple_of(FRAME_BYTES) {
        return Err(Errno(EINVAL));
    }
    match process.memory.protect(address, bytes, access, from, &mut claim) {
        Ok(Some(at)) => Ok(Answer::Continue(Progress { at, claim, ..Progress::default() })),
        Ok(None) => Ok(Answer::Value(0)),
        Err(_) => Err(Errno(ENOMEM)),
    }
}

/// `mremap`: refused; C libraries copy instead. musl finds the end of a stack by its errors.
fn remap(process: &Process, address: u64, bytes: u64) -> Result<u64, Errno> {
    if !address.is_multiple_of(FRAME_BYTES) || bytes == 0 {
        return Err(Errno(EINVAL));
    }
    Err(Errno(if process.memory.is_own(address) { ENOMEM } else { EFAULT }))
}

/// `madvise`: `MADV_DONTNEED` zeroes the range, hints are ignored.
fn advise(
    process: &mut Process,
    address: u64,
    bytes: u64,
    advice: u64,
    from: Option<u64>,
) -> Result<Answer, Errno> {
    match advice {
        DONT_NEED => {
            process.memory.clear(address, bytes, from).map(after).map_err(|_| Errno(EINVAL))
        }
        NORMAL..=WILL_NEED | FREE | DONT_FORK..=PAGE_OUT => Ok(Answer::Value(0)),
        _ => Err(Errno(EINVAL)),
    }
}

fn unmap(
    process: &mut Process,
    address: u64,
    bytes: u64,
    from: Option<u64>,
) -> Result<Answer, Errno> {
    match process.memory.unmap(address, bytes, from) {
        Ok(next) if bytes > 0 => Ok(after(next)),
        Err(SpaceError::OutOfMemory) => Err(Errno(ENOMEM)),
        _ => Err(Errno(EINVAL)),
    }
}
