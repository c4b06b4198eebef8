//! Calls on sessions: what a program asks of the sampling engine.

use alloc::{format, string::String, vec};

use tally_abi::{
    Error, Reading, SessionConfig,
    session::{ConfigWords, MAX_DETAIL_BYTES, MAX_EVENT_LIST_BYTES},
    syscall,
};

use super::BadPointer;
use crate::{
    cpu::Cpu,
    measure::{Context, Measure, Refusal},
    task::Process,
};

pub(super) fn call(cpu: &mut Cpu, number: u64, arguments: [u64; 6]) -> Result<u64, Error> {
    let Cpu { current, measure, .. } = cpu;
    let process = current.as_deref_mut().expect("a system call comes from a program");
    let [session, buffer, count, ..] = arguments;
    match number {
        syscall::SESSION_OPEN => return open(process, measure, arguments),
        syscall::SESSION_START..=syscall::SESSION_MAP => {}
        _ => return Err(Error::BadArgument),
    }
    let context = measure.context(session)?;
    match number {
        syscall::SESSION_START => measure.start()?,
        syscall::SESSION_STOP => measure.stop()?,
        syscall::SESSION_MAP => return measure.map(process),
        syscall::SESSION_READ => return read(process, context, buffer, count),
        syscall::SESSION_STATS => write_words(process, buffer, &context.stats().to_words())?,
        _ => measure.close(process),
    }
    Ok(0)
}

/// `session_open(events, events_bytes, config, detail, detail_bytes)`.
fn open(process: &mut Process, measure: &mut Measure, arguments: [u64; 6]) -> Result<u64, Error> {
    let [events, events_bytes, config, detail, detail_bytes, _] = arguments;
    let mut words: ConfigWords = Default::default();
    let mut bytes = [0; size_of::<ConfigWords>()];
    process.space.read(config, &mut bytes).map_err(BadPointer::from)?;
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let config = SessionConfig::from_words(words).map_err(|_| Error::BadArgument)?;
    let refusal = match read_list(process, events, events_bytes)
        .and_then(|list| measure.open(process, &list, config))
    {
        Ok(session) => return Ok(session.into()),
        Err(refusal) => refusal,
    };
    let mut text = refusal.detail;
    let room = (detail_bytes as usize).min(MAX_DETAIL_BYTES);
    if room > 0 {
        text.truncate(text.floor_char_boundary(room - 1));
        text.push('\0');
        process.space.write(detail, text.as_bytes()).map_err(BadPointer::from)?;
    }
    Err(refusal.error)
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
    for (index, (_, reading)) in context.readings().enumerate().take(count as usize) {
        let words = Reading::to_words(&reading);
        let at = (index * size_of_val(&words)) as u64;
        let at = buffer.checked_add(at).ok_or(Error::BadPointer)?;
        process.space.write(at, &to_bytes(&words)).map_err(BadPointer::from)?;
    }
    Ok(context.events() as u64)
}

fn write_words<const N: usize>(
    process: &mut Process,
    address: u64,
    words: &[u64; N],
) -> Result<(), Error> {
    process.space.write(address, &to_bytes(words)).map_err(BadPointer::from)?;
    Ok(())
}

fn to_bytes(words: &[u64]) -> alloc::vec::Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
