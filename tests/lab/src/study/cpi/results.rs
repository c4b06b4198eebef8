//! The errors of each architecture, and their targets.

use serde::Serialize;
use tally_model::Architecture;
use xtask::{Result, machine::Pmu};

use super::{
    programs::{Kind, Program, Use},
    stack::{COMPONENTS, Counted, METHODS, Method, Stack},
};

/// Targets for FMT's largest errors: their mean, and each of them.
const MEAN: f64 = 0.03;
const MOST: f64 = 0.06;
/// Target for the distance of sFMT's mean from FMT's.
const APART: f64 = 0.005;
/// Target for the share of programs on which the other architectures are worse than FMT.
const WORSE: f64 = 0.8;

/// An architecture's stack of a program, and its largest error against both references.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MethodResult {
    pub(super) method: &'static str,
    pub(super) stack: Stack,
    pub(super) error: f64,
    /// The component with the largest error.
    pub(super) component: &'static str,
    pub(super) error_inverse: f64,
}

/// A program's stacks, in cycles per instruction.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ProgramResult {
    pub(super) program: String,
    pub(super) kind: Kind,
    #[serde(rename = "use")]
    pub(super) used_for: Use,
    pub(super) instructions: u64,
    pub(super) reference: Stack,
    pub(super) inverse: Stack,
    pub(super) methods: Vec<MethodResult>,
}

impl ProgramResult {
    /// Computes the results of a run.
    ///
    /// # Errors
    /// The truth lacks a count.
    pub(super) fn of(program: &Program, counted: &Counted) -> Result<ProgramResult> {
        let [reference, inverse] = counted.references()?;
        let method = |method: &Method| {
            let (stack, method) = (counted.by(*method)?, method.name);
            let (component, error) = stack.largest_error(&reference);
            let (_, error_inverse) = stack.largest_error(&inverse);
            Ok(MethodResult { method, stack, error, component, error_inverse })
        };
        Ok(ProgramResult {
            program: program.name.clone(),
            kind: program.kind,
            used_for: program.used_for,
            instructions: counted.instructions(),
            reference,
            inverse,
            methods: METHODS.iter().map(method).collect::<Result<_>>()?,
        })
    }

    /// Returns whether the program judges the architectures.
    pub(super) fn is_judged(&self) -> bool {
        self.used_for == Use::Judging
    }

    fn error(&self, method: &str) -> f64 {
        let found = self.methods.iter().find(|result| result.method == method);
        found.map_or(f64::NAN, |result| result.error)
    }
}

/// A target, and whether it is met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Target {
    pub(super) what: &'static str,
    pub(super) wanted: String,
    pub(super) got: String,
    pub(super) is_reached: bool,
}

/// The mean of a method's largest errors over the programs, and the largest.
pub(super) fn errors(programs: &[&ProgramResult], method: &str) -> (f64, f64) {
    let all: Vec<f64> = programs.iter().map(|program| program.error(method)).collect();
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    (mean, all.into_iter().fold(0.0, f64::max))
}

/// Checks the targets with the programs that judge.
pub(super) fn targets(programs: &[ProgramResult]) -> Vec<Target> {
    let judged: Vec<&ProgramResult> =
        programs.iter().filter(|program| program.is_judged()).collect();
    if judged.is_empty() {
        return Vec::new();
    }
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let (mean, most) = errors(&judged, "FMT");
    let (simplified, _) = errors(&judged, "sFMT");
    let at_most = |what, got: f64, limit: f64| Target {
        what,
        wanted: format!("at most {}", percent(limit)),
        got: percent(got),
        is_reached: got <= limit,
    };
    let mut targets = vec![
        at_most("FMT's largest errors, mean", mean, MEAN),
        at_most("FMT's largest errors, largest", most, MOST),
        at_most("sFMT's mean from FMT's", (simplified - mean).abs(), APART),
    ];
    for (what, method) in
        [("POWER5 worse than FMT, programs", "POWER5"), ("naive worse than FMT, programs", "naive")]
    {
        let worse = judged.iter().filter(|one| one.error(method) > one.error("FMT")).count();
        let share = worse as f64 / judged.len() as f64;
        targets.push(Target {
            what,
            wanted: format!("at least {}", percent(WORSE)),
            got: format!("{worse} of {}", judged.len()),
            is_reached: share >= WORSE,
        });
    }
    targets
}

/// Hardware cost of an architecture.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cost {
    pub(super) method: &'static str,
    /// Bits besides the global counters.
    pub(super) bits: u64,
}

/// The study's result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CpiStudy {
    pub(super) pmu: &'static str,
    pipeline: &'static str,
    components: [&'static str; COMPONENTS.len()],
    pub(super) bits: Vec<Cost>,
    pub(super) programs: Vec<ProgramResult>,
    pub(super) targets: Vec<Target>,
}

impl CpiStudy {
    /// Makes the study of these programs.
    pub(super) fn of(pmu: Pmu, programs: Vec<ProgramResult>) -> CpiStudy {
        let profile = pmu.profile();
        let geometry = &profile.geometry;
        // The last method is FMT with one more counter.
        let architectures = Architecture::ALL.into_iter().chain([Architecture::Fmt]);
        let cost = |(method, architecture): (&Method, Architecture)| {
            let more = if method.takes_units { Architecture::units_bits(geometry) } else { 0 };
            Cost { method: method.name, bits: architecture.bits(geometry) + more }
        };
        CpiStudy {
            pmu: profile.name,
            pipeline: "ooo",
            components: COMPONENTS,
            bits: METHODS.iter().zip(architectures).map(cost).collect(),
            targets: targets(&programs),
            programs,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{super::stack::tests::counted, *};

    pub(in super::super) fn result() -> ProgramResult {
        let program = Program {
            name: "p".into(),
            kind: Kind::Integer,
            used_for: Use::Judging,
            from: None,
            run: vec!["p".into()],
        };
        ProgramResult::of(&program, &counted()).unwrap()
    }

    #[test]
    fn targets_are_judged_by_the_largest_error() {
        let result = result();
        assert!((result.error("FMT") - 0.025).abs() < 1e-9);
        assert!((result.error("naive") - 0.1).abs() < 1e-9);
        let reached =
            targets(std::slice::from_ref(&result)).iter().map(|t| t.is_reached).collect::<Vec<_>>();
        assert_eq!(reached, [true; 5]);
        let mut off = result.clone();
        off.methods[3].error = 0.2;
        let reached = targets(&[off]).iter().map(|t| t.is_reached).collect::<Vec<_>>();
        assert_eq!(reached, [false; 5]);
        assert!(targets(&[ProgramResult { used_for: Use::Tuning, ..result }]).is_empty());
    }
}
