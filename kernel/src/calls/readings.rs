//! Calls that compute the values of a session; for many events in steps (decision 21).

use core::mem::take;

use tally_abi::{Error, Reading};

use super::answer::{Answer, BadPointer};
use crate::{
    measure::{Context, SessionRef},
    memory::user::UserMemory,
    task::call::Progress,
};

/// `session_read(session, readings, n)`, which also publishes the errors of the values in a bank,
/// or `session_scaled` (`by_cycles`): computes the readings of one moment, and writes them.
pub(super) fn read(
    caller: &mut UserMemory,
    session: &mut SessionRef,
    by_cycles: bool,
    [buffer, count]: [u64; 2],
    progress: &mut Progress,
) -> Result<Answer, Error> {
    let context = session.context()?;
    if context.instances().is_some() {
        return Err(Error::WrongState);
    }
    let events = context.events() as u64;
    if count == 0 {
        return Ok(Answer::Value(events));
    }
    if !by_cycles && progress.at < session.publishing_steps() {
        return Ok(publish(session, progress));
    }
    if progress.readings.is_none() {
        progress.readings = session.context()?.begin_readings(by_cycles)?;
        if progress.readings.is_some() {
            return Ok(Answer::Continue(take(progress)));
        }
    }
    let readings = session.context()?.readings(take(&mut progress.readings), by_cycles);
    write(caller, &readings, buffer, count)?;
    Ok(Answer::Value(events))
}

/// Writes up to `count` readings to `buffer`.
pub(super) fn write(
    caller: &mut UserMemory,
    readings: &[Reading],
    buffer: u64,
    count: u64,
) -> Result<(), Error> {
    for (index, reading) in readings.iter().enumerate().take(count as usize) {
        let words = Reading::to_words(reading);
        let at = (index * size_of_val(&words)) as u64;
        let at = buffer.checked_add(at).ok_or(Error::BadPointer)?;
        caller.write_words(at, words).map_err(BadPointer::from)?;
    }
    Ok(())
}

/// `session_instance(session, index, instance, readings, n)`.
pub(super) fn instance(
    caller: &mut UserMemory,
    context: &mut Context,
    [_, index, to, buffer, count, _]: [u64; 6],
) -> Result<u64, Error> {
    let instances = context.instances().ok_or(Error::WrongState)? as u64;
    if index < instances
        && let Some((of, readings)) = context.instance(index as usize)
    {
        caller.write_words(to, of.to_words()).map_err(BadPointer::from)?;
        write(caller, &readings, buffer, count)?;
    }
    Ok(instances)
}

/// Publishes errors in a bank.
fn publish(session: &mut SessionRef, progress: &mut Progress) -> Answer {
    session.publish_errors();
    progress.at += 1;
    Answer::Continue(take(progress))
}

/// `session_stop(session)`: stops the session, and publishes the errors of the values in a bank.
pub(super) fn stop(session: &mut SessionRef, progress: &mut Progress) -> Result<Answer, Error> {
    if progress.at == 0 {
        session.stop()?;
    }
    if progress.at < session.publishing_steps() {
        return Ok(publish(session, progress));
    }
    Ok(Answer::Value(0))
}
