//! System calls on sessions.
//!
//! A session on another program is that program's context, which the kernel uses while the program
//! is off the CPUs: if the program runs, its CPU parks it, and the call is restarted.

use alloc::{boxed::Box, vec::Vec};
use core::mem::take;

use tally_abi::{
    Error, PhaseConfig,
    branches::BranchFilter,
    phase::PhaseConfigWords,
    syscall,
    thread::{EVENT_WORDS, HEADER_WORDS},
};

use super::{
    answer::{Answer, BadPointer, Unanswered, result_of},
    cpus,
    open::{open, open_direct},
    readings,
    thresholds::{handler_of, threshold_of},
};
use crate::{
    cpu::Cpu,
    measure::{Context, NmiCell, Samples, Sequences, SessionRef, permit, ring_memory},
    memory::{heap, user::UserMemory},
    sched::table,
    task::{Process, call::Progress},
};

/// Makes a step of a call. `progress` is the work done before; it is taken when the call continues
/// or ends.
pub(super) fn call(
    cpu: &mut Cpu,
    number: u64,
    arguments: [u64; 6],
    progress: &mut Progress,
) -> Result<Answer, Unanswered> {
    if matches!(number, syscall::SESSION_OPEN | syscall::SESSION_CLOSE)
        && cpu.process().closing.step()
    {
        return Ok(Answer::Continue(take(progress)));
    }
    if let Some(id) = cpus::session(cpu, number, arguments) {
        return Ok(cpus::call(cpu, number, arguments, id, progress)?);
    }
    let measure = cpu.measure;
    let process = cpu.process();
    let value = match number {
        syscall::SESSION_OPEN => open(process, measure, arguments)?,
        // The session is closed already, and the steps above have reported it.
        syscall::SESSION_CLOSE if progress.at != 0 => 0,
        syscall::SESSION_CLOSE => {
            let context = close(process, measure, arguments[0])?;
            process.closing.push(context);
            progress.at = 1;
            return Ok(Answer::Continue(take(progress)));
        }
        syscall::SESSION_START..=syscall::SESSION_THRESHOLD
        | syscall::SESSION_SAMPLE
        | syscall::SESSION_SAMPLES
        | syscall::SESSION_PHASES
        | syscall::SESSION_PHASE
        | syscall::SESSION_INSTANCE
        | syscall::SESSION_UNIT
        | syscall::SESSION_SCALED => {
            if progress.readings.as_mut().is_some_and(|readings| readings.step()) {
                return Ok(Answer::Continue(take(progress)));
            }
            return call_on_session(process, measure, number, arguments, progress);
        }
        syscall::SESSION_THREAD => thread_counts(process, measure, arguments)?,
        syscall::DIRECT_OPEN => open_direct(process, measure, arguments)?,
        syscall::DIRECT_CLOSE if measure.lock().close_direct() => 0,
        syscall::DIRECT_CLOSE => return Err(Error::WrongState.into()),
        syscall::TRACE_MAP => map_trace(process, arguments[0])?,
        _ => return Err(Error::BadArgument.into()),
    };
    Ok(Answer::Value(value))
}

/// A call on an open session: finds it, on the caller or on another program, and handles the call.
fn call_on_session(
    process: &mut Process,
    measure: &NmiCell,
    number: u64,
    arguments: [u64; 6],
    progress: &mut Progress,
) -> Result<Answer, Unanswered> {
    let id = u32::try_from(arguments[0]).map_err(|_| Error::NoSession)?;
    let mut measure = measure.lock();
    if let Some(measure) = measure.session(id) {
        let session = SessionRef::Running(measure);
        let answer = handle(session, &mut process.memory, number, arguments, progress);
        measure.settle();
        return Ok(answer?);
    }
    drop(measure);
    let mut table = table::lock();
    let found = table.inspect_session(id, process.pid, |context, memory| {
        let session = SessionRef::Parked { context, memory };
        handle(session, &mut process.memory, number, arguments, progress)
    });
    Ok(result_of(found, Error::NoSession)??)
}

/// `session_close(session)`: stops the session, and removes it from its program. Returns its
/// context; the next steps report its last values.
fn close(process: &mut Process, measure: &NmiCell, id: u64) -> Result<Box<Context>, Unanswered> {
    let id = u32::try_from(id).map_err(|_| Error::NoSession)?;
    let mut measure = measure.lock();
    if let Some(measure) = measure.session(id) {
        let context = SessionRef::Running(measure).close(&mut process.memory);
        measure.settle();
        return Ok(context.ok_or(Error::NoSession)?);
    }
    drop(measure);
    let mut table = table::lock();
    let found = table.inspect_session(id, process.pid, |context, memory| {
        SessionRef::Parked { context, memory }.close(&mut process.memory)
    });
    result_of(found, Error::NoSession)?;
    Ok(table.unwatch(id).ok_or(Error::NoSession)?)
}

