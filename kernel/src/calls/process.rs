//! Calls on the program itself.

use tally_abi::syscall::errno::{EFAULT, EINVAL};
use x86_64::{VirtAddr, registers::model_specific::FsBase};

use super::Errno;
use crate::{memory::space::USER_END, task::Process, task::STACK_BYTES};

const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;
const RLIMIT_STACK: u64 = 3;
const RLIM_INFINITY: u64 = u64::MAX;

/// `arch_prctl`: where thread-local data is.
pub(super) fn arch_control(process: &mut Process, code: u64, address: u64) -> Result<u64, Errno> {
    match code {
        ARCH_SET_FS if address < USER_END => {
            process.fs_base = address;
            FsBase::write(VirtAddr::new(address));
        }
        ARCH_GET_FS => process.space.write(address, &process.fs_base.to_le_bytes())?,
        _ => return Err(Errno(EINVAL)),
    }
    Ok(0)
}

/// `prlimit64` of the program itself, for reading.
pub(super) fn limit(process: &mut Process, arguments: [u64; 4]) -> Result<u64, Errno> {
    let [pid, resource, new, old] = arguments;
    if ![0, u64::from(process.pid)].contains(&pid) || new != 0 {
        return Err(Errno(EINVAL));
    }
    let limit = if resource == RLIMIT_STACK { STACK_BYTES } else { RLIM_INFINITY };
    if old != 0 {
        process.space.write(old, [limit; 2].map(u64::to_le_bytes).as_flattened())?;
    }
    Ok(0)
}

/// `getrandom`.
pub(super) fn random(process: &mut Process, buffer: u64, bytes: u64) -> Result<u64, Errno> {
    let bytes = bytes.min(256);
    for offset in (0..bytes).step_by(8) {
        let number = process.random().to_le_bytes();
        let part = &number[..(bytes - offset).min(8) as usize];
        process.space.write(buffer.checked_add(offset).ok_or(Errno(EFAULT))?, part)?;
    }
    Ok(bytes)
}
