//! `cargo xtask bench switch`: the cost of a group switch, by step.
//!
//! The kernel runs the guest program `switches` on the virtual PMU, which records every instruction
//! and memory access from the PMI's entry to its IRET. Each is attributed to the step whose
//! function the instruction was inlined from, by the kernel's line tables. The counts are of
//! executed instructions and accesses and do not depend on the host. The numbers of cache lines and
//! pages are those of different ones; a page counts as one TLB entry, whatever its size. The
//! interrupt controller's registers take a TLB entry and no line. The processor's own accesses to
//! deliver the interrupt are not counted.
//!
//! The latency of a threshold is the number of instructions from the crossing to the first of its
//! handler in the program.
//!
//! The cost of the end of an interval, if phases are tracked, is the instructions of its
//! evaluation, which comes after the interrupt.
//!
//! The skew is the number of instructions that a switch adds to or removes from a count: the count
//! of a pinned event less the truth of the region, per switch.

mod handlers;
mod interval;
mod record;
mod skew;
mod steps;
mod upcall;

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    machine::{Artefacts, Pmu},
    output, progress,
    project::Project,
};

use self::{
    handlers::{Cost, Costs},
    interval::IntervalEnds,
    record::record,
    skew::{SLICE_CYCLES, Skew},
    steps::{KernelCode, PathStep},
    upcall::Latency,
};

/// Options of `cargo xtask bench switch`.
#[derive(Args, Clone, Debug)]
pub struct SwitchArgs {
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// Switches of a run, after the warm-up of the guest program.
const SWITCHES: u64 = 500;

/// The machines, each with twenty events that all its general counters can count.
const MACHINES: [(Pmu, &str); 2] = [
    (
        Pmu::Intel,
        "r01c4,r02c4,r08c4,r10c4,r20c4,r40c4,r80c4,r01c5,r10c5,r20c5,r81d0,r82d0,r11d0,r12d0,r01d1,\
         r08d1,r10d1,r20d1,r02c2,r0151",
    ),
    (
        Pmu::Amd,
        "r00c2,r00c3,r00c4,r00c5,r00c8,r00c9,r00ca,r00cc,r00d1,r0129,r0229,r0144,r0143,r0243,r0843,\
         r3f41,r0084,r0185,r0194,rff45",
    ),
];

/// The costs of a group switch on one machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Switch {
    pmu: &'static str,
    /// Number of switches measured.
    switches: usize,
    /// Recorded selects that change per switch: k.
    changed: f64,
    steps: Vec<(PathStep, Cost)>,
    /// All steps except logging.
    switch: Cost,
    log: Cost,
    /// From the interrupt's entry to its IRET.
    whole: Cost,
    /// Logging with a trace, and all steps with it.
    log_traced: Cost,
    whole_traced: Cost,
    /// WRMSR and RDPMC of Linux's rotation of n counters: 3n + 2 and n.
    linux: (f64, f64),
    threshold: Latency,
    interval: IntervalEnds,
    skews: Vec<Skew>,
}

/// Runs the bench.
///
/// # Errors
/// A crate does not build, or a machine's job fails.
pub fn main(project: &Project, args: &SwitchArgs) -> Result<u8> {
    let artefacts = Artefacts::make(project)?;
    let switches = measure(&artefacts)?;
    output::print(args.json, &switches, &table(&switches))?;
    Ok(0)
}

/// Measures the costs on every machine.
///
/// # Errors
/// A machine fails or does not give the expected results.
pub(super) fn measure(artefacts: &Artefacts) -> Result<Vec<Switch>> {
    let mut switches = Vec::new();
    for (pmu, events) in MACHINES {
        let title = format!("Tracing switches on {}", name(pmu));
        let step = progress::Step::start(&title);
        let costs = trace(artefacts, pmu, events, "wire")?;
        let traced = trace(artefacts, pmu, events, "wire trace")?;
        let threshold = upcall::measure(artefacts, pmu)?;
        let interval = interval::measure(artefacts, pmu)?;
        let skews = skew::measure(artefacts, pmu, events)?;
        let measured = (threshold, interval, skews);
        switches.push(Switch::new(pmu, &costs, &traced, measured));
        step.done();
    }
    Ok(switches)
}

