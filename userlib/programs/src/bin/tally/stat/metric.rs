//! Metrics: values that perf computes and prints next to an event.

use alloc::string::String;

use tally_abi::{
    command::{Software, Source},
    events::rings,
};
use tally_programs::Clock;

use super::count::{Count, Span};

/// Metric of an event.
pub struct Metric {
    /// Value in its unit.
    pub value: f64,
    /// Relative half width of the 95 % interval, if the metric is not exact: the sum of those of
    /// both counts, which is valid whatever their correlation.
    pub error: Option<f64>,
    /// Unit and name in perf.
    pub label: &'static str,
}

/// Events that perf prints as shares of others, each with the names of the whole.
const SHARES: [(&[&str], &[&str], &str); 7] = [
    (&["branch-misses"], BRANCHES, "%  branch_miss_rate"),
    (&["cache-misses"], &["cache-references"], "%  cache_miss_rate"),
    (&["L1-dcache-load-misses"], &["L1-dcache-loads"], "%  l1d_miss_rate"),
    (&["LLC-load-misses"], &["LLC-loads"], "%  llc_miss_rate"),
    (&["dTLB-load-misses"], &["dTLB-loads"], "%  dtlb_miss_rate"),
    (&["iTLB-load-misses"], &["iTLB-loads"], "%  itlb_miss_rate"),
    (&["L1-icache-load-misses"], &["L1-icache-loads"], "%  l1i_miss_rate"),
];
const BRANCHES: &[&str] = &["branches", "branch-instructions"];
const CYCLES: &[&str] = &["cycles", "cpu-cycles"];

/// Returns the metric of the event with this index, if it has one and both of its counts were
/// counted.
pub fn metric(
    columns: &[(String, Source)],
    counts: &[Count],
    index: usize,
    span: &Span,
) -> Option<Metric> {
    let (name, count) = (base(&columns.get(index)?.0), counts.get(index)?);
    let per = |of: f64, scale: f64, label| {
        let value = count.value? * scale / of;
        (of > 0.0).then_some(Metric { value, error: count.error(), label })
    };
    if let Some((of, scale, label)) = by_time(name, count.software, span) {
        return per(of, scale, label);
    }
    if count.software.is_some() {
        return None;
    }
    let ratio = |whole: &[&str], scale: f64, label| {
        let own_rings = rings(&columns[index].0);
        let is_whole =
            |(name, _): &(String, Source)| whole.contains(&base(name)) && rings(name) == own_rings;
        let of = columns.iter().position(is_whole)?;
        let (of_error, of) = (counts[of].error(), counts[of].value?);
        let mut metric = per(of, scale, label)?;
        metric.error = match (metric.error, of_error) {
            (None, None) => None,
            (part, whole) => Some(part.unwrap_or(0.0) + whole.unwrap_or(0.0)),
        };
        Some(metric)
    };
    if name == "instructions" {
        return ratio(CYCLES, 1.0, "instructions  insn_per_cycle");
    }
    let (_, whole, label) = SHARES.iter().find(|(part, _, _)| part.contains(&name))?;
    ratio(whole, 100.0, label)
}

/// Returns the nanoseconds by which a count is divided, a factor, and the rate's unit and name;
/// `None` if the event has none. A rate of a model's clock says nothing about the processor.
fn by_time(
    name: &str,
    software: Option<Software>,
    span: &Span,
) -> Option<(f64, f64, &'static str)> {
    let ran_ns = span.usage.ran_ns() as f64;
    match software {
        Some(Software::TaskClock) => Some((span.time_ns as f64, 1.0, "CPUs  CPUs_utilized")),
        _ if span.clock != Clock::Processor => None,
        Some(Software::ContextSwitches) => Some((ran_ns, 1e9, "cs/sec  cs_per_second")),
        Some(Software::CpuMigrations) => {
            Some((ran_ns, 1e9, "migrations/sec  migrations_per_second"))
        }
        Some(Software::PageFaults) => Some((ran_ns, 1e9, "faults/sec  page_faults_per_second")),
        Some(_) => None,
        None if CYCLES.contains(&name) => Some((ran_ns, 1.0, "GHz  cycles_frequency")),
        None if BRANCHES.contains(&name) => Some((ran_ns, 1e3, "M/sec  branch_frequency")),
        None => None,
    }
}

/// Returns an event's name without its modifiers.
fn base(name: &str) -> &str {
    name.split([':', '/', '@']).next().unwrap_or(name)
}
