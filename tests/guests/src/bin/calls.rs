//! Makes system calls wrong in every way that has an answer of its own, and checks the answers.

#![no_std]
#![no_main]

use tally::{Direct, Error, Mode, Session, SessionConfig, Slice, println, runtime::arguments, sys};
use tally_abi::syscall::errno;
use tally_test_guests::Checks;

tally::main!(main);

const NOWHERE: u64 = 0x10;
const KERNEL: u64 = 0xffff_8000_0000_0000;

fn call(number: u64, arguments: [u64; 6]) -> i64 {
    // SAFETY: what is passed here is either this program's own or refused by the kernel.
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
    checks.equal("no such call", call(9999, [0; 6]), -errno::ENOSYS);
    checks.equal("write to 7", call(sys::WRITE, [7, 0, 0, 0, 0, 0]), -errno::EBADF);
    for bad in [NOWHERE, KERNEL, u64::MAX - 4] {
        checks.equal("write from", call(sys::WRITE, [1, bad, 8, 0, 0, 0]), -errno::EFAULT);
        checks.equal("open at", call(sys::OPEN, [bad, 0, 0, 0, 0, 0]), -errno::EFAULT);
    }
    let open =
        |path: &core::ffi::CStr, flags| call(sys::OPEN, [path.as_ptr() as u64, flags, 0, 0, 0, 0]);
    checks.equal("open nothing", open(c"no-such-file", 0), -errno::ENOENT);
    checks.equal("open a folder", open(c"/", 0), -errno::EISDIR);
    checks.equal("make what is there", open(c"corpus.txt", 0o300), -errno::EEXIST);
    let null = open(c"/dev/null", 1) as u64;
    let parts = [[0_u64, 300 << 10]; 1024];
    let vector = [null, parts.as_ptr() as u64, 1024, 0, 0, 0];
    checks.equal("as much as is enough", call(sys::WRITEV, vector), 4 * (300 << 10));
    checks.equal("close it", call(sys::CLOSE, [null, 0, 0, 0, 0, 0]), 0);
    let fd = open(c"corpus.txt", 0) as u64;
    checks.equal("first descriptor", fd, 3);
    for bad in [NOWHERE, KERNEL, main as fn() -> i32 as usize as u64] {
        checks.equal("read to", call(sys::READ, [fd, bad, 64, 0, 0, 0]), -errno::EFAULT);
    }
    checks.equal("seek below 0", call(sys::LSEEK, [fd, u64::MAX, 0, 0, 0, 0]), -errno::EINVAL);
    checks.equal("close", call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]), 0);
    checks.equal("close again", call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]), -errno::EBADF);
    // Whoever gets no descriptor has changed nothing.
    let made = open(c"made", 0o102);
    checks.equal("write", call(sys::WRITE, [made as u64, parts.as_ptr() as u64, 7, 0, 0, 0]), 7);
    let last = core::iter::from_fn(|| Some(open(c"made", 0)).filter(|fd| *fd >= 0)).last();
    checks.equal("the last descriptor", last, Some(63));
    checks.equal("one more, and empty it", open(c"made", 0o1001), -errno::EMFILE);
    checks.equal("one more, and make it", open(c"made-too", 0o102), -errno::EMFILE);
    checks.equal("still there", call(sys::LSEEK, [made as u64, 0, 2, 0, 0, 0]), 7);
    (3..64).for_each(|fd| _ = call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]));
    checks.equal("not made", open(c"made-too", 0), -errno::ENOENT);
    checks.equal("remove it", call(sys::UNLINK, [c"made".as_ptr() as u64, 0, 0, 0, 0, 0]), 0);
}

