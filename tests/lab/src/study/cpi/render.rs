//! The study as text.

use std::fmt::Write as _;

use super::{
    paper::statement_of,
    results::{CpiStudy, ProgramResult, Target, errors},
    stack::{COMPONENTS, METHODS, Method, Stack},
};

/// The tables of stacks and errors, the paper's statements and the targets.
pub(super) fn render(study: &CpiStudy) -> String {
    let mut text = format!(
        "CPI stacks on {}, pipeline ooo, cycles per 1,000 instructions in ring 3\n",
        study.pmu
    );
    for program in &study.programs {
        text += &stacks(program);
    }
    text += &summary(study);
    for Target { what, wanted, got, is_reached } in &study.targets {
        let word = if *is_reached { "reached" } else { "MISSED" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{what:<34} {got:>9}  wanted {wanted:<16} {word}");
    }
    text
}

fn stacks(program: &ProgramResult) -> String {
    let ProgramResult { program: name, kind, used_for, instructions, .. } = program;
    let mut text = format!(
        "\n{name}: {kind:?}, {used_for:?}, {:.1} million instructions\n{:<15}",
        *instructions as f64 / 1e6,
        ""
    );
    COMPONENTS.iter().for_each(|component| {
        let _ = write!(text, "{component:>8}");
    });
    text += "   error  inverse\n";
    let mut line = |name: &str, stack: &Stack, errors: &str| {
        let _ = write!(text, "{name:<15}");
        stack.0.iter().for_each(|cycles| {
            let _ = write!(text, "{:>8.1}", 1000.0 * cycles);
        });
        let _ = writeln!(text, "{errors}");
    };
    line("reference", &program.reference, "");
    line("inverse", &program.inverse, "");
    for method in &program.methods {
        let [error, inverse] = [method.error, method.error_inverse].map(|error| 100.0 * error);
        let errors = format!("{error:>6.1} % {inverse:>6.1} %  {}", method.component);
        line(method.method, &method.stack, &errors);
    }
    text
}

/// A line for each architecture: its errors on the programs that judge and on those that tune, its
/// cost, and the paper's statement.
fn summary(study: &CpiStudy) -> String {
    let (judged, tuned): (Vec<&ProgramResult>, Vec<&ProgramResult>) =
        study.programs.iter().partition(|program| program.is_judged());
    let mut text = format!(
        "\n{:<15}{:>7}{:>9}{:>10}{:>8}  the paper\n",
        "largest error", "mean", "largest", "(tuning)", "bits"
    );
    for Method { name: method, .. } in METHODS {
        let statement = statement_of(method);
        let percent = |programs: &[&ProgramResult], largest: bool| {
            let (mean, most) = errors(programs, method);
            match programs {
                [] => "-".to_owned(),
                _ => format!("{:.1} %", 100.0 * if largest { most } else { mean }),
            }
        };
        let bits = study.bits.iter().find(|cost| cost.method == method).map_or(0, |c| c.bits);
        let _ = writeln!(
            text,
            "{method:<15}{:>7}{:>9}{:>10}{bits:>8}  {statement}",
            percent(&judged, false),
            percent(&judged, true),
            percent(&tuned, false),
        );
    }
    text + "\n"
}
