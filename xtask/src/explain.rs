//! `cargo xtask run --explain`: the plan for a list of events, without a boot.
//!
//! It calls the kernel's own detection, catalogue and planner for the processor that the virtual
//! PMU implements. So the plan, and a refusal's text and status, are those of a run.

mod asked;

use std::fmt::Write as _;

use raw_cpuid::CpuIdResult;
use serde::Serialize;
use tally_abi::{Error, ExitStatus, Shares, events};
use tally_engine::{
    Plan, Setup, for_each_counter,
    plan::{CounterAssignment, plan},
};
use tally_pmu::{DetectedPmu, ResolveError, Resolved};
use tally_vpmu::{Vendor, VirtualPmu};

pub use self::asked::Asked;
use crate::{Failure, Result, output};

/// Columns of the left column, which names counters.
const PLACE: usize = 24;

/// Detects the virtual PMU under QEMU's TCG as the kernel does.
///
/// # Errors
/// The kernel has no driver for it.
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
        .map_err(|why| Failure::new(why.error().exit_status(), format!("{why}")))
}

/// A plan, as it is printed.
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
    /// Several if the list names an event twice.
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

/// Prints the plan, or what is refused; returns the exit status.
///
/// # Errors
/// Standard output cannot be written.
pub fn main(found: &DetectedPmu, asked: &Asked, json: bool) -> Result<u8> {
    let refused = match explain(found, asked) {
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
        let mut all: Vec<ResolveError> = events::words(&asked.events)
            .filter_map(|word| catalogue.resolve(word, asked.config.mode).err())
            .collect();
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
    if kernel && asked.paranoid.is_some_and(|level| level > 1) {
        let detail = "counting in ring 0 is not permitted: run with --paranoid 1".into();
        let event = String::new();
        return Err(vec![ResolveError { event, error: Error::NotPermitted, detail }]);
    }
    Ok((resolved, plan))
}

/// The events and the plan of what is asked for, on a machine with this PMU, as the kernel finds
/// them when a session is opened.
///
/// # Errors
/// Events are refused: a line for each, with the status of a run.
pub fn plan_of(pmu: &VirtualPmu, asked: &Asked) -> Result<(Vec<Resolved>, Plan)> {
    planned(&detect(pmu)?, asked).map_err(|refused| {
        let status = refused.first().map_or(ExitStatus::Usage, |why| why.error.exit_status());
        let why: Vec<String> = refused.iter().map(ToString::to_string).collect();
        Failure::new(status, why.join("\n"))
    })
}

fn explain(
    found: &DetectedPmu,
    asked: &Asked,
) -> std::result::Result<Explanation, Vec<ResolveError>> {
    let (resolved, plan) = planned(found, asked)?;
    let info = found.info();
    let (mut pinned, mut groups) = (Vec::new(), plan.groups.iter().map(group).collect::<Vec<_>>());
    for (event, place) in resolved.iter().zip(&plan.assignments) {
        match *place {
            CounterAssignment::Pinned(counts) => pinned.push(PinnedEvent {
                event: event.name.clone(),
                counts: match counts {
                    tally_engine::Pinned::Instructions => "instructions",
                    tally_engine::Pinned::Cycles => "cycles",
                    tally_engine::Pinned::Reference => "reference cycles",
                },
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
    })
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
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tally_abi::{ExitStatus, SessionConfig, Slice};

    use super::*;
    use crate::machine::{self, Pmu};
    use clap::ValueEnum;

    fn found(pmu: Pmu, options: &[&str]) -> DetectedPmu {
        let options: Vec<String> = options.iter().map(|option| (*option).into()).collect();
        detect(&machine::virtual_pmu_of(pmu, &options).unwrap()).unwrap()
    }

    fn asked(events: &str) -> Asked {
        Asked { events: events.into(), config: SessionConfig::default(), paranoid: Some(2) }
    }

    #[test]
    fn the_default_plan_of_every_machine_has_80_columns() {
        for pmu in Pmu::value_variants() {
            let machine = machine::virtual_pmu_of(*pmu, &[]).unwrap();
            let events = events::default_list(machine.profile().signature);
            assert_ne!(events, events::DEFAULT_STAT);
            let explained = explain(&detect(&machine).unwrap(), &asked(events)).unwrap();
            let text = text(&explained);
            assert!(explained.optimal, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            for word in events::words(events) {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
    }

    #[test]
    fn a_plan_is_printed_by_group_and_counter() {
        let events = "INST_RETIRED.ANY,L1D.REPLACEMENT@3,BR_INST_RETIRED.COND,r02c4,\
                      OCR.DEMAND_DATA_RD.L3_HIT";
        let text = text(&explain(&found(Pmu::Intel, &["counters=2"]), &asked(events)).unwrap());
        expect![[r#"
            Intel architectural performance monitoring, version 5
            catalogue                icelake-server
            general counters         2
            events                   5 events
            groups                   2 (optimal: no plan has fewer)
            round                    4 slices
            pinned, instructions     INST_RETIRED.ANY
            group 0, 3 slices
              counter 0              OCR.DEMAND_DATA_RD.L3_HIT
              counter 1              L1D.REPLACEMENT
              extra register 0       0x3f803c0001
            group 1
              counter 0              BR_INST_RETIRED.COND
              counter 1              r02c4
        "#]]
        .assert_eq(&text);
    }

    /// What is refused on `pmu`, a line for each, with its exit status.
    fn refusals(pmu: &DetectedPmu, asked: &[Asked]) -> String {
        let of = |asked| planned(pmu, asked).expect_err("it is refused");
        let line = |why: ResolveError| format!("{}: {why}\n", u8::from(why.error.exit_status()));
        asked.iter().flat_map(of).map(line).collect()
    }

    #[test]
    fn refusals_are_those_of_a_run() {
        let mut short = asked("cycles");
        short.config.slice = Slice::Cycles(9);
        let text = refusals(
            &found(Pmu::Intel, &[]),
            &[
                asked("cycles,BR_INST_RETIRED.ALL_BRANCHE,cpu/event=0x100/"),
                asked(&vec!["cycles"; tally_abi::session::MAX_EVENTS + 1].join(",")),
                asked(" "),
                asked("L1D.REPLACEMENT:k"),
                short,
            ],
        );
        expect![[r#"
            65: BR_INST_RETIRED.ALL_BRANCHE: the catalogue icelake-server has no such event; nearest: BR_INST_RETIRED.ALL_BRANCHES, BR_MISP_RETIRED.ALL_BRANCHES, BR_INST_RETIRED.FAR_BRANCH
            78: cpu/event=0x100/: 'event=0x100': more than 0xff
            66: 1025 events were asked for; a plan holds 1024
            78: the list of events is empty; name at least one
            78: counting in ring 0 is not permitted: run with --paranoid 1
            67: a slice of 9 is out of range: use 1800 to 1073741824
        "#]].assert_eq(&text);
    }

    #[test]
    fn around_a_program_ring_0_is_permitted() {
        let around = Asked { paranoid: None, ..asked("L1D.REPLACEMENT:k") };
        assert!(planned(&found(Pmu::Intel, &[]), &around).is_ok());
    }

    #[test]
    fn a_pmu_that_is_too_old_is_refused() {
        let too_old = machine::virtual_pmu_of(Pmu::Intel, &["version=1".into()]).unwrap();
        let refused = detect(&too_old).unwrap_err();
        assert_eq!(refused.status, ExitStatus::NoPmu);
        expect![
            "the PMU is of architectural version 1; Tally needs version 2, with fixed counters"
        ]
        .assert_eq(&refused.message);
    }
}
