//! `cargo xtask check-diff A B`: comparison of two reports of checks, with what is right in only
//! one of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write},
    path::PathBuf,
};

use clap::Args;
use serde::Serialize;
use tally_abi::{
    ExitStatus,
    check::{Counter, Event, Span},
};

use super::{
    judge::{wrong_counter, wrong_span},
    report::CheckReport,
};
use crate::{Result, output};

/// Costs differ if one is more than this many times the other.
const FACTOR: u64 = 2;

/// Options of `cargo xtask check-diff`.
#[derive(Args, Clone, Debug)]
pub struct CheckDiffArgs {
    /// The first report: what `run --check --json` or `import --json` printed
    a: PathBuf,
    /// The second report
    b: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Two reports, and their differences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckDiff {
    /// Differences of the machines, which need not be errors.
    pub machines: Vec<Difference>,
    /// Differences of the results beyond bounds.
    pub differences: Vec<Difference>,
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The property that differs.
    pub what: String,
    /// The first report's value.
    pub a: String,
    /// The second report's value.
    pub b: String,
}

/// Reads the reports and prints the comparison.
///
/// # Errors
/// A file cannot be read, is no report, or is one of another version.
pub fn main(args: &CheckDiffArgs) -> Result<u8> {
    let (a, b) = (CheckReport::read(&args.a)?, CheckReport::read(&args.b)?);
    let diff = CheckDiff::of(&a, &b);
    output::print(args.json, &diff, &render(&diff))?;
    Ok(if diff.differences.is_empty() { 0 } else { ExitStatus::ReportsDiffer.into() })
}

impl CheckDiff {
    /// Compares two reports. Events are compared only if the catalogues are the same.
    pub fn of(a: &CheckReport, b: &CheckReport) -> CheckDiff {
        let compare = |of: fn(&CheckReport) -> BTreeMap<String, String>| compare(&of(a), &of(b));
        let cpus: BTreeSet<u32> = [a, b].into_iter().flat_map(cpus).collect();
        let mut differences = compare(offline);
        differences.extend(self::compare(&counters(a, &cpus), &counters(b, &cpus)));
        if a.machine.catalogue == b.machine.catalogue {
            differences.extend(compare(events));
            differences.extend(compare(not_checked));
        }
        differences.extend(costs(a, b));
        CheckDiff { machines: compare(machine), differences }
    }
}

/// The differences of two lists, by name.
fn compare(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<Difference> {
    let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
    let text = |of: Option<&String>| of.cloned().unwrap_or_else(|| "not there".to_owned());
    names
        .filter(|name| a.get(*name) != b.get(*name))
        .map(|name| Difference { what: name.clone(), a: text(a.get(name)), b: text(b.get(name)) })
        .collect()
}

fn machine(report: &CheckReport) -> BTreeMap<String, String> {
    let of = &report.machine;
    let (family, model, stepping) = (of.family, of.model, of.stepping);
    let texts = [
        (
            "processor",
            format!("{}, family {family}, model {model}, stepping {stepping}", of.vendor),
        ),
        ("PMU", of.pmu.clone()),
        ("catalogue", of.catalogue.clone()),
        ("hypervisor", if of.hypervisor { "yes" } else { "no" }.to_owned()),
        ("CPUs", of.cpus.to_string()),
        ("general counters", of.general.to_string()),
        ("pinned events", of.pinned.to_string()),
        ("bits of a counter", of.width_bits.to_string()),
    ];
    texts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

fn offline(report: &CheckReport) -> BTreeMap<String, String> {
    let all = report.offline.iter();
    all.map(|cpu| (format!("CPU with APIC ID {}", cpu.apic_id), cpu.why.clone())).collect()
}

fn judged(wrong: &[String]) -> String {
    if wrong.is_empty() { "right".to_owned() } else { wrong.join("; ") }
}

/// The CPUs of a report.
fn cpus(report: &CheckReport) -> impl Iterator<Item = u32> {
    report.costs.iter().map(|cost| cost.cpu)
}

/// The judgement of each counter of these CPUs. The counts themselves differ from run to run. A CPU
/// that the report does not have is taken to be as its first CPU: a reference may have one CPU
/// only.
fn counters(report: &CheckReport, wanted: &BTreeSet<u32>) -> BTreeMap<String, String> {
    let first = cpus(report).next().unwrap_or(0);
    let judge = |cpu: u32, of: &Counter| {
        let name = format!("CPU {cpu}, counter {}", of.counter);
        (name, judged(&wrong_counter(of, report.machine.width_bits)))
    };
    let of_cpu = |cpu: u32| {
        let own = if cpus(report).any(|known| known == cpu) { cpu } else { first };
        report.counters.iter().filter(move |of| of.cpu == own).map(move |of| judge(cpu, of))
    };
    wanted.iter().flat_map(|cpu| of_cpu(*cpu)).collect()
}

/// The judgement of each event on each counter.
fn events(report: &CheckReport) -> BTreeMap<String, String> {
    let judge = |of: &Event, span: &Span| {
        let wrong: Vec<String> = wrong_span(of, span).into_iter().collect();
        (format!("{} on general-{}", of.event, span.counter), judged(&wrong))
    };
    let of_event = |of: &Event| of.on.iter().map(|span| judge(of, span)).collect::<Vec<_>>();
    let refused = report.refused.iter().map(|of| (of.event.clone(), of.why.clone()));
    report.events.iter().flat_map(of_event).chain(refused).collect()
}

/// Events that may be checked in one report only.
fn not_checked(report: &CheckReport) -> BTreeMap<String, String> {
    let events = report.not_checked.iter();
    events.map(|event| (event.clone(), "not checked".to_owned())).collect()
}

/// Costs and overcounts of the same CPU that differ much.
fn costs(a: &CheckReport, b: &CheckReport) -> Vec<Difference> {
    let (a, b) = (costs_of(a), costs_of(b));
    let differs = |(a, b): (u64, u64)| a.min(b).saturating_mul(FACTOR) < a.max(b);
    let both = a.iter().filter_map(|(name, cost)| Some((name, *cost, *b.get(name)?)));
    both.filter(|(_, a, b)| differs((*a, *b)))
        .map(|(name, a, b)| Difference { what: name.clone(), a: a.to_string(), b: b.to_string() })
        .collect()
}

fn costs_of(report: &CheckReport) -> BTreeMap<String, u64> {
    let mut costs = BTreeMap::new();
    let mut add = |cpu: u32, what: &str, cost: Option<u64>| {
        costs.extend(cost.map(|cost| (format!("CPU {cpu}, {what}"), cost)));
    };
    for of in &report.at_boot {
        add(of.cpu, "hundredths of a cycle of an RDMSR", of.rdmsr_centicycles);
        add(of.cpu, "hundredths of a cycle of a WRMSR", of.wrmsr_centicycles);
        add(of.cpu, "instructions that an interrupt adds", Some(of.overcount));
    }
    for of in &report.costs {
        add(of.cpu, "hundredths of a cycle of an RDPMC", of.rdpmc_centicycles);
        add(of.cpu, "cycles of an interrupt", of.interrupt_cycles);
        add(of.cpu, "cycles of a switch", of.switch_cycles);
    }
    costs
}

/// The comparison as text.
pub fn render(diff: &CheckDiff) -> String {
    let mut text = String::new();
    write_all(&mut text, diff).expect("writing to a string does not fail");
    text
}

fn write_all(text: &mut String, diff: &CheckDiff) -> fmt::Result {
    for Difference { what, a, b } in diff.machines.iter().chain(&diff.differences) {
        writeln!(text, "{what}\n  A: {a}\n  B: {b}")?;
    }
    match diff.differences.len() {
        0 => writeln!(text, "nothing differs beyond the bounds"),
        differences => writeln!(text, "{differences} differ beyond the bounds"),
    }
}
