//! The options of `cargo xtask run`, and their conversion to requests.

mod counted;

use std::{path::PathBuf, time::Duration};

use clap::{Args, FromArgMatches, builder::ArgPredicate};
use tally_abi::{ExitStatus, PhaseConfig};
use tally_engine::Plan;
use tally_pmu::CostTable;

use super::{
    over_time::Format,
    roofline::RooflineArgs,
    what_if::{self, WhatIfArgs},
};
use crate::{
    Failure, Result,
    explain::{self, Asked},
    guest_files,
    job::Job,
    live::{Known, Planned},
    machine::{self, Accel, Pmu, ProcessorArgs, Request, limit_seconds, memory_mib},
    phases,
    program_words::record,
    project::Project,
    report::{Additions, Rings, no_stack},
    workload::Workload,
};
/// Options of `cargo xtask run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub(super) work: Workload,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pub(super) pmu: Pmu,
    #[command(flatten)]
    processor: ProcessorArgs,
    /// Executor of the guest's instructions
    #[arg(long, value_enum, default_value_t)]
    pub(super) accel: Accel,
    /// Further options of the virtual PMU, such as series=FILE,every=1000000i (see qemu/README.md)
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    pub(super) vpmu: Vec<String>,
    /// Print the plan, each event's group and counter, without a boot
    #[arg(long, conflicts_with_all = ["check", "trace", "phases", "halt", "jobs"])]
    pub(super) explain: bool,
    /// Print where the cycles go, by the slots of dispatch and the vendor's top-down formulas: in
    /// user mode, or in both, each apart; or by completion stalls
    #[arg(long, value_enum, value_name = "RINGS", num_args = 0..=1, require_equals = true,
          default_missing_value = "user",
          conflicts_with_all = ["check", "events", "explain", "repeat", "phases", "jobs"])]
    pub(super) breakdown: Option<Rings>,
    #[command(flatten)]
    what_if: WhatIfArgs,
    #[command(flatten)]
    pub(super) roofline: RooflineArgs,
    /// Write where the cycles go over time into this file: a table (.csv) or a picture (.svg)
    #[arg(long, value_name = "FILE", requires = "breakdown", conflicts_with = "trace_last")]
    pub(super) over_time: Option<PathBuf>,
    /// Give the counts of N intervals of the run too [default with --over-time: 20]
    #[arg(long, value_name = "N",
          conflicts_with_all = ["check", "explain", "repeat", "trace_last", "jobs"],
          default_value_if("over_time", ArgPredicate::IsPresent, "20"),
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    intervals: Option<u16>,
    /// Write the results into this file too: a page for a browser, with the JSON object inside
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "explain", "repeat", "jobs"])]
    pub(super) report: Option<PathBuf>,
    /// Vary the slices' lengths, and print how often each event would have happened without
    /// interrupts
    #[arg(long, conflicts_with_all = ["check", "shares", "explain", "repeat", "trace_last", "halt",
                                      "jobs"])]
    unobserved: bool,
    /// Estimate again from the records of all slices after the run, and print these estimates too
    #[arg(long, conflicts_with_all = ["check", "explain", "repeat", "trace_last", "jobs"])]
    refine: bool,
    /// Run the machine N times, with seeds from --seed on, and print one table of all runs; with
    /// --jobs, one machine runs all jobs N times
    #[arg(long, value_name = "N",
          conflicts_with_all = ["check", "explain", "trace", "gdb", "phases", "halt"],
          value_parser = clap::value_parser!(u64).range(2..=1000))]
    repeat: Option<u64>,
    /// Print one JSON object, alone on standard output; what programs write there goes to standard
    /// error
    #[arg(long)]
    pub(super) json: bool,
    /// Print nothing on standard output and error but what the programs write, or why the run
    /// failed
    #[arg(short, long, conflicts_with_all = ["explain", "gdb"])]
    pub(super) quiet: bool,
    /// Print all of the report; name the files that the machine gets beside those given: programs
    /// and their libraries
    #[arg(short, long, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// Write a record of every slice, threshold and sample to this file, for `cargo xtask trace`
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Show the run on the terminal while it runs: rates of events with error bars, where cycles
    /// go, phases. What programs write comes when the view has ended; q stops the machine
    #[arg(long, conflicts_with_all = ["check", "json", "quiet", "explain", "repeat", "gdb",
                                      "trace_last", "jobs"])]
    pub(super) live: bool,
    /// Check at boot, on each CPU, that every counter counts, that an overflow raises an interrupt,
    /// and whether interrupts count as instructions; always with --accel kvm and --vpmu
    #[arg(long)]
    check_counters: bool,
    /// Memory of the machine: MiB, or with the suffix M or G [default: half of this host's]
    #[arg(long, value_name = "SIZE", value_parser = memory_mib)]
    memory: Option<u64>,
    /// Write the files and folders that the programs created or changed into this folder, new or
    /// empty
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check", "explain", "repeat"])]
    pub(super) out: Option<PathBuf>,
    /// Stop the machine after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = machine::DEFAULT_TIME_LIMIT.as_secs(),
          default_value_if("what_if", ArgPredicate::IsPresent, what_if::TIME_LIMIT),
          value_parser = limit_seconds)]
    time_limit: u64,
    /// Stop the machine until gdb connects, print the gdb command, which runs to the kernel's
    /// entry, and set no time limit
    #[arg(long)]
    gdb: bool,
    /// Pass this argument to QEMU, after all others; repeatable
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    qemu_arg: Vec<String>,
}

