//! Makes invalid system calls, one for each error that the documentation names, and checks the
//! errors.

#![no_std]
#![no_main]
#![expect(clippy::too_many_lines, reason = "lists of calls, with the answer to each")]

use tally::{Direct, Error, Mode, Session, SessionConfig, Slice, println, runtime::arguments, sys};
use tally_abi::syscall::errno;
use tally_test_guests::Checks;

tally::main!(main);

/// An address that is never mapped, and one in the kernel's half.
const UNMAPPED: u64 = 0x10;
const KERNEL: u64 = 0xffff_8000_0000_0000;

fn call(number: u64, arguments: [u64; 6]) -> i64 {
    // SAFETY: addresses passed here are either buffers of this program or refused by the kernel.
    unsafe { sys::call(number, arguments) }
}

fn main() -> i32 {
    let event = arguments().nth(1).expect("usage: calls EVENT");
    let mut checks = Checks::default();
    files(&mut checks);
    memory(&mut checks);
    mappings(&mut checks);
    threads(&mut checks);
    sessions(&mut checks, event);
    println!("calls: done");
    checks.status()
}

fn files(checks: &mut Checks) {
    checks.equal("an unknown call", call(9999, [0; 6]), -errno::ENOSYS);
    let write = |fd, address, bytes| call(sys::WRITE, [fd, address, bytes, 0, 0, 0]);
    let open_at = |path, flags| call(sys::OPEN, [path, flags, 0, 0, 0, 0]);
    let open = |path: &core::ffi::CStr, flags| open_at(path.as_ptr() as u64, flags);
    checks.equal("write to a closed descriptor", write(7, 0, 0), -errno::EBADF);
    for bad in [UNMAPPED, KERNEL, u64::MAX - 4] {
        checks.equal("write from an invalid address", write(1, bad, 8), -errno::EFAULT);
        checks.equal("open with an invalid address", open_at(bad, 0), -errno::EFAULT);
    }
    checks.equal("open a file that is not there", open(c"no-such-file", 0), -errno::ENOENT);
    checks.equal("open a folder", open(c"/", 0), -errno::EISDIR);
    checks.equal("create a file that is there", open(c"corpus.txt", 0o300), -errno::EEXIST);
    let null = open(c"/dev/null", 1) as u64;
    let parts = [[0_u64, 300 << 10]; 1024];
    let vector = [null, parts.as_ptr() as u64, 1024, 0, 0, 0];
    checks.equal("writev of 300 MiB", call(sys::WRITEV, vector), 1024 * (300 << 10));
    checks.equal("close /dev/null", call(sys::CLOSE, [null, 0, 0, 0, 0, 0]), 0);
    let fd = open(c"corpus.txt", 0) as u64;
    checks.equal("first descriptor", fd, 3);
    for bad in [UNMAPPED, KERNEL, main as fn() -> i32 as usize as u64] {
        checks.equal(
            "read to an invalid address",
            call(sys::READ, [fd, bad, 64, 0, 0, 0]),
            -errno::EFAULT,
        );
    }
    checks.equal("seek to below 0", call(sys::LSEEK, [fd, u64::MAX, 0, 0, 0, 0]), -errno::EINVAL);
    checks.equal("close", call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]), 0);
    checks.equal("close twice", call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]), -errno::EBADF);
    // An open that gets no descriptor changes no file.
    let made = open(c"made", 0o102);
    checks.equal(
        "write 7 bytes",
        call(sys::WRITE, [made as u64, parts.as_ptr() as u64, 7, 0, 0, 0]),
        7,
    );
    let last = core::iter::from_fn(|| Some(open(c"made", 0)).filter(|fd| *fd >= 0)).last();
    checks.equal("the highest descriptor", last, Some(63));
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
    (3..64).for_each(|fd| _ = call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]));
    checks.equal("the file that was not created", open(c"made-too", 0), -errno::ENOENT);
    checks.equal("remove a file", call(sys::UNLINK, [c"made".as_ptr() as u64, 0, 0, 0, 0, 0]), 0);
}

