//! The commands that follow a run: samples of the cause that most cycles are lost to, and finer
//! causes.

use super::RunArgs;
use crate::{
    machine::Pmu,
    output,
    report::{Report, stack_of},
    samples::is_mispredictions,
};

/// Characters of a command; further arguments are omitted.
const LONGEST: usize = 400;
/// Samples of a run that tell its functions apart.
const SAMPLES: u64 = 1_000;
/// The period that `record` takes by itself.
const USUAL_PERIOD: u64 = 100_000;
/// Cycles of a run from which on the usual budget, 2 %, pays for [`SAMPLES`]: one costs less than
/// 5,000.
const ENOUGH_CYCLES: u64 = 250_000 * SAMPLES;
const SECOND_NS: u64 = 1_000_000_000;

/// Commands to type next; none where the run says nothing of its cycles, and beside JSON.
pub(super) fn lines(args: &RunArgs, report: &Report) -> Vec<String> {
    if args.json {
        return Vec::new();
    }
    let breakdown = report.first.as_ref().and_then(|first| first.breakdown.as_ref());
    match (stack_of(args.pmu.signature()), breakdown) {
        (None, _) if args.is_default() => vec![
            "no breakdown: this processor has no events for the causes of lost cycles".into(),
            format!("next, where cycles go: {}", args.command("record -e cycles")),
        ],
        (Some(stack), Some(breakdown)) => {
            let named = breakdown.named_losses();
            let event = match named[..] {
                [part] => stack.event_to_sample(&part.name),
                _ => stack.cycles,
            };
            let period = period(report, event, stack.cycles);
            let event = if event == stack.cycles { "cycles" } else { event };
            let precise = if args.pmu.profile().has_precise_samples() { ":P" } else { "" };
            let budget = match count_of(report, stack.cycles) {
                Some(cycles) if cycles < ENOUGH_CYCLES => " --budget 10",
                _ => "",
            };
            let record = args.command(&format!("record -e {event}{precise}{period}{budget}"));
            let mut lines = vec![format!("next, the lines where: {record}")];
            if is_mispredictions(event) && args.pmu.profile().has_branch_cycles() {
                let rate = rate(report, stack.cycles);
                let verb = format!("record -b -e cycles:P,{event}:P{rate} --budget 50");
                let record = args.command(&verb);
                lines.push(format!("      each one's cost: {record}"));
            }
            if args.breakdown.is_none() {
                lines.push(format!("      finer causes:    {}", args.command("run --breakdown")));
            }
            lines
        }
        _ => Vec::new(),
    }
}

/// The option of `record` that takes some [`SAMPLES`] of an event: a period where the run counted
/// the event, else a rate by the event `cycles`; empty where its usual period does.
fn period(report: &Report, event: &str, cycles: &str) -> String {
    if let Some(count) = count_of(report, event) {
        let period = (count / SAMPLES).max(1);
        return if period < USUAL_PERIOD { format!(" -c {}", rounded(period)) } else { "".into() };
    }
    rate(report, cycles)
}

/// The option of `record` that takes some [`SAMPLES`] of each event by a rate.
fn rate(report: &Report, cycles: &str) -> String {
    // A modelled cycle is about a nanosecond.
    let rate = (SAMPLES * SECOND_NS).checked_div(count_of(report, cycles).unwrap_or_default());
    rate.filter(|rate| *rate > 0).map_or_else(String::new, |rate| format!(" -F {}", rounded(rate)))
}

/// A number with its first digit alone.
fn rounded(number: u64) -> u64 {
    let unit = 10_u64.pow(number.ilog10());
    number / unit * unit
}

/// The count of an event in the run, if it was counted.
fn count_of(report: &Report, name: &str) -> Option<u64> {
    let mut events = report.first.iter().flat_map(|first| &first.events);
    events.find(|of| of.name == name).and_then(|of| of.estimate)
}

impl RunArgs {
    /// The line to type for another command on the same program and processor. Of a long one the
    /// last arguments are omitted.
    fn command(&self, verb: &str) -> String {
        let words = self.work.first();
        let words = if words.is_empty() { self.work.job.program.clone() } else { words };
        let pmu = match self.pmu {
            Pmu::Intel => String::new(),
            other => format!(" --pmu {}", other.name()),
        };
        let line = format!("{} {verb}{pmu}", output::typed());
        let mut all = self.work.needs();
        all.extend(words);
        let typed = shlex::try_join(all.iter().map(String::as_str)).unwrap_or_default();
        let whole = format!("{line} {typed}");
        match whole.char_indices().nth(LONGEST) {
            None => whole,
            Some((end, _)) => format!("{} …", &whole[..end]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{explain, machine, report::short_stack_of};

    #[test]
    fn every_event_to_sample_is_one_that_the_machine_counts() {
        for of in [Pmu::Intel, Pmu::SapphireRapids, Pmu::Amd] {
            let pmu = machine::virtual_pmu_of(of, &[]).unwrap();
            let found = explain::detect(&pmu).unwrap();
            let stacks = [stack_of, short_stack_of].map(|stack| stack(of.signature()).unwrap());
            for (stack, part) in
                stacks.iter().flat_map(|stack| stack.part_names().map(move |part| (stack, part)))
            {
                let event = stack.event_to_sample(part);
                assert!(explain::models(&pmu, &found, event), "{part}: {event}");
            }
        }
    }
}
