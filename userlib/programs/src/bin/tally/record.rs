//! `tally record`: samples a program, and prints the addresses with the most samples.

use alloc::{format, string::String, vec::Vec};

use tally::{OpenError, Program, Reading, Session, Value, eprintln, event_words};
use tally_abi::{command::Command, text::Grouped};

/// Number of addresses that `record` prints, those with the most samples first.
const SHOWN: usize = 5;

/// Runs the program, prints the addresses of its samples and returns its status.
pub fn run(command: &Command) -> Result<u8, OpenError> {
    let program = Program::load(&command.program)?;
    let events = command.events();
    let session = Session::open_on(&program, events, command.config)?;
    let names: Vec<&str> = event_words(events).collect();
    for event in 0..names.len() {
        let period = if command.hz == 0 { command.period } else { 0 };
        let every = [period, command.hz];
        session.sample_with_branches(event, every, command.stack_bytes, command.branches)?;
    }
    session.start()?;
    program.run()?;
    let status = program.wait()?;
    let mut samples = session.samples()?;
    samples.sort_unstable_by_key(|(address, samples)| (core::cmp::Reverse(*samples), *address));
    print_samples(command, &names, &session.read()?, &samples);
    Ok(status)
}

/// Prints the number of samples and the addresses with the most, which come first.
fn print_samples(command: &Command, names: &[&str], readings: &[Reading], samples: &[(u64, u64)]) {
    let all: u64 = samples.iter().map(|(_, samples)| samples).sum();
    let trace = match names {
        [_] => "",
        _ => "\n which event a sample is of: report, of a trace",
    };
    let of = match names {
        [_] | [_, _] => names.join(","),
        _ => format!("{} events", names.len()),
    };
    let requested = match command.hz {
        0 => format!("one per {} events", Grouped(command.period)),
        hz => format!("{} per second", Grouped(hz)),
    };
    eprintln!(
        "\n {} samples of '{}' in '{}'\n requested: {requested}{}{trace}\n",
        Grouped(all),
        of,
        command.program.join(" "),
        taken(readings, all),
    );
    if command.hz == 0
        && each(readings, all).is_some_and(|each| each > command.period + command.period / 2)
    {
        eprintln!(" More samples would take more than the budget of the engine: see --budget.\n");
    }
    for (address, samples) in samples.iter().take(SHOWN) {
        let share = 100.0 * *samples as f64 / all as f64;
        match address {
            0 => eprintln!("{share:>9.2} % {:>10}  elsewhere", Grouped(*samples)),
            _ => eprintln!("{share:>9.2} % {:>10}  {address:#x}", Grouped(*samples)),
        }
    }
    if let Some(rest) = samples.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let sum: u64 = rest.iter().map(|(_, samples)| samples).sum();
        eprintln!("{:>22}  at {} other addresses", Grouped(sum), rest.len());
    }
}

/// Returns the mean number of events per sample, as text.
fn taken(readings: &[Reading], samples: u64) -> String {
    let each = each(readings, samples);
    each.map_or(String::new(), |each| format!(", taken: one per {}", Grouped(each)))
}

/// Returns the mean number of events per sample, of all events: more than requested if the budget
/// lengthened periods. `None` without a count or samples.
fn each(readings: &[Reading], samples: u64) -> Option<u64> {
    let counts = readings.iter().filter_map(|reading| match reading.value {
        Value::Exact { count } | Value::Estimated { estimate: count, .. } => Some(count),
        Value::NotMeasured { .. } => None,
    });
    counts.reduce(u64::wrapping_add)?.checked_div(samples)
}
