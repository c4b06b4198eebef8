//! Calls on the calling program itself.

use core::mem::replace;

use tally_abi::{
    syscall::{
        self,
        errno::{ECHILD, EFAULT, EINVAL, ENOSYS, EPERM, ESRCH},
    },
    uname,
};
use x86_64::{VirtAddr, registers::model_specific::FsBase};

use super::answer::Errno;
use crate::{
    memory::space::USER_END,
    sched::table,
    task::{
        Process,
        limits::{self, LimitError},
    },
};

const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;
/// `PR_SET_NAME` and `PR_GET_NAME`.
pub(super) const SET_NAME: u64 = 15;
const GET_NAME: u64 = 16;
/// `PR_CAPBSET_READ`, and the highest capability.
const HAS_CAPABILITY: u64 = 23;
const LAST_CAPABILITY: u64 = 40;
/// `ADDR_NO_RANDOMIZE` of `personality`, which is so anyway, and the number that only asks.
const FIXED_ADDRESSES: u64 = 0x0004_0000;
const ASKS: u64 = 0xffff_ffff;
/// Permissions in a mask of `umask`.
const PERMISSIONS: u64 = 0o777;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::GETPID => Ok(process.pid.into()),
        syscall::GETPPID => Ok(table::lock().parent(process.pid).unwrap_or(0).into()),
        syscall::GETUID | syscall::GETGID | syscall::GETEUID | syscall::GETEGID => Ok(0),
        syscall::ARCH_PRCTL => arch_control(process, a, b),
        syscall::PRLIMIT64 => limit(process, [a, b, c, d]),
        syscall::SETRLIMIT => limit(process, [0, a, b, 0]),
        syscall::UMASK => Ok(replace(&mut process.settings.file_mask, a & PERMISSIONS)),
        syscall::PERSONALITY => personality(process, a & ASKS),
        syscall::GETRANDOM => random(process, a, b),
        syscall::UNAME => name(process, a),
        syscall::GETPGRP | syscall::GETPGID | syscall::GETSID => Ok(process.pid.into()),
        syscall::GETGROUPS => Ok(0),
        syscall::GETRESUID | syscall::GETRESGID => [a, b, c].into_iter().try_fold(0, |_, to| {
            process.memory.write(to, &[0; 4])?;
            Ok(0)
        }),
        syscall::GETRLIMIT => limit(process, [0, a, 0, b]),
        syscall::WAIT4 | syscall::WAITID => Err(Errno(ECHILD)),
        syscall::PRCTL => control(process, a, b),
        // Restartable sequences of Linux: C libraries work without them.
        syscall::RSEQ => Err(Errno(ENOSYS)),
        _ => return None,
    })
}

/// `uname`: the name of the system whose calls the kernel implements, and the machine.
fn name(process: &mut Process, to: u64) -> Result<u64, Errno> {
    let mut names: uname::Names = [[0; 65]; 6];
    for (field, text) in names.iter_mut().zip(uname::TEXTS) {
        field[..text.len()].copy_from_slice(text.as_bytes());
    }
    process.memory.write(to, names.as_flattened())?;
    Ok(0)
}

/// `arch_prctl`: the base of FS, where thread-local data is.
fn arch_control(process: &mut Process, code: u64, address: u64) -> Result<u64, Errno> {
    match code {
        ARCH_SET_FS if address < USER_END => {
            process.threads.running().fs_base = address;
            FsBase::write(VirtAddr::new(address));
        }
        ARCH_GET_FS => {
            let base = process.threads.running().fs_base;
            process.memory.write_words(address, [base])?;
        }
        _ => return Err(Errno(EINVAL)),
    }
    Ok(0)
}

/// `prctl`: the running thread's name; every capability is present, as for user 0.
fn control(process: &mut Process, code: u64, at: u64) -> Result<u64, Errno> {
    let mut name = process.threads.running().name;
    match code {
        SET_NAME => {
            for (byte, at) in name.iter_mut().take(15).zip(at..) {
                process.memory.read(at, core::slice::from_mut(byte))?;
                if *byte == 0 {
                    break;
                }
            }
            process.threads.running().name = name;
        }
        GET_NAME => process.memory.write(at, &name)?,
        HAS_CAPABILITY if at <= LAST_CAPABILITY => return Ok(1),
        _ => return Err(Errno(EINVAL)),
    }
    Ok(0)
}

/// `prlimit64` for the program itself.
fn limit(process: &mut Process, arguments: [u64; 4]) -> Result<u64, Errno> {
    let [pid, resource, new, old] = arguments;
    if ![0, u64::from(process.pid)].contains(&pid) {
        return Err(Errno(ESRCH));
    }
    let before = process.settings.limits.get(resource).ok_or(Errno(EINVAL))?;
    if new != 0 {
        let [soft, hard] = process.memory.read_words(new)?;
        process.settings.limits.set(resource, [soft, hard]).map_err(|error| match error {
            LimitError::Invalid => Errno(EINVAL),
            LimitError::NotPermitted => Errno(EPERM),
        })?;
        if resource == limits::DESCRIPTORS {
            process.files.limit = soft;
        }
    }
    if old != 0 {
        process.memory.write_words(old, before)?;
    }
    Ok(0)
}

/// `personality`: Linux's own, with addresses that are the same in every run. Returns the one
/// before.
fn personality(process: &mut Process, new: u64) -> Result<u64, Errno> {
    match new {
        ASKS => Ok(process.settings.personality),
        0 | FIXED_ADDRESSES => Ok(replace(&mut process.settings.personality, new)),
        _ => Err(Errno(EINVAL)),
    }
}

/// `getrandom`.
fn random(process: &mut Process, buffer: u64, bytes: u64) -> Result<u64, Errno> {
    let bytes = bytes.min(256);
    for offset in (0..bytes).step_by(8) {
        let number = process.random().to_le_bytes();
        let part = &number[..(bytes - offset).min(8) as usize];
        process.memory.write(buffer.checked_add(offset).ok_or(Errno(EFAULT))?, part)?;
    }
    Ok(bytes)
}