fn memory(checks: &mut Checks) {
    let map = |bytes: u64, protection: u64, flags: u64| {
        call(sys::MMAP, [0, bytes, protection, flags, u64::MAX, 0])
    };
    checks.equal("mmap of 0 bytes", map(0, 3, 0x22), -errno::EINVAL);
    checks.equal("mmap of a file", map(4096, 3, 0x02), -errno::EINVAL);
    checks.equal("mmap of executable memory", map(4096, 7, 0x22), -errno::EINVAL);
    checks.equal("mmap of more than the address space", map(1 << 45, 3, 0x22), -errno::ENOMEM);
    checks.equal("mmap of more than there is memory", map(1 << 34, 3, 0x22), -errno::ENOMEM);
    let address = map(10_000, 3, 0x22) as u64;
    // SAFETY: the memory was mapped just now.
    unsafe { ((address + 9_992) as *mut u64).write_volatile(1) };
    let unmap = |address, bytes| call(sys::MUNMAP, [address, bytes, 0, 0, 0, 0]);
    checks.equal("munmap of a part", unmap(address + 4096, 4096), 0);
    // SAFETY: this page is still mapped.
    let kept = unsafe { ((address + 9_992) as *const u64).read_volatile() };
    checks.equal("a word beside the unmapped part", kept, 1);
    checks.equal("munmap", unmap(address, 10_000), 0);
    checks.equal("munmap twice", unmap(address, 10_000), 0);
    checks.equal("munmap of half a page", unmap(address + 1, 4096), -errno::EINVAL);
    checks.equal("munmap of 0 bytes", unmap(address, 0), -errno::EINVAL);
    checks.equal("munmap of the kernel", unmap(KERNEL & !4095, 4096), -errno::EINVAL);
    let path = address as *const u8;
    checks.equal(
        "write from unmapped memory",
        call(sys::WRITE, [1, path as u64, 1, 0, 0, 0]),
        -errno::EFAULT,
    );
    let protect = |address, bytes, access| call(sys::MPROTECT, [address, bytes, access, 0, 0, 0]);
    checks.equal("mprotect of unmapped memory", protect(address, 4096, 1), -errno::ENOMEM);
    checks.equal("mprotect of the kernel", protect(KERNEL & !4095, 4096, 3), -errno::ENOMEM);
    let page = map(4096, 3, 0x22) as u64;
    checks.equal("mprotect", protect(page, 4096, 1), 0);
    checks.equal("mprotect to executable", protect(page, 4096, 5), -errno::EINVAL);
    let stat = [5, page, 0, 0, 0, 0];
    checks.equal("fstat of a closed descriptor", call(sys::FSTAT, stat), -errno::EBADF);
    checks.equal(
        "fstat into read-only memory",
        call(sys::FSTAT, [1, page, 0, 0, 0, 0]),
        -errno::EFAULT,
    );
    reserved(checks);
    let heap = call(sys::BRK, [0; 6]);
    checks.equal(
        "brk by 10,000 bytes",
        call(sys::BRK, [heap as u64 + 10_000, 0, 0, 0, 0, 0]),
        heap + 10_000,
    );
    checks.equal("brk into the kernel", call(sys::BRK, [KERNEL, 0, 0, 0, 0, 0]), heap + 10_000);
    let fs = [0x1002, KERNEL, 0, 0, 0, 0];
    checks.equal("FS base in the kernel", call(sys::ARCH_PRCTL, fs), -errno::EINVAL);
    checks.equal("an unknown call again", call(9999, [0; 6]), -errno::ENOSYS);
}

