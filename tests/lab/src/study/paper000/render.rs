//! The study's text, in 80 columns: each table with the paper's.

use tally_abi::text::{Grouped, percent};

use super::{
    grid::{ACCEPTABLE, ACCEPTABLE_OF_FREQUENT, Grid, Within},
    over_time::OverTimeStudy,
    paper::{PROGRAMS, TABLE_2, TABLE_3},
    results::{Results, Table2},
    stalls::StallStudy,
    sweep::{Point, Sweep},
};
use crate::study::overhead::{self, Machine};

/// Targets in percent of the cells: for Table 2, for Table 3.
const AIM: [f64; 2] = [95.0, 90.0];
/// Parts of the time in Figure 7's table.
const QUARTERS: usize = 4;

/// Renders all parts that were run.
pub(super) fn render(results: &Results) -> String {
    let Results { pmu, pipeline, .. } = results;
    let mut parts = vec![programs(results)];
    parts.extend(results.table_2.as_ref().map(|table| table_2(results, table)));
    if let Some(figure) = &results.figure_5 {
        let rounds = figure.middle_cycles.len();
        parts.push(format!(
            "Figure 5: instructions and L1D misses of {} in {rounds} rounds\n\
             ({pmu}, {pipeline}): a picture, with --pictures\n",
            figure.program
        ));
    }
    parts.extend(results.figure_6.as_ref().map(|sweep| figure_6(results, sweep)));
    parts.extend(results.figure_7.as_ref().map(|study| figure_7(results, study)));
    parts.extend(results.table_3.as_ref().map(|study| table_3(results, study)));
    parts.extend(results.table_4.as_ref().map(|machines| table_4(machines)));
    parts.join("\n")
}

fn programs(results: &Results) -> String {
    let asked = Grouped(results.instructions);
    let mut text = format!("Programs, of about {asked} instructions in user mode\n");
    for program in &results.programs {
        let ran = program.instructions.zip(program.rounds);
        let ran = ran.map(|(instructions, rounds)| {
            format!("{:>15} instructions, {rounds:>5} rounds", Grouped(instructions).to_string())
        });
        let line = format!("  {:<30}{}", program.command, ran.unwrap_or_default());
        text += &format!("{}\n", line.trim_end());
    }
    text
}

fn verdict(within: Within, aim: f64) -> String {
    let Within { within: good, of } = within;
    let reached = if within.percent() >= aim { "reached" } else { "MISSED" };
    format!("{good} of {of} ({:.1} %); aim {aim} %: {reached}", within.percent())
}

/// Writes the cells of the paper's tables, and the number of acceptable ones.
fn paper_s(text: &mut String, grid: &Grid) {
    let Within { within, of } = grid.acceptable();
    *text += &format!("the paper's, with {within} of {of} cells within {ACCEPTABLE:.2} bits:\n");
    *text += &grid.text();
}

fn table_2(results: &Results, table: &Table2) -> String {
    let Results { pmu, pipeline, slice_cycles, ratio, seeds: [first, last], .. } = results;
    let mut text = format!(
        "Table 2: distance of sampled from full counts, in bits; {pmu}, pipeline\n\
         {pipeline}, intervals of a round of {ratio} slices of {} cycles, seeds {first} to {last}\n",
        Grouped(*slice_cycles)
    );
    let short = results.short_sampling();
    let short =
        format!("{} rounds of slices of {} cycles", short.rounds, Grouped(short.slice_cycles));
    let own = [
        ("one round, scaled, as in the paper".to_owned(), &table.scaled),
        ("one round, other slices predicted from those like them".to_owned(), &table.predicted),
        (format!("{short}, scaled"), &table.short_scaled),
        (format!("{short}, predicted"), &table.short_predicted),
    ];
    for (how, grid) in own {
        text += &format!(
            "{how}:\n{}within {ACCEPTABLE:.2} bits: {}\n\
             frequent events within {ACCEPTABLE_OF_FREQUENT:.2} bits: {}\n",
            grid.text(),
            verdict(grid.acceptable(), AIM[0]),
            verdict(grid.frequent(), 100.0),
        );
    }
    let [long, short] = table.handlers.map(|shares| shares.map(|share| percent(share, false)));
    text += &format!(
        "overflow handlers take {} to {} of the cycles,\nwith short slices {} to {}\n",
        long[0], long[1], short[0], short[1]
    );
    let rows = TABLE_2.iter().map(|event| (event.name, event.paper));
    paper_s(&mut text, &Grid::of_paper(&PROGRAMS, rows));
    text
}

