//! Prints a record as text of 80 columns, or as JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use tally_abi::{Error, signal, syscall, trace::SlicePlace};

use super::run::{Processor, Program, RUN_KIND, Run, TracedSession};
use crate::trace_file::{Field, Form, Raw, Type};

const COLUMNS: usize = 80;
/// Column of the first field.
const INDENT: usize = 36;

/// A record's fields, including its list, with their values as text.
fn values(record: &Raw, t: &Type) -> Vec<(String, String)> {
    let text = |field: &Field| match (&field.form, field.bits(record)) {
        (Form::Number(_), bits) => bits.to_string(),
        (Form::Address, bits) => format!("{bits:#x}"),
        (Form::Flag, bits) => (bits != 0).to_string(),
        (form, bits) => text(form, bits),
    };
    let mut all: Vec<_> = t.fields.iter().map(|f| (f.name.clone(), text(f))).collect();
    if let Some(list) = &t.list {
        let words: Vec<String> = t.list_of(record).iter().map(u64::to_string).collect();
        all.push((list.clone(), words.join(",")));
    }
    all
}

/// The name of a value, if its form has one.
fn named(form: &Form, bits: u64) -> Option<String> {
    match form {
        Form::Choice(names) => names.get(bits as usize).cloned(),
        Form::Syscall => syscall::name(bits).map(str::to_ascii_lowercase),
        Form::Signal => signal::name(bits as u32).map(str::to_owned),
        Form::Result => {
            let error = (bits as i64).checked_neg().filter(|error| *error > 0)?;
            let tally = || Error::from_return(-error).map(|error| format!("-{error:?}"));
            syscall::errno::name(error).map(|name| format!("-{name}")).or_else(tally)
        }
        Form::Number(_) | Form::Address | Form::Flag => None,
    }
}

/// The name of a system call, or its number.
pub(crate) fn call(number: u64) -> String {
    text(&Form::Syscall, number)
}

/// The result of a system call, or the name of its error.
pub(crate) fn result(bits: u64) -> String {
    text(&Form::Result, bits)
}

fn text(form: &Form, bits: u64) -> String {
    named(form, bits).unwrap_or_else(|| plain(form, bits))
}

/// A value without a name: results are signed, and large ones are addresses.
fn plain(form: &Form, bits: u64) -> String {
    match form {
        Form::Result if bits >> 32 == 0 || (bits as i64) < 0 => (bits as i64).to_string(),
        Form::Result | Form::Syscall => format!("{bits:#x}"),
        _ => bits.to_string(),
    }
}

/// The record in lines of at most 80 columns, unless one word is longer. Times are TSC ticks since
/// `start_tsc`, the trace's earliest time stamp.
pub(super) fn lines(record: &Raw, t: Option<&Type>, start_tsc: u64) -> String {
    let time = record.tsc.saturating_sub(start_tsc);
    let name = t.map_or("?", |t| &t.name);
    let mut text = format!("{time:>16} cpu {:<2} {name:<12}", record.cpu);
    let Some(t) = t else {
        let _ = writeln!(text, "kind {} of {} words", record.kind, record.words.len());
        return text;
    };
    let mut column = INDENT;
    for (name, value) in values(record, t) {
        // The line begins with the CPU.
        if name == "cpu" && value == record.cpu.to_string() {
            continue;
        }
        let word = format!("{name} {value}");
        if column > INDENT && column + 2 + word.len() > COLUMNS {
            let _ = write!(text, "\n{:INDENT$}", "");
            column = INDENT;
        }
        let gap = if column == INDENT { "" } else { ", " };
        text += gap;
        text += &word;
        column += gap.len() + word.len();
    }
    text + "\n"
}

/// The description of the run as a line of JSON.
pub(super) fn run_json(run: &Value) -> String {
    let mut run = run.clone();
    if let Some(object) = run.as_object_mut() {
        object.insert("kind".into(), RUN_KIND.into());
    }
    format!("{run}\n")
}

