//! `cargo xtask run --explain`: the plan for a list of events, without a boot.
//!
//! The task calls the kernel's own detection, catalogue and planner for the processor that the
//! virtual PMU implements. So the plan, and a refusal's text and status, are those of a run.

mod asked;

use std::fmt::Write as _;

use raw_cpuid::CpuIdResult;
use serde::Serialize;
use tally_abi::{Error, ExitStatus, Mode, Scope, Shares, events};
use tally_engine::{
    Plan, Setup, for_each_counter,
    plan::{CounterAssignment, plan},
};
use tally_pmu::{DetectedPmu, ResolveError, Resolved, virtual_pmu};
use tally_vpmu::{Vendor, VirtualPmu};

pub use self::asked::Asked;
use crate::{Failure, Result, output};

/// Columns of the left column, which names counters.
const PLACE: usize = 24;

/// Returns whether the machine counts an event right in user mode: the processor has it, and the
/// virtual PMU models it.
pub fn models(pmu: &VirtualPmu, found: &DetectedPmu, event: &str) -> bool {
    let Ok(resolved) = found.catalogue().resolve(event, Mode::User) else { return false };
    resolved.iter().all(|event| is_modelled(pmu, event))
}

/// Returns whether the virtual PMU models an event.
pub(crate) fn is_modelled(pmu: &VirtualPmu, Resolved { demand, .. }: &Resolved) -> bool {
    let filter = demand.extra.map_or(0, |extra| extra.value);
    demand.is_always_counted() || pmu.models(demand.selector.0, filter)
}

/// Detects the virtual PMU under QEMU's TCG as the kernel does.
///
/// # Errors
/// The kernel has no driver for the PMU.
pub fn detect(pmu: &VirtualPmu) -> Result<DetectedPmu> {
    let vendor = match pmu.profile().vendor {
        Vendor::Intel => b"GenuineIntel",
        Vendor::Amd => b"AuthenticAMD",
    };
    let words = |text: &[u8; 12]| {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| text[at + byte]));
        [word(0), word(4), word(8)]
    };
    let reader = |leaf: u32, subleaf: u32| {
        // The leaves that the kernel reads, as QEMU's CPUs answer them without the plugin.
        let own = match leaf {
            0 => {
                let [b, d, c] = words(vendor);
                [0xd, b, c, d]
            }
            1 => [0, 0, 1 << 31, 0],
            0x4000_0000 => {
                let [b, c, d] = words(b"TCGTCGTCGTCG");
                [0x4000_0001, b, c, d]
            }
            0x8000_0000 => [0x8000_001e, 0, 0, 0],
            _ => [0; 4],
        };
        let [eax, ebx, ecx, edx] = pmu.cpuid(leaf, subleaf, own);
        CpuIdResult { eax, ebx, ecx, edx }
    };
    tally_pmu::detect(reader)
        .map(DetectedPmu::with_tallys_events)
        .map_err(|why| Failure::new(why.error().exit_status(), format!("{why}")))
}

/// A plan as it is printed.
#[derive(Debug, Serialize)]
struct Explanation {
    pmu: &'static str,
    catalogue: &'static str,
    /// General counters.
    general: u8,
    events: usize,
    groups: Vec<Group>,
    /// Lower bound of the number of groups, proven by the planner.
    least: usize,
    optimal: bool,
    /// Slices per round.
    round: u64,
    shares: &'static str,
    /// Events that are on a counter in every slice.
    pinned: Vec<PinnedEvent>,
    /// Events that the list has in braces.
    together: Vec<Together>,
}

#[derive(Debug, Default, Serialize)]
struct Together {
    events: Vec<String>,
    /// Group of the events, if they are not in every slice.
    group: Option<usize>,
}

#[derive(Debug, Serialize)]
struct PinnedEvent {
    event: String,
    counts: &'static str,
}

#[derive(Debug, Serialize)]
struct Group {
    share: u16,
    counters: Vec<Counter>,
    extra: Vec<Extra>,
}

#[derive(Debug, Serialize)]
struct Counter {
    counter: u8,
    /// Names of the event; several if the list names it twice.
    events: Vec<String>,
    selector: String,
}

#[derive(Debug, Serialize)]
struct Extra {
    register: usize,
    value: String,
}

/// A refused list.
#[derive(Debug, Serialize)]
struct Refused {
    refused: Vec<RefusedEvent>,
    status: u8,
}

#[derive(Debug, Serialize)]
struct RefusedEvent {
    event: String,
    why: String,
}

