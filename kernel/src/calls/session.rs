//! Calls on sessions: what a program asks of the sampling engine.
//!
//! A session on another program is that program's context, which is looked at while the program is not
//! running: where it is, its CPU is asked to give it up, and the call is made again.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

use tally_abi::{
    Error, Mode, Reading, SessionConfig,
    bank::NO_THRESHOLD,
    session::{ConfigWords, MAX_DETAIL_BYTES, MAX_EVENT_LIST_BYTES},
    syscall,
};

use super::BadPointer;
use crate::{
    cpu::Cpu,
    measure::{Context, Measure, Refusal, permit, ring_memory},
    memory::{frames, heap, space::USER_END},
    task::{
        Process,
        divert::Handler,
        table::{self, Found},
    },
};

/// More of the kernel's memory than a session takes while it is made, of 1,024 events in as many groups.
const MAX_SESSION_BYTES: u64 = 6 << 20;

/// Why a call has no result.
pub(super) enum Unanswered {
    /// It cannot have one.
    Error(Error),
    /// The program that it is about is running, on the CPU with this interrupt controller.
    Away(u32),
}

impl<E: Into<Error>> From<E> for Unanswered {
    fn from(error: E) -> Self {
        Unanswered::Error(error.into())
    }
}

pub(super) fn call(cpu: &mut Cpu, number: u64, arguments: [u64; 6]) -> Result<u64, Unanswered> {
    let Cpu { current, measure, .. } = cpu;
    let process = current.as_deref_mut().expect("a system call comes from a program");
    let [session, buffer, count, ..] = arguments;
    let measure = &mut *measure.hold();
    match number {
        syscall::SESSION_OPEN => return open(process, measure, arguments),
        syscall::DIRECT_OPEN => return Ok(open_direct(process, measure, arguments)?),
        syscall::TRACE_MAP => return Ok(map_trace(process, session)?),
        syscall::DIRECT_CLOSE => {
            return if measure.close_direct() { Ok(0) } else { Err(Error::WrongState.into()) };
        }
        syscall::SESSION_START..=syscall::SESSION_THRESHOLD => {}
        syscall::SESSION_SAMPLE | syscall::SESSION_SAMPLES => {}
        _ => return Err(Error::BadArgument.into()),
    }
    if measure.sync(session).is_err() {
        return call_from_afar(process, number, arguments);
    }
    match number {
        // Programs may do this often.
        syscall::SESSION_START => measure.start()?,
        syscall::SESSION_STOP => {
            measure.stop()?;
            measure.context()?;
        }
        syscall::SESSION_MAP => return Ok(measure.map(process)?),
        syscall::SESSION_THRESHOLD => set_threshold(measure, arguments)?,
        syscall::SESSION_SAMPLE => {
            let event = usize::try_from(buffer).map_err(|_| Error::BadArgument)?;
            measure.set_period(process, event, count)?;
        }
        syscall::SESSION_SAMPLES => {
            return Ok(samples(process, measure.context()?, buffer, count)?);
        }
        syscall::SESSION_READ => return Ok(read(process, measure.context()?, buffer, count)?),
        syscall::SESSION_STATS => {
            let stats = measure.context()?.stats().to_words();
            process.space.write_words(buffer, stats).map_err(BadPointer::from)?;
        }
        _ => measure.close(process),
    }
    Ok(0)
}

/// `trace_map(cpu)`.
fn map_trace(process: &mut Process, cpu: u64) -> Result<u64, Error> {
    permit(0, "reading the trace").map_err(|refusal| refusal.error)?;
    if !heap::has_room() {
        return Err(Error::NoMemory);
    }
    process.lend(ring_memory(cpu)?).map_err(|_| Error::NoMemory)
}

