//! `cargo xtask study quirks`: the default job with each quirk of the virtual PMU, and with each
//! pair of quirks. Counts must be right, or refused with a reason.

use clap::Args;
use xtask::{
    Result,
    job::Job,
    machine::{self, Artefacts, Pmu, Request},
    project::Project,
};

use super::{
    programs::PMUS,
    verdict::{self, Candidate},
};

/// The quirks, as options of the virtual PMU. Those of a row exclude each other.
const QUIRKS: [&[&str]; 10] = [
    &["held=3", "held=3@15000000", "locked=2"],
    &["masked=1", "masked=200"],
    &["late=300", "late=100000"],
    &["lost=50", "lost=1"],
    &["overcount=yes"],
    &["smi=200000"],
    &["threads=2"],
    &["missing=BR_MISP_RETIRED.ALL_BRANCHES", "missing=MEM_INST_RETIRED.ALL_LOADS"],
    &["left=frozen", "left=running"],
    &["pmi=30000000+60000000"],
];
/// Options of `cargo xtask study quirks`.
#[derive(Args, Clone, Debug)]
pub struct QuirksArgs {
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// Each quirk, and each pair of quirks that do not exclude each other.
pub fn sets() -> Vec<Vec<&'static str>> {
    let of_rows = QUIRKS.iter().enumerate();
    let all: Vec<(usize, &str)> =
        of_rows.flat_map(|(row, quirks)| quirks.iter().map(move |quirk| (row, *quirk))).collect();
    let mut sets: Vec<Vec<&str>> = all.iter().map(|(_, quirk)| vec![*quirk]).collect();
    for (at, (row, first)) in all.iter().enumerate() {
        let others = all[at + 1..].iter().filter(|(other, _)| other != row);
        sets.extend(others.map(|(_, second)| vec![*first, *second]));
    }
    sets
}

/// Returns whether a machine of this processor can have these quirks.
pub fn can_have(pmu: Pmu, quirks: &[&str]) -> bool {
    let options: Vec<String> = quirks.iter().map(|quirk| (*quirk).to_owned()).collect();
    machine::check_vpmu(pmu, &options, 1).is_ok()
}

/// The default job on a machine with these quirks.
pub fn request(pmu: Pmu, quirks: &[&str]) -> Request {
    let vpmu = quirks.iter().map(|quirk| (*quirk).to_owned()).collect();
    Request { pmu, vpmu, ..Request::new(Job::default().command_line("wire check-counters")) }
}

pub(super) fn main(project: &Project, args: &QuirksArgs) -> Result<u8> {
    let of_vendor = |(pmu, machine)| {
        let candidate = move |set: Vec<&str>| Candidate {
            machine,
            with: set.join(","),
            request: request(pmu, &set),
            by_codes: false,
        };
        sets().into_iter().filter(move |set| can_have(pmu, set)).map(candidate)
    };
    let all: Vec<Candidate> = PMUS.into_iter().flat_map(of_vendor).collect();
    verdict::judge(&Artefacts::make(project)?, &all, args.json)
}
