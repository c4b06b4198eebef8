//! `cargo xtask bench switch`: the cost of a group switch, by step.
//!
//! The kernel runs the guest program `switches` on the virtual PMU. After the first groups, QEMU's
//! monitor makes QEMU translate single instructions and log each address. Every instruction from
//! the PMI's entry to its IRET is attributed to the step whose function it was inlined from, by the
//! kernel's line tables. The counts are of executed instructions and do not depend on the host.
//!
//! The skew is the number of instructions that a switch adds to or removes from a count: the count
//! of a pinned event less the truth of the region, per switch.

mod monitor;
mod skew;
mod steps;

use std::{fmt::Write as _, fs, io, path::Path};

use clap::Args;
use serde::Serialize;
use tally_abi::ExitStatus;

use self::{
    monitor::Monitor,
    skew::{SLICE_CYCLES, Skew},
    steps::{KernelCode, PathStep, PmuAccess},
};
use crate::{
    Failure, Result,
    machine::{self, Artefacts, Pmu, Request},
    output, progress,
    project::Project,
};

/// Options of `cargo xtask bench switch`.
#[derive(Args, Clone, Debug)]
pub struct SwitchArgs {
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// Size of QEMU's log: some hundred switches.
const RECORD_BYTES: u64 = 100_000_000;

/// The machines, each with twenty events that all its general counters can count.
const MACHINES: [(Pmu, &str); 2] = [
    (
        Pmu::Intel,
        "r01c4,r02c4,r08c4,r10c4,r20c4,r40c4,r80c4,r01c5,r10c5,r20c5,r81d0,r82d0,r11d0,r12d0,r01d1,\
         r08d1,r10d1,r20d1,r02c2,r0151",
    ),
    (
        Pmu::Amd,
        "r00c2,r00c3,r00c4,r00c5,r00c8,r00c9,r00ca,r00cc,r00d1,r0129,r0229,r0429,r0143,r0243,r0843,\
         r4043,r0141,r0241,r0141,rff45",
    ),
];

/// The mean cost of one step over all switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Cost {
    instructions: f64,
    msr_accesses: f64,
    rdpmcs: f64,
}

impl Cost {
    fn add(&mut self, more: Cost) {
        self.instructions += more.instructions;
        self.msr_accesses += more.msr_accesses;
        self.rdpmcs += more.rdpmcs;
    }
}

/// The costs of a group switch on one machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Switch {
    pmu: &'static str,
    /// Number of switches measured.
    switches: usize,
    /// Event selects that change per switch: k.
    changed: f64,
    steps: Vec<(PathStep, Cost)>,
    /// All steps except logging.
    switch: Cost,
    log: Cost,
    /// Logging with a trace.
    log_traced: Cost,
    /// WRMSR and RDPMC of Linux's rotation of n counters: 3n + 2 and n.
    linux: (f64, f64),
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