impl RunArgs {
    /// Parses a command as pages quote it: `cargo xtask run OPTIONS`, words separated by blanks.
    ///
    /// # Errors
    /// The command is another one, or has a wrong option.
    pub fn of(command: &str) -> Result<RunArgs> {
        let refused = |why: String| Failure::new(ExitStatus::Usage, format!("{command}: {why}"));
        let words = command.strip_prefix("cargo xtask ").unwrap_or_default().split(' ');
        if words.clone().next() != Some("run") {
            return Err(refused("it is no `cargo xtask run`".into()));
        }
        let parsed = RunArgs::augment_args(clap::Command::new("run")).try_get_matches_from(words);
        let parsed = parsed.and_then(|mut parsed| RunArgs::from_arg_matches_mut(&mut parsed));
        parsed.map_err(|error| refused(error.to_string()))?.shown(&Project::here())
    }

    /// Makes the machine show the processor of `--processor`.
    fn shown(mut self, project: &Project) -> Result<RunArgs> {
        if let Some((pmu, options)) = self.processor.shown(project)? {
            self.pmu = pmu;
            self.vpmu.splice(0..0, options);
        }
        Ok(self)
    }

    /// The machine for these options.
    ///
    /// # Errors
    /// As [`check`].
    pub fn request(&self) -> Result<Request> {
        check(self)?;
        let work = self.work.with_job(self.sampled_job());
        let line = work.command_line(&options(self), self.is_trace())?;
        Ok(Request {
            pmu: self.pmu,
            accel: self.accel,
            cpus: self.work.job.cpus.into(),
            memory_mib: Some(self.memory_mib()?),
            // A user who debugs may stop the machine for any time.
            time_limit: if self.gdb { Duration::MAX } else { Duration::from_secs(self.time_limit) },
            vpmu: self.work.vpmu(&self.machine_options()),
            gdb: self.gdb.then(machine::gdb_socket),
            qemu_args: self.qemu_arg.clone(),
            ..Request::new(line)
        })
    }

    /// The options of the virtual PMU, with those that `--what-if` needs.
    fn machine_options(&self) -> Vec<String> {
        self.what_if.machine_options(&self.vpmu)
    }

    /// The rings of `--breakdown`.
    fn rings(&self) -> Rings {
        self.breakdown.unwrap_or_default()
    }