/// Memory without access takes no frames, and keeps its content when access is taken away.
fn reserved(checks: &mut Checks) {
    let protect = |address, bytes, access| call(sys::MPROTECT, [address, bytes, access, 0, 0, 0]);
    let large = call(sys::MMAP, [0, 1 << 40, 0, 0x4022, u64::MAX, 0]) as u64;
    checks.equal("mmap of a terabyte without access", large < 1 << 46, true);
    checks.equal("mprotect of a terabyte", protect(large, 1 << 40, 3), -errno::ENOMEM);
    let page = large + (1 << 39);
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
    checks.equal("munmap of a terabyte", call(sys::MUNMAP, [large, 1 << 40, 0, 0, 0, 0]), 0);
    checks.equal("read of unmapped memory", read(page), -errno::EFAULT);
    // Addresses are reused, and so are page tables.
    for _ in 0..100 {
        let again = call(sys::MMAP, [0, 1 << 40, 0, 0x4022, u64::MAX, 0]) as u64;
        checks.equal("the address of the next mapping", again, large);
        checks.equal("mprotect of one page again", protect(page, 4096, 3), 0);
        checks.equal("munmap again", call(sys::MUNMAP, [again, 1 << 40, 0, 0, 0, 0]), 0);
    }
    let remap = |at| call(sys::MREMAP, [at, 4096, 8192, 0, 0, 0]);
    checks.equal("mremap of unmapped memory", remap(large), -errno::EFAULT);
    checks.equal("mremap of the kernel", remap(KERNEL), -errno::EFAULT);
    checks.equal("mremap of half a page", remap(large + 8), -errno::EINVAL);
    let reserved = call(sys::MMAP, [0, 4096, 0, 0x4022, u64::MAX, 0]) as u64;
    checks.equal("mremap of memory without access", remap(reserved), -errno::ENOMEM);
    checks.equal(
        "mremap of the stack",
        remap((&raw const reserved as u64) & !4095),
        -errno::ENOMEM,
    );
    checks.equal(
        "munmap of a page without access",
        call(sys::MUNMAP, [reserved, 4096, 0, 0, 0, 0]),
        0,
    );
}

/// With the most mappings, one can be unmapped, and none can be split.
fn mappings(checks: &mut Checks) {
    let map = || call(sys::MMAP, [0, 3 * 4096, 0, 0x4022, u64::MAX, 0]);
    let unmap = |address, bytes| call(sys::MUNMAP, [address, bytes, 0, 0, 0, 0]);
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
    checks.equal("munmap of all mappings", unmap(first, 1 << 40), 0);
    checks.equal("mmap and munmap afterwards", unmap(map() as u64, 3 * 4096), 0);
}

