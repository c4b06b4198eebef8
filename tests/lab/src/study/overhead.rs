//! `cargo xtask study overhead`: the cost of switches at the frequencies of paper 000's Table 4.
//!
//! The program `rounds` runs once without a session, and at each frequency in a session with an
//! unlimited budget. A marked region of the truth contains the same work of all runs, so the growth
//! of its cycles is the session's cost: in the overflow handlers, and outside of them, where rows
//! are folded and the program misses cache lines that handlers evicted. The pipeline is `ooo`: two
//! runs of `interval` differ by more than that, as it samples the costs of blocks (decision 75).

mod picture;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tally_abi::{
    ExitStatus, events,
    session::{MIN_SLICE, NO_BUDGET_PPM},
    text::percent,
    truth::{Region, RegionKind},
};
use tally_model::cost;
use xtask::{
    Failure, Result,
    machine::{Artefacts, Boot, Pmu, Request},
    output,
    project::{self, Project},
};

use self::picture::Curve;
use super::seeds;

/// Frequencies in kHz with the paper's overheads in percent (000, Table 4). The paper calls them
/// linear in the frequency. So they are shares of the time with sampling: for 0.12, 0.22 and 0.63,
/// s / (1 - s) is 0.14, 0.28 and 1.70.
const TABLE_4: [(u64, f64); 7] =
    [(1, 0.2), (2, 0.5), (5, 0.8), (20, 2.0), (100, 12.0), (200, 22.0), (1_000, 63.0)];
/// The clock of the paper's processor, in kHz (000, section 5): the model knows only cycles.
const CLOCK_KHZ: u64 = 1_000 * MIN_SLICE;
/// The tag of the region that `rounds` marks after its warm-up.
const REGION: u32 = 1;
/// The work: number of rounds, and bytes of a round. Some 40 million cycles.
const WORK: &str = "2 200000";

/// Options of `cargo xtask study overhead`.
#[derive(Args, Debug)]
pub struct OverheadArgs {
    /// Write a picture of the table to this file, in SVG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// Mean costs of a switch, in cycles of the model.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parts {
    /// Delivery of the interrupt, and IRET.
    pub delivery: f64,
    /// WRMSR and RDPMC.
    pub registers: f64,
    /// All other instructions of the handler, with their misses.
    pub handler: f64,
    /// The kernel outside the handlers: folding rows.
    pub kernel: f64,
    /// Additional cycles of the program itself.
    pub program: f64,
}

impl Parts {
    /// The sum of all parts.
    pub fn sum(self) -> f64 {
        self.delivery + self.registers + self.handler + self.kernel + self.program
    }
}

/// Cost of a session at one frequency.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// Switches per millisecond of the paper's processor.
    pub khz: u64,
    /// Length of a slice in cycles.
    pub slice_cycles: u64,
    /// Number of overflow interrupts in the region.
    pub switches: u64,
    /// Additional cycles of the work per cycle without a session.
    pub slowdown: f64,
    /// Additional cycles of the work per cycle in the session: 0 to 1.
    pub overhead: f64,
    /// The paper's overhead.
    pub paper: f64,
    /// Division of the cycles.
    pub cycles_per_switch: Parts,
}

/// The costs on one processor.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    pub(super) pmu: &'static str,
    pub(super) rows: Vec<Row>,
}

/// Reads and writes of registers in the overflow path, per switch.
#[derive(Clone, Copy, Debug)]
struct Accesses {
    msr: f64,
    rdpmc: f64,
}

pub(super) fn main(project: &Project, args: &OverheadArgs) -> Result<u8> {
    if let Some(path) = &args.picture {
        project::check_writable(path)?;
    }
    let artefacts = Artefacts::make_for_run(project, &[])?;
    let machines = measure(&artefacts)?;
    if let Some(path) = &args.picture {
        project::write(path, picture::draw(&curves(&machines))?.as_bytes())?;
    }
    output::print(args.json, &machines, &render(&machines))?;
    Ok(0)
}