    /// Returns whether the records of all slices are needed.
    fn needs_slices(&self) -> bool {
        self.unobserved
            || self.refine
            || self.intervals.is_some()
            || self.work.phases.phases.is_some()
    }

    /// The report's additions to the estimates.
    pub fn additions(&self) -> Additions {
        Additions {
            unobserved: self.unobserved,
            refined: self.refine,
            stack: self.stack(),
            rings: self.rings(),
            what_if: self.what_if.what_if.is_some(),
            intervals: self.intervals.map(usize::from),
            phases: self.phase_model(),
        }
    }

    /// The configuration of phases, and the cost model.
    fn phase_model(&self) -> Option<(PhaseConfig, &'static CostTable)> {
        let pmu = machine::virtual_pmu_of(self.pmu, &self.vpmu).ok()?;
        self.work.phases.config().ok().flatten().zip(phases::costs(&pmu).ok())
    }

    /// The plan of the job's events; `None` for another list, unless a requested result needs the
    /// plan.
    ///
    /// # Errors
    /// The list of events is unknown before the run, or refused.
    pub fn plan(&self) -> Result<Option<Plan>> {
        Ok(self.planned()?.map(|planned| planned.plan))
    }

    /// The plan with the names of the events.
    ///
    /// # Errors
    /// As [`Self::plan`].
    fn planned(&self) -> Result<Option<Planned>> {
        let pmu = machine::virtual_pmu_of(self.pmu, &self.machine_options())?;
        if self.work.jobs.is_some() {
            return Ok(None);
        }
        let asked = Asked::of(&self.sampled_job(), &self.work.first(), pmu.profile().signature);
        let planned = asked.and_then(|asked| {
            // The user asks for the rings of a breakdown, not the program.
            let paranoid = asked.paranoid.filter(|_| self.breakdown.is_none());
            explain::plan_of(&pmu, &Asked { paranoid, ..asked })
        });
        let (resolved, plan) = match planned {
            Err(failure) if self.needs_slices() => return Err(failure),
            Ok(planned) if self.accel == Accel::Tcg => planned,
            _ => return Ok(None),
        };
        let names = resolved.into_iter().map(|event| event.name).collect();
        Ok(Some(Planned { names, plan }))
    }

