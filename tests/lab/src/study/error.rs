//! `cargo xtask study error`: how often intervals contain the truth, and how wide they are.

mod judge;
mod options;
mod table;

use tally_abi::ExitStatus;
use xtask::{
    Result, guest_files::GuestFile, machine::Artefacts, output, project::Project, report::Report,
};

use self::judge::ProgramReports;
pub(super) use self::options::ErrorArgs;
use super::seeds;

pub(super) fn main(project: &Project, args: &ErrorArgs) -> Result<u8> {
    args.check()?;
    let artefacts = match &*args.files(project)? {
        [] => Artefacts::make(project)?,
        files => Artefacts::make_for_run(project, &GuestFile::by_names(files))?,
    };
    let programs = args.programs();
    let (first, last) = args.seeds.clone().into_inner();
    let number = last - first + 1;
    let runs = programs.len() as u64 * number;
    let reports = seeds::in_parallel("machines", 0..=runs - 1, |run| {
        let program = programs[(run / number) as usize];
        run_seed(&artefacts, args, first + run % number, program)
    })?;
    let by_program = programs.iter().zip(reports.chunks(number as usize));
    let by_program: Vec<ProgramReports<'_>> = by_program.collect();
    let study = judge::judge(&by_program, args.refine);
    output::print(args.json, &study, &(table::render(&study) + "\n"))?;
    Ok(if study.holds { 0 } else { ExitStatus::CheckFailed.into() })
}

fn run_seed(artefacts: &Artefacts, args: &ErrorArgs, seed: u64, program: &str) -> Result<Report> {
    let boot = seeds::boot(artefacts, &args.request(seed, program)?, seed)?;
    let mut report = Report::of(&boot);
    if args.refine {
        report.add_refined(&boot, &args.plan(program)?);
    }
    Ok(report)
}
