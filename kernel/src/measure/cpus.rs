//! Sessions on whole CPUs (decision 49): each has a context for each CPU, which counts whatever
//! program the CPU runs.
//!
//! A context is here while its session is stopped. While it is started, the CPU owns it, and no
//! other CPU can lock the state that its overflow interrupt uses. So a call changes the requested
//! state here and interrupts the CPUs ([`serve`]); the request is done when each CPU has taken its
//! context, returned it, or delivered its values.

pub mod upcalls;

use alloc::{boxed::Box, format, vec::Vec};
use core::{
    mem::take as empty,
    sync::atomic::{AtomicU64, Ordering},
};

use spin::Mutex;
use tally_abi::{
    CpuSet, Error, Instance, Opened, Reading, SessionConfig, SessionStats, usage::Usage,
};
use tally_engine::{Exchange, Ticket};

use super::{
    claim::{Claim, Purpose},
    context::{Context, Owner, Subject},
    refusal::Refusal,
    session_id, settings,
    upcall::{Threshold, Upcall},
};
use crate::memory::user::UserMemory;

/// Maximum number of sessions on CPUs at once: each takes memory of the kernel for each CPU.
const MAX_SESSIONS: usize = 4;

static SESSIONS: Mutex<Vec<CpuSession>> = Mutex::new(Vec::new());

/// Number of changes of the requested state. A CPU that has seen them all has no work. Written
/// while [`SESSIONS`] is locked; a CPU that reads it too early is interrupted after the change.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// A session on CPUs.
struct CpuSession {
    id: u32,
    /// The program that opened it.
    owner: u32,
    is_started: bool,
    /// Whether its owner is closing it: then it cannot be started any more.
    is_closing: bool,
    /// Number of events.
    events: usize,
    parts: Vec<Part>,
    /// Upcalls of thresholds that fired on CPUs, before the owner's handler is called: the CPU's
    /// number, and the upcall.
    upcalls: Vec<(u16, Upcall)>,
    _claim: Claim,
}

/// A session's part for one CPU.
struct Part {
    cpu: u16,
    /// The context; `None` while the CPU has it.
    context: Option<Box<Context>>,
    /// The values, which the CPU delivers on request if it has the context.
    values: Exchange<(Instance, Vec<Reading>)>,
    /// Whether the owner has mapped the part's bank.
    is_mapped: bool,
    /// Thresholds to be set by the CPU, which has the context.
    thresholds: Vec<Threshold>,
}

impl Part {
    fn new(cpu: u16, context: Box<Context>) -> Part {
        let (values, thresholds) = (Exchange::default(), Vec::new());
        Part { cpu, context: Some(context), values, is_mapped: false, thresholds }
    }
}

impl CpuSession {
    /// Returns whether every CPU has reached the requested state.
    fn is_settled(&self) -> bool {
        self.parts.iter().all(|part| part.context.is_none() == self.is_started)
    }
}

/// Number of changes of the state requested of CPUs.
pub(super) fn changes() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// Runs `change` on the session with this number, if `owner` opened it.
fn with<T>(
    id: u32,
    owner: u32,
    work: impl FnOnce(&mut CpuSession) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut sessions = SESSIONS.lock();
    let session = sessions.iter_mut().find(|session| (session.id, session.owner) == (id, owner));
    work(session.ok_or(Error::NoSession)?)
}

/// [`with`], unless the session is being closed: then its CPUs have other indices.
fn with_open<T>(
    id: u32,
    owner: u32,
    work: impl FnOnce(&mut CpuSession) -> Result<T, Error>,
) -> Result<T, Error> {
    with(
        id,
        owner,
        |session| if session.is_closing { Err(Error::WrongState) } else { work(session) },
    )
}

/// Returns whether `owner` has opened a session on CPUs with this number.
pub fn is_open(id: u32, owner: u32) -> bool {
    SESSIONS.lock().iter().any(|session| (session.id, session.owner) == (id, owner))
}

/// A session that `owner` has open on CPUs; `None` if there is none.
pub fn of_owner(owner: u32) -> Option<u32> {
    SESSIONS.lock().iter().find(|session| session.owner == owner).map(|session| session.id)
}