/// A call on a session that `process` opened on another program.
fn call_from_afar(
    process: &mut Process,
    number: u64,
    [session, buffer, count, ..]: [u64; 6],
) -> Result<u64, Unanswered> {
    let session = u32::try_from(session).map_err(|_| Error::NoSession)?;
    let mut table = table::lock();
    let found = table.watched(session, process.pid, |context, watched| match number {
        syscall::SESSION_START if watched.is_none() => Err(Error::WrongState),
        syscall::SESSION_START => context.start_later().map(|()| 0),
        syscall::SESSION_STOP => {
            let watched = watched.ok_or(Error::WrongState)?;
            context.stop_now(watched).map(|()| 0)
        }
        // What is added to a counter by RDPMC is of the CPU that the reader runs on.
        syscall::SESSION_MAP | syscall::SESSION_THRESHOLD => Err(Error::WrongState),
        syscall::SESSION_SAMPLE => {
            let watched = watched.ok_or(Error::WrongState)?;
            let event = usize::try_from(buffer).map_err(|_| Error::BadArgument)?;
            context.set_period(watched, event, count).map(|()| 0)
        }
        syscall::SESSION_SAMPLES => samples(process, context, buffer, count),
        syscall::SESSION_READ => read(process, context, buffer, count),
        syscall::SESSION_STATS => {
            let stats = context.stats().to_words();
            process.space.write_words(buffer, stats).map_err(BadPointer::from)?;
            Ok(0)
        }
        _ => {
            if let Some(watched) = watched {
                // One that does not count is as it should be.
                let _ = context.stop_now(watched);
                context.unmap(watched);
            }
            Ok(0)
        }
    });
    let answer = answer_of(found, Error::NoSession)??;
    if number == syscall::SESSION_CLOSE {
        let context = table.unwatch(session);
        drop(table);
        context.into_iter().for_each(|context| context.close(None));
    }
    Ok(answer)
}

fn answer_of<T>(found: Found<T>, nowhere: Error) -> Result<T, Unanswered> {
    match found {
        Found::Here(answer) => Ok(answer),
        Found::Away(lapic) => Err(Unanswered::Away(lapic)),
        Found::Ended | Found::Nowhere => Err(nowhere.into()),
    }
}

/// `session_open(events, events_bytes, config, detail, detail_bytes, program)`.
fn open(
    process: &mut Process,
    measure: &mut Measure,
    arguments: [u64; 6],
) -> Result<u64, Unanswered> {
    let [events, events_bytes, config, detail, detail_bytes, program] = arguments;
    let _claim = frames::claim(MAX_SESSION_BYTES).ok_or(Error::NoMemory)?;
    let words: ConfigWords = process.space.read_words(config).map_err(BadPointer::from)?;
    let config = SessionConfig::from_words(words).map_err(|_| Error::BadArgument)?;
    let opened = match read_list(process, events, events_bytes) {
        Ok(list) if program == 0 => measure.open(process, &list, config),
        Ok(list) => open_on(process.pid, program, &list, config)?,
        Err(refusal) => Err(refusal),
    };
    match opened {
        Ok(session) => Ok(session.into()),
        Err(refusal) => Err(explain(Asker { process, detail, detail_bytes }, refusal)?.into()),
    }
}

/// `direct_open(events, events_bytes, mode, indices, detail, detail_bytes)`.
fn open_direct(
    process: &mut Process,
    measure: &mut Measure,
    arguments: [u64; 6],
) -> Result<u64, Error> {
    let [events, events_bytes, mode, indices, detail, detail_bytes] = arguments;
    let _claim = frames::claim(MAX_SESSION_BYTES).ok_or(Error::NoMemory)?;
    let mode = Mode::from_word(mode).map_err(|_| Error::BadArgument)?;
    let opened =
        read_list(process, events, events_bytes).and_then(|list| measure.open_direct(&list, mode));
    match opened {
        Ok(counters) => {
            let words: Vec<_> = counters.iter().map(|i| u64::from(*i).to_le_bytes()).collect();
            if process.space.write(indices, words.as_flattened()).is_err() {
                measure.close_direct();
                return Err(Error::BadPointer);
            }
            Ok(words.len() as u64)
        }
        Err(refusal) => Err(explain(Asker { process, detail, detail_bytes }, refusal)?),
    }
}

