//! The text that describes the trace, in the Trace Stream Description Language (TSDL).

use std::{
    collections::BTreeSet,
    fmt::{self, Write as _},
};

use crate::{
    recording::Recording,
    trace::print,
    trace_file::{Form, Raw, Type},
};

/// The part that is the same in every trace.
const HEAD: &str = r#"/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := address_t;

trace {
	major = 1;
	minor = 8;
	byte_order = le;
	packet.header := struct {
		uint32_t magic;
		uint32_t stream_id;
	};
};
"#;

/// The part after the clock that is the same in every trace.
const STREAM: &str = r#"
typealias integer { size = 64; align = 8; signed = false; map = clock.tsc.value; } := tsc_t;

stream {
	id = 0;
	packet.context := struct {
		tsc_t timestamp_begin;
		tsc_t timestamp_end;
		uint64_t content_size;
		uint64_t packet_size;
		uint64_t events_discarded;
		uint32_t cpu_id;
	};
	event.header := struct {
		uint16_t id;
		tsc_t timestamp;
	};
};
"#;

/// A type of records, with the system calls that its records have.
pub(super) struct Class<'a> {
    of: &'a Type,
    calls: BTreeSet<u64>,
}

impl<'a> Class<'a> {
    /// Makes the class of type `of` from these records.
    pub(super) fn of<'r>(of: &'a Type, records: impl Iterator<Item = &'r Raw>) -> Class<'a> {
        let is_call = |form: &Form| *form == Form::Syscall;
        let calls = of.fields.iter().find(|field| is_call(&field.form)).map(|field| {
            records.filter(|record| record.kind == of.kind).map(|r| field.bits(r)).collect()
        });
        Class { of, calls: calls.unwrap_or_default() }
    }

    /// The type of a field.
    fn form(&self, form: &Form) -> String {
        let named = |number: usize, name: &str| format!("{} = {number}", quoted(name));
        match form {
            Form::Number(bits) => format!("uint{bits}_t"),
            Form::Address => "address_t".into(),
            Form::Result => "int64_t".into(),
            Form::Flag | Form::Signal => "uint8_t".into(),
            Form::Choice(names) => {
                let names: Vec<String> =
                    names.iter().enumerate().map(|(number, name)| named(number, name)).collect();
                format!("enum : uint8_t {{ {} }}", names.join(", "))
            }
            Form::Syscall => {
                let names: Vec<String> =
                    self.calls.iter().map(|n| named(*n as usize, &print::call(*n))).collect();
                let names = if names.is_empty() { named(0, "none") } else { names.join(", ") };
                format!("enum : uint64_t {{ {names} }}")
            }
        }
    }
}

impl fmt::Display for Class<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Type { kind, name, .. } = self.of;
        writeln!(f, "\nevent {{\n\tid = {kind};\n\tname = {};", quoted(name))?;
        writeln!(f, "\tstream_id = 0;\n\tfields := struct {{")?;
        // Readers remove the underscore, without which a name could be a word of the language.
        for field in &self.of.fields {
            writeln!(f, "\t\t{} _{};", self.form(&field.form), field.name)?;
        }
        if let Some(list) = &self.of.list {
            writeln!(f, "\t\tuint32_t _{list}_length;")?;
            writeln!(
                f,
                "\t\tstruct {{ string _event; uint64_t _count; }} _{list}[_{list}_length];"
            )?;
        }
        f.write_str("\t};\n};\n")
    }
}

/// The whole text.
pub(super) fn metadata(of: &Recording, classes: &[Class<'_>]) -> String {
    let mut text = HEAD.to_owned();
    // Writing to a string does not fail.
    let _ = write!(text, "\nenv {{\n\ttracer_name = \"tally\";\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "\t{name} = {};", quoted(value));
    };
    line("tracer_version", env!("CARGO_PKG_VERSION"));
    line("command_line", &of.run.command_line);
    if let Some(of) = &of.run.processor {
        line("cpu", &format!("{},{},{}", of.vendor, of.family, of.model));
        line("pmu", &of.pmu);
        line("catalogue", &of.catalogue);
    }
    for program in &of.run.programs {
        line(&format!("program_{}", program.program), &program.name);
    }
    for session in &of.run.sessions {
        for (index, event) in session.events.iter().enumerate() {
            let name = format!("session_{}_event_{index}", session.session);
            line(&name, &event.report.name);
        }
    }
    text += "};\n";
    let _ = write!(text, "\nclock {{\n\tname = tsc;\n\tdescription = \"time-stamp counter\";\n");
    let _ = write!(text, "\tfreq = {};\n\toffset = 0;\n}};\n", of.tsc_hz);
    text += STREAM;
    classes.iter().for_each(|class| text += &class.to_string());
    text
}

/// A text in quotes, as in C.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a \"b\" \\ c\nd"), r#""a \"b\" \\ c\nd""#);
    }
}
