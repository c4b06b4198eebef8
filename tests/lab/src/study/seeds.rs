//! Runs of many machines, some at the same time.

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    machine::{self, Artefacts, Boot, Outcome, Request},
    progress::Step,
};

/// The claim: the share of estimates, without exact values, whose 95 % interval contains the truth.
pub(super) const CLAIMED: RangeInclusive<f64> = 0.93..=0.97;
/// Machines that run in parallel; each uses one core.
pub(super) const AT_ONCE: usize = 2;

/// Parses `N`, which is 1 to N, or `A..B`, inclusive.
pub(super) fn parse(text: &str) -> std::result::Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once("..").unwrap_or(("1", text));
    let seeds = first.parse().ok().zip(last.parse().ok()).map(|(first, last)| first..=last);
    seeds
        .filter(|seeds| !seeds.is_empty() && *seeds.start() > 0 && *seeds.end() < u64::MAX / 2)
        .ok_or_else(|| "use N, for 1 to N, or A..B, for A to B".to_owned())
}

/// The results of `run` for all seeds, in their order.
///
/// # Errors
/// The first error of `run`; no further seed is started.
pub(super) fn each<T: Send>(
    seeds: RangeInclusive<u64>,
    run: impl Fn(u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    in_parallel("seeds", seeds, run)
}

/// The results of `run` for all `numbers`, in their order; `what` names them for the user.
///
/// # Errors
/// The first error of `run`; no further number is started.
pub(super) fn in_parallel<T: Send>(
    what: &str,
    numbers: RangeInclusive<u64>,
    run: impl Fn(u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    at_once(AT_ONCE, what, numbers, run)
}

/// Runs as [`in_parallel`] does, with at most `limit` runs at a time.
///
/// # Errors
/// The first error of `run`; no further number is started.
pub(super) fn at_once<T: Send>(
    limit: usize,
    what: &str,
    numbers: RangeInclusive<u64>,
    run: impl Fn(u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (first, last) = numbers.into_inner();
    let step = Step::start(format!("Running {} {what}", last - first + 1));
    let (next, results) = (AtomicU64::new(first), Mutex::new(BTreeMap::new()));
    let work = || -> Result<()> {
        loop {
            // Relaxed: no other data depends on the counter; the map has its own lock.
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > last {
                return Ok(());
            }
            let result = run(number);
            if result.is_err() {
                next.store(u64::MAX / 2, Ordering::Relaxed);
            }
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.insert(number, result?);
            step.at(&format!("{} done", results.len()));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..limit).map(|_| scope.spawn(work)).collect();
        let mut ended = workers.into_iter().map(|worker| worker.join());
        ended.try_for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    step.done();
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect())
}

/// Boots a machine whose programs must succeed.
///
/// # Errors
/// QEMU fails, or the run ends otherwise.
pub(super) fn boot(artefacts: &Artefacts, request: &Request, seed: u64) -> Result<Boot> {
    let boot = boot_with_any_status(artefacts, request, seed)?;
    if boot.outcome.is_success() { Ok(boot) } else { Err(failed(&boot, seed)) }
}

/// Boots a machine as [`boot`] does, whose programs may end by themselves with any status.
///
/// # Errors
/// QEMU fails, or the run ends otherwise.
pub(super) fn boot_with_any_status(
    artefacts: &Artefacts,
    request: &Request,
    seed: u64,
) -> Result<Boot> {
    let boot = machine::boot(artefacts, request, &mut |_| {})?;
    if matches!(boot.outcome, Outcome::Done(_)) { Ok(boot) } else { Err(failed(&boot, seed)) }
}

fn failed(boot: &Boot, seed: u64) -> Failure {
    let why = format!("seed {seed}: {}\n{}", boot.outcome, boot.transcript.text());
    Failure::new(ExitStatus::CheckFailed, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_range() {
        for (text, expected) in [("3", Some(1..=3)), ("7..9", Some(7..=9)), ("7..7", Some(7..=7))] {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
        for bad in ["", "0", "x", "0..3", "9..7", "1..", "..4", "1..2..3", "-1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
