//! `cargo xtask study`: repeats a run over many seeds and compares its estimates with the truth;
//! compares programs with their runs on the build machine; runs PAPI's own tests.

pub mod bottlenecks;
mod breakdown;
mod cpi;
mod error;
pub(crate) mod estimators;
mod halting;
pub mod live;
mod machines;
mod named;
pub mod overhead;
mod panels;
pub mod paper000;
mod paper002;
pub mod papi;
mod phases;
mod pipelines;
pub mod precise;
pub mod programs;
pub mod quirks;
mod seeds;
mod timed;
mod tutorial;
mod unobserved;
pub mod verdict;
mod words;

use clap::{Args, Subcommand};
use xtask::{Result, project::Project};

/// Options of `cargo xtask study`.
#[derive(Args, Debug)]
pub struct StudyArgs {
    #[command(subcommand)]
    study: Study,
}

#[derive(Debug, Subcommand)]
enum Study {
    /// Costs of paper 004's bottlenecks beside true stalls, and the phases that they make
    Bottlenecks(bottlenecks::BottlenecksArgs),
    /// How often the bars of where cycles go contain the truth, of whole runs or by function; fails
    /// unless it is 93 to 97 % of each kind. With fewer than 20 seeds it can fail by chance
    Breakdown(breakdown::BreakdownArgs),
    /// CPI stacks by paper 001's counter architectures beside runs with perfect structures
    Cpi(cpi::CpiArgs),
    /// How often 95 % intervals contain the truth; fails unless it is 93 to 97 % of the estimated
    /// values. With fewer than 20 seeds it can fail by chance
    Error(error::ErrorArgs),
    /// Linear scaling and ratio estimates on made-up streams, side by side
    Estimators(estimators::EstimatorsArgs),
    /// Effects of halts of several lengths and frequencies on programs, beside paper 003
    Halting(halting::HaltingArgs),
    /// How often intervals of readings while a program runs contain the truth, at random moments,
    /// and for their differences: in the bank and by system call
    Live(live::LiveArgs),
    /// The default job on machines of many kinds: each has to count right, or to refuse
    Machines(machines::MachinesArgs),
    /// Cost of group switches at 1 to 1,000 kHz, beside paper 000's Table 4
    Overhead(overhead::OverheadArgs),
    /// Paper 000's experiments with free programs: Tables 2 to 4, Figures 5 to 7
    Paper000(paper000::Paper000Args),
    /// Paper 002's table and figure with NAS BT and FT: 31 events on two CPUs, and vectors
    Paper002(paper002::Paper002Args),
    /// PAPI's own tests with Tally's libpapi.a, on a machine of each vendor; tests/papi/list.toml
    /// has them
    Papi(papi::PapiArgs),
    /// The kernel's phases on line, beside the truth over time; fails unless bars, sure phases and
    /// changes are as claimed
    Phases(phases::PhasesArgs),
    /// Cycles of pipeline interval beside those of ooo; fails unless their errors are at most 10 %
    /// in the mean and 25 % of any program
    Pipelines(pipelines::PipelinesArgs),
    /// Time by instruction from samples, beside the virtual PMU's oracle; fails unless corrected
    /// samples have at most half of the error of precise ones
    Precise(precise::PreciseArgs),
    /// Whether programs of other origins have the same output, files and status under Tally as on
    /// this machine, on a machine of each vendor; tests/programs/list.toml has them
    Programs(programs::ProgramsArgs),
    /// The default job with each known way of silicon that the virtual PMU models, and with each
    /// pair of them: counts have to be right, or refused
    Quirks(quirks::QuirksArgs),
    /// The tutorial's commands, and what they print beside what its page says; fails if they differ
    Tutorial(tutorial::TutorialArgs),
    /// How often the intervals of unobserved values contain the truth of runs without interrupts
    Unobserved(unobserved::UnobservedArgs),
}

/// Runs the study.
///
/// # Errors
/// A machine cannot be built, or a run of the job fails.
pub fn main(project: &Project, args: &StudyArgs) -> Result<u8> {
    match &args.study {
        Study::Bottlenecks(args) => bottlenecks::main(project, args),
        Study::Breakdown(args) => breakdown::main(project, args),
        Study::Cpi(args) => cpi::main(project, args),
        Study::Error(args) => error::main(project, args),
        Study::Estimators(args) => estimators::main(project, args),
        Study::Halting(args) => halting::main(project, args),
        Study::Live(args) => live::main(project, args),
        Study::Machines(args) => machines::main(project, args),
        Study::Overhead(args) => overhead::main(project, args),
        Study::Paper000(args) => paper000::main(project, args),
        Study::Paper002(args) => paper002::main(project, args),
        Study::Papi(args) => papi::main(project, args),
        Study::Tutorial(args) => tutorial::main(project, args),
        Study::Phases(args) => phases::main(project, args),
        Study::Pipelines(args) => pipelines::main(project, args),
        Study::Precise(args) => precise::main(project, args),
        Study::Programs(args) => programs::main(project, args),
        Study::Quirks(args) => quirks::main(project, args),
        Study::Unobserved(args) => unobserved::main(project, args),
    }
}
