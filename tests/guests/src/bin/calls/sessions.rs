//! Calls on sessions.

use core::array;

use tally::{
    Direct, Error, Mode, Scope, Session, SessionConfig, Slice,
    session::{ConfigWords, Opened},
    sys,
};
use tally_abi::syscall::errno;
use tally_test_guests::Checks;

use crate::call::{KERNEL, call};

/// Checks the results of the calls, with sessions on `event`.
pub fn check(checks: &mut Checks, event: &str) {
    configurations(checks, event);
    states(checks, event);
    arguments_of_open(checks, event);
    by_number(checks, event);
    let answer = error(sys::TALLY_BASE + 99, [0; 6]);
    checks.equal("an unknown call of Tally's", answer, Some(Error::BadArgument));
}

fn open(event: &str) -> Session {
    Session::open(event, SessionConfig::default()).expect("the event exists")
}

/// Makes a call and returns its error.
fn error(number: u64, arguments: [u64; 6]) -> Option<Error> {
    Error::from_return(call(number, arguments))
}

fn configurations(checks: &mut Checks, event: &str) {
    let open = |events: &str, config| Session::open(events, config).err().map(|why| why.error);
    let default = SessionConfig::default();
    checks.equal("no events", open("", default), Some(Error::NoEvents));
    checks.equal("an unknown event", open("NO_SUCH.EVENT", default), Some(Error::UnknownEvent));
    for length in [0, 1_799, u64::MAX] {
        let config = SessionConfig { slice: Slice::Cycles(length), ..default };
        checks.equal("a slice out of range", open(event, config), Some(Error::SliceOutOfRange));
    }
    checks.equal("a valid session", open(event, default), None);
    let kernel = SessionConfig { mode: Mode::Kernel, ..default };
    checks.equal("a session in ring 0", open(event, kernel), Some(Error::NotPermitted));
    let cpus = SessionConfig { scope: Scope::Cpus, ..default };
    checks.equal("a session on CPUs", open(event, cpus), Some(Error::NotPermitted));
    let direct = Direct::open(event, Mode::User).err().map(|refused| refused.error);
    checks.equal("direct mode without permission", direct, Some(Error::NotPermitted));
}

fn states(checks: &mut Checks, event: &str) {
    let session = open(event);
    let exclusive = SessionConfig { exclusive: true, ..SessionConfig::default() };
    let second = Session::open(event, exclusive).err().map(|why| why.error);
    checks.equal("an exclusive session beside another", second, Some(Error::Busy));
    checks.equal("stop before start", session.stop(), Err(Error::WrongState));
    checks.equal("start", session.start(), Ok(()));
    checks.equal("start twice", session.start(), Err(Error::WrongState));
    let late = session.map().map(|_| ());
    checks.equal("map the bank of a started session", late, Err(Error::WrongState));
    checks.equal("stop", session.stop(), Ok(()));
    checks.equal("stop twice", session.stop(), Err(Error::WrongState));
    drop(session);
    let session = Session::open(event, exclusive).expect("there is no other");
    let second = Session::open(event, SessionConfig::default()).err().map(|why| why.error);
    checks.equal("a session beside an exclusive one", second, Some(Error::Busy));
    drop(session);
    let sessions: [Session; 8] = array::from_fn(|_| open(event));
    let ninth = Session::open(event, SessionConfig::default()).err().map(|why| why.error);
    checks.equal("a ninth session", ninth, Some(Error::TooManySessions));
    drop(sessions);
    checks.equal("a session after eight", Session::open(event, exclusive).err(), None);
}

/// Arguments of [`sys::SESSION_OPEN`] without a buffer for the error text.
fn opening(event: &str, config: &ConfigWords) -> [u64; 6] {
    [event.as_ptr() as u64, event.len() as u64, config.as_ptr() as u64, 0, 0, 0]
}

fn arguments_of_open(checks: &mut Checks, event: &str) {
    let good = SessionConfig::default().to_words();
    let [list, bytes, config, ..] = opening(event, &good);
    for (what, arguments) in [
        ("a list at an invalid address", [KERNEL, 8, config, 0, 0, 0]),
        ("a configuration at an invalid address", [list, bytes, KERNEL, 0, 0, 0]),
    ] {
        checks.equal(what, error(sys::SESSION_OPEN, arguments), Some(Error::BadPointer));
    }
    let [mode, unit, length, budget, shares, flags] = good;
    for (what, config) in [
        ("an invalid mode", [7, unit, length, budget, shares, flags]),
        ("an invalid unit", [mode, 3, length, budget, shares, flags]),
        ("a length beside auto", [mode, unit, 1, budget, shares, flags]),
        ("an invalid budget", [mode, unit, length, 0, shares, flags]),
        ("invalid shares", [mode, unit, length, budget, 3, flags]),
        ("its own threads apart", [mode, unit, length, budget, shares, 2]),
        ("an unknown flag", [mode, unit, length, budget, shares, 6]),
    ] {
        let answer = error(sys::SESSION_OPEN, opening(event, &config));
        checks.equal(what, answer, Some(Error::BadArgument));
    }
}

/// Makes calls with the number of an open session, and of a closed one. The result of
/// `SESSION_OPEN` also holds the number of events, and is not itself a session number.
fn by_number(checks: &mut Checks, event: &str) {
    let config = SessionConfig::default().to_words();
    let answer = call(sys::SESSION_OPEN, opening(event, &config)) as u64;
    let Opened { session, events } = Opened::from_word(answer);
    checks.equal("the events of the answer", events, 1);
    let on = |number: u64, session: u64| error(number, [session, 0, 0, 0, 0, 0]);
    let calls = [
        sys::SESSION_START,
        sys::SESSION_READ,
        sys::SESSION_SCALED,
        sys::SESSION_THREAD,
        sys::SESSION_MAP,
        sys::SESSION_CLOSE,
    ];
    for number in calls {
        let refused = on(number, answer);
        checks.equal("a call with the whole answer", refused, Some(Error::NoSession));
    }
    let bank = call(sys::SESSION_MAP, [session.into(), 0, 0, 0, 0, 0]) as u64;
    let writable = call(sys::MPROTECT, [bank, 4096, 3, 0, 0, 0]);
    checks.equal("mprotect of a bank to writable", writable, -errno::ENOMEM);
    checks.equal("munmap of a bank", call(sys::MUNMAP, [bank, 4096, 0, 0, 0, 0]), -errno::EINVAL);
    let thread =
        |to: u64, words: u64| error(sys::SESSION_THREAD, [session.into(), to, words, 0, 0, 0]);
    checks.equal("no words of a thread", thread(0, 0), None);
    checks.equal("words at an invalid address", thread(KERNEL, 3), Some(Error::BadPointer));
    checks.equal("close", on(sys::SESSION_CLOSE, session.into()), None);
    for number in calls {
        let refused = on(number, session.into());
        checks.equal("a call on a closed session", refused, Some(Error::NoSession));
    }
}
