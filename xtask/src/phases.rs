//! The options of a run for tracking a program's phases, and the events that tracking needs.

use clap::Args;
use tally_abi::{
    ExitStatus, Mode, PhaseConfig, Slice,
    phase::{Classifier, Predictor},
};
use tally_engine::{Demand, Plan};
use tally_pmu::{CostTable, Resolved};
use tally_vpmu::VirtualPmu;

use crate::{Failure, Result, explain};

/// How phases are tracked.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
pub struct PhaseArgs {
    /// Track the program's phases by their bottlenecks, in intervals of at least this many
    /// instructions, and print them [default: 5000000]; counts the events of the cost model unless
    /// --events names others
    #[arg(long, value_name = "INSTRUCTIONS", num_args = 0..=1, require_equals = true,
          default_missing_value = "5000000")]
    pub phases: Option<u64>,
    /// The width of classes of costs, in cycles per 1,000 instructions [default: 128]
    #[arg(long, value_name = "CYCLES", requires = "phases")]
    pub phase_unit: Option<u32>,
    /// Kind of the classes: hash or centroid [default: centroid]
    #[arg(long, value_name = "KIND", requires = "phases", value_parser = classes)]
    pub phase_classes: Option<Classifier>,
    /// The predictor whose prediction the program gets: last, history, markov, run-length or best
    /// [default: best]
    #[arg(long, value_name = "NAME", requires = "phases", value_parser = predictor)]
    pub phase_predictor: Option<Predictor>,
}

/// Parses the kind of classes of an option.
pub fn classes(word: &str) -> std::result::Result<Classifier, String> {
    Classifier::parse(word).ok_or_else(|| "use hash or centroid".into())
}

fn predictor(word: &str) -> std::result::Result<Predictor, String> {
    Predictor::parse(word).ok_or_else(|| "use last, history, markov, run-length or best".into())
}

impl PhaseArgs {
    /// The configuration of tracking, if phases are tracked.
    ///
    /// # Errors
    /// A number is out of range.
    pub fn config(&self) -> Result<Option<PhaseConfig>> {
        let Some(interval_instructions) = self.phases else { return Ok(None) };
        let default = PhaseConfig::default();
        let config = PhaseConfig {
            interval_instructions,
            unit: self.phase_unit.unwrap_or(default.unit),
            classifier: self.phase_classes.unwrap_or(default.classifier),
            predictor: self.phase_predictor.unwrap_or(default.predictor),
        };
        match PhaseConfig::from_words(config.to_words()) {
            Ok(config) => Ok(Some(config)),
            Err(_) => {
                let why = "--phases takes 1 to 2^40 instructions, --phase-unit 1 to 2^20 cycles";
                Err(Failure::new(ExitStatus::Usage, why))
            }
        }
    }
}

/// Checks, as the kernel does, that an interval has at least a round of slices of a plan, at an IPC
/// of one.
///
/// # Errors
/// The interval is too short.
pub fn check_interval(config: PhaseConfig, slice: Slice, plan: &Plan) -> Result<()> {
    let (interval, round, slice) = (config.interval_instructions, plan.round(), slice.length());
    let least = round.saturating_mul(slice);
    if interval >= least {
        return Ok(());
    }
    let why = format!(
        "--phases: an interval of {interval} instructions is shorter than a round of {round} slices \
         of {slice}: use {least} or more, or shorter slices"
    );
    Err(Failure::new(ExitStatus::SliceOutOfRange, why))
}

/// The cost model of a virtual PMU's processor.
///
/// # Errors
/// There is no cost model.
pub fn costs(pmu: &VirtualPmu) -> Result<&'static CostTable> {
    let found = explain::detect(pmu)?;
    found.catalogue().costs().ok_or_else(|| {
        let name = found.catalogue().name();
        let why = format!(
            "there is no cost model of {name} processors, by which phases and bottlenecks are \
             found: use --pmu intel, sapphire-rapids or amd"
        );
        Failure::new(ExitStatus::EventNotSupported, why)
    })
}

/// The events of the cost model that a virtual PMU with its options models.
///
/// # Errors
/// There is no cost model.
pub fn events(pmu: &VirtualPmu) -> Result<Vec<&'static str>> {
    let (found, costs) = (explain::detect(pmu)?, costs(pmu)?);
    let is_modelled = |event: &&str| {
        let is_modelled = |event: &Resolved| {
            let Demand { selector, extra, .. } = &event.demand;
            pmu.models(selector.0, extra.map_or(0, |extra| extra.value))
        };
        let resolved = found.catalogue().resolve(event, Mode::User);
        resolved.is_ok_and(|events| events.iter().all(is_modelled))
    };
    Ok(costs.events().into_iter().filter(is_modelled).collect())
}
