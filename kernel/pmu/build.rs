//! Turns the tables of events into Rust: whoever opens a session reads no text, and a line that is not of the
//! format ends the build.
//!
//! Lines that begin with `#` are comments. Each other line is an event:
//!
//! name, code, umask, cmask, inv, edge, counters, flag, msr, value
//!
//! separated by tabs; numbers are hexadecimal without prefix. `counters` is a mask of general
//! counters, or `fixedN` for fixed counter N, and then code and umask are the vendor's
//! pseudo-encoding. `flag` is `a` for an event that is counted alone, `t` for one that counts the
//! other thread of its core too, else `-`. `msr` is the address of an extra register that the event
//! needs, 0 if none, and `value` what it needs in there; where there are two registers, `code` and
//! `msr` are two numbers each, with a comma.

use std::{env, fmt::Write as _, fs, path::Path};

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
    ] {
        let path = format!("{FOLDER}/{name}.tsv");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let constant = name.replace('-', "_").to_uppercase();
        // Writing to a string does not fail.
        let _ = writeln!(code, "pub(super) static {constant}: &[Entry<'static>] = &[");
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.starts_with('#')) {
            let entry = entry(line).unwrap_or_else(|| panic!("{path}:{number}: this is no event"));
            let _ = writeln!(code, "    {entry},");
        }
        code += "];\n";
    }
    let out = env::var("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&out).join("tables.rs"), code).expect("cargo's folder can be written to");
}

/// An event, as Rust has it.
fn entry(line: &str) -> Option<String> {
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
        _ => format!("Some(Register {{ msr: {msr}, second: {second:?}, value: {value} }})"),
    };
    Some(format!(
        "Entry {{ name: {name:?}, code: {code}, umask: {umask}, cmask: {cmask}, inv: {inv}, \
         edge: {edge}, counter: {counter}, flag: Flag::{flag}, extra: {extra} }}"
    ))
}

/// One number, or two with a comma.
fn pair(text: &str) -> Option<(u32, Option<u32>)> {
    let number = |text| u32::from_str_radix(text, 16).ok();
    match text.split_once(',') {
        Some((first, second)) => Some((number(first)?, Some(number(second)?))),
        None => Some((number(text)?, None)),
    }
}
