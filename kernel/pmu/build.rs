//! Converts the tables of events into Rust: opening a session parses no text, and a line with a
//! wrong format ends the build.
//!
//! Lines that begin with `#` are comments. Each other line is an event:
//!
//! name, code, umask, cmask, inv, edge, counters, flag, msr, value
//!
//! separated by tabs; numbers are hexadecimal without prefix. `counters` is a mask of general
//! counters, or `fixedN` for fixed counter N, in which case code and umask are the vendor's
//! pseudo-encoding. `flag` is `a` for an event that is counted alone, `t` for one that counts the
//! other thread of its core too, else `-`. `msr` is the address of an extra register that the event
//! needs, 0 if none, and `value` the value that it needs there; for an event with two registers,
//! `code` and `msr` are two numbers each, with a comma.

use std::{env, fs, path::Path};

const FOLDER: &str = "src/catalogue";

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed=build.rs");
    let mut code = String::new();
    for name in [
        "skylake-server",
        "icelake-server",
        "sapphire-rapids",
        "architectural-intel",
        "zen3",
        "zen4",
        "architectural-amd",
        "tally",
    ] {
        let path = format!("{FOLDER}/{name}.tsv");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut events = Vec::new();
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.starts_with('#')) {
            let event = event(line).unwrap_or_else(|| panic!("{path}:{number}: this is no event"));
            events.push(event);
        }
        let constant = name.replace('-', "_").to_uppercase();
        code += &format!("pub(super) static {constant}: Table = {};\n", table(&events));
    }
    let out = env::var("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&out).join("tables.rs"), code).expect("cargo's folder can be written to");
}

/// Line of a table.
struct Event {
    name: String,
    /// Event code, and another one with a second extra register.
    codes: Vec<u32>,
    /// Entry as Rust code.
    entry: String,
}

/// Returns a table as Rust code, with its indices (see `Table`).
fn table(events: &[Event]) -> String {
    let mut by_name: Vec<usize> = (0..events.len()).collect();
    by_name.sort_by_key(|index| events[*index].name.to_ascii_uppercase());
    let codes = |(index, event): (usize, &Event)| {
        event.codes.iter().map(|code| (*code, index)).collect::<Vec<_>>()
    };
    let mut by_code: Vec<(u32, usize)> = events.iter().enumerate().flat_map(codes).collect();
    by_code.sort_unstable();
    let entries: Vec<&str> = events.iter().map(|event| event.entry.as_str()).collect();
    format!(
        "Table {{ entries: &[{}], by_name: &{by_name:?}, by_code: &{by_code:?} }}",
        entries.join(",\n")
    )
}

fn event(line: &str) -> Option<Event> {
    let fields: [&str; 10] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let [name, code, umask, cmask, inv, edge, counters, flag, msr, value] = fields;
    let [umask, cmask, inv, edge] = [umask, cmask, inv, edge].map(|n| u8::from_str_radix(n, 16));
    let (umask, cmask, inv, edge) = (umask.ok()?, cmask.ok()?, inv.ok()? != 0, edge.ok()? != 0);
    let counter = match counters.strip_prefix("fixed") {
        Some(index) => format!("Counter::Fixed({})", index.parse::<u8>().ok()?),
        None => format!("Counter::General({})", u8::from_str_radix(counters, 16).ok()?),
    };
    let flag = match flag {
        "a" => "Alone",
        "t" => "Threads",
        "-" => "None",
        _ => return None,
    };
    let ((code, second_code), (msr, second_msr)) = (pair(code)?, pair(msr)?);
    let value = u64::from_str_radix(value, 16).ok()?;
    let second = second_msr.zip(second_code);
    let extra = match msr {
        0 => "None".into(),
        _ => format!("Some(ExtraRegister {{ msr: {msr}, second: {second:?}, value: {value} }})"),
    };
    let entry = format!(
        "Entry {{ name: {name:?}, code: {code}, umask: {umask}, cmask: {cmask}, inv: {inv}, \
         edge: {edge}, counter: {counter}, flag: Flag::{flag}, extra: {extra} }}"
    );
    let codes = [Some(code), second.map(|(_, code)| code)].into_iter().flatten().collect();
    Some(Event { name: name.into(), codes, entry })
}

/// Parses one number, or two with a comma.
fn pair(text: &str) -> Option<(u32, Option<u32>)> {
    let number = |text| u32::from_str_radix(text, 16).ok();
    match text.split_once(',') {
        Some((first, second)) => Some((number(first)?, Some(number(second)?))),
        None => Some((number(text)?, None)),
    }
}
