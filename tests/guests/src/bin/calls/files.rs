//! Calls on files and descriptors.

use core::ffi::CStr;

use tally::sys;
use tally_abi::syscall::errno;
use tally_test_guests::Checks;

use crate::call::{KERNEL, UNMAPPED, call};

/// Checks the results of the calls.
pub fn check(checks: &mut Checks) {
    checks.equal("an unknown call", call(9999, [0; 6]), -errno::ENOSYS);
    paths(checks);
    large_vector(checks);
    descriptors(checks);
    without_a_free_descriptor(checks);
}

fn open_at(path: u64, flags: u64) -> i64 {
    call(sys::OPEN, [path, flags, 0, 0, 0, 0])
}

fn open(path: &CStr, flags: u64) -> i64 {
    open_at(path.as_ptr() as u64, flags)
}

fn paths(checks: &mut Checks) {
    let write = |fd, address, bytes| call(sys::WRITE, [fd, address, bytes, 0, 0, 0]);
    checks.equal("write to a closed descriptor", write(7, 0, 0), -errno::EBADF);
    for bad in [UNMAPPED, KERNEL, u64::MAX - 4] {
        checks.equal("write from an invalid address", write(1, bad, 8), -errno::EFAULT);
        checks.equal("open with an invalid address", open_at(bad, 0), -errno::EFAULT);
    }
    checks.equal("open a file that is not there", open(c"no-such-file", 0), -errno::ENOENT);
    checks.equal("open a folder to write", open(c"/", 1), -errno::EISDIR);
    checks.equal("create a folder as a file", open(c"/tmp", 0o102), -errno::EISDIR);
    checks.equal("create a file in a file", open(c"corpus.txt/a", 0o102), -errno::ENOTDIR);
    checks.equal("create a file in no folder", open(c"none/a", 0o102), -errno::ENOENT);
    let remove = |path: &CStr| call(sys::UNLINK, [path.as_ptr() as u64, 0, 0, 0, 0, 0]);
    checks.equal("remove a device", remove(c"/dev/null"), -errno::EBUSY);
    checks.equal("remove a generated text", remove(c"/proc/self/maps"), -errno::EBUSY);
    checks.equal("write a generated text", open(c"/proc/meminfo", 1), -errno::EACCES);
    let socket = call(sys::SOCKET, [2, 1, 0, 0, 0, 0]);
    checks.equal("a socket of a network", socket, -errno::EAFNOSUPPORT);
    checks.equal("create a file that is there", open(c"corpus.txt", 0o300), -errno::EEXIST);
}

fn large_vector(checks: &mut Checks) {
    let null = open(c"/dev/null", 1) as u64;
    let parts = [[0_u64, 300 << 10]; 1024];
    let vector = [null, parts.as_ptr() as u64, 1024, 0, 0, 0];
    checks.equal("writev of 300 MiB", call(sys::WRITEV, vector), 1024 * (300 << 10));
    checks.equal("close /dev/null", call(sys::CLOSE, [null, 0, 0, 0, 0, 0]), 0);
}

fn descriptors(checks: &mut Checks) {
    let fd = open(c"corpus.txt", 0) as u64;
    checks.equal("first descriptor", fd, 3);
    for bad in [UNMAPPED, KERNEL, check as fn(&mut Checks) as usize as u64] {
        checks.equal(
            "read to an invalid address",
            call(sys::READ, [fd, bad, 64, 0, 0, 0]),
            -errno::EFAULT,
        );
    }
    checks.equal("seek to below 0", call(sys::LSEEK, [fd, u64::MAX, 0, 0, 0, 0]), -errno::EINVAL);
    checks.equal("close", call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]), 0);
    checks.equal("close twice", call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]), -errno::EBADF);
}

/// Checks that an open that gets no descriptor changes no file.
fn without_a_free_descriptor(checks: &mut Checks) {
    let made = open(c"made", 0o102);
    checks.equal(
        "write 7 bytes",
        call(sys::WRITE, [made as u64, c"7 bytes".as_ptr() as u64, 7, 0, 0, 0]),
        7,
    );
    let last = core::iter::from_fn(|| Some(open(c"made", 0)).filter(|fd| *fd >= 0)).last();
    checks.equal("the highest descriptor", last, Some(1023));
    checks.equal(
        "open and truncate without a free descriptor",
        open(c"made", 0o1001),
        -errno::EMFILE,
    );
    checks.equal("create without a free descriptor", open(c"made-too", 0o102), -errno::EMFILE);
    checks.equal(
        "the length of the file that was not truncated",
        call(sys::LSEEK, [made as u64, 0, 2, 0, 0, 0]),
        7,
    );
    (3..1024).for_each(|fd| _ = call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]));
    checks.equal("the file that was not created", open(c"made-too", 0), -errno::ENOENT);
    checks.equal("remove a file", call(sys::UNLINK, [c"made".as_ptr() as u64, 0, 0, 0, 0, 0]), 0);
}