/// Opens a session on the CPUs of the set `cpus`; the empty set stands for all of `online`.
///
/// # Errors
/// The caller may not count other programs, a CPU does not exist, the list is wrong, this PMU
/// cannot count it, the session counts ring 0 or is exclusive, there are too many sessions, or a
/// session exists that must be alone.
pub fn open(
    owner: u32,
    [cpus, online]: [CpuSet; 2],
    list: &str,
    config: SessionConfig,
) -> Result<Opened, Refusal> {
    settings::permit(0, "counting whole CPUs")?;
    if let Some(first) = cpus.without(online).lowest() {
        let count = online.numbers().count();
        let detail = format!("there is no CPU {first}: the machine has {count}, from 0 on");
        return Err(Refusal { error: Error::BadArgument, detail });
    }
    let claim = Claim::take(Purpose::Cpus)?;
    let cpus = if cpus.is_empty() { online } else { cpus };
    let (session, mut parts, mut events) = (session_id::next(), Vec::new(), 0);
    for cpu in cpus.numbers() {
        let subject = Subject { pid: 0, name: format!("CPU{cpu}"), space: 0 };
        let context = Context::open(subject, Owner::Program(owner), list, config)?;
        let context = context.on_cpu(session, cpu as u16)?;
        events = context.events();
        parts.push(Part::new(cpu as u16, context));
    }
    // Planning takes long: the sessions, which the other CPUs need, are locked only afterwards.
    let mut sessions = SESSIONS.lock();
    if sessions.len() >= MAX_SESSIONS {
        let detail = format!("{MAX_SESSIONS} sessions count CPUs already: close one first");
        return Err(Refusal { error: Error::TooManySessions, detail });
    }
    sessions.push(CpuSession {
        id: session,
        owner,
        is_started: false,
        is_closing: false,
        events,
        parts,
        upcalls: Vec::new(),
        _claim: claim,
    });
    Ok(Opened { session, events: events as u32 })
}

/// Requests the start or the stop of a session.
///
/// # Errors
/// The session does not exist, is already in that state, or is being closed.
pub fn want(id: u32, owner: u32, is_started: bool) -> Result<(), Error> {
    with(id, owner, |session| {
        if session.is_started == is_started || session.is_closing {
            return Err(Error::WrongState);
        }
        session.is_started = is_started;
        CHANGES.fetch_add(1, Ordering::Release);
        Ok(())
    })
}

/// Requests the final stop of a session, if it is started: [`remove`] follows.
///
/// # Errors
/// There is no such session.
pub fn begin_close(id: u32, owner: u32) -> Result<(), Error> {
    // A session that is not started needs no stop.
    let _ = want(id, owner, false);
    with(id, owner, |session| {
        session.is_closing = true;
        Ok(())
    })
}

/// Returns whether every CPU has reached the requested state.
///
/// # Errors
/// There is no such session.
pub fn is_settled(id: u32, owner: u32) -> Result<bool, Error> {
    with(id, owner, |session| Ok(session.is_settled()))
}

/// Requests the values of the CPU at `index`. Returns the ticket for [`take`]; `None` if the index
/// is beyond the last.
///
/// # Errors
/// There is no such session.
pub fn ask(id: u32, owner: u32, index: usize) -> Result<Option<Ticket>, Error> {
    with_open(id, owner, |session| {
        let Some(part) = session.parts.get_mut(index) else { return Ok(None) };
        let ticket = part.values.ask();
        match &mut part.context {
            Some(context) => part.values.serve(context.values_of_cpu(None)),
            None => _ = CHANGES.fetch_add(1, Ordering::Release),
        }
        Ok(Some(ticket))
    })
}

/// Takes the requested values, with the number of CPUs. `None` if they are not there yet.
///
/// # Errors
/// There is no such session, or the CPU has no values.
pub fn take(
    id: u32,
    owner: u32,
    index: usize,
    ticket: Option<Ticket>,
) -> Result<Option<Taken>, Error> {
    with_open(id, owner, |session| {
        let cpus = session.parts.len();
        let Some((part, ticket)) = session.parts.get(index).zip(ticket) else {
            return Ok(Some(Taken { cpus, values: None }));
        };
        let Some(values) = part.values.take(ticket) else { return Ok(None) };
        Ok(Some(Taken { cpus, values: Some(values.ok_or(Error::WrongState)?) }))
    })
}

/// Values of a CPU that a session counts.
pub struct Taken {
    /// Number of CPUs that the session counts.
    pub cpus: usize,
    /// The CPU and its values; `None` if the index is beyond the last.
    pub values: Option<(Instance, Vec<Reading>)>,
}

