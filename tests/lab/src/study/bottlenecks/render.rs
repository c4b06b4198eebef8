//! The study as text, with the paper's statements.

use tally_abi::phase::{PREDICTORS, Predictor};
use xtask::build::programs::benchmarks::Kind;

use super::{
    fit::Way,
    judge::Judged,
    phases::{Classified, OWN_UNIT, UNITS},
    results::{AIMED, LENGTHS, Study},
    structures_text,
    terms::{CAUSES, Source},
};

/// Aim for the error of the model's sum at 10 million instructions (section V.B).
const AIM_ERROR: f64 = 0.05;
/// Aim for the share of intervals whose largest cost belongs to the cause that saves most.
const AIM_NAMED: f64 = 0.9;
/// Aim for the gain of centroids at equal error within classes.
const AIM_GAIN: f64 = 0.05;
/// The fewest programs for which the aims are checked.
const FEWEST: usize = 10;

/// The study as text, of at most 80 columns.
pub(super) fn render(study: &Study) -> String {
    [
        terms(study),
        errors(study, "Figure 4: |T - T_model| / T in percent", |judged| judged.error),
        errors(study, "Largest cost is of what saves most, percent of intervals", |judged| {
            judged.named
        }),
        causes(study),
        aims(study),
        figure_7(study),
        figure_8(study),
        structures_text::render(study),
    ]
    .join("\n")
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn terms(study: &Study) -> String {
    let mut text = format!(
        "Costs on {}: events, and cycles of one. Fitted: the least and\n\
         the most of {} fits, each to all programs but one\n{:<28}{:>10}{:>18}{:>18}\n",
        study.pmu,
        study.programs.len(),
        "",
        "published",
        Way::Cycles.word(),
        Way::Savings.word()
    );
    for (index, term) in study.terms.iter().enumerate() {
        let range = |way: Way| {
            let models = study.programs.iter().flat_map(|program| &program.models);
            let of = models.filter(|model| model.way == way).map(|model| model.penalties[index]);
            let (low, high) = of.fold((f64::MAX, 0.0), |(low, high): (f64, f64), penalty| {
                (low.min(penalty), high.max(penalty))
            });
            format!("{low:.1} to {high:.1}")
        };
        let from = match term.source {
            Source::Catalogue => "",
            Source::Vendor => " (new)",
            Source::TruthOnly => " (truth alone)",
        };
        text += &format!(
            "{}{from}\n  {:<26}{:>10}{:>18}{:>18}\n",
            term.name,
            term.kind.word(),
            term.published_cycles,
            range(Way::Cycles),
            range(Way::Savings)
        );
    }
    text
}

fn errors(study: &Study, title: &str, of: fn(&Judged) -> f64) -> String {
    let mut text = format!("{title}\n{:<10}{:>9}", "", "million");
    Way::ALL.iter().for_each(|way| text += &format!("{:>10}", way.word()));
    text += "\n";
    for (length, intervals) in LENGTHS.iter().enumerate() {
        for program in &study.programs {
            let cells: Option<Vec<f64>> =
                program.models.iter().map(|model| model.judged[length].as_ref().map(of)).collect();
            let Some(cells) = cells else { continue };
            text += &format!("{:<10}{intervals:>9}", program.program);
            cells.iter().for_each(|cell| text += &format!("{:>10}", percent(*cell)));
            text += "\n";
        }
        if study.mean(Way::Catalogue, length, of).1 == 0 {
            continue;
        }
        text += &format!("{:<10}{intervals:>9}", "mean");
        Way::ALL.iter().for_each(|way| {
            let (mean, _) = study.mean(*way, length, of);
            text += &format!("{:>10}", percent(mean));
        });
        text += "\n";
    }
    text
}

fn causes(study: &Study) -> String {
    let mut text = format!(
        "Each cost against what is saved without its cause, percent of the cycles,\n\
         intervals of 10 million: the mean share saved, and of the differences by model\n{:<12}{:>8}",
        "", "saved"
    );
    Way::ALL.iter().for_each(|way| text += &format!("{:>10}", way.word()));
    for (index, cause) in CAUSES.iter().enumerate() {
        let of = |way: Way, side: fn(&(f64, f64)) -> f64| {
            let models = study.programs.iter().flat_map(|program| &program.models);
            let own = models.filter(|model| model.way == way);
            let all: Vec<f64> = own
                .filter_map(|model| Some(side(&model.judged[AIMED].as_ref()?.causes[index])))
                .collect();
            percent(all.iter().sum::<f64>() / all.len().max(1) as f64)
        };
        text += &format!("\n{:<12}{:>8}", cause.name, of(Way::Catalogue, |(share, _)| *share));
        Way::ALL.iter().for_each(|way| text += &format!("{:>10}", of(*way, |(_, off)| *off)));
    }
    text + "\n"
}

fn reached(is_met: bool) -> &'static str {
    if is_met { "reached" } else { "MISSED" }
}

