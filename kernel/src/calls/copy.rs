//! Copies between descriptors inside the kernel, `sendfile` and `copy_file_range`: in steps, so
//! that a long copy can be preempted (decision 21).
//!
//! The progress of a copy is the number of bytes done. Each step moves the positions of both files,
//! or the offsets in the program's memory that replace them.

use alloc::sync::Arc;

use spin::Mutex;
use tally_abi::{
    syscall::{
        self,
        errno::{EBADF, EINVAL, EISDIR, ENOSPC, EOVERFLOW},
    },
    wire::MAX_OUTPUT_BYTES,
};

use super::{
    answer::{Answer, Errno, RETRY},
    files::descriptor,
    length::{self, STEP_BYTES},
    streams,
    transfer::{MAX_BYTES, emit},
};
use crate::{
    files::{
        open::{Descriptor, OpenFile},
        streams::Kind,
    },
    task::Process,
};

type Open = Arc<Mutex<OpenFile>>;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, e, f]: [u64; 6],
    done: u64,
) -> Option<Result<Answer, Errno>> {
    let copy = match number {
        syscall::SENDFILE => send(process, a, [b, c], d),
        syscall::COPY_FILE_RANGE => range(process, [a, b], [c, d], e, f),
        _ => return None,
    };
    Some(copy.and_then(|copy| copy.step(process, done)))
}

/// A file and a position in it.
struct Place {
    open: Open,
    /// Address of the offset in the program's memory; 0 for the file's position.
    offset: u64,
    at: u64,
}

impl Place {
    fn of(process: &mut Process, open: Open, offset: u64) -> Result<Place, Errno> {
        let at = match offset {
            0 => open.lock().position,
            address => process.memory.read_words::<1>(address)?[0],
        };
        if at > i64::MAX as u64 {
            return Err(Errno(EINVAL));
        }
        Ok(Place { open, offset, at })
    }

    /// Stores the new position in the file, or in the program's memory.
    fn store(&self, process: &mut Process) -> Result<(), Errno> {
        match self.offset {
            0 => self.open.lock().position = self.at,
            address => process.memory.write_words(address, [self.at])?,
        }
        Ok(())
    }

    /// Returns whether both places are in the same file, under any descriptors.
    fn is_in_file_of(&self, other: &Place) -> bool {
        let [own, others] = [self, other].map(|place| place.open.lock().file.number);
        own == others
    }
}

/// Target of the copied bytes.
enum Target {
    File(Place),
    Other(Descriptor),
}

struct Copy {
    from: Place,
    to: Target,
    bytes: u64,
}

/// `sendfile(out, in, offset, bytes)`: from a file to a descriptor, except a file opened for
/// appending.
fn send(
    process: &mut Process,
    out: u64,
    [from, offset]: [u64; 2],
    bytes: u64,
) -> Result<Copy, Errno> {
    let from = match descriptor(process, from)? {
        Descriptor::File(open) if open.lock().reads => open,
        Descriptor::File(_) | Descriptor::Output(_) => return Err(Errno(EBADF)),
        _ => return Err(Errno(EINVAL)),
    };
    let to = match descriptor(process, out)? {
        Descriptor::File(open) if !open.lock().writes => return Err(Errno(EBADF)),
        Descriptor::File(open) if open.lock().appends => return Err(Errno(EINVAL)),
        Descriptor::File(open) => Target::File(Place::of(process, open, 0)?),
        Descriptor::Folder(_) => return Err(Errno(EBADF)),
        Descriptor::Epoll(_) => return Err(Errno(EINVAL)),
        Descriptor::Stream(stream) if !matches!(stream.kind, Kind::Channel(_)) => {
            return Err(Errno(EINVAL));
        }
        other => Target::Other(other),
    };
    Ok(Copy { from: Place::of(process, from, offset)?, to, bytes })
}

/// `copy_file_range(in, in_offset, out, out_offset, bytes, flags)`: between files.
fn range(
    process: &mut Process,
    [from, from_offset]: [u64; 2],
    [to, to_offset]: [u64; 2],
    bytes: u64,
    flags: u64,
) -> Result<Copy, Errno> {
    let (from, to) = (descriptor(process, from)?, descriptor(process, to)?);
    if flags != 0 {
        return Err(Errno(EINVAL));
    }
    let (from, to) = match (from, to) {
        (Descriptor::Folder(_), _) | (_, Descriptor::Folder(_)) => return Err(Errno(EISDIR)),
        (Descriptor::File(from), Descriptor::File(to)) => (from, to),
        _ => return Err(Errno(EINVAL)),
    };
    // Locked one after the other: both can be the same open file.
    let reads = from.lock().reads;
    let writes = Some(to.lock()).is_some_and(|to| to.writes && !to.appends);
    if !reads || !writes {
        return Err(Errno(EBADF));
    }
    let from = Place::of(process, from, from_offset)?;
    let to = Place::of(process, to, to_offset)?;
    let ends = [&from, &to].map(|place| place.at.checked_add(bytes));
    if ends.iter().any(|end| end.is_none_or(|end| end > i64::MAX as u64)) {
        return Err(Errno(EOVERFLOW));
    }
    let there = bytes.min(from.rest());
    if from.is_in_file_of(&to) && to.at < from.at + there && from.at < to.at + there {
        return Err(Errno(EINVAL));
    }
    Ok(Copy { from, to: Target::File(to), bytes })
}

