//! Calls on a program's memory.

use tally_abi::syscall::errno::EINVAL;

use super::Errno;
use crate::{
    memory::{frames::FRAME_BYTES, space::Access},
    task::Process,
};

const PROT_WRITE: u64 = 2;
const PROT_EXECUTE: u64 = 4;
const MAP_PRIVATE: u64 = 0x02;
const MAP_ANONYMOUS: u64 = 0x20;

pub(super) fn map(process: &mut Process, arguments: [u64; 6]) -> Result<u64, Errno> {
    let [address, bytes, protection, flags, ..] = arguments;
    // Only what the documentation promises: any other mapping is refused, not approximated.
    if address != 0 || bytes == 0 || flags != MAP_PRIVATE | MAP_ANONYMOUS {
        return Err(Errno(EINVAL));
    }
    let access = match (protection & PROT_EXECUTE != 0, protection & PROT_WRITE != 0) {
        (false, true) => Access::Write,
        (false, false) => Access::Read,
        (true, _) => return Err(Errno(EINVAL)),
    };
    Ok(process.map(bytes, access)?)
}

pub(super) fn protect(
    process: &mut Process,
    address: u64,
    bytes: u64,
    protection: u64,
) -> Result<u64, Errno> {
    let access = match (protection & PROT_EXECUTE != 0, protection & PROT_WRITE != 0) {
        (false, true) => Access::Write,
        (false, false) => Access::Read,
        (true, _) => return Err(Errno(EINVAL)),
    };
    if !address.is_multiple_of(FRAME_BYTES) {
        return Err(Errno(EINVAL));
    }
    process.protect(address, bytes, access)?;
    Ok(0)
}

pub(super) fn unmap(process: &mut Process, address: u64, bytes: u64) -> Result<u64, Errno> {
    process.unmap(address, bytes).map_err(|_| Errno(EINVAL))?;
    Ok(0)
}