/// Invalid calls about threads, signals and affinities.
fn threads(checks: &mut Checks) {
    let word = 5_u32;
    let at = &raw const word as u64;
    let futex = |at, operation, value, fourth, other| {
        call(sys::FUTEX, [at, operation, value, fourth, other, 9])
    };
    let (bad_time, no_time) = ([0_u64, 1_000_000_000], [0_u64; 2]);
    let [bad_time, no_time] = [&bad_time, &no_time].map(|time| time.as_ptr() as u64);
    for bad in [UNMAPPED, KERNEL, u64::MAX - 3] {
        for operation in [0, 1, 3, 4, 9, 10] {
            checks.equal(
                "futex at an invalid address",
                futex(bad, operation, 1, 0, at),
                -errno::EFAULT,
            );
        }
        checks.equal(
            "futex with an invalid timeout address",
            futex(at, 0, 5, bad, 0),
            -errno::EFAULT,
        );
        checks.equal("requeue to an invalid address", futex(at, 3, 1, 1, bad), -errno::EFAULT);
    }
    checks.equal("futex at a misaligned address", futex(at + 1, 1, 1, 0, 0), -errno::EINVAL);
    checks.equal("futex wait for another value", futex(at, 0, 6, 0, 0), -errno::EAGAIN);
    checks.equal(
        "futex wait with an invalid timeout",
        futex(at, 0, 5, bad_time, 0),
        -errno::EINVAL,
    );
    checks.equal("futex wait with timeout 0", futex(at, 0x80, 5, no_time, 0), -errno::ETIMEDOUT);
    checks.equal(
        "futex wait until a time in the past",
        futex(at, 0x189, 5, no_time, 0),
        -errno::ETIMEDOUT,
    );
    checks.equal("compare and requeue with another value", futex(at, 4, 1, 1, at), -errno::EAGAIN);
    checks.equal("futex wake without waiters", futex(at, 0x81, 1, 0, 0), 0);
    checks.equal("an unknown futex operation", futex(at, 77, 1, 0, 0), -errno::ENOSYS);

    const THREAD: u64 = 0x1_0900;
    let clone = |flags, tls| call(sys::CLONE, [flags, 0x1000, UNMAPPED, 0, tls, 0]);
    checks.equal("clone of a process", clone(17, 0), -errno::ENOSYS);
    checks.equal("clone with an unknown flag", clone(THREAD | 0x2000_0000, 0), -errno::EINVAL);
    checks.equal(
        "clone with a TLS address in the kernel",
        clone(THREAD | 0x8_0000, KERNEL),
        -errno::EINVAL,
    );
    checks.equal(
        "clone with an invalid address for the number",
        clone(THREAD | 0x10_0000, 0),
        -errno::EFAULT,
    );
    checks.equal("clone3", call(sys::CLONE3, [0; 6]), -errno::ENOSYS);

    let action = [0_u64; 4];
    let action = action.as_ptr() as u64;
    let act = |signal, new, bytes| call(sys::RT_SIGACTION, [signal, new, 0, bytes, 0, 0]);
    for signal in [0, 9, 19, 65, u64::MAX] {
        checks.equal(
            "sigaction of a signal that cannot be handled",
            act(signal, action, 8),
            -errno::EINVAL,
        );
    }
    checks.equal("sigaction with a set of 16 bytes", act(10, action, 16), -errno::EINVAL);
    checks.equal("sigaction from an invalid address", act(10, KERNEL, 8), -errno::EFAULT);
    let mask = |how, new| call(sys::RT_SIGPROCMASK, [how, new, 0, 8, 0, 0]);
    checks.equal("sigprocmask with an unknown operation", mask(3, action), -errno::EINVAL);
    checks.equal("sigprocmask from an invalid address", mask(0, KERNEL), -errno::EFAULT);
    checks.equal(
        "sigaltstack from an invalid address",
        call(sys::SIGALTSTACK, [KERNEL, 0, 0, 0, 0, 0]),
        -errno::EFAULT,
    );
    let me = call(sys::GETPID, [0; 6]) as u64;
    checks.equal("kill of itself with signal 0", call(sys::KILL, [me, 0, 0, 0, 0, 0]), 0);
    checks.equal(
        "kill of another program",
        call(sys::KILL, [me + 1, 9, 0, 0, 0, 0]),
        -errno::ESRCH,
    );
    checks.equal(
        "tgkill of a thread that is not there",
        call(sys::TGKILL, [me, me + 1, 9, 0, 0, 0]),
        -errno::ESRCH,
    );
    checks.equal(
        "tkill with an invalid signal",
        call(sys::TKILL, [me, 65, 0, 0, 0, 0]),
        -errno::EINVAL,
    );

    let set = |of, bytes, from| call(sys::SCHED_SETAFFINITY, [of, bytes, from, 0, 0, 0]);
    let get = |of, bytes, to| call(sys::SCHED_GETAFFINITY, [of, bytes, to, 0, 0, 0]);
    let mut cpus = 1_u64 << 40;
    let at = &raw mut cpus as u64;
    checks.equal("an affinity to a CPU that is not there", set(0, 8, at), -errno::EINVAL);
    checks.equal("the affinity of a thread that is not there", get(me + 1, 8, at), -errno::ESRCH);
    checks.equal("an affinity from an invalid address", set(0, 8, KERNEL), -errno::EFAULT);
    checks.equal("an affinity of 4 bytes", get(0, 4, at), -errno::EINVAL);
    checks.equal("the bytes of an affinity", get(me, 128, at), 8);
    checks.equal("the affinity on a machine with one CPU", cpus, 1);
    checks.equal("the same affinity set", set(0, 8, at), 0);
}

