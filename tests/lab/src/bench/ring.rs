//! `cargo xtask bench ring`: the cost of writing a trace record of 16 bytes with its time stamp.
//!
//! One thread writes some thousand records and then reads them; only the writes are timed. Each
//! ring executes RDTSC per record; the same loop without a ring measures the cost of that.
//! Instructions are counted by single-stepping one record, less those of an empty loop: the
//! minimum, for a record that starts no new page, and the mean, in which the clearing of a page is
//! divided among its words. LTTng-UST's event has the same 8 bytes besides its time stamp; it
//! writes to an overwriting session with one buffer per process and no reader.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{Failure, Result, compiler, output, process, progress::Step, project::Project, setup};

use super::samples::Samples;

/// Options of `cargo xtask bench ring`.
#[derive(Args, Clone, Debug)]
pub struct RingArgs {
    /// Measurements of each ring, alternating
    #[arg(long, value_name = "N", default_value_t = 9,
          value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// The ring that the others are compared with.
const OURS: &str = "tally-ring";
/// The loop without a ring.
const NOTHING: &str = "nothing";

/// The costs of one ring per record.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct RingComparison {
    name: String,
    /// Instructions per record; `None` if they cannot be counted.
    instructions: Option<f64>,
    mean_instructions: Option<f64>,
    locked_instructions: Option<f64>,
    median_ns: f64,
    least_ns: f64,
    most_ns: f64,
    /// Median time relative to Tally's ring.
    ratio: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Rings {
    rings: Vec<RingComparison>,
    /// Reason why LTTng-UST was not measured.
    lttng_missing: Option<String>,
}

/// Runs the bench.
///
/// # Errors
/// The benchmark does not build or run.
pub fn main(project: &Project, args: &RingArgs) -> Result<u8> {
    let bench = || {
        let mut bench = project.cargo("bench", &project.target);
        bench.args(["--package", "tally-ring", "--bench", "rings"]);
        bench
    };
    compiler::run("Building the rings' benchmark", bench().arg("--no-run"))?;
    let step = Step::start("Writing records");
    let failed = |why: &str| {
        Failure::new(ExitStatus::HostError, format!("the rings' benchmark:\n{}", why.trim_end()))
    };
    let repetitions = args.repetitions.to_string();
    let output = process::output(bench().args(["--", "--repetitions", &repetitions]));
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        return Err(failed(&String::from_utf8_lossy(&output.stderr)));
    }
    let mut measured = parse(&String::from_utf8_lossy(&output.stdout));
    let lttng = setup::lttng(project).and_then(|lttng| lttng.measure(args.repetitions));
    let lttng_missing = match lttng {
        Ok(times) => {
            measured.push(Measured { name: "LTTng-UST".into(), counts: None, times });
            None
        }
        Err(failure) => Some(failure.message),
    };
    step.done();
    let rings = Rings { rings: compare(&measured)?, lttng_missing };
    output::print(args.json, &rings, &table(&rings))?;
    Ok(0)
}

/// A line of the benchmark's output.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    name: String,
    /// Minimum and mean of the instructions, with those of the loop, and locked instructions.
    counts: Option<[f64; 3]>,
    times: Vec<f64>,
}

fn parse(text: &str) -> Vec<Measured> {
    let line = |line: &str| {
        let [name, least, mean, locked, times] = line.split('\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        let times = times.split(' ').map(|time| time.parse().ok()).collect::<Option<_>>()?;
        let counts = Some([least.parse().ok()?, mean.parse().ok()?, locked.parse().ok()?]);
        Some(Measured { name: name.into(), counts, times })
    };
    text.lines().filter_map(line).collect()
}

/// Subtracts the loop's instructions; times include the loop, which takes close to no time.
fn compare(measured: &[Measured]) -> Result<Vec<RingComparison>> {
    let find = |name: &str| measured.iter().find(|one| one.name == name && !one.times.is_empty());
    let (Some(nothing), Some(ours)) = (find(NOTHING), find(OURS)) else {
        return Err(Failure::new(
            ExitStatus::CheckFailed,
            "the rings' benchmark printed no result of the loop or of Tally's ring",
        ));
    };
    let [around, ..] = nothing.counts.unwrap_or_default();
    let ours = Samples(ours.times.clone()).median();
    let ring = |one: &Measured| {
        let times = Samples(one.times.clone());
        RingComparison {
            name: one.name.clone(),
            instructions: one.counts.map(|[least, ..]| least - around),
            mean_instructions: one.counts.map(|[_, mean, _]| mean - around),
            locked_instructions: one.counts.map(|[.., locked]| locked),
            median_ns: times.median(),
            least_ns: times.least(),
            most_ns: times.most(),
            ratio: times.median() / ours,
        }
    };
    let others = measured.iter().filter(|one| one.name != NOTHING && !one.times.is_empty());
    Ok(others.map(ring).collect())
}

fn table(rings: &Rings) -> String {
    let mut text = String::from(
        "per record of 16 bytes with its time stamp\n\
         ring                    instructions    mean  locked     ns    min    max ratio\n",
    );
    for ring in &rings.rings {
        let count =
            |count: Option<f64>| count.map_or("-".to_owned(), |count| format!("{count:.1}"));
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<23} {:>12} {:>7} {:>7} {:>6.2} {:>6.2} {:>6.2} {:>5.2}",
            ring.name,
            count(ring.instructions),
            count(ring.mean_instructions),
            count(ring.locked_instructions),
            ring.median_ns,
            ring.least_ns,
            ring.most_ns,
            ring.ratio
        );
    }
    if let Some(why) = &rings.lttng_missing {
        let _ = writeln!(text, "LTTng-UST               not measured: {why}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_those_of_a_record_without_the_loop() {
        let text = "x\nnothing\t5\t5\t0\t0.5 0.5\ntally-ring\t20\t22\t0\t8 9 10\nother\t45\t45\t1\t18 18 20\n";
        let rings = compare(&parse(text)).unwrap();
        let [ours, other] = &rings[..] else { panic!("{rings:?}") };
        assert_eq!((ours.instructions, ours.mean_instructions), (Some(15.0), Some(17.0)));
        assert_eq!((ours.median_ns, ours.ratio), (9.0, 1.0));
        assert_eq!((other.locked_instructions, other.ratio), (Some(1.0), 2.0));
        assert!(compare(&parse("nothing\t5\t5\t0\t1\n")).is_err());
        let why = "no network".to_owned();
        let text = table(&Rings { rings, lttng_missing: Some(why) });
        assert!(text.contains("LTTng-UST               not measured: no network\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
