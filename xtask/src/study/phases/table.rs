//! The study as text.

use tally_abi::{phase::Predictor, text::percent};

use super::judge::{Judgement, PmuStudy, Study, share};

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
    for (what, found, holds) in study.all.wanted() {
        let found =
            if what.contains("1,000") { format!("{found:.1}") } else { percent(found, false) };
        text += &format!("{}: {what}: {found}\n", if holds { "pass" } else { "FAIL" });
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

/// How often each predictor was right, in all and where the phase was another one.
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