impl Place {
    /// The number of bytes from here to the file's end.
    fn rest(&self) -> u64 {
        let file = self.open.lock().file.clone();
        let len = file.lock().len();
        len.saturating_sub(self.at)
    }
}

impl Copy {
    /// Makes a step, after `done` bytes.
    fn step(mut self, process: &mut Process, done: u64) -> Result<Answer, Errno> {
        let wanted = self.bytes.min(MAX_BYTES).saturating_sub(done);
        let there = wanted.min(self.from.rest());
        // A copy within one file does not copy its own output again.
        let is_last = there <= STEP_BYTES || self.is_within_file();
        let Some(moved) = self.copy(process, there.min(STEP_BYTES), done)? else {
            return Ok(Answer::continue_at(done));
        };
        self.from.store(process)?;
        if let Target::File(to) = &self.to {
            to.store(process)?;
        }
        let all = done + moved.bytes;
        Ok(match moved.failed {
            Some(RETRY) => Answer::Partial(all),
            Some(_) => Answer::Value(all),
            None if is_last => Answer::Value(all),
            None => Answer::continue_at(all),
        })
    }

    fn is_within_file(&self) -> bool {
        matches!(&self.to, Target::File(to) if to.is_in_file_of(&self.from))
    }

    /// Copies `bytes`, or as many as can be written; an error if none can and none were before.
    /// `None` if the file was only extended towards the place.
    fn copy(
        &mut self,
        process: &mut Process,
        bytes: u64,
        done: u64,
    ) -> Result<Option<Moved>, Errno> {
        let mut chunk = [0; MAX_OUTPUT_BYTES];
        let mut moved = Moved { bytes: 0, failed: None };
        while moved.bytes < bytes {
            let room = chunk.len().min((bytes - moved.bytes) as usize);
            let part = self.from.read(&mut chunk[..room]);
            if part.is_empty() {
                // A program on another CPU has truncated the file in the meantime.
                break;
            }
            match self.to.write(process, part) {
                Ok(None) => return Ok(None),
                Ok(Some(written)) => {
                    self.from.at += written;
                    moved.bytes += written;
                }
                Err(Errno(error)) if done + moved.bytes == 0 => return Err(Errno(error)),
                Err(Errno(error)) => {
                    moved.failed = Some(error);
                    break;
                }
            }
        }
        Ok(Some(moved))
    }
}

/// Number of bytes copied, and the error that ended the copy.
struct Moved {
    bytes: u64,
    failed: Option<i64>,
}

impl Place {
    /// Reads from here on. Returns the bytes that the file has.
    fn read<'a>(&self, to: &'a mut [u8]) -> &'a [u8] {
        let file = self.open.lock().file.clone();
        let bytes = file.lock().copy_to(self.at, to);
        &to[..bytes]
    }

    /// Writes here. Returns the number of bytes written; `None` if the file was only extended.
    fn write(&mut self, bytes: &[u8]) -> Result<Option<u64>, Errno> {
        let file = self.open.lock().file.clone();
        let mut content = file.change();
        if let Answer::Continue(_) = length::extend(&mut content, self.at)? {
            return Ok(None);
        }
        match content.write(self.at, bytes) {
            0 => Err(Errno(ENOSPC)),
            written => {
                self.at += written as u64;
                Ok(Some(written as u64))
            }
        }
    }
}

impl Target {
    fn write(&mut self, process: &mut Process, bytes: &[u8]) -> Result<Option<u64>, Errno> {
        let written = match self {
            Target::File(place) => return place.write(bytes),
            Target::Other(Descriptor::Stream(stream)) => {
                streams::put(process, stream, bytes, false)?
            }
            Target::Other(Descriptor::Output(fd)) => {
                emit(process, *fd, bytes);
                bytes.len() as u64
            }
            Target::Other(_) => bytes.len() as u64,
        };
        Ok(Some(written))
    }
}