    /// Facts about the run that a view knows before it.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub(super) fn known(&self) -> Result<Known> {
        let signature = self.pmu.signature();
        let config = Asked::of(&self.sampled_job(), &self.work.first(), signature)
            .map_or_else(|_| self.work.job.config(), |asked| asked.config);
        let words = self.work.programs().into_iter().map(|words| words.join(" "));
        let programs: Vec<String> = if self.work.programs().is_empty() {
            self.work.job.program.clone()
        } else {
            words.collect()
        };
        Ok(Known {
            programs: programs.join(", "),
            budget_ppm: config.budget_ppm,
            planned: self.planned()?,
            stack: self.stack(),
            rings: self.rings(),
            has_phases: self.work.phases.phases.is_some(),
            is_modelled: self.accel == Accel::Tcg,
        })
    }

    /// Reads the files of jobs and adds their content.
    ///
    /// # Errors
    /// As [`Workload::read`].
    pub(super) fn read(&self, project: &Project) -> Result<RunArgs> {
        RunArgs { work: self.work.read()?, ..self.clone() }.shown(project)
    }

    /// Adds the paths of the programs on the machine. Checks the events as the kernel will, if the
    /// PMU is virtual.
    ///
    /// # Errors
    /// A program is missing or is not an x86-64 ELF file, or events are refused.
    pub(super) fn located(&self) -> Result<RunArgs> {
        let work = self.work.located()?;
        if self.accel == Accel::Tcg {
            work.check_events(&machine::virtual_pmu_of(self.pmu, &self.machine_options())?, true)?;
        }
        Ok(RunArgs { work, ..self.clone() })
    }

    /// The number of machines: with `--jobs`, one runs all repetitions.
    pub(super) fn machines(&self) -> u64 {
        self.repeat.filter(|_| self.work.jobs.is_none()).unwrap_or(1)
    }

    /// Returns whether the kernel writes a trace.
    fn is_trace(&self) -> bool {
        let is_shown = |it: &Vec<String>| {
            record(it).is_some_and(|breaks_down| breaks_down || self.report.is_some())
        };
        let has_samples = self.work.programs().iter().any(is_shown);
        // The records are needed for the correlations of the errors of a part's events.
        let is_broken_down = self.stack().is_some() && self.accel == Accel::Tcg;
        is_broken_down || self.trace.is_some() || self.needs_slices() || self.live || has_samples
    }

    /// The machine's memory: as given, or half of the host's, or what large files need.
    fn memory_mib(&self) -> Result<u64> {
        // The machine's own files beside those given.
        const OWN_BYTES: u64 = 16 << 20;
        if let Some(given) = self.memory {
            return Ok(given);
        }
        let bytes = OWN_BYTES + guest_files::bytes(&self.work.files()?);
        Ok(machine::memory_of_host().max(machine::memory_for(bytes, None)?))
    }

    /// The machines of `--repeat`, one without it, each with the next seed.
    ///
    /// # Errors
    /// An option is not valid, or the last seed would exceed 64 bits.
    pub fn requests(&self) -> Result<Vec<Request>> {
        let (first, count) = (self.work.job.seed, self.machines());
        let Some(last) = first.checked_add(count - 1) else {
            let why = format!("--seed {first} leaves no {count} seeds: use a smaller one");
            return Err(Failure::new(ExitStatus::Usage, why));
        };
        let of = |seed| {
            let job = Job { seed, ..self.work.job.clone() };
            RunArgs { work: self.work.with_job(job), ..self.clone() }.request()
        };
        (first..=last).map(of).collect()
    }
}

/// The kernel's options other than the workload's.
fn options(args: &RunArgs) -> String {
    let mut options = "wire".to_owned();
    if let Some(times) = args.repeat.filter(|_| args.work.jobs.is_some()) {
        options += &format!(" repeat={times}");
    }
    if args.out.is_some() || !args.work.stat_files().is_empty() {
        options += " send-files";
    }
    // Under TCG the virtual PMU is exclusively used and has only the requested quirks.
    if args.check_counters || args.accel == machine::Accel::Kvm || !args.vpmu.is_empty() {
        options += " check-counters";
    }
    options
}

/// Checks the options before anything is built.
///
/// # Errors
/// An option is not valid.
fn check(args: &RunArgs) -> Result<()> {
    args.work.check(args.memory)?;
    args.what_if.check(args.accel, &args.vpmu)?;
    args.roofline.check(args.signature())?;
    args.accel.check()?;
    if args.work.phases.config()?.is_some() {
        phases::costs(&machine::virtual_pmu_of(args.pmu, &args.vpmu)?)?;
    }
    if args.breakdown.is_some() && args.stack().is_none() {
        let why =
            format!("--breakdown: {}; or use --pmu intel, sapphire-rapids or amd", no_stack());
        return Err(Failure::new(ExitStatus::NoBreakdown, why));
    }
    args.over_time.as_deref().map(Format::of).transpose()?;
    if args.repeat.is_some() && !args.work.stat_files().is_empty() {
        let why = "stat -o FILE has one run: leave out --repeat, or repeat it with stat -r N";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    if args.needs_slices() && args.accel == Accel::Kvm {
        let why =
            "--unobserved, --refine, --intervals and --phases need a virtual PMU: omit --accel kvm";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    if args.accel == Accel::Tcg {
        machine::check_vpmu(args.pmu, &args.machine_options(), args.work.job.cpus)?;
    } else if !args.vpmu.is_empty() {
        let why = "--vpmu has no effect with --accel kvm: omit one of them";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
