//! The study's pictures: Figures 4, 5 and 7.

use plotters::prelude::*;
use tally_abi::phase::{Bottleneck, COSTS};
use xtask::{
    Result,
    picture::{Area, Drawn, color, drawn},
};

use super::{
    fit::Way,
    phases::{Classified, OWN_UNIT, UNITS},
    results::{LENGTHS, ProgramResult, Study},
};
use crate::study::panels::{Panel, panels};

/// Pixels of a phase map, its margins, and the heights of a row and of the rows of phases.
const MAP: (u32, u32) = (900, 250);
const MARGINS: (i32, i32) = (170, 30);
const ROW: i32 = 16;
/// Columns of a map, each for several intervals.
const COLUMNS: usize = 180;
/// Steps from white to black.
const STEPS: u64 = 10;

/// The pictures: names of files, and SVG documents.
///
/// # Errors
/// The plotting library fails.
pub(super) fn draw(study: &Study) -> Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("bottlenecks-figure4.svg", panels(&[figure_4(study)])?),
        ("bottlenecks-figure5.svg", figure_5(study)?),
        ("bottlenecks-figure7.svg", panels(&[figure_7(study)])?),
    ])
}

fn figure_4(study: &Study) -> Panel {
    let curve = |way: &Way| {
        let point = |(length, intervals): (usize, &usize)| {
            let (error, number) = study.mean(*way, length, |judged| judged.error);
            (number > 0).then_some((*intervals as f64, 100.0 * error))
        };
        (way.word().to_owned(), LENGTHS.iter().enumerate().filter_map(point).collect())
    };
    Panel {
        caption: "Figure 4: the model's error".into(),
        axes: ["million instructions of an interval".into(), "percent, mean of programs".into()],
        curves: Way::ALL.iter().map(curve).collect(),
        has_points: true,
    }
}

fn figure_7(study: &Study) -> Panel {
    let curve = |name: &str, of: fn(&ProgramResult) -> &[Classified]| {
        let number = study.programs.len().max(1) as f64;
        let mean = |index: usize, value: fn(&Classified) -> f64| {
            study.programs.iter().map(|program| value(&of(program)[index])).sum::<f64>() / number
        };
        let point =
            |index| (mean(index, |it| it.phases as f64), 100.0 * mean(index, |it| it.right[0]));
        (name.to_owned(), (0..UNITS.len()).map(point).collect())
    };
    Panel {
        caption: "Figure 7: last value right by phases".into(),
        axes: ["phases, mean of programs".into(), "percent right".into()],
        curves: vec![
            curve("hash", |program| &program.hash),
            curve("centroid", |program| &program.centroid),
        ],
        has_points: true,
    }
}

/// The phase maps of the two programs with the most transitions between phases.
fn figure_5(study: &Study) -> Result<String> {
    let mut programs: Vec<&ProgramResult> = study.programs.iter().collect();
    programs.sort_by_key(|program| {
        let own = program.centroid.iter().find(|of| of.unit == OWN_UNIT);
        std::cmp::Reverse(own.map_or(0, |of| of.transitions))
    });
    programs.truncate(2);
    drawn((MAP.0, MAP.1 * programs.len().max(1) as u32), |area| {
        area.fill(&WHITE)?;
        let parts = area.split_evenly((programs.len().max(1), 1));
        programs.iter().zip(&parts).try_for_each(|(program, part)| map(part, program))?;
        area.present()?;
        Ok(())
    })
}

/// A map: a row for each cost, the darker the larger, and a row with the phases' colours.
fn map(area: &Area<'_>, program: &ProgramResult) -> Drawn {
    let together = program.costs.len().div_ceil(COLUMNS).max(1);
    let columns: Vec<&[Vec<u64>]> = program.costs.chunks(together).collect();
    let caption = format!(
        "Figure 5: costs of {}, {} million instructions from left to right; black: the largest",
        program.program, program.intervals
    );
    area.draw(&Text::new(caption, (8, 6), ("sans-serif", 15)))?;
    let mean = |column: &[Vec<u64>], cost: usize| {
        column.iter().map(|costs| costs[cost]).sum::<u64>() / column.len().max(1) as u64
    };
    let all = || columns.iter().flat_map(|column| (0..COSTS).map(|cost| mean(column, cost)));
    let most = all().max().unwrap_or_default().max(1);
    for kind in Bottleneck::ALL {
        let y = MARGINS.1 + ROW * kind as i32;
        area.draw(&Text::new(kind.word(), (8, y + 2), ("sans-serif", 12)))?;
        let levels: Vec<u64> =
            columns.iter().map(|column| mean(column, kind as usize) * STEPS / most).collect();
        strip(area, y, &levels, |level| {
            (level > 0).then(|| BLACK.mix(level as f64 / STEPS as f64).filled())
        })?;
    }
    let y = MARGINS.1 + ROW * COSTS as i32 + 4;
    area.draw(&Text::new("phase (centroid)", (8, y + 2), ("sans-serif", 12)))?;
    let own = program.centroid.iter().find(|of| of.unit == OWN_UNIT);
    let sequence = own.map(|of| of.sequence.as_slice()).unwrap_or_default();
    let phases: Vec<u64> = sequence
        .chunks(together)
        .filter_map(|part| part.first())
        .map(|phase| (*phase).into())
        .collect();
    strip(area, y, &phases, |phase| Some(color(phase as usize).filled()))
}

/// Draws a row of rectangles; equal neighbours are joined.
fn strip(
    area: &Area<'_>,
    y: i32,
    values: &[u64],
    style: impl Fn(u64) -> Option<ShapeStyle>,
) -> Drawn {
    let width = MAP.0 as i32 - MARGINS.0 - 10;
    let x = |column: usize| MARGINS.0 + width * column as i32 / values.len().max(1) as i32;
    let mut start = 0;
    for run in values.chunk_by(|one, next| one == next) {
        let end = start + run.len();
        if let Some(style) = style(run[0]) {
            area.draw(&Rectangle::new([(x(start), y), (x(end), y + ROW - 2)], style))?;
        }
        start = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            interval::Interval,
            results::Run,
            terms::{Source, Term},
        },
        *,
    };

    #[test]
    fn each_program_has_a_map_with_a_row_for_each_cost() {
        let term = Term {
            kind: Bottleneck::Dl2Miss,
            name: "MISSES".into(),
            source: Source::Catalogue,
            published_cycles: 100,
            columns: Vec::new(),
        };
        let interval = |number: u64| Interval {
            cycles: 1_000_000 + 500_000 * (number / 7 % 2),
            instructions: 1_000_000,
            events: vec![1_000 + 9_000 * (number / 7 % 2)],
            ..Interval::default()
        };
        let run = |name: &str| Run {
            structures: None,
            name: name.into(),
            command: name.into(),
            kind: xtask::build::programs::benchmarks::Kind::Integer,
            intervals: (0..400).map(interval).collect(),
        };
        let study = Study::of("x", 4, vec![term], &[run("one"), run("other")]);
        let pictures = draw(&study).unwrap();
        let [(_, error), (name, map), (_, phases)] = &pictures[..] else { panic!("{pictures:?}") };
        assert_eq!(*name, "bottlenecks-figure5.svg");
        for kind in Bottleneck::ALL {
            assert_eq!(map.lines().filter(|line| *line == kind.word()).count(), 2, "{map}");
        }
        // The costs of each row change with the phase.
        assert!(map.matches("<rect").count() > 100, "{map}");
        assert!(error.contains("catalogue") && phases.contains("centroid"));
    }
}
