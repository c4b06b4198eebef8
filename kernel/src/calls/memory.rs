//! Calls on a program's memory. They may be long, so they work in steps and can be preempted
//! (decision 21); their progress is the first page of the next step.

use tally_abi::{
    syscall::{
        self,
        errno::{EACCES, EEXIST, EFAULT, EINVAL, ENODEV, ENOMEM},
    },
    trace::MapRecord,
};

use super::{
    answer::{Answer, Errno},
    files::descriptor,
};
use crate::{
    files::{map_file, open::Descriptor},
    memory::{
        area::Origin,
        frames::FRAME_BYTES,
        remap::Resized,
        space::{PageAccess, SpaceError, UserPage, UserRange},
        user::{Place, Step},
    },
    task::{
        Process,
        call::{Chosen, Progress},
    },
};

const PROT_WRITE: u64 = 2;
const PROT_EXECUTE: u64 = 4;
/// Bits of `mprotect`'s access, without `PROT_GROWSDOWN` and undefined bits.
const PROTECTIONS: u64 = 7;
/// `MAP_SHARED`, `MAP_PRIVATE` and `MAP_SHARED_VALIDATE`.
const MAP_TYPE: u64 = 0xf;
const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_SHARED_VALIDATE: u64 = 3;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_32BIT: u64 = 0x40;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
/// Flags without an effect that a program sees: `MAP_DENYWRITE`, `MAP_EXECUTABLE`, `MAP_LOCKED`,
/// `MAP_NORESERVE`, `MAP_POPULATE`, `MAP_NONBLOCK`, `MAP_STACK`.
const MAP_HINTS: u64 = 0x800 | 0x1000 | 0x2000 | MAP_NORESERVE | 0x8000 | 0x1_0000 | 0x2_0000;
/// Pages that `mincore` looks at in a step.
const PAGES_OF_STEP: u64 = 256;
/// `MREMAP_MAYMOVE`.
const MAY_MOVE: u64 = 1;
/// `MREMAP_FIXED`.
const FIXED_PLACE: u64 = 2;
/// `MADV_DONTNEED` and its form for locked memory.
const DONT_NEED: [u64; 2] = [4, 24];
// Advice without an effect that a program sees: `MADV_NORMAL` to `MADV_WILLNEED`, `MADV_FREE`,
// `MADV_DONTFORK` to `MADV_POPULATE_WRITE` (there is no fork and no dump), and `MADV_COLLAPSE`.
const NORMAL: u64 = 0;
const WILL_NEED: u64 = 3;
const FREE: u64 = 8;
const DONT_FORK: u64 = 10;
const POPULATE_WRITE: u64 = 23;
const COLLAPSE: u64 = 25;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    arguments: [u64; 6],
    progress: &Progress,
) -> Option<Result<Answer, Errno>> {
    let [a, b, c, d, ..] = arguments;
    // No program has a page at address 0.
    let from = match progress.at {
        0 => None,
        at => match UserPage::containing(at) {
            Ok(page) => Some(page),
            Err(error) => return Some(Err(error.into())),
        },
    };
    let place = match progress.chosen {
        Some(Chosen::Place(place)) => Some(place),
        _ => None,
    };
    Some(match number {
        syscall::MMAP => map(process, arguments, from),
        syscall::MPROTECT => protect(process, [a, b, c], from),
        syscall::MUNMAP => unmap(process, a, b, from),
        syscall::MREMAP if d & FIXED_PLACE != 0 => remap_to(process, arguments, from, place),
        syscall::MREMAP => remap(process, [a, b, c, d], from, place),
        syscall::MADVISE => advise(process, [a, b, c], from),
        syscall::MINCORE => present(process, [a, b, c], from),
        syscall::BRK => Ok(set_heap_end(process, a, from)),
        syscall::MSYNC | syscall::MLOCK | syscall::MLOCK2 | syscall::MUNLOCK => {
            covered(process, a, b).map(|()| Answer::Value(0))
        }
        // Memory is never swapped out.
        syscall::MLOCKALL | syscall::MUNLOCKALL => Ok(Answer::Value(0)),
        _ => return None,
    })
}

