//! Changing a file's length: in steps, so that it can be preempted (decision 21).

use tally_abi::syscall::errno::{EINVAL, EISDIR, ENOSPC};

use super::{
    answer::{Answer, Errno},
    files::descriptor,
    paths::{HERE, find},
};
use crate::{
    files::{Content, inode::FileRef, open::Descriptor, tree::Node},
    task::Process,
};

/// Bytes of one step: some tens of microseconds.
pub(super) const STEP_BYTES: u64 = 64 << 10;

/// Makes a step of `ftruncate`.
pub(super) fn truncate_descriptor(
    process: &mut Process,
    fd: u64,
    bytes: u64,
) -> Result<Answer, Errno> {
    let Descriptor::File(open) = descriptor(process, fd)? else { return Err(Errno(EINVAL)) };
    let open = open.lock();
    if !open.writes {
        return Err(Errno(EINVAL));
    }
    truncate(process, &open.file, bytes)
}

/// Makes a step of `truncate`.
pub(super) fn truncate_path(process: &mut Process, path: u64, bytes: u64) -> Result<Answer, Errno> {
    match find(process, HERE, path)? {
        Node::File(file) => truncate(process, &file, bytes),
        Node::Folder(_) => Err(Errno(EISDIR)),
        _ => Err(Errno(EINVAL)),
    }
}

/// Changes the length of a file towards `bytes`. The progress is in the file, and in the pages that
/// the program has mapped beyond its new end, which are freed as under Linux.
fn truncate(process: &mut Process, file: &FileRef, bytes: u64) -> Result<Answer, Errno> {
    if bytes > i64::MAX as u64 {
        return Err(Errno(EINVAL));
    }
    let mut content = file.change();
    if bytes > content.len() {
        return extend(&mut content, bytes);
    }
    content.set_len(bytes)?;
    drop(content);
    let is_done = process.memory.drop_behind(file.number, bytes);
    Ok(if is_done { Answer::Value(0) } else { Answer::continue_at(0) })
}

/// Extends a file that is shorter than `bytes` towards that length.
pub(super) fn extend(content: &mut Content, bytes: u64) -> Result<Answer, Errno> {
    let next = bytes.min(content.len().saturating_add(STEP_BYTES));
    if next < bytes && !content.has_room(bytes) {
        return Err(Errno(ENOSPC));
    }
    if content.len() < next {
        content.set_len(next)?;
    }
    Ok(if next == bytes { Answer::Value(0) } else { Answer::continue_at(0) })
}
