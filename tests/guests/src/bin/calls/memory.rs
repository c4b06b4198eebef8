//! Calls that map memory, unmap it, and change access to it.

use tally::sys;
use tally_abi::syscall::errno;
use tally_test_guests::Checks;

use crate::call::{KERNEL, call};

const TERABYTE: u64 = 1 << 40;

/// Checks the results of the calls.
pub fn check(checks: &mut Checks) {
    refused_mappings(checks);
    unmapping(checks);
    protection(checks);
    without_access(checks);
    reuse_of_addresses(checks);
    remapping(checks);
    heap(checks);
    let fs = [0x1002, KERNEL, 0, 0, 0, 0];
    checks.equal("FS base in the kernel", call(sys::ARCH_PRCTL, fs), -errno::EINVAL);
    checks.equal("an unknown call again", call(9999, [0; 6]), -errno::ENOSYS);
    most_mappings(checks);
}

fn map(bytes: u64, protection: u64, flags: u64) -> i64 {
    call(sys::MMAP, [0, bytes, protection, flags, u64::MAX, 0])
}

/// Maps memory without access, which takes no frames.
fn reserve(bytes: u64) -> i64 {
    map(bytes, 0, 0x4022)
}

/// Maps the standard output.
fn output(bytes: u64) -> i64 {
    call(sys::MMAP, [0, bytes, 3, 0x02, 1, 0])
}

fn unmap(address: u64, bytes: u64) -> i64 {
    call(sys::MUNMAP, [address, bytes, 0, 0, 0, 0])
}

fn protect(address: u64, bytes: u64, access: u64) -> i64 {
    call(sys::MPROTECT, [address, bytes, access, 0, 0, 0])
}

fn refused_mappings(checks: &mut Checks) {
    checks.equal("mmap of 0 bytes", map(0, 3, 0x22), -errno::EINVAL);
    checks.equal("mmap of no file", map(4096, 3, 0x02), -errno::EBADF);
    checks.equal("mmap of a file that is none", output(4096), -errno::ENODEV);
    checks.equal("mmap of an unknown kind", map(4096, 3, 0x24), -errno::EINVAL);
    checks.equal("mmap of huge pages", map(4096, 3, 0x4_0022), -errno::EINVAL);
    checks.equal("mmap of writable and executable memory", map(4096, 7, 0x22), -errno::EACCES);
    let fixed = |address| call(sys::MMAP, [address, 4096, 3, 0x32, u64::MAX, 0]);
    checks.equal("mmap at half a page", fixed(0x10_0800), -errno::EINVAL);
    checks.equal("mmap at the null pointer", fixed(0), -errno::EEXIST);
    checks.equal("mmap in the kernel", fixed(KERNEL & !4095), -errno::ENOMEM);
    checks.equal("mmap of more than the address space", map(1 << 45, 3, 0x22), -errno::ENOMEM);
    checks.equal("mmap of more than there is memory", map(1 << 34, 3, 0x22), -errno::ENOMEM);
}

fn unmapping(checks: &mut Checks) {
    let address = map(10_000, 3, 0x22) as u64;
    // SAFETY: the memory was mapped just now.
    unsafe { ((address + 9_992) as *mut u64).write_volatile(1) };
    checks.equal("munmap of a part", unmap(address + 4096, 4096), 0);
    // SAFETY: this page is still mapped.
    let kept = unsafe { ((address + 9_992) as *const u64).read_volatile() };
    checks.equal("a word beside the unmapped part", kept, 1);
    checks.equal("munmap", unmap(address, 10_000), 0);
    checks.equal("munmap twice", unmap(address, 10_000), 0);
    checks.equal("munmap of half a page", unmap(address + 1, 4096), -errno::EINVAL);
    checks.equal("munmap of 0 bytes", unmap(address, 0), -errno::EINVAL);
    checks.equal("munmap of the kernel", unmap(KERNEL & !4095, 4096), -errno::EINVAL);
    let write = call(sys::WRITE, [1, address, 1, 0, 0, 0]);
    checks.equal("write from unmapped memory", write, -errno::EFAULT);
    checks.equal("mprotect of unmapped memory", protect(address, 4096, 1), -errno::ENOMEM);
}

fn protection(checks: &mut Checks) {
    checks.equal("mprotect of the kernel", protect(KERNEL & !4095, 4096, 3), -errno::ENOMEM);
    let page = map(4096, 3, 0x22) as u64;
    checks.equal("mprotect", protect(page, 4096, 1), 0);
    let both = protect(page, 4096, 7);
    checks.equal("mprotect to writable and executable", both, -errno::EACCES);
    let stat = [5, page, 0, 0, 0, 0];
    checks.equal("fstat of a closed descriptor", call(sys::FSTAT, stat), -errno::EBADF);
    checks.equal(
        "fstat into read-only memory",
        call(sys::FSTAT, [1, page, 0, 0, 0, 0]),
        -errno::EFAULT,
    );
}