/// Makes the answer of a call that continues at this page.
fn continue_at(page: UserPage) -> Answer {
    Answer::continue_at(page.address())
}

/// Makes the answer after a step of a call that returns `value`.
fn after(next: Step, value: u64) -> Answer {
    next.map_or(Answer::Value(value), continue_at)
}

/// Fails unless the whole range is mapped.
fn covered(process: &Process, address: u64, bytes: u64) -> Result<(), Errno> {
    let start = address - address % FRAME_BYTES;
    let end = address.checked_add(bytes).ok_or(Errno(EINVAL))?;
    if process.memory.covers(start, end - start) { Ok(()) } else { Err(Errno(ENOMEM)) }
}

/// `mmap`: unmaps what is at a fixed address first, in steps.
fn map(process: &mut Process, arguments: [u64; 6], from: Step) -> Result<Answer, Errno> {
    let [address, bytes, protection, flags, _, offset] = arguments;
    let known = MAP_HINTS | MAP_TYPE | MAP_FIXED | MAP_ANONYMOUS | MAP_32BIT | MAP_FIXED_NOREPLACE;
    if bytes == 0 || flags & !known != 0 || !offset.is_multiple_of(FRAME_BYTES) {
        return Err(Errno(EINVAL));
    }
    let access = access(process, protection)?;
    let origin = origin(process, access, arguments)?;
    let is_fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0;
    let takes_memory = access != PageAccess::Nothing && matches!(origin, Origin::Zeros);
    if takes_memory && flags & MAP_NORESERVE == 0 && !process.memory.space.may_have(bytes) {
        return Err(Errno(ENOMEM));
    }
    if is_fixed && !address.is_multiple_of(FRAME_BYTES) {
        return Err(Errno(EINVAL));
    }
    if is_fixed && flags & MAP_FIXED_NOREPLACE == 0 {
        let replaced = process.memory.unmap(address, bytes, from);
        if let Some(next) = replaced.map_err(|_| Errno(ENOMEM))? {
            return Ok(continue_at(next));
        }
    }
    let place = match flags {
        _ if is_fixed => Place::Fixed(address),
        _ if flags & MAP_32BIT != 0 => Place::Low,
        _ => Place::Hint(address),
    };
    match process.memory.map(place, bytes, (access, origin)) {
        Ok(address) => Ok(Answer::Value(address)),
        Err(SpaceError::Overlap) => Err(Errno(EEXIST)),
        Err(_) => Err(Errno(ENOMEM)),
    }
}

/// The trace's record of a call that has mapped code of a file of the ramdisk at `address`; `None`
/// for other mappings.
pub(super) fn mapped_code(
    process: &Process,
    arguments: [u64; 6],
    address: u64,
) -> Option<MapRecord> {
    let [_, bytes, protection, flags, fd, offset] = arguments;
    if protection & PROT_EXECUTE == 0 || flags & MAP_ANONYMOUS != 0 {
        return None;
    }
    let Ok(Descriptor::File(open)) = descriptor(process, u64::from(fd as u32)) else { return None };
    let file = open.lock().file.ramdisk_offset()?;
    let bytes = bytes.next_multiple_of(FRAME_BYTES);
    Some(MapRecord { tsc: 0, cpu: 0, program: process.pid, address, bytes, offset, file })
}

/// The initial content of a new mapping's pages.
fn origin(process: &Process, access: PageAccess, arguments: [u64; 6]) -> Result<Origin, Errno> {
    let [_, _, _, flags, fd, offset] = arguments;
    let is_shared = match flags & MAP_TYPE {
        MAP_SHARED | MAP_SHARED_VALIDATE => true,
        MAP_PRIVATE => false,
        _ => return Err(Errno(EINVAL)),
    };
    if flags & MAP_ANONYMOUS != 0 {
        // Without fork, shared memory without a file belongs to one program.
        return Ok(Origin::Zeros);
    }
    let open = match descriptor(process, u64::from(fd as u32))? {
        Descriptor::File(open) => open,
        _ => return Err(Errno(ENODEV)),
    };
    let open = open.lock();
    let writes_file = is_shared && access.writes();
    if !open.reads || writes_file && !open.writes {
        return Err(Errno(EACCES));
    }
    let first = offset / FRAME_BYTES;
    let source = map_file(&open.file)?;
    if is_shared {
        return Ok(Origin::Shared(source, first, open.writes));
    }
    Ok(Origin::Copy(source, first))
}

