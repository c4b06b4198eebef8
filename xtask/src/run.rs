//! `cargo xtask run`: fetches, builds, boots, and prints the results.

mod args;
mod made;
mod next;
mod not_found;
mod over_time;
mod roofline;
mod sampled;
mod show;
mod verb;
mod what_if;

use std::path::Path;

use tally_abi::{
    ExitStatus,
    command::{Verb, help},
};

use tally_breakdown::Metrics;

pub(crate) use self::show::{show, write_trace};
pub use self::{
    args::RunArgs,
    sampled::{by_function, by_instruction},
    verb::{VerbArgs, with_verbs},
};
use self::{
    made::made,
    sampled::{none_taken, sampled, show_breakdown},
    show::write_files,
};
use crate::{
    Failure, Result, check as machine_check,
    explain::{self, Asked},
    guest_files::GuestFile,
    live,
    machine::{self, Accel, Artefacts, Boot, Outcome, Request},
    output, page,
    process::FirstSignal,
    program_words::{self, record},
    project::{self, Project},
    repeat::{self, Repeated},
    report::{PhaseReport, Report, table::Detail},
    stat_files::StatFile,
};

/// Runs the machine and prints the results; the status is the outcome's.
///
/// # Errors
/// An option is not valid, or the machine cannot be built or started.
pub fn main(project: &Project, args: &RunArgs) -> Result<u8> {
    if args.quiet {
        output::silence_notes();
    }
    let args = &args.read(project)?;
    prepare_notes(args);
    if let Some(status) = without_boot(args)? {
        return Ok(status);
    }
    let args = &args.located()?;
    let request = args.request()?;
    if args.machines() > 1 {
        return repeated(project, args);
    }
    if args.live {
        live::check()?;
    }
    check_files(args)?;
    describe(args);
    let plan = args.plan()?;
    args.check_interval(plan.as_ref())?;
    if let Some(folder) = &args.out {
        machine::prepare_files(folder)?;
    }
    let artefacts = Artefacts::make_for_run(project, &args.work.files()?)?;
    request.gdb.iter().for_each(|socket| name_gdb(&artefacts, socket));
    let mut boot = boot(args, &artefacts, &request)?;
    let folder = boot.folder.keep().to_owned();
    machine::keep_newest(project);
    let mut report = Report::with(&boot, plan.as_ref(), &args.additions());
    report.made = Some(made(project, args.pmu, args.accel, args.work.job.cpus));
    // The files are written also if the report cannot be printed.
    let shown = show(&boot, &report, args.json, args.detail(), Some(&folder));
    let shown = shown.map(|status| if status == 0 { status_of(args, &report) } else { status });
    note_next(args, &boot, &report)?;
    write_asked(args, &boot, &report, &request.command_line)?;
    if let Some(path) = &args.roofline.roofline {
        roofline::write(&artefacts, &request, args.signature(), &report, path)?;
    }
    boot.unwritten.map_or(shown, Err)
}

/// Prints the note on misplaced options; leaves out other notes where `stat` prints fields.
fn prepare_notes(args: &RunArgs) {
    let programs = args.work.programs();
    verb::misplaced(&programs, &|list| args.knows(list)).iter().for_each(output::note);
    if programs.iter().any(|words| program_words::prints_fields(words)) {
        output::silence_notes();
    }
}

/// Checks that the files of the results can be written.
fn check_files(args: &RunArgs) -> Result<()> {
    let pictures = args.roofline.roofline.iter().chain(&args.over_time);
    for path in args.trace.iter().chain(pictures).chain(&args.report) {
        project::check_writable(path)?;
    }
    args.work.stat_files().iter().try_for_each(StatFile::check)
}

/// Prints what the machine gets beside what was asked for, and which CPUs a program sees.
fn describe(args: &RunArgs) {
    if args.verbose {
        args.work.implied().iter().for_each(name_file);
    }
    let cpus = args.work.job.cpus;
    if cpus > 1 && !args.work.programs().is_empty() {
        let why = "a program sees one of them, on which its threads take turns";
        output::note(format_args!("xtask: {cpus} CPUs: {why}"));
    }
}

/// Names a file that the machine gets beside those given.
fn name_file(file: &GuestFile) {
    let GuestFile { guest, host, .. } = file;
    output::note(format_args!("xtask: the machine gets {} as /{guest}", host.display()));
}

/// Prints the call of gdb for which the machine waits.
fn name_gdb(artefacts: &Artefacts, socket: &Path) {
    let gdb = machine::in_shell(&machine::gdb(&artefacts.symbols, socket));
    output::note(format_args!("xtask: the machine waits for gdb; in another terminal:\n{gdb}"));
}

/// Runs the program behind `cargo xtask stat` or `record`.
///
/// # Errors
/// As [`main`].
pub fn of_verb(project: &Project, verb: Verb, args: &VerbArgs) -> Result<u8> {
    match verb::parse(verb, args)? {
        Ok(run) => main(project, &run),
        Err(status) => Ok(status),
    }
}

