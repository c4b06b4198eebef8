//! Prints a record as text of 80 columns, or as JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::file::{Field, Form, Raw, Type};

const COLUMNS: usize = 80;
/// Column of the first field.
const INDENT: usize = 36;

/// A record's fields, its list included, with their values as text.
fn values(record: &Raw, t: &Type) -> Vec<(String, String)> {
    let text = |field: &Field| match (&field.form, field.bits(record)) {
        (Form::Number(_), bits) => bits.to_string(),
        (Form::Address, bits) => format!("{bits:#x}"),
        (Form::Flag, bits) => (bits != 0).to_string(),
        (Form::Choice(names), bits) => {
            names.get(bits as usize).cloned().unwrap_or_else(|| bits.to_string())
        }
    };
    let mut all: Vec<_> = t.fields.iter().map(|f| (f.name.clone(), text(f))).collect();
    if let Some(list) = &t.list {
        let words: Vec<String> = t.list_of(record).iter().map(u64::to_string).collect();
        all.push((list.clone(), words.join(",")));
    }
    all
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
            Form::Choice(names) => {
                names.get(bits as usize).map_or(bits.into(), |name| name.clone().into())
            }
            Form::Number(_) | Form::Address => bits.into(),
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
    use crate::trace::file::{Trace, tests::sample};

    #[test]
    fn text_has_80_columns() {
        let bytes = sample();
        let trace = Trace::open(&bytes).unwrap();
        let record = trace.clone().next().unwrap().unwrap();
        let text = lines(&record, trace.type_of(&record), 4_000);
        let expect = "            1000 cpu 1  threshold   session 7, event 2, threshold 1000, \n";
        assert_eq!(
            text,
            expect.trim_end().trim_end_matches(',').to_owned()
                + "\n                                    count 1003, address_space 0xabc000\n"
        );
        assert!(text.lines().all(|line| line.len() <= COLUMNS), "{text}");
        let text = lines(&record, None, 4_000);
        assert_eq!(text, "            1000 cpu 1  ?           kind 2 of 4 words\n");
    }

    #[test]
    fn json_has_every_field() {
        let bytes = sample();
        let trace = Trace::open(&bytes).unwrap();
        let record = trace.clone().next().unwrap().unwrap();
        let object = json(&record, trace.type_of(&record)).to_string();
        assert_eq!(
            object,
            r#"{"address_space":11255808,"count":1003,"cpu":1,"event":2,"kind":"threshold","session":7,"threshold":1000,"tsc":5000}"#
        );
    }
}