fn memory(checks: &mut Checks) {
    let map = |bytes: u64, protection: u64, flags: u64| {
        call(sys::MMAP, [0, bytes, protection, flags, u64::MAX, 0])
    };
    checks.equal("map nothing", map(0, 3, 0x22), -errno::EINVAL);
    checks.equal("map a file", map(4096, 3, 0x02), -errno::EINVAL);
    checks.equal("map to run", map(4096, 7, 0x22), -errno::EINVAL);
    checks.equal("map too much", map(1 << 45, 3, 0x22), -errno::ENOMEM);
    checks.equal("map more than there is", map(1 << 34, 3, 0x22), -errno::ENOMEM);
    let address = map(10_000, 3, 0x22) as u64;
    // SAFETY: the kernel just gave this memory.
    unsafe { ((address + 9_992) as *mut u64).write_volatile(1) };
    let unmap = |address, bytes| call(sys::MUNMAP, [address, bytes, 0, 0, 0, 0]);
    checks.equal("unmap a part", unmap(address + 4096, 4096), 0);
    // SAFETY: the kernel gave this memory, and took only what lies between back.
    let kept = unsafe { ((address + 9_992) as *const u64).read_volatile() };
    checks.equal("what is beside it", kept, 1);
    checks.equal("unmap", unmap(address, 10_000), 0);
    checks.equal("unmap twice", unmap(address, 10_000), 0);
    checks.equal("unmap half a page", unmap(address + 1, 4096), -errno::EINVAL);
    checks.equal("unmap nothing", unmap(address, 0), -errno::EINVAL);
    checks.equal("unmap the kernel", unmap(KERNEL & !4095, 4096), -errno::EINVAL);
    let path = address as *const u8;
    checks.equal("use it after", call(sys::WRITE, [1, path as u64, 1, 0, 0, 0]), -errno::EFAULT);
    let protect = |address, bytes, access| call(sys::MPROTECT, [address, bytes, access, 0, 0, 0]);
    checks.equal("protect nothing", protect(address, 4096, 1), -errno::ENOMEM);
    checks.equal("protect the kernel", protect(KERNEL & !4095, 4096, 3), -errno::ENOMEM);
    let page = map(4096, 3, 0x22) as u64;
    checks.equal("protect", protect(page, 4096, 1), 0);
    checks.equal("make it executable", protect(page, 4096, 5), -errno::EINVAL);
    let stat = [5, page, 0, 0, 0, 0];
    checks.equal("write to what is protected", call(sys::FSTAT, stat), -errno::EBADF);
    checks.equal("stat into it", call(sys::FSTAT, [1, page, 0, 0, 0, 0]), -errno::EFAULT);
    reserved(checks);
    let heap = call(sys::BRK, [0; 6]);
    checks.equal(
        "grow the heap",
        call(sys::BRK, [heap as u64 + 10_000, 0, 0, 0, 0, 0]),
        heap + 10_000,
    );
    checks.equal("too far", call(sys::BRK, [KERNEL, 0, 0, 0, 0, 0]), heap + 10_000);
    let fs = [0x1002, KERNEL, 0, 0, 0, 0];
    checks.equal("thread-local data in the kernel", call(sys::ARCH_PRCTL, fs), -errno::EINVAL);
    checks.equal("no such call", call(9999, [0; 6]), -errno::ENOSYS);
}