/// Runs the work on a machine of each vendor, at all frequencies.
///
/// # Errors
/// A machine fails.
pub(super) fn measure(artefacts: &Artefacts) -> Result<Vec<Machine>> {
    let pmus = [("Intel", Pmu::Intel), ("AMD", Pmu::Amd)];
    let slices: Vec<Option<u64>> =
        [None].into_iter().chain(TABLE_4.map(|(khz, _)| Some(CLOCK_KHZ / khz))).collect();
    let all: Vec<(Pmu, Option<u64>)> =
        pmus.iter().flat_map(|(_, pmu)| slices.iter().map(move |slice| (*pmu, *slice))).collect();
    let boots = seeds::in_parallel("machines", 1..=all.len() as u64, |number| {
        let (pmu, slice) = all[number as usize - 1];
        seeds::boot(artefacts, &request(pmu, WORK, slice), 1)
    })?;
    let machine = |((name, _), boots): (&(&'static str, Pmu), &[Boot])| {
        let (without, with) = boots.split_first().ok_or_else(no_region)?;
        let rows = TABLE_4.iter().zip(with);
        let rows = rows.map(|(row, with)| compare(without, with, *row)).collect::<Result<_>>()?;
        Ok(Machine { pmu: name, rows })
    };
    pmus.iter().zip(boots.chunks(slices.len())).map(machine).collect()
}

/// The machine that does `work`, the arguments of `rounds`; without a slice there is no session.
pub fn request(pmu: Pmu, work: &str, slice: Option<u64>) -> Request {
    let list: Vec<&str> = events::words(events::default_list(pmu.signature())).collect();
    let session = slice
        .map(|slice| format!("events={} slice={slice} budget={NO_BUDGET_PPM} ", list.join(",")));
    let session = session.unwrap_or_default();
    let line = format!("seed=1 wire -- {session}rounds {work} mark");
    Request { pmu, vpmu: vec!["pipeline=ooo".into()], ..Request::new(line) }
}

/// Compares a run of [`request`] in a session with one without; the last argument is a row of the
/// paper's table.
///
/// # Errors
/// A run has no truth or no session.
pub fn compare(without: &Boot, with: &Boot, (khz, paper): (u64, f64)) -> Result<Row> {
    let stats = with.transcript.sessions.values().find_map(|session| session.stats.as_ref());
    let stats = stats.filter(|stats| stats.pmis > 0).ok_or_else(no_region)?;
    let per_switch = |count: u64| count as f64 / stats.pmis as f64;
    let accesses =
        Accesses { msr: per_switch(stats.msr_accesses), rdpmc: per_switch(stats.rdpmcs) };
    let (without, with) = (region(without)?, region(with)?);
    let all = with.pmi.region_cycles as f64 - without.pmi.region_cycles as f64;
    Ok(Row {
        khz,
        slice_cycles: CLOCK_KHZ / khz,
        switches: with.pmi.count,
        slowdown: all / without.pmi.region_cycles as f64,
        overhead: all / with.pmi.region_cycles as f64,
        paper: paper / 100.0,
        cycles_per_switch: parts(without, with, accesses)?,
    })
}

fn parts(without: &Region, with: &Region, accesses: Accesses) -> Result<Parts> {
    let switches = with.pmi.count as f64;
    let cycles = [without, with].map(user_cycles);
    let [Some(without_user), Some(with_user)] = cycles else { return Err(no_region()) };
    let all = with.pmi.region_cycles as f64 - without.pmi.region_cycles as f64;
    let program = with_user as f64 - without_user as f64;
    let delivery = f64::from(cost::DELIVERY_CYCLES + cost::IRET_CYCLES);
    let registers = accesses.msr * f64::from(cost::WRMSR_CYCLES)
        + accesses.rdpmc * f64::from(cost::RDPMC_CYCLES);
    let handlers = with.pmi.cycles as f64;
    Ok(Parts {
        delivery,
        registers,
        handler: handlers / switches - delivery - registers,
        kernel: (all - handlers - program) / switches,
        program: program / switches,
    })
}

/// Cycles in ring 3.
fn user_cycles(region: &Region) -> Option<u64> {
    let names = ["CPU_CLK_UNHALTED.THREAD", "CYCLES_NOT_IN_HALT"];
    names.iter().find_map(|name| region.events.get(*name)).map(|count| count.user)
}

fn region(boot: &Boot) -> Result<&Region> {
    let truth = boot.truth.as_ref().and_then(|truth| truth.region(RegionKind::Marked, REGION));
    truth.ok_or_else(no_region)
}

fn no_region() -> Failure {
    Failure::new(ExitStatus::CheckFailed, "a run has no region of its work, or no session")
}

/// The paper's overheads, half of them, and those of `machines`.
fn curves(machines: &[Machine]) -> Vec<Curve> {
    let paper = |part: f64| TABLE_4.map(|(khz, percent)| (khz as f64, part * percent)).to_vec();
    let of = |machine: &Machine| {
        let rows = machine.rows.iter();
        (machine.pmu.to_owned(), rows.map(|row| (row.khz as f64, 100.0 * row.overhead)).collect())
    };
    let papers = [("paper 000".to_owned(), paper(1.0)), ("half of it".to_owned(), paper(0.5))];
    papers.into_iter().chain(machines.iter().map(of)).collect()
}

fn render(machines: &[Machine]) -> String {
    let mut text = String::new();
    for Machine { pmu, rows } in machines {
        text += &format!(
            "{pmu:<6}{:>9}{:>9}{:>9}{:>9}{:>8}{:>7}  cycles of a switch: delivery registers \
             handler kernel program\n",
            "slice", "switches", "slowdown", "overhead", "paper", "ratio"
        );
        for row in rows {
            let Parts { delivery, registers, handler, kernel, program } = row.cycles_per_switch;
            text += &format!(
                "{:>4} k{:>9}{:>9}{:>9}{:>9}{:>8}{:>7.2} {:>18.0} = {delivery:>8.0} \
                 {registers:>9.0} {handler:>7.0} {kernel:>6.0} {program:>7.0}\n",
                row.khz,
                row.slice_cycles,
                row.switches,
                percent(row.slowdown, false),
                percent(row.overhead, false),
                percent(row.paper, false),
                row.overhead / row.paper,
                row.cycles_per_switch.sum(),
            );
        }
        let (met, of) = halved(rows);
        text += &format!("at most half of the paper's at {met} of {of} from 5 to 200 kHz\n");
    }
    text
}

/// The number of rows from 5 to 200 kHz with at most half of the paper's overhead, and the number
/// of all such rows.
pub(super) fn halved(rows: &[Row]) -> (usize, usize) {
    let aimed = rows.iter().filter(|row| (5..=200).contains(&row.khz));
    (aimed.clone().filter(|row| row.overhead <= row.paper / 2.0).count(), aimed.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tally_abi::truth::{Count, PmiCost};

    fn region(user: u64, pmi: PmiCost) -> Region {
        let count = Count { user, kernel: 0 };
        Region {
            kind: RegionKind::Marked,
            tag: REGION,
            address_space: 0,
            closed: true,
            events: BTreeMap::from([("CYCLES_NOT_IN_HALT".to_owned(), count)]),
            cpus: Vec::new(),
            pmi,
        }
    }

    #[test]
    fn the_parts_of_a_switch_make_its_whole_cost() {
        let without = region(900, PmiCost { region_cycles: 1_000, ..PmiCost::default() });
        let pmi = PmiCost {
            count: 2,
            instructions: 0,
            cycles: 4_000,
            region_cycles: 5_900,
            events: BTreeMap::new(),
        };
        let with = region(1_100, pmi);
        let parts = parts(&without, &with, Accesses { msr: 5.0, rdpmc: 4.0 }).unwrap();
        assert_eq!((parts.delivery, parts.registers, parts.handler), (370.0, 1_120.0, 510.0));
        assert_eq!((parts.kernel, parts.program, parts.sum()), (350.0, 100.0, 2_450.0));
    }

    #[test]
    fn the_table_counts_the_frequencies_that_reach_half_of_the_papers() {
        let row = |(khz, paper): (u64, f64)| Row {
            khz,
            slice_cycles: CLOCK_KHZ / khz,
            switches: 9,
            slowdown: 0.01,
            overhead: 0.01,
            paper: paper / 100.0,
            cycles_per_switch: parts(
                &region(900, PmiCost::default()),
                &region(900, PmiCost { count: 1, ..PmiCost::default() }),
                Accesses { msr: 0.0, rdpmc: 0.0 },
            )
            .unwrap(),
        };
        let machines = [Machine { pmu: "Intel", rows: TABLE_4.map(row).to_vec() }];
        let text = render(&machines);
        assert!(text.contains("at 3 of 4 from 5 to 200 kHz"), "{text}");
        let svg = picture::draw(&curves(&machines)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("paper 000"), "{svg}");
    }
}