fn table_3(results: &Results, study: &StallStudy) -> String {
    let mut text = format!(
        "Table 3: distance of stalls in another mode from those in bundles of five\n\
         instructions, in bits; {}, pipeline ooo, intervals of {}\n\
         instructions in user mode; each stall is charged when retirement resumes, as in\n\
         the paper\n",
        results.pmu,
        Grouped(study.interval_instructions)
    );
    let own = [("one at a time", &study.single), ("in order", &study.inorder)];
    for (mode, grid) in own {
        text += &format!("{mode}; within {ACCEPTABLE:.2} bits: ");
        text += &format!("{}\n{}", verdict(grid.acceptable(), AIM[1]), grid.text());
    }
    text += "from instructions that retire each for itself:\n";
    let from_real = [
        ("one at a time", &study.single_from_real),
        ("in order", &study.inorder_from_real),
        ("one at a time, charged by steps", &study.single_by_steps),
        ("in order, charged by steps", &study.inorder_by_steps),
    ];
    for (mode, grid) in from_real {
        text += &format!("  {mode}: {}\n", verdict(grid.acceptable(), AIM[1]));
    }
    let single = TABLE_3.iter().map(|cause| (cause.name, cause.single));
    let inorder = TABLE_3.iter().map(|cause| (cause.name, cause.inorder));
    text += "one at a time, ";
    paper_s(&mut text, &Grid::of_paper(&PROGRAMS, single));
    text += "in order, ";
    paper_s(&mut text, &Grid::of_paper(&PROGRAMS, inorder));
    text
}

fn figure_6(results: &Results, sweep: &Sweep) -> String {
    let Results { pmu, pipeline, .. } = results;
    let mut text = format!(
        "Figure 6: distances of {} over slices and ratios, in bits; {pmu},\npipeline {pipeline}\n",
        sweep.program
    );
    text += &" ".repeat(21);
    sweep.events.iter().for_each(|event| text += &format!("{event:>18}"));
    text += &format!("\n{:>14}{:>7}", "slice, cycles", "ratio");
    sweep.events.iter().for_each(|_| text += &format!("{:>8}{:>10}", "scaled", "predicted"));
    for Point { slice_cycles, ratio, scaled, predicted } in
        sweep.lengths.iter().chain(&sweep.ratios)
    {
        text += &format!("\n{:>14}{ratio:>7}", Grouped(*slice_cycles).to_string());
        if scaled.is_empty() {
            text += "  too few rounds";
        }
        for (scaled, predicted) in scaled.iter().zip(predicted) {
            text += &format!("{:>8}{:>10}", shown(*scaled), shown(*predicted));
        }
    }
    text + "\n"
}

fn shown(distance: Option<f64>) -> String {
    distance.map_or("N/A".into(), |distance| format!("{distance:.3}"))
}

fn figure_7(results: &Results, study: &OverTimeStudy) -> String {
    let known: Vec<_> = study.intervals.iter().filter(|it| !it.parts.is_empty()).collect();
    let names = known.first().map(|first| &first.parts).into_iter().flatten();
    let mut text = format!(
        "Figure 7: where the cycles of {} went, in percent, by quarters of its time;\n{}, pipeline \
         {}; the picture has bars\n",
        study.program, results.pmu, results.pipeline
    );
    text += &format!("{:<42}{:>7}{:>7}{:>7}{:>7}{:>8}", "", "1st", "2nd", "3rd", "4th", "all");
    let quarter = known.len().div_ceil(QUARTERS).max(1);
    for (index, part) in names.enumerate() {
        let share = |intervals: &[&xtask::report::Interval]| {
            let part: f64 = intervals.iter().map(|it| it.parts[index].cycles).sum();
            let all: u64 = intervals.iter().map(|it| it.cycles).sum();
            format!("{:.1}", 100.0 * part / all.max(1) as f64)
        };
        text += &format!("\n{:<42}", part.name);
        known.chunks(quarter).for_each(|quarter| text += &format!("{:>7}", share(quarter)));
        text += &format!("{:>8}", share(&known));
    }
    text + "\n"
}

fn table_4(machines: &[Machine]) -> String {
    let mut text = "Table 4: overhead of sampling, budget off, pipeline ooo\n".to_owned();
    text += &format!("{:>9}{:>11}{:>9}", "kHz", "slice", "paper");
    machines.iter().for_each(|machine| text += &format!("{:>10}{:>8}", machine.pmu, "of it"));
    let rows = machines.first().map(|machine| machine.rows.as_slice()).unwrap_or_default();
    for (index, row) in rows.iter().enumerate() {
        let slice = Grouped(row.slice_cycles).to_string();
        text += &format!("\n{:>9}{slice:>11}{:>9}", row.khz, percent(row.paper, false));
        for machine in machines {
            let overhead = machine.rows[index].overhead;
            text += &format!("{:>10}{:>8.2}", percent(overhead, false), overhead / row.paper);
        }
    }
    text += "\n";
    for machine in machines {
        let (met, of) = overhead::halved(&machine.rows);
        let reached = if met == of { "reached" } else { "MISSED" };
        text += &format!(
            "{}: at most half of the paper's at {met} of {of} from 5 to 200 kHz: {reached}\n",
            machine.pmu
        );
    }
    text
}