/// `session_unit(session, counts, n)`: writes the first `count` of `counts`.
fn unit_counts(
    caller: &mut UserMemory,
    counts: &[u64],
    buffer: u64,
    count: u64,
) -> Result<u64, Error> {
    let words: Vec<_> = counts.iter().take(count as usize).map(|it| it.to_le_bytes()).collect();
    caller.write(buffer, words.as_flattened()).map_err(BadPointer::from)?;
    Ok(counts.len() as u64)
}

/// Handles a call on `session`; `caller` is the calling program's memory.
fn handle(
    mut session: SessionRef,
    caller: &mut UserMemory,
    number: u64,
    arguments: [u64; 6],
    progress: &mut Progress,
) -> Result<Answer, Error> {
    let [_, buffer, count, ..] = arguments;
    let value = match number {
        syscall::SESSION_STOP => return readings::stop(&mut session, progress),
        syscall::SESSION_READ | syscall::SESSION_SCALED => {
            let by_cycles = number == syscall::SESSION_SCALED;
            return readings::read(caller, &mut session, by_cycles, [buffer, count], progress);
        }
        syscall::SESSION_INSTANCE => readings::instance(caller, session.context()?, arguments)?,
        syscall::SESSION_MAP => session.map(caller, Sequences::at(count)?)?,
        syscall::SESSION_UNIT => unit_counts(caller, &session.unit_counts()?, buffer, count)?,
        syscall::SESSION_SAMPLES => samples(caller, session.context()?, buffer, count)?,
        syscall::SESSION_START => session.start().map(|()| 0)?,
        syscall::SESSION_THRESHOLD => {
            session.set_threshold(threshold_of(arguments)?).map(|()| 0)?
        }
        syscall::SESSION_PHASES => track_phases(session, caller, arguments).map(|()| 0)?,
        syscall::SESSION_PHASE => {
            let words = session.context()?.phase()?.to_words();
            caller.write_words(buffer, words).map_err(BadPointer::from)?;
            0
        }
        syscall::SESSION_SAMPLE => {
            let event = usize::try_from(buffer).map_err(|_| Error::BadArgument)?;
            let [_, _, period, stack_bytes, hz, branches] = arguments;
            let branches = BranchFilter::from_bits(branches).ok_or(Error::BadArgument)?;
            let samples = Samples { event, period, hz, stack_bytes, branches };
            session.set_period(caller, samples).map(|()| 0)?
        }
        syscall::SESSION_STATS => {
            let stats = session.context()?.stats().to_words();
            caller.write_words(buffer, stats).map_err(BadPointer::from)?;
            0
        }
        _ => return Err(Error::BadArgument),
    };
    Ok(Answer::Value(value))
}

/// `trace_map(cpu)`.
fn map_trace(process: &mut Process, cpu: u64) -> Result<u64, Error> {
    permit(0, "reading the trace").map_err(|refusal| refusal.error)?;
    if !heap::has_room() {
        return Err(Error::NoMemory);
    }
    process.memory.lend(ring_memory(cpu)?).map_err(|_| Error::NoMemory)
}

/// `session_samples(session, addresses, n)`.
fn samples(
    caller: &mut UserMemory,
    context: &Context,
    buffer: u64,
    count: u64,
) -> Result<u64, Error> {
    let mut addresses = 0;
    for (address, samples) in context.samples() {
        if addresses < count {
            let at = buffer.checked_add(16 * addresses).ok_or(Error::BadPointer)?;
            caller.write_words(at, [address, samples]).map_err(BadPointer::from)?;
        }
        addresses += 1;
    }
    Ok(addresses)
}

/// `session_thread(session, words, n)`.
fn thread_counts(
    process: &mut Process,
    measure: &NmiCell,
    [id, buffer, count, ..]: [u64; 6],
) -> Result<u64, Error> {
    let id = u32::try_from(id).map_err(|_| Error::NoSession)?;
    let thread = process.threads.running().tid;
    let mut measure = measure.lock();
    let session = measure.session(id).ok_or(Error::NoSession)?;
    let words = session.thread_words(thread).map(|words| words.map(u64::to_le_bytes).collect());
    measure.settle();
    drop(measure);
    let mut words: Vec<_> = words?;
    let events = (words.len() - HEADER_WORDS) / EVENT_WORDS;
    words.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    process.memory.write(buffer, words.as_flattened()).map_err(BadPointer::from)?;
    Ok(events as u64)
}

/// `session_phases(session, config, handler, data)`.
fn track_phases(
    session: SessionRef,
    caller: &mut UserMemory,
    [_, config, handler, data, ..]: [u64; 6],
) -> Result<(), Error> {
    let handler = handler_of(handler, data)?;
    let words: PhaseConfigWords = caller.read_words(config).map_err(BadPointer::from)?;
    let config = PhaseConfig::from_words(words).map_err(|_| Error::BadArgument)?;
    session.track_phases(config, handler)
}