fn aims(study: &Study) -> String {
    let mut text = "Aims at 10 million instructions: by how much the sum errs, and how often the\n\
         largest cost is of what saves most\n"
        .to_owned();
    for way in [Way::Calibrated, Way::Vendor, Way::Cycles, Way::Savings] {
        for (kind, word, fewest) in [
            (None, "all", FEWEST),
            (Some(Kind::Integer), "integer", FEWEST / 2),
            (Some(Kind::Floating), "floating", FEWEST / 2),
        ] {
            let (error, number) = study.mean_of(kind, way, AIMED, |judged| judged.error);
            let (named, _) = study.mean_of(kind, way, AIMED, |judged| judged.named);
            if number == 0 {
                continue;
            }
            let enough = number >= fewest;
            text += &format!(
                "{:<9}{word:<9}{number:>3}{:>8} %, 5: {:<8}{:>9} %, 90: {}\n",
                way.word(),
                percent(error),
                reached(enough && error <= AIM_ERROR),
                percent(named),
                reached(enough && named >= AIM_NAMED)
            );
        }
    }
    text + "the paper: 5 % in the mean from 10 million instructions on\n"
}

fn mean(study: &Study, of: impl Fn(&super::results::ProgramResult) -> f64) -> f64 {
    study.programs.iter().map(of).sum::<f64>() / study.programs.len().max(1) as f64
}

fn figure_7(study: &Study) -> String {
    let mut text =
        "Figure 7: phases, last value right and error within phases, percent, means over\n\
                    programs, by unit in thousandths of the CPI; in the paper a larger unit has\n\
                    fewer phases and more right\n"
            .to_owned();
    text += &format!("{:>6}{:>12}{:>9}{:>9}", "unit", "hash", "right", "within");
    text += &format!("{:>14}{:>9}{:>9}\n", "centroid", "right", "within");
    for (index, unit) in UNITS.iter().enumerate() {
        text += &format!("{unit:>6}");
        for (is_hash, width) in [(true, 12), (false, 14)] {
            let of = |value: fn(&Classified) -> f64| {
                mean(study, |program| {
                    value(if is_hash { &program.hash[index] } else { &program.centroid[index] })
                })
            };
            text += &format!(
                "{:>width$.1}{:>9}{:>9}",
                of(|it| it.phases as f64),
                percent(of(|it| it.right[0])),
                percent(of(|it| it.within))
            );
        }
        text += "\n";
    }
    let mut gains: Vec<f64> = study.programs.iter().filter_map(|program| program.gain).collect();
    gains.sort_by(f64::total_cmp);
    let known = gains.len();
    match gains.get(known / 2) {
        None => text + "no program has centroids of the hash's error within phases\n",
        Some(median) => {
            text + &format!(
                "centroids at the hash's error within phases (unit {OWN_UNIT}), median of \
                 {known} programs:\n{:+.1} points; aim +5: {}\n",
                100.0 * median,
                reached(*median >= AIM_GAIN)
            )
        }
    }
}

fn figure_8(study: &Study) -> String {
    let mut text = format!(
        "Figure 8: predictions right in percent, unit {OWN_UNIT}, at transitions alone in\n\
         the second line; the paper: alike but for one program, where Markov is better\n\
         {:<8}{:<9}{:>4}{:>4}",
        "", "", "ph.", "tr."
    );
    Predictor::ALL.iter().for_each(|name| text += &format!("{:>11}", name.word()));
    for program in &study.programs {
        for (kind, all) in [("hash", &program.hash), ("centroid", &program.centroid)] {
            let Some(of) = all.iter().find(|of| of.unit == OWN_UNIT) else { continue };
            let (phases, transitions) = (of.phases, of.transitions);
            text += &format!("\n{:<8}{kind:<9}{phases:>4}{transitions:>4}", program.program);
            cells(&mut text, &of.right);
            if let Some(right) = &of.right_at_transitions {
                text += &format!("\n{:<25}", "");
                cells(&mut text, right);
            }
        }
    }
    text + "\n"
}

fn cells(text: &mut String, right: &[f64; PREDICTORS]) {
    right.iter().for_each(|right| *text += &format!("{:>11}", percent(*right)));
}
