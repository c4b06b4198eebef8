//! Perfect structures, and the table that serves the largest cost, as text.

use super::{
    adaptive::Adaptive,
    fit::Way,
    results::{ProgramResult, Study, Worth},
    structures::{STRUCTURES, Saved},
};

/// Both tables, if the programs ran for them; otherwise empty.
pub(super) fn render(study: &Study) -> String {
    let all: Vec<(&ProgramResult, &Worth)> = study
        .programs
        .iter()
        .filter_map(|program| Some((program, program.structures.as_ref()?)))
        .collect();
    if all.is_empty() { String::new() } else { format!("{}\n{}", saved(&all), table(&all)) }
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn saved(all: &[(&ProgramResult, &Worth)]) -> String {
    let mut text = format!(
        "Each cost against a run with its structure perfect, percent of the cycles: the\n\
         mean share saved, and the mean difference of costs from it\n\
         {:<24}{:>6}",
        "", "saved"
    );
    Way::ALL.iter().for_each(|way| text += &format!("{:>8}", short(*way)));
    for (index, structure) in STRUCTURES.iter().enumerate() {
        let of = |value: &dyn Fn(&Saved) -> Option<f64>| {
            let values = all.iter().filter_map(|(_, worth)| value(&worth.saved[index]));
            mean(values).map_or_else(|| "-".to_owned(), percent)
        };
        let from = |said: f64, saved: &Saved| (said - saved.saved).abs();
        text += &format!("\n{:<24}{:>6}", structure.perfect, of(&|saved| Some(saved.saved)));
        for way in Way::ALL {
            text += &format!("{:>8}", of(&|saved| Some(from(saved.costs[way as usize], saved))));
        }
    }
    text + "\n"
}

/// The method's name in seven columns.
fn short(way: Way) -> &'static str {
    match way {
        Way::Catalogue => "catal.",
        Way::Published => "publ.",
        Way::Vendor => "vendor",
        way => way.word(),
    }
}

fn table(all: &[(&ProgramResult, &Worth)]) -> String {
    let mut text = format!(
        "Figures 9 and 10: percent by which one table makes programs faster, as what it\n\
         assists: one structure all the time; that of the largest cost of the interval\n\
         before; the best of each interval; perfect structures; and how often each was\n\
         chosen\n{:<9}{:>6}{:>6}{:>7}{:>9}{:>6}{:>18}{:>18}\n{:<43}",
        "", "data", "code", "branch", "adaptive", "best", "perfect", "chosen", ""
    );
    ["data", "code", "br."].repeat(2).iter().for_each(|name| text += &format!("{name:>6}"));
    let mut add = |name: &str, of: &dyn Fn(fn(&Adaptive) -> f64) -> f64| {
        text += &format!("\n{name:<9}");
        for (width, value) in COLUMNS {
            text += &format!("{:>width$}", percent(of(value)));
        }
    };
    for (program, worth) in all {
        add(&program.program, &|value| value(&worth.table));
    }
    add("mean", &|value| mean(all.iter().map(|(_, worth)| value(&worth.table))).unwrap_or(0.0));
    text + "\n"
}

/// A column of the table: its width, and its value.
type Column = (usize, fn(&Adaptive) -> f64);

const COLUMNS: [Column; 11] = [
    (6, |it| it.alone[0]),
    (6, |it| it.alone[1]),
    (7, |it| it.alone[2]),
    (9, |it| it.adaptive),
    (6, |it| it.best),
    (6, |it| it.perfect[0]),
    (6, |it| it.perfect[1]),
    (6, |it| it.perfect[2]),
    (6, |it| it.chosen[0]),
    (6, |it| it.chosen[1]),
    (6, |it| it.chosen[2]),
];