/// The status of a run that ended well: success only if a requested breakdown, or phases, are
/// present.
fn status_of(args: &RunArgs, report: &Report) -> u8 {
    let Some(first) = &report.first else { return 0 };
    let phases = first.phases.as_ref();
    let lacks = args.breakdown.is_some() && first.breakdown.is_none();
    if lacks || phases.is_some_and(PhaseReport::is_too_short) {
        ExitStatus::TooShort.into()
    } else {
        0
    }
}

/// Prints what a program that failed lacked, and what to type next.
fn note_next(args: &RunArgs, boot: &Boot, report: &Report) -> Result<()> {
    let (programs, files) = (args.work.programs(), args.work.files()?);
    for line in not_found::arguments(&programs, &report.exits, &files) {
        output::note(format_args!("xtask: {line}"));
    }
    if matches!(boot.outcome, Outcome::Done(_)) {
        next::lines(args, report).iter().for_each(output::note);
    }
    Ok(())
}

/// Boots the machine; the programs' output goes where the options say.
fn boot(args: &RunArgs, artefacts: &Artefacts, request: &Request) -> Result<Boot> {
    let _first = FirstSignal::note();
    if args.work.job.check {
        machine::boot_listening(artefacts, request, &mut machine_check::listen)
    } else if args.live {
        live::boot(artefacts, request, args.known()?)
    } else {
        machine::boot_with_progress(artefacts, request, args.json)
    }
}

/// Writes the requested files of a run whose kernel had this command line.
fn write_asked(args: &RunArgs, boot: &Boot, report: &Report, command_line: &str) -> Result<()> {
    let has_samples = args.work.programs().iter().any(|words| record(words).is_some());
    if let Some(path) = &args.trace {
        write_trace(boot, report, command_line, path)?;
        if has_samples && boot.transcript.samples.is_empty() {
            let why = none_taken(&args.work.programs(), report);
            output::note(format_args!("xtask: {why}"));
        } else if has_samples {
            let path = path.display().to_string();
            let typed = shlex::try_quote(&path).unwrap_or_default();
            let next = format!("cargo xtask report {typed}");
            output::note(format_args!("xtask: the samples are in {path}: {next}"));
        }
    } else if has_samples && args.report.is_none() {
        let kept = "cargo xtask record, or run --trace FILE, keeps them";
        output::note(format_args!("xtask: the samples are in no file: {kept}"));
    }
    let blocks = args.vpmu.iter().find_map(|option| option.strip_prefix("blocks="));
    let asked = (command_line, blocks.map(Path::new));
    if let Some(path) = &args.report {
        let sampled = sampled(boot, report, asked)?;
        page::write(report, &sampled, path)?;
    }
    args.over_time.as_deref().map(|path| over_time::write(report, path)).transpose()?;
    write_files(boot, args.out.as_deref(), &args.work.stat_files())?;
    // Last, with the files written: a program may be too short for it.
    if !args.json && args.work.programs().iter().any(|it| record(it) == Some(true)) {
        show_breakdown(boot, report, asked)?;
    }
    Ok(())
}

/// Runs the machines of `--repeat` and prints their results together.
fn repeated(project: &Project, args: &RunArgs) -> Result<u8> {
    let requests = args.requests()?;
    let artefacts = Artefacts::make_for_run(project, &args.work.files()?)?;
    let _first = FirstSignal::note();
    match repeat::repeat(&artefacts, &requests)? {
        Repeated::Merged(merged) => {
            output::print(args.json, &merged, &repeat::render(&merged))?;
            Ok(merged.status)
        }
        Repeated::Failed(mut boot, done) => {
            if let Some(merged) = &done {
                output::print(args.json, merged, &repeat::render(merged))?;
            }
            let folder = boot.folder.keep().to_owned();
            machine::keep_newest(project);
            // JSON is one object: of the runs that were done.
            let json = args.json && done.is_none();
            show(&boot, &Report::of(&boot), json, Detail::All, Some(&folder))
        }
    }
}

/// Prints what needs no machine, if requested: the help of `stat` or `record`, the names of
/// metrics, or the plan.
fn without_boot(args: &RunArgs) -> Result<Option<u8>> {
    let first = args.work.first();
    if let Some(help) = program_words::tally(&first).and_then(|words| help(&words)) {
        return output::text(&help).map(|()| Some(0));
    }
    if program_words::lists_metrics(&first) {
        let names = Metrics::listed(args.signature());
        let names = names.map_err(|why| Failure::new(ExitStatus::NoBreakdown, why))?;
        return output::text(&(names.join("\n") + "\n")).map(|()| Some(0));
    }
    args.request()?;
    if args.explain { explained(args).map(Some) } else { Ok(None) }
}

/// Prints the plan.
fn explained(args: &RunArgs) -> Result<u8> {
    if args.accel == Accel::Kvm {
        let why =
            "--explain needs a virtual PMU: omit --accel kvm, or read the plan in the kernel's log";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    let pmu = machine::virtual_pmu_of(args.pmu, &args.vpmu)?;
    let asked = Asked::of(&args.sampled_job(), &args.work.first(), pmu.profile().signature)?;
    explain::main(&pmu, &asked, args.json)
}