/// `brk`: returns the end of the heap, moved or not.
fn set_heap_end(process: &mut Process, end: u64, from: Step) -> Answer {
    let next = process.memory.move_heap_end(end, from);
    after(next, process.memory.heap_end())
}

/// The access for `PROT_…` flags. Memory is writable and executable only if the user permits it.
fn access(process: &Process, protection: u64) -> Result<PageAccess, Errno> {
    match (protection & PROT_EXECUTE != 0, protection & PROT_WRITE != 0) {
        _ if protection & !PROTECTIONS != 0 => Err(Errno(EINVAL)),
        (true, true) if process.may_write_code => Ok(PageAccess::All),
        (true, true) => Err(Errno(EACCES)),
        (true, false) => Ok(PageAccess::Execute),
        (false, true) => Ok(PageAccess::Write),
        (false, false) if protection != 0 => Ok(PageAccess::Read),
        (false, false) => Ok(PageAccess::Nothing),
    }
}

fn protect(
    process: &mut Process,
    [address, bytes, protection]: [u64; 3],
    from: Step,
) -> Result<Answer, Errno> {
    let access = access(process, protection)?;
    if !address.is_multiple_of(FRAME_BYTES) {
        return Err(Errno(EINVAL));
    }
    match process.memory.protect(address, bytes, access, from) {
        Ok(next) => Ok(after(next, 0)),
        Err(SpaceError::Overlap) => Err(Errno(EACCES)),
        Err(_) => Err(Errno(ENOMEM)),
    }
}

/// `mremap`; `from` is the next page of a step, and `place` the destination of a mapping that
/// moves.
fn remap(
    process: &mut Process,
    [address, old_bytes, bytes, flags]: [u64; 4],
    from: Step,
    place: Option<UserRange>,
) -> Result<Answer, Errno> {
    let is_aligned = address.is_multiple_of(FRAME_BYTES);
    if !is_aligned || bytes == 0 || old_bytes == 0 || flags & !MAY_MOVE != 0 {
        return Err(Errno(EINVAL));
    }
    let pages = |bytes: u64| bytes.checked_next_multiple_of(FRAME_BYTES).ok_or(Errno(EINVAL));
    let (old_bytes, bytes) = (pages(old_bytes)?, pages(bytes)?);
    let old = UserRange::new(address, old_bytes)?;
    let memory = &mut process.memory;
    if from.is_none() && !memory.covers(address, old_bytes) {
        return Err(Errno(EFAULT));
    }
    if bytes <= old_bytes {
        let next = memory.unmap(address + bytes, old_bytes - bytes, from)?;
        return Ok(after(next, address));
    }
    let new = match place {
        Some(place) => place,
        None => match memory.extend(old, bytes, flags & MAY_MOVE != 0)? {
            Resized::InPlace => return Ok(Answer::Value(address)),
            Resized::MovesTo(new) => new,
        },
    };
    let next = memory.move_pages(old, new, from)?;
    Ok(moved(next, new))
}

/// Makes the answer after a step of moving a mapping to `new`.
fn moved(next: Step, new: UserRange) -> Answer {
    let chosen = Some(Chosen::Place(new));
    next.map_or(Answer::Value(new.start()), |page| {
        Answer::Continue(Progress { at: page.address(), chosen, ..Progress::default() })
    })
}

/// The pages of a mapping, at least one.
fn pages(address: u64, bytes: u64) -> Result<UserRange, Errno> {
    let range = UserRange::new(address, bytes).map_err(|_| Errno(EINVAL))?;
    if range.is_empty() { Err(Errno(EINVAL)) } else { Ok(range) }
}

