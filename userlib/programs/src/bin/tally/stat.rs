//! `tally stat`: counts events of a program, and prints the counts as perf does.

use alloc::{format, string::String, vec::Vec};

use tally::{
    OpenError, Program, Reading, Session, SessionConfig, Slice, Value, event_words, println,
};
use tally_abi::{command::Command, text::Grouped};

/// Events that perf gives as shares of others.
const SHARES: [(&str, &str); 4] = [
    ("branch-misses", "branches"),
    ("cache-misses", "cache-references"),
    ("L1-dcache-load-misses", "L1-dcache-loads"),
    ("LLC-load-misses", "LLC-loads"),
];

/// Runs the program, prints its counts and returns its status.
pub fn run(command: &Command) -> Result<u8, OpenError> {
    let program = Program::load(&command.program)?;
    let events = command.events();
    let session = Session::open_on(&program, &events, command.config)?;
    session.start()?;
    program.run()?;
    let status = program.wait()?;
    let readings = session.read()?;
    let named: Vec<(&str, &Reading)> = event_words(&events).zip(&readings).collect();
    if let Some(separator) = command.separator {
        named.iter().for_each(|(name, of)| println!("{}", fields(name, of).join(separator)));
        return Ok(status);
    }
    println!("\n Performance counter stats for '{}':\n", command.program.join(" "));
    named.iter().for_each(|(name, reading)| println!("{}", line(name, reading)));
    rates(&named).iter().for_each(|rate| println!("{rate}"));
    println!("{}", conditions(command.config, &session)?);
    Ok(status)
}

/// One event's line: its count, name, half width and coverage; the last two only of an estimate.
fn line(name: &str, reading: &Reading) -> String {
    match reading.value {
        Value::Exact { count } => format!("{:>20}      {name}", Grouped(count)),
        Value::Estimated { estimate, half_width_95, .. } => {
            let share = 100.0 * reading.coverage().unwrap_or_default();
            let error = match estimate as f64 {
                events if events > half_width_95 => {
                    format!("{:.2} %", 100.0 * half_width_95 / events)
                }
                _ => format!("{half_width_95:.0}"),
            };
            format!("{:>20}      {name:<32} +- {error}  ({share:.2} %)", Grouped(estimate))
        }
        Value::NotMeasured { reason } => {
            format!("{:>20}      {name:<32} {}", "<not counted>", reason.message())
        }
    }
}

/// One event's fields in the order of `perf stat -x`: count, unit, event, the time for which it was
/// counted, which is not known here, the share of the time in percent; then the half width.
fn fields(name: &str, reading: &Reading) -> [String; 6] {
    let (count, half_width) = match reading.value {
        Value::Exact { count } => (format!("{count}"), String::from("0")),
        Value::Estimated { estimate, half_width_95, .. } => {
            (format!("{estimate}"), format!("{half_width_95:.0}"))
        }
        Value::NotMeasured { .. } => (String::from("<not counted>"), String::new()),
    };
    let share = reading.coverage().map_or(String::new(), |of| format!("{:.2}", 100.0 * of));
    [count, String::new(), name.into(), String::new(), share, half_width]
}

/// A line for each event that perf gives as a share of another in the list. Its error is the sum of
/// both relative errors, which holds whatever their correlation is.
fn rates(named: &[(&str, &Reading)]) -> Vec<String> {
    let find = |wanted: &str| {
        let of = named.iter().find(|(name, _)| name.split(':').next() == Some(wanted));
        of.and_then(|(_, reading)| count_and_error(reading))
    };
    let rate = |(part, whole): &(&str, &str)| {
        let ((count, error), (of, of_error)) = (find(part)?, find(whole)?);
        let share = 100.0 * count / of;
        let error = match 100.0 * (error + of_error) {
            0.0 => String::new(),
            error => format!(" +- {error:.2} %"),
        };
        let name = format!("{part} of {whole}");
        Some(format!("{share:>18.2} %      {name:<32}{error}"))
    };
    SHARES.iter().filter_map(rate).collect()
}

/// A count that is not 0, and the relative half width of its interval.
fn count_and_error(reading: &Reading) -> Option<(f64, f64)> {
    let (count, half_width) = match reading.value {
        Value::Exact { count } => (count as f64, 0.0),
        Value::Estimated { estimate, half_width_95, .. } => (estimate as f64, half_width_95),
        Value::NotMeasured { .. } => return None,
    };
    (count > 0.0).then_some((count, half_width / count))
}

/// The conditions of the measurement.
fn conditions(config: SessionConfig, session: &Session) -> Result<String, OpenError> {
    let stats = session.stats()?;
    let ipc = stats.instructions as f64 / stats.cycles.max(1) as f64;
    let share = 100.0 * stats.engine_ticks as f64 / stats.session_ticks.max(1) as f64;
    let length = match config.slice {
        Slice::Auto => {
            format!(" of {} cycles on average", Grouped(stats.cycles / stats.slices.max(1)))
        }
        slice => format!(" of {} cycles as requested", Grouped(slice.length())),
    };
    let lengthened = match stats.lengthened {
        0 => String::new(),
        slices => format!(", {} of them lengthened for the budget", Grouped(slices)),
    };
    Ok(format!(
        "\n {ipc:.2} instructions per cycle; {} event group{}, {} slices{length}{lengthened};\n \
         the engine took {share:.2} % of the time; +- is the half width of the 95 % interval",
        stats.groups,
        if stats.groups == 1 { "" } else { "s" },
        Grouped(stats.slices),
    ))
}
