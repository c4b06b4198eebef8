//! Long calls work in steps, between which the turn may end, so that they delay no other program
//! (decision 21).

use core::mem::take;

use super::answer::Answer;
use crate::{
    arch::frame::Frame,
    cpu::Cpu,
    task::{call::Progress, handler},
};

/// Makes the steps of the running thread's call, starting at its progress, until one answers or the
/// turn is over. Returns the answer; `None` if the turn is over: then the thread repeats the call
/// in its next turn, which continues the work.
pub(super) fn in_steps<E>(
    cpu: &mut Cpu,
    frame: &mut Frame,
    mut step: impl FnMut(&mut Cpu, &mut Frame, Progress) -> Result<Answer, E>,
) -> Option<Result<Answer, E>> {
    let progress = take(&mut cpu.process().threads.running().call.progress);
    let is_continued = progress.is_some();
    let mut progress = progress.unwrap_or_default();
    let answer = loop {
        match step(cpu, frame, progress) {
            Ok(Answer::Continue(next)) if cpu.is_preempted() => {
                // The interrupt comes before the SYSCALL instruction, which is executed again and
                // makes the next step.
                cpu.process().threads.running().call.progress = Some(next);
                handler::repeat_call(frame);
                return None;
            }
            Ok(Answer::Continue(next)) => progress = next,
            answer => break answer,
        }
    };
    if is_continued {
        // A threshold may have fired in the meantime; the call delayed its upcall.
        cpu.measure.lock().repost_upcall();
    }
    Some(answer)
}