/// What is only set aside takes no memory; what was there stays while it may not be touched.
fn reserved(checks: &mut Checks) {
    let protect = |address, bytes, access| call(sys::MPROTECT, [address, bytes, access, 0, 0, 0]);
    let large = call(sys::MMAP, [0, 1 << 40, 0, 0x4022, u64::MAX, 0]) as u64;
    checks.equal("a terabyte is set aside", large < 1 << 46, true);
    checks.equal("all of it is too much", protect(large, 1 << 40, 3), -errno::ENOMEM);
    let page = large + (1 << 39);
    let read = |page: u64| call(sys::CLOCK_NANOSLEEP, [0, 0, page, 0, 0, 0]);
    checks.equal("nothing is there", read(page), -errno::EFAULT);
    checks.equal("a page of it", protect(page, 4096, 3), 0);
    // SAFETY: the page is this program's to write.
    unsafe { (page as *mut [u64; 2]).write_volatile([0, 77]) };
    checks.equal("it may be read", read(page), 0);
    checks.equal("its neighbour", read(page + 4096), -errno::EFAULT);
    checks.equal("not any more", protect(page, 4096, 0), 0);
    checks.equal("it may not be read", read(page), -errno::EFAULT);
    checks.equal("again", protect(page - 4096, 8192, 1), 0);
    // SAFETY: the page is this program's to read.
    let kept = unsafe { (page as *const [u64; 2]).read_volatile() };
    checks.equal("what was there", kept, [0, 77]);
    checks.equal("it goes whole", call(sys::MUNMAP, [large, 1 << 40, 0, 0, 0, 0]), 0);
    checks.equal("and is gone", read(page), -errno::EFAULT);
    // Addresses come back, and what leads to pages there is used again.
    for _ in 0..100 {
        let again = call(sys::MMAP, [0, 1 << 40, 0, 0x4022, u64::MAX, 0]) as u64;
        checks.equal("the same addresses", again, large);
        checks.equal("a page of it", protect(page, 4096, 3), 0);
        checks.equal("it goes", call(sys::MUNMAP, [again, 1 << 40, 0, 0, 0, 0]), 0);
    }
    let remap = |at| call(sys::MREMAP, [at, 4096, 8192, 0, 0, 0]);
    checks.equal("lengthen what is not there", remap(large), -errno::EFAULT);
    checks.equal("lengthen the kernel", remap(KERNEL), -errno::EFAULT);
    checks.equal("lengthen half a page", remap(large + 8), -errno::EINVAL);
    let aside = call(sys::MMAP, [0, 4096, 0, 0x4022, u64::MAX, 0]) as u64;
    checks.equal("lengthen what is set aside", remap(aside), -errno::ENOMEM);
    checks.equal("lengthen the stack", remap((&raw const aside as u64) & !4095), -errno::ENOMEM);
    checks.equal("it goes too", call(sys::MUNMAP, [aside, 4096, 0, 0, 0, 0]), 0);
}

/// With as many mappings as there can be, one can be given back, and none can become two.
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
    checks.equal("one mapping too many", refused, -errno::ENOMEM);
    let (first, last) = (first as u64, last as u64);
    checks.equal("what would be two", unmap(last + 4096, 4096), -errno::ENOMEM);
    checks.equal("the end of one", unmap(last + 4096, 8192), 0);
    checks.equal("its beginning", unmap(last, 4096), 0);
    checks.equal("one more", map() > 0, true);
    checks.equal("a whole one", unmap(first, 3 * 4096), 0);
    checks.equal("what is two then", unmap(first + 5 * 4096, 4096), 0);
    checks.equal("all of them", unmap(first, 1 << 40), 0);
    checks.equal("there is room again", unmap(map() as u64, 3 * 4096), 0);
}

