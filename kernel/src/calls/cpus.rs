//! Calls on sessions on whole CPUs (decision 49). A call requests work of other CPUs by an
//! interrupt, and waits for it in steps: each CPU does the work as soon as it takes interrupts.

use core::mem::take;

use tally_abi::{Error, syscall};

use super::{
    answer::{Answer, BadPointer},
    readings,
    thresholds::threshold_of,
};
use crate::{
    cpu::Cpu,
    measure::cpus,
    task::call::{Chosen, Progress},
};

/// The caller's session on CPUs that the call names; `None` for other calls and sessions.
pub(super) fn session(cpu: &mut Cpu, number: u64, [id, ..]: [u64; 6]) -> Option<u32> {
    let is_on_session = matches!(
        number,
        syscall::SESSION_START..=syscall::SESSION_THRESHOLD
            | syscall::SESSION_SAMPLE..=syscall::SESSION_UNIT
            | syscall::SESSION_SCALED
    );
    let id = u32::try_from(id).ok().filter(|_| is_on_session)?;
    cpus::is_open(id, cpu.process().pid).then_some(id)
}

/// Makes a step of a call on the session `id` on CPUs.
pub(super) fn call(
    cpu: &mut Cpu,
    number: u64,
    arguments: [u64; 6],
    id: u32,
    progress: &mut Progress,
) -> Result<Answer, Error> {
    let owner = cpu.process().pid;
    match number {
        syscall::SESSION_START | syscall::SESSION_STOP => {
            if progress.at == 0 {
                cpus::want(id, owner, number == syscall::SESSION_START)?;
            }
            wait(cpu, progress, || cpus::is_settled(id, owner))
        }
        syscall::SESSION_STATS => {
            let stats = cpus::stats(id, owner)?.to_words();
            cpu.process().memory.write_words(arguments[1], stats).map_err(BadPointer::from)?;
            Ok(Answer::Value(0))
        }
        syscall::SESSION_INSTANCE => instance(cpu, arguments, id, progress),
        syscall::SESSION_MAP => {
            let index = arguments[1] as usize;
            Ok(Answer::Value(cpus::map(id, owner, index, &mut cpu.process().memory)?))
        }
        syscall::SESSION_THRESHOLD => {
            if progress.at == 0 {
                let index = arguments[5] as usize;
                cpus::set_threshold(id, owner, index, threshold_of(arguments)?)?;
            }
            wait(cpu, progress, || cpus::are_set(id, owner))
        }
        syscall::SESSION_CLOSE => {
            if progress.at == 0 {
                cpus::begin_close(id, owner)?;
            }
            if !is_served(cpu, progress, || cpus::is_settled(id, owner))? {
                return Ok(Answer::Continue(take(progress)));
            }
            let Some(mut context) = cpus::remove(id, owner)? else { return Ok(Answer::Value(0)) };
            let process = cpu.process();
            context.unmap(&mut process.memory);
            process.closing.push(context);
            Ok(Answer::Continue(take(progress)))
        }
        _ => Err(Error::WrongState),
    }
}

/// `session_instance(session, index, instance, readings, n)` of a session on CPUs.
fn instance(
    cpu: &mut Cpu,
    [_, index, to, buffer, count, _]: [u64; 6],
    id: u32,
    progress: &mut Progress,
) -> Result<Answer, Error> {
    let (owner, index) = (cpu.process().pid, index as usize);
    if progress.at == 0 {
        progress.chosen = cpus::ask(id, owner, index)?.map(Chosen::Request);
    }
    let ticket = match progress.chosen {
        Some(Chosen::Request(ticket)) => Some(ticket),
        _ => None,
    };
    let mut taken = None;
    let is_there = is_served(cpu, progress, || {
        taken = cpus::take(id, owner, index, ticket)?;
        Ok(taken.is_some())
    })?;
    let Some(taken) = taken.filter(|_| is_there) else {
        return Ok(Answer::Continue(take(progress)));
    };
    if let Some((of, readings)) = taken.values {
        let memory = &mut cpu.process().memory;
        memory.write_words(to, of.to_words()).map_err(BadPointer::from)?;
        readings::write(memory, &readings, buffer, count)?;
    }
    Ok(Answer::Value(taken.cpus as u64))
}

/// Answers a call when its request is done.
fn wait(
    cpu: &mut Cpu,
    progress: &mut Progress,
    is_done: impl FnMut() -> Result<bool, Error>,
) -> Result<Answer, Error> {
    if is_served(cpu, progress, is_done)? {
        return Ok(Answer::Value(0));
    }
    Ok(Answer::Continue(take(progress)))
}

/// Returns whether the CPUs have done their requests. Interrupts the other CPUs the first time.
/// Each time does this CPU's work, for the calls of other CPUs too, which may wait for it.
fn is_served(
    cpu: &mut Cpu,
    progress: &mut Progress,
    mut is_done: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
    if progress.at == 0 {
        progress.at = 1;
        cpu.ask_others();
    }
    cpu.serve();
    let is_done = is_done()?;
    if !is_done {
        core::hint::spin_loop();
    }
    Ok(is_done)
}