fn heap(checks: &mut Checks) {
    let heap = call(sys::BRK, [0; 6]);
    checks.equal(
        "brk by 10,000 bytes",
        call(sys::BRK, [heap as u64 + 10_000, 0, 0, 0, 0, 0]),
        heap + 10_000,
    );
    checks.equal("brk into the kernel", call(sys::BRK, [KERNEL, 0, 0, 0, 0, 0]), heap + 10_000);
}

/// Checks that memory without access takes no frames, and that it keeps its content when access is
/// revoked.
fn without_access(checks: &mut Checks) {
    let large = reserve(TERABYTE) as u64;
    checks.equal("mmap of a terabyte without access", large < 1 << 46, true);
    let page = large + TERABYTE / 2;
    let read = |page: u64| call(sys::CLOCK_NANOSLEEP, [0, 0, page, 0, 0, 0]);
    checks.equal("read without access", read(page), -errno::EFAULT);
    checks.equal("mprotect of one page", protect(page, 4096, 3), 0);
    // SAFETY: the page is writable now.
    unsafe { (page as *mut [u64; 2]).write_volatile([0, 77]) };
    checks.equal("read with access", read(page), 0);
    checks.equal("read of the next page", read(page + 4096), -errno::EFAULT);
    checks.equal("mprotect to no access", protect(page, 4096, 0), 0);
    checks.equal("read after access was taken away", read(page), -errno::EFAULT);
    checks.equal("mprotect of two pages to read-only", protect(page - 4096, 8192, 1), 0);
    // SAFETY: the page is readable now.
    let kept = unsafe { (page as *const [u64; 2]).read_volatile() };
    checks.equal("the content after access was given back", kept, [0, 77]);
    checks.equal("munmap of a terabyte", unmap(large, TERABYTE), 0);
    checks.equal("read of unmapped memory", read(page), -errno::EFAULT);
}

/// Checks that addresses and page tables are reused.
fn reuse_of_addresses(checks: &mut Checks) {
    let mut map_and_unmap = || {
        let large = reserve(TERABYTE) as u64;
        checks.equal("mprotect of one page", protect(large + TERABYTE / 2, 4096, 3), 0);
        checks.equal("munmap of a terabyte", unmap(large, TERABYTE), 0);
        large
    };
    let first = map_and_unmap();
    let same = (0..100).filter(|_| map_and_unmap() == first).count();
    checks.equal("mappings at the same address", same, 100);
}

fn remapping(checks: &mut Checks) {
    let remap = |at| call(sys::MREMAP, [at, 4096, 8192, 0, 0, 0]);
    checks.equal("mremap of the kernel", remap(KERNEL), -errno::EFAULT);
    let reserved = reserve(4096) as u64;
    checks.equal("mremap of memory without access", remap(reserved), reserved as i64);
    let stack = (&raw const reserved as u64) & !4095;
    checks.equal("mremap of the stack", remap(stack), -errno::ENOMEM);
    let moved = call(sys::MREMAP, [stack, 4096, 1 << 20, 1, 0, 0]);
    checks.equal("mremap that moves the stack", moved, -errno::ENOMEM);
    checks.equal("munmap of pages without access", unmap(reserved, 8192), 0);
    checks.equal("mremap of unmapped memory", remap(reserved), -errno::EFAULT);
    checks.equal("mremap of half a page", remap(reserved + 8), -errno::EINVAL);
}

/// Checks that at the limit of mappings one can be unmapped, and none can be split.
fn most_mappings(checks: &mut Checks) {
    let map = || reserve(3 * 4096);
    let first = map();
    let mut last = first;
    let refused = loop {
        match map() {
            refused if refused < 0 => break refused,
            address => last = address,
        }
    };
    checks.equal("one mapping more than the most", refused, -errno::ENOMEM);
    let (first, last) = (first as u64, last as u64);
    checks.equal("munmap that splits a mapping", unmap(last + 4096, 4096), -errno::ENOMEM);
    checks.equal("munmap of the end of a mapping", unmap(last + 4096, 8192), 0);
    checks.equal("munmap of the beginning of a mapping", unmap(last, 4096), 0);
    checks.equal("one more mapping", map() > 0, true);
    checks.equal("munmap of a whole mapping", unmap(first, 3 * 4096), 0);
    checks.equal(
        "munmap that splits a mapping when there is room",
        unmap(first + 5 * 4096, 4096),
        0,
    );
    checks.equal("munmap of all mappings", unmap(first, TERABYTE), 0);
    checks.equal("mmap and munmap afterwards", unmap(map() as u64, 3 * 4096), 0);
}
