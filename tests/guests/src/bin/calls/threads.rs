//! Calls on threads, signals and affinities.

use tally::sys;
use tally_abi::syscall::errno;
use tally_test_guests::Checks;

use crate::call::{KERNEL, UNMAPPED, call};

/// Checks the results of the calls.
pub fn check(checks: &mut Checks) {
    futexes_at_invalid_addresses(checks);
    futexes(checks);
    clones(checks);
    handlers(checks);
    signals_to_others(checks);
    affinities(checks);
}

fn futex(at: u64, operation: u64, value: u64, fourth: u64, other: u64) -> i64 {
    call(sys::FUTEX, [at, operation, value, fourth, other, 9])
}

fn futexes_at_invalid_addresses(checks: &mut Checks) {
    let word = 5_u32;
    let at = &raw const word as u64;
    for bad in [UNMAPPED, KERNEL, u64::MAX - 3] {
        for operation in [0, 1, 3, 4, 9, 10] {
            let answer = futex(bad, operation, 1, 0, at);
            checks.equal("futex at an invalid address", answer, -errno::EFAULT);
        }
        let answer = futex(at, 0, 5, bad, 0);
        checks.equal("futex with an invalid timeout address", answer, -errno::EFAULT);
        checks.equal("requeue to an invalid address", futex(at, 3, 1, 1, bad), -errno::EFAULT);
    }
    checks.equal("futex at a misaligned address", futex(at + 1, 1, 1, 0, 0), -errno::EINVAL);
}

fn futexes(checks: &mut Checks) {
    let word = 5_u32;
    let at = &raw const word as u64;
    let (invalid, zero) = ([0_u64, 1_000_000_000], [0_u64; 2]);
    let [invalid, zero] = [&invalid, &zero].map(|time| time.as_ptr() as u64);
    for (what, answer, expected) in [
        ("futex wait for another value", futex(at, 0, 6, 0, 0), -errno::EAGAIN),
        ("futex wait with an invalid timeout", futex(at, 0, 5, invalid, 0), -errno::EINVAL),
        ("futex wait with timeout 0", futex(at, 0x80, 5, zero, 0), -errno::ETIMEDOUT),
        ("futex wait until a time in the past", futex(at, 0x189, 5, zero, 0), -errno::ETIMEDOUT),
        ("compare and requeue with another value", futex(at, 4, 1, 1, at), -errno::EAGAIN),
        ("futex wake without waiters", futex(at, 0x81, 1, 0, 0), 0),
        ("an unknown futex operation", futex(at, 77, 1, 0, 0), -errno::ENOSYS),
    ] {
        checks.equal(what, answer, expected);
    }
}

fn clones(checks: &mut Checks) {
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
}

fn handlers(checks: &mut Checks) {
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
}

fn signals_to_others(checks: &mut Checks) {
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
}

fn affinities(checks: &mut Checks) {
    let me = call(sys::GETPID, [0; 6]) as u64;
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