/// What threads, signals and affinities are asked for and cannot be.
fn threads(checks: &mut Checks) {
    let word = 5_u32;
    let at = &raw const word as u64;
    let futex = |at, operation, value, fourth, other| {
        call(sys::FUTEX, [at, operation, value, fourth, other, 9])
    };
    let (bad_time, no_time) = ([0_u64, 1_000_000_000], [0_u64; 2]);
    let [bad_time, no_time] = [&bad_time, &no_time].map(|time| time.as_ptr() as u64);
    for bad in [NOWHERE, KERNEL, u64::MAX - 3] {
        for operation in [0, 1, 3, 4, 9, 10] {
            checks.equal("futex nowhere", futex(bad, operation, 1, 0, at), -errno::EFAULT);
        }
        checks.equal("futex until nowhere", futex(at, 0, 5, bad, 0), -errno::EFAULT);
        checks.equal("requeue to nowhere", futex(at, 3, 1, 1, bad), -errno::EFAULT);
    }
    checks.equal("futex askew", futex(at + 1, 1, 1, 0, 0), -errno::EINVAL);
    checks.equal("futex for another value", futex(at, 0, 6, 0, 0), -errno::EAGAIN);
    checks.equal("futex at no time", futex(at, 0, 5, bad_time, 0), -errno::EINVAL);
    checks.equal("futex for no time", futex(at, 0x80, 5, no_time, 0), -errno::ETIMEDOUT);
    checks.equal("futex until long ago", futex(at, 0x189, 5, no_time, 0), -errno::ETIMEDOUT);
    checks.equal("requeue for another value", futex(at, 4, 1, 1, at), -errno::EAGAIN);
    checks.equal("nobody to wake", futex(at, 0x81, 1, 0, 0), 0);
    checks.equal("no such operation", futex(at, 77, 1, 0, 0), -errno::ENOSYS);

    const THREAD: u64 = 0x1_0900;
    let clone = |flags, tls| call(sys::CLONE, [flags, 0x1000, NOWHERE, 0, tls, 0]);
    checks.equal("another program", clone(17, 0), -errno::ENOSYS);
    checks.equal("what it does not know", clone(THREAD | 0x2000_0000, 0), -errno::EINVAL);
    checks.equal("data in the kernel", clone(THREAD | 0x8_0000, KERNEL), -errno::EINVAL);
    checks.equal("its number nowhere", clone(THREAD | 0x10_0000, 0), -errno::EFAULT);
    checks.equal("the new way", call(sys::CLONE3, [0; 6]), -errno::ENOSYS);

    let action = [0_u64; 4];
    let action = action.as_ptr() as u64;
    let act = |signal, new, bytes| call(sys::RT_SIGACTION, [signal, new, 0, bytes, 0, 0]);
    for signal in [0, 9, 19, 65, u64::MAX] {
        checks.equal("handle it", act(signal, action, 8), -errno::EINVAL);
    }
    checks.equal("a set of 16", act(10, action, 16), -errno::EINVAL);
    checks.equal("from nowhere", act(10, KERNEL, 8), -errno::EFAULT);
    let mask = |how, new| call(sys::RT_SIGPROCMASK, [how, new, 0, 8, 0, 0]);
    checks.equal("block somehow", mask(3, action), -errno::EINVAL);
    checks.equal("block nowhere", mask(0, KERNEL), -errno::EFAULT);
    checks.equal("stack nowhere", call(sys::SIGALTSTACK, [KERNEL, 0, 0, 0, 0, 0]), -errno::EFAULT);
    let me = call(sys::GETPID, [0; 6]) as u64;
    checks.equal("me", call(sys::KILL, [me, 0, 0, 0, 0, 0]), 0);
    checks.equal("nobody", call(sys::KILL, [me + 1, 9, 0, 0, 0, 0]), -errno::ESRCH);
    checks.equal("no thread", call(sys::TGKILL, [me, me + 1, 9, 0, 0, 0]), -errno::ESRCH);
    checks.equal("no signal", call(sys::TKILL, [me, 65, 0, 0, 0, 0]), -errno::EINVAL);

    let set = |of, bytes, from| call(sys::SCHED_SETAFFINITY, [of, bytes, from, 0, 0, 0]);
    let tell = |of, bytes, to| call(sys::SCHED_GETAFFINITY, [of, bytes, to, 0, 0, 0]);
    let mut cpus = 1_u64 << 40;
    let at = &raw mut cpus as u64;
    checks.equal("a CPU that is not there", set(0, 8, at), -errno::EINVAL);
    checks.equal("of nobody", tell(me + 1, 8, at), -errno::ESRCH);
    checks.equal("nowhere", set(0, 8, KERNEL), -errno::EFAULT);
    checks.equal("half a word", tell(0, 4, at), -errno::EINVAL);
    checks.equal("told", tell(me, 128, at), 8);
    checks.equal("the one CPU", cpus, 1);
    checks.equal("taken", set(0, 8, at), 0);
}