/// Prints the plan or the refused events; returns the exit status.
///
/// # Errors
/// Standard output cannot be written.
pub fn main(pmu: &VirtualPmu, asked: &Asked, json: bool) -> Result<u8> {
    let found = detect(pmu)?;
    let planned = planned(&found, asked);
    let modelled = planned.and_then(|(resolved, _)| require_modelled(pmu, &resolved));
    let refused = match modelled.and_then(|()| explain(&found, asked)) {
        Ok(explanation) => {
            output::print(json, &explanation, &text(&explanation))?;
            return Ok(0);
        }
        Err(refused) => refused,
    };
    let status = refused.first().map_or(0, |fault| u8::from(fault.error.exit_status()));
    refused.iter().for_each(|fault| output::note(format_args!("xtask: {fault}")));
    let event = |e: ResolveError| RefusedEvent { event: e.event, why: e.detail };
    output::print(
        json,
        &Refused { refused: refused.into_iter().map(event).collect(), status },
        "",
    )?;
    Ok(status)
}

/// Resolves and plans the list as the kernel does when a session is opened.
///
/// # Errors
/// All refused events, with the one that a run names first.
pub fn planned(
    found: &DetectedPmu,
    asked: &Asked,
) -> std::result::Result<(Vec<Resolved>, Plan), Vec<ResolveError>> {
    let catalogue = found.catalogue();
    let resolved = catalogue.resolve(&asked.events, asked.config.mode).map_err(|first| {
        let words = || events::words(&asked.events);
        if !first.event.is_empty() && words().all(|word| word != first.event) {
            // The list is no list of words.
            return vec![first];
        }
        let refused = |word| catalogue.resolve(word, asked.config.mode).err();
        let mut all: Vec<ResolveError> = words().filter_map(refused).collect();
        if first.event.is_empty() || all.is_empty() {
            all.insert(0, first);
        }
        all
    })?;
    let demands: Vec<_> = resolved.iter().map(|event| event.demand).collect();
    let refused = |refused| vec![ResolveError::of_plan(refused, &resolved)];
    let setup = Setup::new(asked.config, &found.layout(), &demands).map_err(refused)?;
    let plan = plan(&demands, &found.layout()).map_err(refused)?;
    let kernel = setup.kernel || demands.iter().any(|demand| demand.kernel);
    permit(asked, kernel).map_err(|detail| {
        let (event, detail) = (String::new(), detail.into());
        vec![ResolveError { event, error: Error::NotPermitted, detail }]
    })?;
    Ok((resolved, plan))
}

/// Checks that the programs of the machine may count the requested events, with ring 0 or without.
fn permit(asked: &Asked, kernel: bool) -> std::result::Result<(), &'static str> {
    let above = |most| asked.paranoid.is_some_and(|level| level > most);
    if asked.config.scope == Scope::Cpus {
        if kernel {
            return Err("whole CPUs are counted in ring 3: leave out --kernel and :k");
        }
        if above(0) {
            return Err("counting whole CPUs is not permitted: run with --paranoid 0");
        }
    }
    if kernel && above(1) {
        return Err("counting in ring 0 is not permitted: run with --paranoid 1");
    }
    Ok(())
}

/// The events and the plan of a request on a machine with this PMU, as the kernel finds them when a
/// session is opened.
///
/// # Errors
/// Events are refused: a line for each, with the status of a run.
pub fn plan_of(pmu: &VirtualPmu, asked: &Asked) -> Result<(Vec<Resolved>, Plan)> {
    planned(&detect(pmu)?, asked).map_err(failure)
}

/// Refuses the events that the virtual PMU does not model, as the kernel does.
///
/// # Errors
/// The refused events.
fn require_modelled(
    pmu: &VirtualPmu,
    resolved: &[Resolved],
) -> std::result::Result<(), Vec<ResolveError>> {
    let unmodelled = resolved.iter().filter(|event| !is_modelled(pmu, event));
    let refused: Vec<ResolveError> = unmodelled.map(virtual_pmu::unmodelled).collect();
    if refused.is_empty() { Ok(()) } else { Err(refused) }
}

/// The failure of a run whose events are refused: a line for each, with the status of the first.
fn failure(refused: Vec<ResolveError>) -> Failure {
    let status = refused.first().map_or(ExitStatus::Usage, |why| why.error.exit_status());
    let why: Vec<String> = refused.iter().map(ToString::to_string).collect();
    Failure::new(status, why.join("\n"))
}

/// Checks the events of a request as the kernel does on a machine with this virtual PMU.
///
/// # Errors
/// Events are refused.
pub fn check(pmu: &VirtualPmu, asked: &Asked) -> Result<()> {
    let (resolved, _) = plan_of(pmu, asked)?;
    require_modelled(pmu, &resolved).map_err(failure)
}

