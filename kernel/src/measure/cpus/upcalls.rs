//! Upcalls of sessions on CPUs: a threshold fires on the counting CPU, and its handler runs in the
//! owner, on whatever CPU that runs.
//!
//! The CPU of the threshold posts the upcall here and interrupts the others. The CPU that runs the
//! owner takes it at that interrupt, or at the scheduler's next one.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::SESSIONS;
use crate::measure::upcall::Upcall;

/// Number of pending upcalls, written while [`SESSIONS`] is locked, so that most CPUs need not lock
/// it. A CPU that reads it too early is interrupted after the change.
static PENDING: AtomicUsize = AtomicUsize::new(0);

/// Posts an upcall of a session's context of this CPU. It replaces an earlier upcall of the same
/// event that the owner has not taken yet, so there are at most as many as thresholds.
pub fn post(session: u32, cpu: u16, upcall: Upcall) {
    let mut sessions = SESSIONS.lock();
    // The session may be closed already.
    let Some(of) = sessions.iter_mut().find(|of| of.id == session) else { return };
    let is_same = |(other, (_, event, _)): &(u16, Upcall)| (*other, *event) == (cpu, upcall.1);
    of.upcalls.retain(|other| !is_same(other));
    of.upcalls.push((cpu, upcall));
    PENDING.store(sessions.iter().map(|of| of.upcalls.len()).sum(), Ordering::Release);
}

/// Returns whether a program has an upcall to take.
pub fn are_due(owner: u32) -> bool {
    let are_any = PENDING.load(Ordering::Acquire) > 0;
    let is_due = || SESSIONS.lock().iter().any(|of| of.owner == owner && !of.upcalls.is_empty());
    are_any && is_due()
}

/// Takes a program's oldest upcall.
pub fn take(owner: u32) -> Option<Upcall> {
    if PENDING.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mut sessions = SESSIONS.lock();
    let of = sessions.iter_mut().find(|of| of.owner == owner && !of.upcalls.is_empty())?;
    let (_, upcall) = of.upcalls.remove(0);
    PENDING.store(sessions.iter().map(|of| of.upcalls.len()).sum(), Ordering::Release);
    Some(upcall)
}