/// Maps the bank of the CPU at `index` into `memory`, which is the owner's. Returns its address.
///
/// # Errors
/// The session or CPU does not exist, the session is started, or no memory is left.
pub fn map(id: u32, owner: u32, index: usize, memory: &mut UserMemory) -> Result<u64, Error> {
    with_open(id, owner, |session| {
        let part = session.parts.get_mut(index).ok_or(Error::BadArgument)?;
        let context = part.context.as_mut().filter(|_| !session.is_started);
        let address = context.ok_or(Error::WrongState)?.map_for_owner(memory, id)?;
        part.is_mapped = true;
        Ok(address)
    })
}

/// Requests a threshold of the CPU at `index`. [`are_set`] returns whether it is set.
///
/// # Errors
/// The session, CPU or event does not exist, or the CPU's bank is not mapped.
pub fn set_threshold(id: u32, owner: u32, index: usize, threshold: Threshold) -> Result<(), Error> {
    with_open(id, owner, |session| {
        let part = session.parts.get_mut(index).ok_or(Error::BadArgument)?;
        if let Some(context) = &mut part.context {
            return context.set_threshold(threshold);
        }
        if threshold.event >= session.events {
            return Err(Error::BadArgument);
        }
        if !part.is_mapped {
            return Err(Error::WrongState);
        }
        part.thresholds.push(threshold);
        CHANGES.fetch_add(1, Ordering::Release);
        Ok(())
    })
}

/// Returns whether every CPU has set the requested thresholds.
///
/// # Errors
/// There is no such session.
pub fn are_set(id: u32, owner: u32) -> Result<bool, Error> {
    with(id, owner, |session| Ok(session.parts.iter().all(|part| part.thresholds.is_empty())))
}

/// The statistics of a stopped session, summed over its CPUs.
///
/// # Errors
/// The session does not exist, or is started.
pub fn stats(id: u32, owner: u32) -> Result<SessionStats, Error> {
    with_open(id, owner, |session| {
        let contexts = session.parts.iter().map(|part| part.context.as_ref());
        let contexts: Option<Vec<_>> = contexts.collect();
        let all = contexts.ok_or(Error::WrongState)?.into_iter().map(|context| context.stats());
        all.reduce(SessionStats::with).ok_or(Error::NoSession)
    })
}

/// Removes the next context of a stopped session; with the last one also the session.
///
/// # Errors
/// There is no such session.
pub fn remove(id: u32, owner: u32) -> Result<Option<Box<Context>>, Error> {
    let next = with(id, owner, |session| {
        Ok((!session.parts.is_empty()).then(|| session.parts.remove(0).context))
    })?;
    if next.is_none() {
        SESSIONS.lock().retain(|session| session.id != id);
    }
    Ok(next.flatten())
}

/// A CPU's operations for sessions on CPUs; `running` is the usage of its running program, if there
/// is one.
pub(super) trait CpuSide {
    /// Attaches a context, which counts from now on.
    fn take_on(&mut self, context: Option<Box<Context>>, running: Option<Usage>);

    /// Detaches a session's context and returns it.
    fn give_back(&mut self, session: u32, running: Option<Usage>) -> Option<Box<Context>>;

    /// The values of a session.
    fn values_of_cpu(
        &mut self,
        session: u32,
        running: Option<Usage>,
    ) -> Option<(Instance, Vec<Reading>)>;

    /// Sets a threshold of a session.
    fn set_threshold_of_cpu(&mut self, session: u32, threshold: Threshold);
}

/// Carries out the requests to this CPU; `running` is the usage of its running program, if there is
/// one.
pub(super) fn serve(measure: &mut impl CpuSide, cpu: u16, running: Option<Usage>) {
    for session in SESSIONS.lock().iter_mut() {
        let CpuSession { id, is_started, parts, .. } = session;
        for part in parts.iter_mut().filter(|part| part.cpu == cpu) {
            if part.values.is_asked() {
                part.values.serve(measure.values_of_cpu(*id, running));
            }
            for threshold in empty(&mut part.thresholds) {
                measure.set_threshold_of_cpu(*id, threshold);
            }
            match (&mut part.context, *is_started) {
                (context @ Some(_), true) => measure.take_on(context.take(), running),
                (context @ None, false) => *context = measure.give_back(*id, running),
                _ => {}
            }
        }
    }
}
