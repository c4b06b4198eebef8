//! `session_open` and `direct_open`: opening sessions, and the texts of refusals.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

use tally_abi::{
    CpuSet, Error, Mode, Opened, Scope, SessionConfig,
    session::{ConfigWords, MAX_DETAIL_BYTES, MAX_EVENT_LIST_BYTES},
};

use super::answer::{BadPointer, Unanswered, result_of};
use crate::{
    cpu::online,
    measure::{self, Context, DirectCounters, NmiCell, Owner, Refusal, Subject, permit},
    memory::frames,
    sched::table,
    task::Process,
};

/// Upper bound of the kernel memory for opening a session of 1,024 events in as many groups.
const MAX_SESSION_BYTES: u64 = 6 << 20;

/// `session_open(events, events_bytes, config, detail, detail_bytes, program)`.
pub(super) fn open(
    process: &mut Process,
    measure: &NmiCell,
    arguments: [u64; 6],
) -> Result<u64, Unanswered> {
    let [events, events_bytes, config, detail, detail_bytes, program] = arguments;
    let _claim = frames::claim(MAX_SESSION_BYTES).ok_or(Error::NoMemory)?;
    let words: ConfigWords = process.memory.read_words(config).map_err(BadPointer::from)?;
    let config = SessionConfig::from_words(words).map_err(|_| Error::BadArgument)?;
    if program == 0 {
        measure.lock().end_default(&mut process.memory);
    }
    let list = read_list(process, events, events_bytes).map_err(Unanswered::from);
    let opened = list.and_then(|list| match program {
        set if config.scope == Scope::Cpus => {
            let cpus = read_cpus(process, set)?;
            let opened = measure::cpus::open(process.pid, cpus, &list, config)?;
            Ok((opened, String::new()))
        }
        0 => Ok(open_own(process, measure, &list, config)?),
        program => open_on(process.pid, program, &list, config),
    });
    match opened {
        Ok((opened, cost)) => {
            // The session is open, whether or not its caller can be told of the others.
            let _ = (Caller { process, detail, detail_bytes }).tell(cost);
            Ok(opened.to_word())
        }
        Err(Unanswered::Refused(refusal)) => {
            Err(explain(Caller { process, detail, detail_bytes }, refusal)?.into())
        }
        Err(unanswered) => Err(unanswered),
    }
}

/// Reads the set of CPUs at an address; 0 stands for all. Returns it with the CPUs that are online.
fn read_cpus(process: &mut Process, at: u64) -> Result<[CpuSet; 2], Unanswered> {
    let online = online::set();
    if at == 0 {
        return Ok([online; 2]);
    }
    let words = process.memory.read_words(at).map_err(BadPointer::from)?;
    Ok([CpuSet::from_words(words), online])
}

/// Opens a session on the caller itself. Returns what its counting beside others costs.
fn open_own(
    process: &Process,
    measure: &NmiCell,
    list: &str,
    config: SessionConfig,
) -> Result<(Opened, String), Refusal> {
    if config.scope != Scope::Program {
        let detail = "threads are counted apart by a session on another program".into();
        return Err(Refusal { error: Error::BadArgument, detail });
    }
    measure.lock().slot().check_room(true)?;
    let owner = Owner::Program(process.pid);
    // Planning takes long: the cell is not locked, so that overflow interrupts are handled.
    let context = Context::open(process.subject(), owner, list, config)?;
    measure.lock().install(context)
}

/// Opens a session on another program for `owner`. Returns what its counting beside others costs.
fn open_on(
    owner: u32,
    program: u64,
    list: &str,
    config: SessionConfig,
) -> Result<(Opened, String), Unanswered> {
    let program = u32::try_from(program).map_err(|_| Error::NoProgram)?;
    let subject = measurable(owner, program)?;
    // Planning takes long: the table, which the other CPUs need, is not locked.
    let mut context = Box::new(Context::open(subject, Owner::Program(owner), list, config)?);
    let mut table = table::lock();
    let found = table.inspect(program, |process| {
        let opened = context.opened();
        context.begin_usage(process.usage());
        process.slot.add(context).map(|cost| (opened, cost))
    });
    let (opened, cost) = result_of(found, Error::NoProgram)??;
    table.watch(opened.session, owner, program);
    Ok((opened, cost))
}