/// Opens a session on a program that `owner` loaded.
fn open_on(
    owner: u32,
    program: u64,
    list: &str,
    config: SessionConfig,
) -> Result<Result<u32, Refusal>, Unanswered> {
    let program = u32::try_from(program).map_err(|_| Error::NoProgram)?;
    if program == owner {
        return Err(Error::BadArgument.into());
    }
    let table = table::lock();
    if !table.may_watch(owner) {
        return Err(Error::TooManySessions.into());
    }
    let (is_child, subject) = (table.is_child(program, owner), table.subject(program));
    drop(table);
    if !is_child && let Err(refusal) = permit(0, "counting in a program that another loaded") {
        return Ok(Err(refusal));
    }
    let subject = match subject {
        None => return Err(Error::NoProgram.into()),
        Some((_, true)) => return Ok(Err(Error::Busy.into())),
        Some((subject, false)) => subject,
    };
    // Planning takes its time, in which the other CPUs want the table.
    let context = match Context::open(subject, owner, list, config) {
        Ok(context) => Box::new(context),
        Err(refusal) => return Ok(Err(refusal)),
    };
    let mut table = table::lock();
    let found = table.here(program, |process| {
        if process.is_measured() {
            return Err(Error::Busy.into());
        }
        Ok(process.context.insert(context).id())
    });
    let opened = answer_of(found, Error::NoProgram)?;
    if let Ok(session) = opened {
        table.watch(session, owner, program);
    }
    Ok(opened)
}

/// Who asks, and where the answer for people goes.
pub(super) struct Asker<'a> {
    pub(super) process: &'a mut Process,
    pub(super) detail: u64,
    pub(super) detail_bytes: u64,
}

/// Tells the asker why not; gives the error.
///
/// # Errors
/// The asker's buffer is not its own.
pub(super) fn explain(asker: Asker, refusal: Refusal) -> Result<Error, Error> {
    let mut text = refusal.detail;
    let room = (asker.detail_bytes as usize).min(MAX_DETAIL_BYTES);
    if room > 0 {
        text.truncate(text.floor_char_boundary(room - 1));
        text.push('\0');
        asker.process.space.write(asker.detail, text.as_bytes()).map_err(BadPointer::from)?;
    }
    Ok(refusal.error)
}

fn read_list(process: &mut Process, address: u64, bytes: u64) -> Result<String, Refusal> {
    if bytes > MAX_EVENT_LIST_BYTES as u64 {
        let detail = format!(
            "the list of events has {bytes} bytes; {MAX_EVENT_LIST_BYTES} are the most that a \
             session takes"
        );
        return Err(Refusal { error: Error::TooManyEvents, detail });
    }
    let mut list = vec![0; bytes as usize];
    process.space.read(address, &mut list).map_err(|_| Refusal::from(Error::BadPointer))?;
    String::from_utf8(list).map_err(|_| Refusal::from(Error::BadArgument))
}

fn read(
    process: &mut Process,
    context: &mut Context,
    buffer: u64,
    count: u64,
) -> Result<u64, Error> {
    if count == 0 {
        return Ok(context.events() as u64);
    }
    for (index, (_, reading)) in context.readings().enumerate().take(count as usize) {
        let words = Reading::to_words(&reading);
        let at = (index * size_of_val(&words)) as u64;
        let at = buffer.checked_add(at).ok_or(Error::BadPointer)?;
        process.space.write_words(at, words).map_err(BadPointer::from)?;
    }
    Ok(context.events() as u64)
}

/// `session_samples(session, addresses, n)`.
fn samples(
    process: &mut Process,
    context: &Context,
    buffer: u64,
    count: u64,
) -> Result<u64, Error> {
    let mut addresses = 0;
    for (address, samples) in context.samples() {
        if addresses < count {
            let at = buffer.checked_add(16 * addresses).ok_or(Error::BadPointer)?;
            process.space.write_words(at, [address, samples]).map_err(BadPointer::from)?;
        }
        addresses += 1;
    }
    Ok(addresses)
}

/// `session_threshold(session, event, count, handler, data)`.
fn set_threshold(
    measure: &mut Measure,
    [_, event, count, handler, data, _]: [u64; 6],
) -> Result<(), Error> {
    if handler >= USER_END {
        return Err(Error::BadPointer);
    }
    let handler = (handler != 0).then_some(Handler { entry: handler, data });
    let event = usize::try_from(event).map_err(|_| Error::BadArgument)?;
    measure.set_threshold(event, (count != NO_THRESHOLD).then_some(count), handler)
}