/// The costs on every machine.
///
/// # Errors
/// A machine does not do what it should.
pub(super) fn measure(artefacts: &Artefacts) -> Result<Vec<Switch>> {
    let mut switches = Vec::new();
    for (pmu, events) in MACHINES {
        let title = format!("Tracing switches on {}", name(pmu));
        let step = progress::Step::start(&title);
        let switch = trace(artefacts, pmu, events, "wire")?;
        let log_traced = trace(artefacts, pmu, events, "wire trace")?.log;
        let skews = skew::measure(artefacts, pmu, events)?;
        switches.push(Switch { skews, log_traced, ..switch });
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
fn trace(artefacts: &Artefacts, pmu: Pmu, events: &str, options: &str) -> Result<Switch> {
    let mut code = KernelCode::read(&artefacts.symbols)?;
    let (socket, log) = (monitor::socket(), monitor::socket().with_extension("log"));
    let line = format!("seed=1 {options} -- switches {events} {SLICE_CYCLES} user 1000000");
    let request = Request { pmu, monitor: Some(socket.clone()), ..Request::new(line) };
    let mut first_entry = None;
    let mut listen = |output: &machine::ProgramOutput| {
        if output.bytes.starts_with(b"begin") {
            first_entry = Some(record(&socket, &log));
        }
    };
    let boot = machine::boot(artefacts, &request, &mut listen)?;
    // QEMU removes its socket itself.
    let addresses = monitor::addresses(&log);
    let _ = fs::remove_file(&log);
    let first_entry = first_entry.ok_or_else(|| {
        Failure::new(
            ExitStatus::MachineFailed,
            format!("no group switch occurred: {}", boot.outcome),
        )
    })?;
    let failed =
        |error: io::Error| Failure::new(ExitStatus::MachineFailed, format!("QEMU: {error}"));
    let lost =
        || Failure::new(ExitStatus::HostError, "the kernel's file has no symbols of its entries");
    let in_file = code.address("tally_vectors").ok_or_else(lost)?;
    let offset = first_entry.map_err(failed)?.wrapping_sub(in_file);
    let entry = code.address("pmi_entry").ok_or_else(lost)?;
    let addresses = addresses.map_err(failed)?;
    let addresses = addresses.iter().map(|address| address.wrapping_sub(offset));
    let (sums, switches) = account(&mut code, entry, addresses);
    Ok(mean_costs(pmu, sums, switches))
}

fn record(socket: &Path, log: &Path) -> io::Result<u64> {
    let mut monitor = Monitor::connect(socket)?;
    monitor.stop()?;
    let entry = monitor.first_entry()?;
    monitor.record(log, RECORD_BYTES)?;
    Ok(entry)
}

/// Attributes each instruction from `entry` to IRET to its step. Returns the sums by step, and the
/// number of switches.
fn account(
    code: &mut KernelCode,
    entry: u64,
    addresses: impl Iterator<Item = u64>,
) -> ([Cost; PathStep::ALL.len()], usize) {
    let mut sums = [Cost::default(); PathStep::ALL.len()];
    let mut one = None;
    let mut switches = 0;
    for address in addresses {
        if address == entry {
            one = Some([Cost::default(); PathStep::ALL.len()]);
        }
        let Some(costs) = &mut one else { continue };
        let (step, access) = code.classify(address);
        let cost = &mut costs[step as usize];
        cost.instructions += 1.0;
        match access {
            PmuAccess::Msr => cost.msr_accesses += 1.0,
            PmuAccess::Counter => cost.rdpmcs += 1.0,
            PmuAccess::None => {}
        }
        if code.is_return(address) {
            // The log may end within the last switch; only complete ones count.
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| sum.add(*cost));
            switches += 1;
            one = None;
        }
    }
    (sums, switches)
}

/// The mean costs of a switch on one machine, from the sums by step over `switches` switches.
fn mean_costs(pmu: Pmu, sums: [Cost; PathStep::ALL.len()], switches: usize) -> Switch {
    let mean = |sum: Cost| Cost {
        instructions: sum.instructions / switches as f64,
        msr_accesses: sum.msr_accesses / switches as f64,
        rdpmcs: sum.rdpmcs / switches as f64,
    };
    let steps: Vec<_> = PathStep::ALL.into_iter().zip(sums.map(mean)).collect();
    let (mut switch, mut log) = (Cost::default(), Cost::default());
    for (step, cost) in &steps {
        if *step == PathStep::Log { &mut log } else { &mut switch }.add(*cost);
    }
    // Two of the counters read are those of pinned events.
    let counters = switch.rdpmcs - 2.0;
    Switch {
        pmu: name(pmu),
        switches,
        changed: steps[PathStep::Select as usize].1.msr_accesses,
        steps,
        switch,
        log,
        log_traced: Cost::default(),
        linux: (3.0 * counters + 2.0, counters),
        skews: Vec::new(),
    }
}

/// The costs as text.
pub(super) fn table(switches: &[Switch]) -> String {
    let mut text = String::new();
    for s in switches {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}: mean of {} switches", s.pmu, s.switches);
        let _ = writeln!(text, "  step                            instructions  MSR    RDPMC");
        let mut row = |name: &str, cost: &Cost| {
            let Cost { instructions, msr_accesses, rdpmcs } = cost;
            let _ = writeln!(
                text,
                "  {name:<32} {instructions:>10.1} {msr_accesses:>6.2} {rdpmcs:>7.2}"
            );
        };
        for (step, cost) in s.steps.iter().filter(|(step, _)| *step != PathStep::Log) {
            row(step.sentence(), cost);
        }
        row("the switch, without logging", &s.switch);
        row("logging", &s.log);
        row("logging with a trace", &s.log_traced);
        let _ = writeln!(
            text,
            "  k = {:.2} event selects changed: k + {:.2} MSR accesses; Linux's rotation of as many\n  \
             counters: {:.0} WRMSR and {:.0} RDPMC",
            s.changed,
            s.switch.msr_accesses - s.changed,
            s.linux.0,
            s.linux.1
        );
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