pub(super) fn name(pmu: Pmu) -> &'static str {
    match pmu {
        Pmu::Amd => "AMD",
        _ => "Intel",
    }
}

/// Measures the switches of a kernel with these options.
fn trace(artefacts: &Artefacts, pmu: Pmu, events: &str, options: &str) -> Result<Costs> {
    let mut code = KernelCode::read(&artefacts.symbols)?;
    let line = format!("seed=1 {options} -- switches {events} {SLICE_CYCLES} user {SWITCHES}");
    let recording = record(artefacts, pmu, line)?;
    let entry = code.address("pmi_entry").ok_or_else(|| {
        Failure::new(ExitStatus::HostError, "the kernel's file has no symbols of its entries")
    })?;
    // The kernel runs at another address than that in its file.
    let offset = recording.entry.wrapping_sub(entry);
    let classify = |address: u64| {
        let address = address.wrapping_sub(offset);
        let (step, access) = code.classify(address);
        (step, access, code.is_return(address))
    };
    Ok(handlers::account(recording.events.into_iter(), recording.entry, classify))
}

impl Switch {
    fn new(
        pmu: Pmu,
        costs: &Costs,
        traced: &Costs,
        (threshold, interval, skews): (Latency, IntervalEnds, Vec<Skew>),
    ) -> Switch {
        // Two of the counters read belong to pinned events.
        let counters = costs.switch.rdpmcs - 2.0;
        Switch {
            pmu: name(pmu),
            switches: costs.switches,
            changed: costs.steps[PathStep::Select as usize].msr_accesses,
            steps: PathStep::ALL.into_iter().zip(costs.steps).collect(),
            switch: costs.switch,
            log: costs.steps[PathStep::Log as usize],
            whole: costs.whole,
            log_traced: traced.steps[PathStep::Log as usize],
            whole_traced: traced.whole,
            linux: (3.0 * counters + 2.0, counters),
            threshold,
            interval,
            skews,
        }
    }
}

/// The columns of [`row`].
const HEAD: &str = "                                 instruc-    accesses    L1 lines TLB entries\n  \
     step                             tions   MSR RDPMC  data  code  data  code\n";

fn row(name: &str, cost: &Cost) -> String {
    let Cost { instructions, msr_accesses, rdpmcs, .. } = cost;
    let Cost { data_lines, code_lines, data_pages, code_pages, .. } = cost;
    format!(
        "  {name:<30} {instructions:>7.1} {msr_accesses:>5.2} {rdpmcs:>5.2} {data_lines:>5.1} \
         {code_lines:>5.1} {data_pages:>5.1} {code_pages:>5.1}\n"
    )
}

/// The costs as text.
pub(super) fn table(switches: &[Switch]) -> String {
    let mut text = String::new();
    for s in switches {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}: mean of {} switches", s.pmu, s.switches);
        text += HEAD;
        let mut row = |name: &str, cost: &Cost| text += &row(name, cost);
        for (step, cost) in s.steps.iter().filter(|(step, _)| *step != PathStep::Log) {
            row(step.sentence(), cost);
        }
        row("the switch, without logging", &s.switch);
        row("logging", &s.log);
        row("the switch and logging", &s.whole);
        row("logging with a trace", &s.log_traced);
        row("the switch and that", &s.whole_traced);
        let _ = writeln!(
            text,
            "  k = {:.2} event selects changed: k + {:.2} MSR accesses; Linux's rotation of as many\n  \
             counters: {:.0} WRMSR and {:.0} RDPMC",
            s.changed,
            s.switch.msr_accesses - s.changed,
            s.linux.0,
            s.linux.1
        );
        let Latency { calls, kernel: [least, median, most], user } = &s.threshold;
        let _ = writeln!(
            text,
            "  from a threshold to its handler: {median} instructions of ring 0 ({least} to {most}, \
             {calls} calls),\n  at most {user} of ring 3"
        );
        let _ = writeln!(text, "  {}", s.interval);
        for skew in &s.skews {
            let _ = writeln!(
                text,
                "  skew, {:<34} {:>+7.2} instructions per switch",
                skew.what, skew.instructions
            );
        }
        text.push('\n');
    }
    text
}
