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
    let fd = open(c"corpus.txt", 0) as u64;
    checks.equal("first descriptor", fd, 3);
    for bad in [NOWHERE, KERNEL, main as fn() -> i32 as usize as u64] {
        checks.equal("read to", call(sys::READ, [fd, bad, 64, 0, 0, 0]), -errno::EFAULT);
    }
    checks.equal("seek below 0", call(sys::LSEEK, [fd, u64::MAX, 0, 0, 0, 0]), -errno::EINVAL);
    checks.equal("close", call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]), 0);
    checks.equal("close again", call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]), -errno::EBADF);
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
    checks.equal("unmap a part", call(sys::MUNMAP, [address, 4096, 0, 0, 0, 0]), -errno::EINVAL);
    checks.equal("unmap", call(sys::MUNMAP, [address, 10_000, 0, 0, 0, 0]), 0);
    checks.equal("unmap twice", call(sys::MUNMAP, [address, 10_000, 0, 0, 0, 0]), -errno::EINVAL);
    let path = address as *const u8;
    checks.equal("use it after", call(sys::WRITE, [1, path as u64, 1, 0, 0, 0]), -errno::EFAULT);
    let protect = |address, bytes, access| call(sys::MPROTECT, [address, bytes, access, 0, 0, 0]);
    checks.equal("protect nothing", protect(address, 4096, 1), -errno::EFAULT);
    checks.equal("protect the kernel", protect(KERNEL & !4095, 4096, 3), -errno::EFAULT);
    let page = map(4096, 3, 0x22) as u64;
    checks.equal("protect", protect(page, 4096, 1), 0);
    checks.equal("make it executable", protect(page, 4096, 5), -errno::EINVAL);
    let stat = [5, page, 0, 0, 0, 0];
    checks.equal("write to what is protected", call(sys::FSTAT, stat), -errno::EBADF);
    checks.equal("stat into it", call(sys::FSTAT, [1, page, 0, 0, 0, 0]), -errno::EFAULT);
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
    for number in [sys::SESSION_START, sys::SESSION_READ, sys::SESSION_CLOSE] {
        checks.equal("gone", tally(number, [1, 0, 0, 0, 0, 0]), Some(Error::NoSession));
    }
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
    checks.equal(
        "map nothing",
        tally(sys::SESSION_MAP, [1, 0, 0, 0, 0, 0]),
        Some(Error::NoSession),
    );
    let session = Session::open(event, SessionConfig::default()).expect("a good one");
    checks.equal("start", session.start(), Ok(()));
    let late = session.map().map(|_| ());
    drop(session);
    let session = Session::open(event, SessionConfig::default()).expect("a good one");
    // Its number is the one that is known.
    let map = |number| call(sys::SESSION_MAP, [number, 0, 0, 0, 0, 0]);
    let bank = (1..100).map(map).find(|answer| *answer > 0).expect("the session is open") as u64;
    checks.equal("write to a bank", call(sys::MPROTECT, [bank, 4096, 3, 0, 0, 0]), -errno::EFAULT);
    checks.equal("unmap a bank", call(sys::MUNMAP, [bank, 4096, 0, 0, 0, 0]), -errno::EINVAL);
    drop(session);
    checks.equal("map while counting", late, Err(Error::WrongState));
}