fn sessions(checks: &mut Checks, event: &str) {
    let open = |events: &str, slice: Slice| {
        let config = SessionConfig { slice, ..SessionConfig::default() };
        Session::open(events, config).map(|_| ()).map_err(|refused| refused.error)
    };
    let slice = SessionConfig::default().slice;
    checks.equal("no events", open("", slice), Err(Error::NoEvents));
    checks.equal("an unknown event", open("NO_SUCH.EVENT", slice), Err(Error::UnknownEvent));
    for length in [0, 4_999, u64::MAX] {
        let answer = open(event, Slice::Cycles(length));
        checks.equal("a slice out of range", answer, Err(Error::SliceOutOfRange));
    }
    checks.equal("a valid session", open(event, slice), Ok(()));
    let kernel = SessionConfig { mode: Mode::Kernel, ..SessionConfig::default() };
    let refused = Session::open(event, kernel).err().map(|refused| refused.error);
    checks.equal("a session in ring 0", refused, Some(Error::NotPermitted));
    let direct = Direct::open(event, Mode::User).err().map(|refused| refused.error);
    checks.equal("direct mode without permission", direct, Some(Error::NotPermitted));
    let session = Session::open(event, SessionConfig::default()).expect("the event exists");
    checks.equal("a second session", open(event, slice), Err(Error::Busy));
    checks.equal("stop before start", session.stop(), Err(Error::WrongState));
    checks.equal("start", session.start(), Ok(()));
    checks.equal("start twice", session.start(), Err(Error::WrongState));
    checks.equal("stop", session.stop(), Ok(()));
    checks.equal("stop twice", session.stop(), Err(Error::WrongState));
    drop(session);
    let tally = |number, arguments| Error::from_return(call(number, arguments));
    let answer = tally(sys::TALLY_BASE + 99, [0; 6]);
    checks.equal("an unknown call of Tally's", answer, Some(Error::BadArgument));
    let list = event.as_ptr() as u64;
    let bytes = event.len() as u64;
    let good = SessionConfig::default().to_words();
    for (what, arguments) in [
        ("a list at an invalid address", [KERNEL, 8, good.as_ptr() as u64, 0, 0, 0]),
        ("a configuration at an invalid address", [list, bytes, KERNEL, 0, 0, 0]),
    ] {
        checks.equal(what, tally(sys::SESSION_OPEN, arguments), Some(Error::BadPointer));
    }
    let [mode, unit, length, budget, shares] = good;
    for (what, config) in [
        ("an invalid mode", [7, unit, length, budget, shares]),
        ("an invalid unit", [mode, 2, length, budget, shares]),
        ("an invalid budget", [mode, unit, length, 0, shares]),
        ("invalid shares", [mode, unit, length, budget, 2]),
    ] {
        let answer = tally(sys::SESSION_OPEN, [list, bytes, config.as_ptr() as u64, 0, 0, 0]);
        checks.equal(what, answer, Some(Error::BadArgument));
    }
    let session = Session::open(event, SessionConfig::default()).expect("the event exists");
    checks.equal("start", session.start(), Ok(()));
    let late = session.map().map(|_| ());
    drop(session);
    let session = Session::open(event, SessionConfig::default()).expect("the event exists");
    // The session has the one number that the kernel accepts.
    let map = |number| call(sys::SESSION_MAP, [number, 0, 0, 0, 0, 0]);
    let own = (1..100).map(|number| (number, map(number))).find(|(_, answer)| *answer > 0);
    let (own, bank) = own.map(|(own, bank)| (own, bank as u64)).expect("the session is open");
    checks.equal(
        "mprotect of a bank to writable",
        call(sys::MPROTECT, [bank, 4096, 3, 0, 0, 0]),
        -errno::ENOMEM,
    );
    checks.equal("munmap of a bank", call(sys::MUNMAP, [bank, 4096, 0, 0, 0, 0]), -errno::EINVAL);
    drop(session);
    checks.equal("map the bank of a started session", late, Err(Error::WrongState));
    for number in [sys::SESSION_START, sys::SESSION_READ, sys::SESSION_MAP, sys::SESSION_CLOSE] {
        checks.equal(
            "a call on a closed session",
            tally(number, [own, 0, 0, 0, 0, 0]),
            Some(Error::NoSession),
        );
    }
}