/// Checks that `owner` may open a session on another program, before the plan is made.
fn measurable(owner: u32, program: u32) -> Result<Subject, Unanswered> {
    if program == owner {
        return Err(Error::BadArgument.into());
    }
    let table = table::lock();
    if !table.may_watch(owner) {
        return Err(Error::TooManySessions.into());
    }
    if !table.is_child(program, owner) {
        permit(0, "counting in a program that another loaded")?;
    }
    table.subject(program).ok_or(Error::NoProgram.into())
}

/// `direct_open(events, events_bytes, mode, indices, detail, detail_bytes)`.
pub(super) fn open_direct(
    process: &mut Process,
    measure: &NmiCell,
    arguments: [u64; 6],
) -> Result<u64, Error> {
    let [events, events_bytes, mode, indices, detail, detail_bytes] = arguments;
    let _claim = frames::claim(MAX_SESSION_BYTES).ok_or(Error::NoMemory)?;
    let mode = Mode::from_word(mode).map_err(|_| Error::BadArgument)?;
    measure.lock().end_default(&mut process.memory);
    let opened = read_list(process, events, events_bytes).and_then(|list| {
        if measure.lock().slot().is_measured() {
            return Err(Error::Busy.into());
        }
        let (counters, rdpmc) = DirectCounters::plan(&list, mode)?;
        measure.lock().install_direct(counters)?;
        Ok(rdpmc)
    });
    match opened {
        Ok(rdpmc) => {
            let words: Vec<_> = rdpmc.iter().map(|ecx| u64::from(*ecx).to_le_bytes()).collect();
            if process.memory.write(indices, words.as_flattened()).is_err() {
                measure.lock().close_direct();
                return Err(Error::BadPointer);
            }
            Ok(words.len() as u64)
        }
        Err(refusal) => Err(explain(Caller { process, detail, detail_bytes }, refusal)?),
    }
}

/// A calling program, and its buffer for a text.
pub(super) struct Caller<'a> {
    pub(super) process: &'a mut Process,
    pub(super) detail: u64,
    pub(super) detail_bytes: u64,
}

impl Caller<'_> {
    /// Writes as much of a text as fits, unless it is empty, and a zero byte.
    ///
    /// # Errors
    /// The buffer is not in the caller's memory.
    fn tell(self, mut text: String) -> Result<(), Error> {
        let room = (self.detail_bytes as usize).min(MAX_DETAIL_BYTES);
        if room > 0 && !text.is_empty() {
            text.truncate(text.floor_char_boundary(room - 1));
            text.push('\0');
            self.process.memory.write(self.detail, text.as_bytes()).map_err(BadPointer::from)?;
        }
        Ok(())
    }
}

/// Writes the text of a refusal to the caller's buffer. Returns the refusal's error.
///
/// # Errors
/// The buffer is not in the caller's memory.
pub(super) fn explain(caller: Caller, refusal: Refusal) -> Result<Error, Error> {
    caller.tell(refusal.detail)?;
    Ok(refusal.error)
}

fn read_list(process: &mut Process, address: u64, bytes: u64) -> Result<String, Refusal> {
    if bytes > MAX_EVENT_LIST_BYTES as u64 {
        let detail = format!(
            "list of events of {bytes} bytes exceeds the maximum of {MAX_EVENT_LIST_BYTES}: \
             shorten it"
        );
        return Err(Refusal { error: Error::TooManyEvents, detail });
    }
    let mut list = vec![0; bytes as usize];
    process.memory.read(address, &mut list).map_err(|_| Refusal::from(Error::BadPointer))?;
    String::from_utf8(list).map_err(|_| Refusal::from(Error::BadArgument))
}