fn sessions(checks: &mut Checks, event: &str) {
    let open = |events: &str, slice: Slice| {
        let config = SessionConfig { slice, ..SessionConfig::default() };
        Session::open(events, config).map(|_| ()).map_err(|refused| refused.error)
    };
    let slice = SessionConfig::default().slice;
    checks.equal("no events", open("", slice), Err(Error::NoEvents));
    checks.equal("unknown event", open("NO_SUCH.EVENT", slice), Err(Error::UnknownEvent));
    for length in [0, 4_999, u64::MAX] {
        let answer = open(event, Slice::Cycles(length));
        checks.equal("slice", answer, Err(Error::SliceOutOfRange));
    }
    checks.equal("a good one", open(event, slice), Ok(()));
    let kernel = SessionConfig { mode: Mode::Kernel, ..SessionConfig::default() };
    let refused = Session::open(event, kernel).err().map(|refused| refused.error);
    checks.equal("ring 0", refused, Some(Error::NotPermitted));
    let direct = Direct::open(event, Mode::User).err().map(|refused| refused.error);
    checks.equal("counters of one's own", direct, Some(Error::NotPermitted));
    let session = Session::open(event, SessionConfig::default()).expect("a good one");
    checks.equal("a second one", open(event, slice), Err(Error::Busy));
    checks.equal("stop first", session.stop(), Err(Error::WrongState));
    checks.equal("start", session.start(), Ok(()));
    checks.equal("start twice", session.start(), Err(Error::WrongState));
    checks.equal("stop", session.stop(), Ok(()));
    checks.equal("stop twice", session.stop(), Err(Error::WrongState));
    drop(session);
    let tally = |number, arguments| Error::from_return(call(number, arguments));
    let answer = tally(sys::TALLY_BASE + 99, [0; 6]);
    checks.equal("no such call of Tally's", answer, Some(Error::BadArgument));
    let list = event.as_ptr() as u64;
    let bytes = event.len() as u64;
    let good = SessionConfig::default().to_words();
    for (what, arguments) in [
        ("bad list", [KERNEL, 8, good.as_ptr() as u64, 0, 0, 0]),
        ("bad config", [list, bytes, KERNEL, 0, 0, 0]),
    ] {
        checks.equal(what, tally(sys::SESSION_OPEN, arguments), Some(Error::BadPointer));
    }
    let [mode, unit, length, budget, shares] = good;
    for (what, config) in [
        ("bad mode", [7, unit, length, budget, shares]),
        ("bad unit", [mode, 2, length, budget, shares]),
        ("bad budget", [mode, unit, length, 0, shares]),
        ("bad shares", [mode, unit, length, budget, 2]),
    ] {
        let answer = tally(sys::SESSION_OPEN, [list, bytes, config.as_ptr() as u64, 0, 0, 0]);
        checks.equal(what, answer, Some(Error::BadArgument));
    }
    let session = Session::open(event, SessionConfig::default()).expect("a good one");
    checks.equal("start", session.start(), Ok(()));
    let late = session.map().map(|_| ());
    drop(session);
    let session = Session::open(event, SessionConfig::default()).expect("a good one");
    // Its number is the one that is known.
    let map = |number| call(sys::SESSION_MAP, [number, 0, 0, 0, 0, 0]);
    let own = (1..100).map(|number| (number, map(number))).find(|(_, answer)| *answer > 0);
    let (own, bank) = own.map(|(own, bank)| (own, bank as u64)).expect("the session is open");
    checks.equal("write to a bank", call(sys::MPROTECT, [bank, 4096, 3, 0, 0, 0]), -errno::ENOMEM);
    checks.equal("unmap a bank", call(sys::MUNMAP, [bank, 4096, 0, 0, 0, 0]), -errno::EINVAL);
    drop(session);
    checks.equal("map while counting", late, Err(Error::WrongState));
    for number in [sys::SESSION_START, sys::SESSION_READ, sys::SESSION_MAP, sys::SESSION_CLOSE] {
        checks.equal("gone", tally(number, [own, 0, 0, 0, 0, 0]), Some(Error::NoSession));
    }
}
