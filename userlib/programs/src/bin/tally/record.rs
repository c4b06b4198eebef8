//! `tally record`: samples a program, and prints the addresses with the most samples.

use alloc::{format, string::String};

use tally::{OpenError, Program, Reading, Session, Value, event_words, println};
use tally_abi::{command::Command, text::Grouped};

/// Number of addresses that `record` prints, those with the most samples first.
const SHOWN: usize = 20;

/// Runs the program, prints the addresses of its samples and returns its status.
pub fn run(command: &Command) -> Result<u8, OpenError> {
    let program = Program::load(&command.program)?;
    let events = command.events();
    let session = Session::open_on(&program, events, command.config)?;
    session.sample(0, command.period)?;
    session.start()?;
    program.run()?;
    let status = program.wait()?;
    let mut samples = session.samples()?;
    samples.sort_unstable_by_key(|(address, samples)| (core::cmp::Reverse(*samples), *address));
    let all: u64 = samples.iter().map(|(_, samples)| samples).sum();
    let name = event_words(events).next().unwrap_or_default();
    println!(
        "\n {} samples of '{name}' in '{}'; requested: one per {} events{}\n",
        Grouped(all),
        command.program.join(" "),
        Grouped(command.period),
        taken(&session.read()?, all)
    );
    for (address, samples) in samples.iter().take(SHOWN) {
        let share = 100.0 * *samples as f64 / all as f64;
        match address {
            0 => println!("{share:>9.2} % {:>10}  elsewhere", Grouped(*samples)),
            _ => println!("{share:>9.2} % {:>10}  {address:#x}", Grouped(*samples)),
        }
    }
    if let Some(rest) = samples.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let sum: u64 = rest.iter().map(|(_, samples)| samples).sum();
        println!("{:>22}  at {} other addresses", Grouped(sum), rest.len());
    }
    Ok(status)
}

/// The mean number of events per sample, as text: more than requested if the budget lengthened
/// periods.
fn taken(readings: &[Reading], samples: u64) -> String {
    let events = match readings.first().map(|reading| reading.value) {
        Some(Value::Exact { count }) => count,
        Some(Value::Estimated { estimate, .. }) => estimate,
        _ => return String::new(),
    };
    let each = events.checked_div(samples);
    each.map_or(String::new(), |each| format!(", taken: one per {}", Grouped(each)))
}
