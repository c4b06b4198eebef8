//! `cargo xtask bench switch`: what a switch between groups costs, step by step.
//!
//! The real kernel runs the program `switches` on the virtual PMU. When the first groups have taken
//! turns, QEMU's monitor makes the machine go on instruction by instruction and write down each; from
//! the overflow interrupt's entry to its IRET every instruction is given to the step whose function it
//! was inlined from, by the kernel's line tables. So these are counts of what really ran, and they do
//! not depend on the host.
//!
//! The skew is what a switch adds to or takes from what is counted: the truth of the region minus
//! what the session counted all the time, for each switch.

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
    steps::{Access, Code, Step},
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

/// What QEMU writes down: some hundred switches.
const RECORD_BYTES: u64 = 100_000_000;

/// The machines, with twenty events that every counter of theirs for groups counts.
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

/// What one step costs, in the mean of all switches.
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

/// The costs of a switch on one machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Switch {
    pmu: &'static str,
    /// Switches looked at.
    switches: usize,
    /// Selectors that changed: k.
    changed: f64,
    steps: Vec<(Step, Cost)>,
    /// All but logging.
    switch: Cost,
    log: Cost,
    /// The same where a trace is asked for.
    log_traced: Cost,
    /// What Linux's rotation of as many counters writes and reads: 3n + 2 and n.
    linux: (f64, f64),
    skews: Vec<Skew>,
}

/// Does the task.
///
/// # Errors
/// Something does not build, or a machine does not do what it should.
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
        let title = format!("Following switches on {}", name(pmu));
        let step = progress::Step::start(&title);
        let switch = follow(artefacts, pmu, events, "wire")?;
        let log_traced = follow(artefacts, pmu, events, "wire trace")?.log;
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

/// Follows the switches of a kernel with these options.
fn follow(artefacts: &Artefacts, pmu: Pmu, events: &str, options: &str) -> Result<Switch> {
    let mut code = Code::read(&artefacts.symbols)?;
    let (socket, log) = (monitor::socket(), monitor::socket().with_extension("log"));
    let line = format!("seed=1 {options} -- switches {events} {SLICE_CYCLES} user 1000000");
    let request = Request { pmu, monitor: Some(socket.clone()), ..Request::new(line) };
    let mut first_entry = None;
    let mut listen = |output: &machine::Output| {
        if output.bytes.starts_with(b"begin") {
            first_entry = Some(record(&socket, &log));
        }
    };
    let boot = machine::boot(artefacts, &request, &mut listen)?;
    // QEMU removes its socket.
    let addresses = monitor::addresses(&log);
    let _ = fs::remove_file(&log);
    let first_entry = first_entry.ok_or_else(|| {
        Failure::new(ExitStatus::MachineFailed, format!("nothing was switched: {}", boot.outcome))
    })?;
    let failed =
        |error: io::Error| Failure::new(ExitStatus::MachineFailed, format!("QEMU: {error}"));
    let lost = || Failure::new(ExitStatus::HostError, "the kernel's file lacks its entries' names");
    let in_file = code.address("tally_vectors").ok_or_else(lost)?;
    let offset = first_entry.map_err(failed)?.wrapping_sub(in_file);
    let entry = code.address("pmi_entry").ok_or_else(lost)?;
    let addresses = addresses.map_err(failed)?;
    let addresses = addresses.iter().map(|address| address.wrapping_sub(offset));
    Ok(account(&mut code, pmu, entry, addresses))
}

fn record(socket: &Path, log: &Path) -> io::Result<u64> {
    let mut monitor = Monitor::connect(socket)?;
    monitor.stop()?;
    let entry = monitor.first_entry()?;
    monitor.record(log, RECORD_BYTES)?;
    Ok(entry)
}

/// Gives each instruction from `entry` to the return to its step.
fn account(code: &mut Code, pmu: Pmu, entry: u64, addresses: impl Iterator<Item = u64>) -> Switch {
    let mut sums = [Cost::default(); Step::ALL.len()];
    let mut one = None;
    let mut switches = 0;
    for address in addresses {
        if address == entry {
            one = Some([Cost::default(); Step::ALL.len()]);
        }
        let Some(costs) = &mut one else { continue };
        let (step, access) = code.look(address);
        let cost = &mut costs[step as usize];
        cost.instructions += 1.0;
        match access {
            Access::Msr => cost.msr_accesses += 1.0,
            Access::Counter => cost.rdpmcs += 1.0,
            Access::None => {}
        }
        if code.is_return(address) {
            // The last one may have been cut off; only whole ones count.
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| sum.add(*cost));
            switches += 1;
            one = None;
        }
    }
    let mean = |sum: Cost| Cost {
        instructions: sum.instructions / switches as f64,
        msr_accesses: sum.msr_accesses / switches as f64,
        rdpmcs: sum.rdpmcs / switches as f64,
    };
    let steps: Vec<_> = Step::ALL.into_iter().zip(sums.map(mean)).collect();
    let (mut switch, mut log) = (Cost::default(), Cost::default());
    for (step, cost) in &steps {
        if *step == Step::Log { &mut log } else { &mut switch }.add(*cost);
    }
    // Two of the counters that are read are the always-counted ones.
    let counters = switch.rdpmcs - 2.0;
    Switch {
        pmu: name(pmu),
        switches,
        changed: steps[Step::Select as usize].1.msr_accesses,
        steps,
        switch,
        log,
        log_traced: Cost::default(),
        linux: (3.0 * counters + 2.0, counters),
        skews: Vec::new(),
    }
}

/// For people.
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
        for (step, cost) in s.steps.iter().filter(|(step, _)| *step != Step::Log) {
            row(step.sentence(), cost);
        }
        row("the switch", &s.switch);
        row("logging", &s.log);
        row("logging with a trace", &s.log_traced);
        let _ = writeln!(
            text,
            "  k = {:.2} selectors changed, so k + {:.2} MSR accesses; Linux's rotation of as many\n  \
             counters: {:.0} WRMSR and {:.0} RDPMC",
            s.changed,
            s.switch.msr_accesses - s.changed,
            s.linux.0,
            s.linux.1
        );
        for skew in &s.skews {
            let _ = writeln!(
                text,
                "  skew, {:<34} {:>+7.2} instructions a switch",
                skew.what, skew.instructions
            );
        }
        text.push('\n');
    }
    text
}