fn explain(
    found: &DetectedPmu,
    asked: &Asked,
) -> std::result::Result<Explanation, Vec<ResolveError>> {
    let (resolved, plan) = planned(found, asked)?;
    let info = found.info();
    let mut together = Vec::new();
    let (mut pinned, mut groups) = (Vec::new(), plan.groups.iter().map(group).collect::<Vec<_>>());
    for (event, place) in resolved.iter().zip(&plan.assignments) {
        add_together(&mut together, event, *place);
        match *place {
            CounterAssignment::Pinned(counts) => pinned.push(PinnedEvent {
                event: event.name.clone(),
                counts: match counts {
                    tally_engine::Pinned::Instructions => "instructions",
                    tally_engine::Pinned::Cycles => "cycles",
                    tally_engine::Pinned::Reference => "reference cycles",
                },
            }),
            CounterAssignment::Metric(_) => pinned.push(PinnedEvent {
                event: event.name.clone(),
                counts: "a fraction of the slots (PERF_METRICS)",
            }),
            CounterAssignment::General { group, counter } => {
                let counters = &mut groups[usize::from(group)].counters;
                let on = counters.iter_mut().find(|on| on.counter == counter);
                on.expect("the plan uses this counter").events.push(event.name.clone());
            }
        }
    }
    Ok(Explanation {
        pmu: info.name,
        catalogue: info.catalogue,
        general: info.general,
        events: resolved.len(),
        least: plan.least,
        optimal: plan.is_optimal(),
        round: plan.round(),
        shares: asked.config.shares.word(),
        groups,
        pinned,
        together,
    })
}

/// Adds an event to the brace group that it is in, if any.
fn add_together(all: &mut Vec<Together>, event: &Resolved, place: CounterAssignment) {
    let Some(number) = event.demand.together.map(usize::from) else { return };
    if all.len() <= number {
        all.resize_with(number + 1, Together::default);
    }
    all[number].events.push(event.name.clone());
    if let CounterAssignment::General { group, .. } = place {
        all[number].group = Some(group.into());
    }
}

fn group(group: &tally_engine::Group) -> Group {
    let (mut counters, mut extra) = (Vec::new(), Vec::new());
    for_each_counter(group.used, |counter| {
        let selector = format!("{:#x}", group.selectors[counter].0);
        counters.push(Counter { counter: counter as u8, events: Vec::new(), selector });
    });
    for_each_counter(group.extra.used, |register| {
        extra.push(Extra { register, value: format!("{:#x}", group.extra.values[register]) });
    });
    Group { share: group.share, counters, extra }
}

/// The plan as text of 80 columns, or more if an event's name is longer.
fn text(explained: &Explanation) -> String {
    let Explanation { pmu, catalogue, general, events, least, round, .. } = explained;
    let groups = explained.groups.len();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = format!("{pmu}\n");
    let proof = if explained.optimal {
        "optimal: no plan has fewer".into()
    } else {
        format!("lower bound: {least}")
    };
    let mut line = |place: &str, what: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{place:<PLACE$} {what}");
    };
    line("catalogue", catalogue);
    line("general counters", &general.to_string());
    line("events", &count(*events, "event"));
    line("groups", &format!("{groups} ({proof})"));
    line("round", &count(*round as usize, "slice"));
    if explained.shares == Shares::Adaptive.word() {
        line("shares", "adaptive: twice the slices, more for less certain events");
    } else if explained.shares == Shares::Paired.word() {
        line("shares", "paired: one of two rounds has slices of four times the length");
    }
    for PinnedEvent { event, counts } in &explained.pinned {
        line(&format!("pinned, {counts}"), event);
    }
    group_lines(explained, &mut line);
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Writes the lines of the groups, and of the list's braces.
fn group_lines(explained: &Explanation, line: &mut dyn FnMut(&str, &str)) {
    for (number, group) in explained.groups.iter().enumerate() {
        let mut place = format!("group {number}");
        if group.share > 1 {
            place += &format!(", {} slices", group.share);
        }
        line(&place, "");
        for Counter { counter, events, .. } in &group.counters {
            line(&format!("  counter {counter}"), &events.join(" "));
        }
        for Extra { register, value } in &group.extra {
            line(&format!("  extra register {register}"), value);
        }
    }
    for Together { events, group } in &explained.together {
        let place = group.map_or("in every slice".into(), |group| format!("in group {group}"));
        line(&format!("together, {place}"), &events.join(" "));
    }
}

#[cfg(test)]
mod tests;
