//! The study as text.

use tally_abi::{phase::Predictor, text::percent};

use super::{
    compared::Classified,
    judge::{Judgement, LEAST_GAIN, PmuStudy, Study, share},
};

pub(super) fn render(study: &Study) -> String {
    let texts: Vec<String> = study.pmus.iter().map(of_pmu).collect();
    texts.join("\n")
}

fn of_pmu(study: &PmuStudy) -> String {
    let mut text = format!(
        "{}\n{:>9}{:>8}{:>8}{:>8}{:>9}{:>8}{:>10}{:>8}\n",
        study.pmu, "intervals", "sure", "same", "bars", "largest", "changes", "found", "false"
    );
    for (program, judged) in &study.programs {
        text += &format!("{program}\n{}", row(judged));
    }
    text += &format!("all\n{}\n", row(&study.all));
    text += &predictors(&study.all);
    text += &classifiers(study);
    for (what, found, holds) in study.all.wanted() {
        let found =
            if what.contains("1,000") { format!("{found:.1}") } else { percent(found, false) };
        text += &format!("{}: {what}: {found}\n", if holds { "pass" } else { "FAIL" });
    }
    let word = if study.gain >= LEAST_GAIN { "pass" } else { "FAIL" };
    text + &format!(
        "{word}: points that centroids predict better than the hash, median: at least 5: {:+.1}\n",
        100.0 * study.gain
    )
}

/// The hash and the nearest centroid at the same error within a class, on the true vectors.
fn classifiers(study: &PmuStudy) -> String {
    let half = |of: &Classified| {
        format!(
            "{:>8}{:>8}{:>8}{:>8}",
            of.phases,
            percent(of.within / of.intervals.max(1) as f64, false),
            percent(share(of.last, of.pairs), false),
            percent(share(of.best, of.pairs), false),
        )
    };
    let heading = format!("{:>8}{:>8}{:>8}{:>8}", "phases", "within", "last", "best");
    let mut text =
        format!("classes by hash{:>33}\n{heading}{heading}{:>8}\n", "by centroid", "gain");
    let all = ("all".to_owned(), study.all);
    for (program, Judgement { compared, .. }) in study.programs.iter().chain([&all]) {
        let (hash, centroid) = (half(&compared.hash), half(&compared.centroid));
        text += &format!("{program}\n{hash}{centroid}{:>+8.1}\n", 100.0 * compared.gain());
    }
    text
}

fn row(judged: &Judgement) -> String {
    format!(
        "{:>9}{:>8}{:>8}{:>8}{:>9}{:>8}{:>10}{:>8}\n",
        judged.intervals,
        percent(share(judged.sure, judged.intervals), false),
        percent(share(judged.same, judged.sure), false),
        percent(share(judged.held, judged.bars), false),
        percent(share(judged.largest, judged.intervals), false),
        judged.changes,
        judged.found,
        judged.false_alarms,
    )
}

/// The share of right predictions by predictor, in all and at transitions.
fn predictors(judged: &Judgement) -> String {
    let mut text = format!("{:<12}{:>8}{:>16}\n", "predictor", "right", "at transitions");
    for name in Predictor::ALL {
        let of = |right: usize, of: usize| percent(share(right, of), false);
        text += &format!(
            "{:<12}{:>8}{:>16}\n",
            name.word(),
            of(judged.right[name as usize], judged.pairs),
            of(judged.right_at_transitions[name as usize], judged.transitions),
        );
    }
    text + &format!(
        "{:<12}{:>8}\n",
        "any of them",
        percent(share(judged.any_right, judged.pairs), false)
    )
}
