//! Runs another program and says what was counted of it, with the syntax that users of perf have in
//! their fingers: `tally stat [-e EVENTS]… [OPTIONS] [--] PROGRAM ARGUMENTS`, or where the program was every N
//! events: `tally record [-e EVENT] [-c PERIOD] … PROGRAM …`.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, string::String, vec::Vec};

use tally::{
    ExitStatus, OpenError, Program, Reading, Session, SessionConfig, Value, eprintln, event_words,
    println, runtime::arguments,
};
use tally_abi::command::{Command, Verb};

tally::main!(main);

/// Addresses that `record` prints: those with the most samples.
const SHOWN: usize = 20;

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    let done = Command::parse(&words).map(|command| match command.verb {
        Verb::Stat => stat(&command),
        Verb::Record => record(&command),
    });
    match done {
        Ok(Ok(status)) => status.into(),
        Ok(Err(refused)) => {
            eprintln!("tally: {refused}");
            u8::from(refused.error.exit_status()).into()
        }
        Err(why) => {
            eprintln!("tally: {why}");
            u8::from(ExitStatus::Usage).into()
        }
    }
}

/// Runs the program and counts; gives its status.
fn stat(command: &Command) -> Result<u8, OpenError> {
    let program = Program::load(&command.program)?;
    let events = command.events();
    let session = Session::open_on(&program, &events, command.config)?;
    session.start()?;
    program.run()?;
    let status = program.wait()?;
    let readings = session.read()?;
    println!("\n Performance counter stats for '{}':\n", command.program.join(" "));
    for (name, reading) in event_words(&events).zip(&readings) {
        println!("{}", line(name, reading));
    }
    println!("{}", conditions(command.config, &session)?);
    Ok(status)
}

/// Runs the program and takes samples; gives its status.
fn record(command: &Command) -> Result<u8, OpenError> {
    let program = Program::load(&command.program)?;
    let events = command.events();
    let session = Session::open_on(&program, &events, command.config)?;
    session.sample(0, command.period)?;
    session.start()?;
    program.run()?;
    let status = program.wait()?;
    let mut samples = session.samples()?;
    samples.sort_unstable_by_key(|(address, samples)| (core::cmp::Reverse(*samples), *address));
    let all: u64 = samples.iter().map(|(_, samples)| samples).sum();
    let name = event_words(&events).next().unwrap_or_default();
    println!(
        "\n {} samples of '{name}' in '{}'; asked for: one each {} events{}\n",
        grouped(all),
        command.program.join(" "),
        grouped(command.period),
        taken(&session.read()?, all)
    );
    for (address, samples) in samples.iter().take(SHOWN) {
        let share = 100.0 * *samples as f64 / all as f64;
        match address {
            0 => println!("{share:>9.2} % {:>10}  elsewhere", grouped(*samples)),
            _ => println!("{share:>9.2} % {:>10}  {address:#x}", grouped(*samples)),
        }
    }
    if let Some(rest) = samples.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let sum: u64 = rest.iter().map(|(_, samples)| samples).sum();
        println!("{:>22}  at {} other addresses", grouped(sum), rest.len());
    }
    Ok(status)
}

/// How many events there were to a sample in the end: more than was asked for where the budget wanted it.
fn taken(readings: &[Reading], samples: u64) -> String {
    let events = match readings.first().map(|reading| reading.value) {
        Some(Value::Exact { count }) => count,
        Some(Value::Estimated { estimate, .. }) => estimate,
        _ => return String::new(),
    };
    let each = events.checked_div(samples);
    each.map_or(String::new(), |each| format!(", taken: one each {}", grouped(each)))
}

/// A line for an event: its count, its name, its error, and the share of the time that it was
/// counted, if not all.
fn line(name: &str, reading: &Reading) -> String {
    match reading.value {
        Value::Exact { count } => format!("{:>20}      {name}", grouped(count)),
        Value::Estimated { estimate, half_width_95, .. } => {
            let share = 100.0 * reading.coverage().unwrap_or_default();
            let error = match estimate as f64 {
                events if events > half_width_95 => {
                    format!("{:.2} %", 100.0 * half_width_95 / events)
                }
                _ => format!("{half_width_95:.0}"),
            };
            format!("{:>20}      {name:<32} +- {error}  ({share:.2} %)", grouped(estimate))
        }
        Value::NotMeasured { reason } => {
            format!("{:>20}      {name:<32} {}", "<not counted>", reason.message())
        }
    }
}

/// How it was counted.
fn conditions(config: SessionConfig, session: &Session) -> Result<String, OpenError> {
    let stats = session.stats()?;
    let ipc = stats.instructions as f64 / stats.cycles.max(1) as f64;
    let share = 100.0 * stats.engine_ticks as f64 / stats.session_ticks.max(1) as f64;
    let lengthened = match stats.lengthened {
        0 => String::new(),
        slices => format!(", {} of them lengthened for the budget", grouped(slices)),
    };
    Ok(format!(
        "\n {ipc:.2} instructions a cycle; {} group{} of events, {} slices of {} cycles as asked for{lengthened};\n \
         {share:.2} % of the time was the engine's own; +- is half of the 95 % interval",
        stats.groups,
        if stats.groups == 1 { "" } else { "s" },
        grouped(stats.slices),
        grouped(config.slice.length())
    ))
}

/// Digits in groups of three, as `perf stat` has them.
fn grouped(count: u64) -> String {
    let digits = format!("{count}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