/// `mremap` to a fixed address: unmaps the cut-off end of the mapping and the pages at its new
/// place, then moves it. `from` is the next page, and `place` the new place when it is free.
fn remap_to(
    process: &mut Process,
    [address, old_bytes, bytes, flags, to, _]: [u64; 6],
    mut from: Step,
    place: Option<UserRange>,
) -> Result<Answer, Errno> {
    if flags != MAY_MOVE | FIXED_PLACE || to == 0 {
        return Err(Errno(EINVAL));
    }
    let (old, new) = (pages(address, old_bytes)?, pages(to, bytes)?);
    if old.overlaps(new) {
        return Err(Errno(EINVAL));
    }
    let behind = UserPage::containing(old.start().saturating_add(new.bytes())).ok();
    let kept = old.before(behind);
    let memory = &mut process.memory;
    if place.is_none() {
        if from.is_none() {
            memory.movable(old)?;
        }
        if from.is_none_or(|page| (kept.end()..old.end()).contains(&page.address())) {
            if let Some(next) = memory.unmap(kept.end(), old.end() - kept.end(), from)? {
                return Ok(continue_at(next));
            }
            from = None;
        }
        let unmapped = memory.unmap(to, bytes, from).map_err(|_| Errno(EINVAL))?;
        if let Some(next) = unmapped {
            return Ok(continue_at(next));
        }
        memory.free_place(new).map_err(|_| Errno(ENOMEM))?;
        memory.reserve(new, kept)?;
        from = None;
    }
    let next = memory.move_pages(kept, new, from)?;
    Ok(moved(next, new))
}

/// `madvise`: `MADV_DONTNEED` drops the pages; hints are ignored.
fn advise(
    process: &mut Process,
    [address, bytes, advice]: [u64; 3],
    from: Step,
) -> Result<Answer, Errno> {
    match advice {
        _ if !address.is_multiple_of(FRAME_BYTES) => Err(Errno(EINVAL)),
        advice if DONT_NEED.contains(&advice) => {
            match process.memory.drop_pages(address, bytes, from) {
                Ok(next) => Ok(after(next, 0)),
                Err(SpaceError::OutOfMemory) => Err(Errno(ENOMEM)),
                Err(_) => Err(Errno(EINVAL)),
            }
        }
        NORMAL..=WILL_NEED | FREE | DONT_FORK..=POPULATE_WRITE | COLLAPSE => Ok(Answer::Value(0)),
        _ => Err(Errno(EINVAL)),
    }
}

/// `mincore`: a byte for each page, 1 if it is there.
fn present(
    process: &mut Process,
    [address, bytes, to]: [u64; 3],
    from: Step,
) -> Result<Answer, Errno> {
    if !address.is_multiple_of(FRAME_BYTES) {
        return Err(Errno(EINVAL));
    }
    covered(process, address, bytes)?;
    let end = address + bytes.next_multiple_of(FRAME_BYTES);
    let start = from.map_or(address, |page| page.address());
    let stop = end.min(start + PAGES_OF_STEP * FRAME_BYTES);
    for at in (start..stop).step_by(FRAME_BYTES as usize) {
        let is_there = process.memory.space.has_page(UserPage::containing(at)?);
        let to = to.checked_add((at - address) / FRAME_BYTES).ok_or(Errno(EFAULT))?;
        process.memory.write(to, &[is_there.into()])?;
    }
    Ok(if stop == end { Answer::Value(0) } else { continue_at(UserPage::containing(stop)?) })
}

fn unmap(process: &mut Process, address: u64, bytes: u64, from: Step) -> Result<Answer, Errno> {
    if bytes == 0 {
        return Err(Errno(EINVAL));
    }
    match process.memory.unmap(address, bytes, from) {
        Ok(next) => Ok(after(next, 0)),
        Err(SpaceError::OutOfMemory) => Err(Errno(ENOMEM)),
        Err(_) => Err(Errno(EINVAL)),
    }
}
