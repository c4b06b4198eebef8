//! The commands that follow a run: samples of the cause that most cycles are lost to, and finer
//! causes.

use super::RunArgs;
use crate::{
    machine::Pmu,
    output,
    report::{Report, stack_of},
};

/// Columns of a line.
const COLUMNS: usize = 80;

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
            let event = if event == stack.cycles { "cycles" } else { event };
            let record = args.command(&format!("record -e {event}"));
            let mut lines = vec![format!("next, the lines where: {record}")];
            if args.breakdown.is_none() {
                lines.push(format!("      finer causes:    {}", args.command("run --breakdown")));
            }
            lines
        }
        _ => Vec::new(),
    }
}

impl RunArgs {
    /// The line to type for another command on the same program and processor. Arguments that do
    /// not fit are omitted.
    fn command(&self, verb: &str) -> String {
        let words = self.work.first();
        let words = if words.is_empty() { self.work.job.program.clone() } else { words };
        let pmu = match self.pmu {
            Pmu::Intel => String::new(),
            other => format!(" --pmu {}", other.name()),
        };
        let line = format!("{} {verb}{pmu}", output::typed());
        let program = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
        let whole = format!("{line} {program}");
        if whole.chars().count() + 23 <= COLUMNS || words.len() < 2 {
            return whole;
        }
        format!("{line} {} …", words[0])
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