/// The description of the run as text: the machine, the programs, and a line for each event with
/// its place in records of slices.
pub(super) fn run_lines(run: &Run) -> String {
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# {words}");
    };
    line(format_args!("command line: {}", run.command_line));
    if let Some(of) = &run.processor {
        let Processor { vendor, family, model, pmu, catalogue } = of;
        line(format_args!("{vendor} family {family} model {model} ({catalogue}), {pmu}"));
    }
    if let Some((cpus, hz)) = run.cpus.zip(run.tsc_hz) {
        line(format_args!("CPUs: {cpus}; TSC: {hz} Hz"));
    }
    for Program { program, name } in &run.programs {
        line(format_args!("program {program}: {name}"));
    }
    for session in &run.sessions {
        let TracedSession { session, program, name, address_space, events } = session;
        line(format_args!("session {session}: program {program} ({name}), {address_space:#x}"));
        for (index, event) in events.iter().enumerate() {
            let place = match event.place {
                SlicePlace::Cycles => "cycles".into(),
                SlicePlace::Instructions => "instructions".into(),
                SlicePlace::None => "in no slice".into(),
                SlicePlace::List { group, index } => format!("group {group}, count {index}"),
            };
            line(format_args!("  event {index}: {}: {place}", event.report.name));
        }
    }
    text
}

/// The record as a JSON object.
pub(super) fn json(record: &Raw, t: Option<&Type>) -> Value {
    let mut object = Map::new();
    object.insert("kind".into(), t.map_or(record.kind.into(), |t| t.name.clone().into()));
    object.insert("cpu".into(), record.cpu.into());
    let Some(t) = t else {
        object.insert("tsc".into(), record.tsc.into());
        object.insert("words".into(), record.words.clone().into());
        return object.into();
    };
    object.insert(t.stamp.clone(), record.tsc.into());
    for field in &t.fields {
        let bits = field.bits(record);
        let value = match &field.form {
            Form::Flag => (bits != 0).into(),
            Form::Number(_) | Form::Address => bits.into(),
            Form::Result => (bits as i64).into(),
            form => named(form, bits).map_or(bits.into(), Value::from),
        };
        object.insert(field.name.clone(), value);
    }
    if let Some(list) = &t.list {
        object.insert(list.clone(), t.list_of(record).to_vec().into());
    }
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_file::{Trace, tests::sample};
    use expect_test::expect;

    #[test]
    fn text_has_80_columns() {
        let bytes = sample();
        let trace = Trace::open(&bytes).unwrap();
        let of = |record: &Raw| lines(record, trace.type_of(record), 4_000);
        let records: Vec<Raw> = trace.clone().map(Result::unwrap).collect();
        let mut text: String = records.iter().map(of).collect();
        text += &lines(&records[0], None, 4_000);
        assert!(text.lines().all(|line| line.len() <= COLUMNS), "{text}");
        // A snapshot must not have indentation that is common to all of its lines.
        expect![[r#"
            records:
                        1000 cpu 1  threshold   session 7, event 2, threshold 1000
                                                count 1003, address_space 0xabc000
                        2000 cpu 1  lost        records 9
                        1000 cpu 1  ?           kind 2 of 4 words
        "#]]
        .assert_eq(&format!("records:\n{text}"));
    }

    #[test]
    fn calls_results_and_signals_have_names() {
        assert_eq!(text(&Form::Syscall, syscall::WRITE), "write");
        assert_eq!(text(&Form::Syscall, syscall::SESSION_OPEN), "session_open");
        assert_eq!(text(&Form::Syscall, 0x1000), "0x1000");
        assert_eq!([14, 40].map(|signal| text(&Form::Signal, signal)), ["SIGALRM", "40"]);
        for (result, name) in [
            (0, "0"),
            (5, "5"),
            (0x1000_0000_0000_i64, "0x100000000000"),
            (-14, "-EFAULT"),
            (-2001, "-UnknownEvent"),
            (-999, "-999"),
        ] {
            assert_eq!(text(&Form::Result, result as u64), name);
        }
    }

    #[test]
    fn json_has_every_field() {
        let bytes = sample();
        let trace = Trace::open(&bytes).unwrap();
        let of = |record: &Raw| format!("{}\n", json(record, trace.type_of(record)));
        let mut text: String = trace.clone().map(|record| of(&record.unwrap())).collect();
        let record = trace.clone().next().unwrap().unwrap();
        text += &json(&record, None).to_string();
        expect![[r#"
            {"address_space":11255808,"count":1003,"cpu":1,"event":2,"kind":"threshold","session":7,"threshold":1000,"tsc":5000}
            {"cpu":1,"kind":"lost","records":9,"tsc":6000}
            {"cpu":1,"kind":2,"tsc":5000,"words":[562954248388615,1000,1003,11255808]}"#]].assert_eq(&text);
    }
}
