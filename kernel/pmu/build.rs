//! Converts the tables of events into one packed pool and the list of processors into Rust: the
//! kernel parses no text, and a line with a wrong format ends the build.
//!
//! Lines that begin with `#` are comments. Each other line of `events.tsv` is an event:
//!
//! name, code, umask, cmask, counters, flags, register, value, processors
//!
//! separated by tabs; numbers are hexadecimal without prefix. `counters` is a mask of general
//! counters, or `fixedN` for fixed counter N, in which case code and umask are the vendor's
//! pseudo-encoding. The high byte of `umask` is the second unit mask (bits 40 to 47 of the select).
//! `flags` are `i` inverted, `e` edges, `q` equal, `a` counted alone, `t` counts the other thread
//! of its core too, `l` a later name of an event that the table has under another name before; `-`
//! for none.
//! `register` is the address of an extra register that the event needs, `-` if none, and `value`
//! the value that it needs there. For an event that may use one of two registers, `register` is
//! both with a comma, and `code` or `umask` may be; an event with more registers keeps the first
//! two. `processors` are names of `processors.tsv`; the tables written by hand, which have no such
//! column, are each of one processor.
//!
//! A line of `processors.tsv` is
//!
//! name, vendor, microarchitecture, libpfm4's names, number of events, signatures, source
//!
//! and `tally-catalogue` (`xtask/catalogue/src/processors.rs`) documents a signature.

use std::{collections::BTreeMap, env, fs, path::Path};

const FOLDER: &str = "src/catalogue";
/// Tables written by hand, after those of `processors.tsv`: name, vendor, microarchitecture,
/// libpfm4's names.
const BY_HAND: [(&str, &str, &str, &str); 3] = [
    ("architectural-intel", "intel", "Intel", "ix86arch"),
    ("architectural-amd", "amd", "Amd", ""),
    ("tally", "intel", "Intel", ""),
];

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed=build.rs");
    let mut rows = Vec::new();
    let mut names = Vec::new();
    for (line, at) in read("processors") {
        let (name, row) = processor(&line).unwrap_or_else(|| panic!("{at}: this is no processor"));
        names.push(name);
        rows.push(row);
    }
    let generated = names.len();
    for (name, vendor, core, pfm) in BY_HAND {
        // Both architectural tables have one name.
        let (shown, _) = name.split_once('-').unwrap_or((name, ""));
        rows.push(row(shown, vendor, core, pfm, &[]));
        names.push(name.into());
    }
    let mut pool: BTreeMap<(String, Vec<u8>), u64> = BTreeMap::new();
    let mut add = |line: &str, at: &str, processors: u64| {
        let event = event(line).unwrap_or_else(|| panic!("{at}: this is no event"));
        *pool.entry(event).or_default() |= processors;
    };
    for (line, at) in read("events") {
        let (event, of) = line.rsplit_once('\t').unwrap_or((&line, ""));
        let bit = |name: &str| names[..generated].iter().position(|known| known == name);
        let of = of.split(',').map(|name| bit(name).unwrap_or_else(|| panic!("{at}: '{name}'")));
        add(event, &at, of.fold(0, |all, bit| all | 1 << bit));
    }
    for (index, (name, ..)) in BY_HAND.iter().enumerate() {
        for (line, at) in read(name) {
            add(&line, &at, 1 << (generated + index));
        }
    }
    write(&rows, &pool);
}

/// Writes the rows of the processors, and the pool of the events with their sets of processors.
fn write(rows: &[String], pool: &BTreeMap<(String, Vec<u8>), u64>) {
    let (events, sets) = packed(pool);
    let out = env::var("OUT_DIR").expect("cargo says where");
    let out = Path::new(&out);
    fs::write(out.join("events.bin"), events).expect("cargo's folder can be written to");
    let count = rows.len();
    let code = format!(
        "pub(super) const COUNT: usize = {count};\n\
         pub(super) static PROCESSORS: [Processor; COUNT] = [{}];\n\
         pub(super) const SETS: &[u64] = &{sets:?};\n",
        rows.join(",\n")
    );
    fs::write(out.join("processors.rs"), code).expect("cargo's folder can be written to");
}

/// Reads the lines of a table, each with its place.
fn read(name: &str) -> Vec<(String, String)> {
    let path = format!("{FOLDER}/{name}.tsv");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.starts_with('#'));
    lines.map(|(line, number)| (line.to_owned(), format!("{path}:{number}"))).collect()
}

/// Returns a processor's name, and its row as Rust code.
fn processor(line: &str) -> Option<(String, String)> {
    let fields: [&str; 7] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let [name, vendor, core, pfm, _events, signatures, _source] = fields;
    let signatures: Option<Vec<String>> = signatures.split(',').map(signature).collect();
    Some((name.into(), row(name, vendor, core, pfm, &signatures?)))
}

fn row(name: &str, vendor: &str, core: &str, pfm: &str, signatures: &[String]) -> String {
    let vendor = if vendor == "intel" { "Intel" } else { "Amd" };
    let pfm: Vec<&str> = pfm.split(',').filter(|name| !name.is_empty()).collect();
    format!(
        "Processor {{ name: {name:?}, vendor: Vendor::{vendor}, core: Core::{core}, pfm: &{pfm:?}, \
         signatures: &[{}] }}",
        signatures.join(", ")
    )
}

/// Returns a signature as Rust code: `family-model[..model][/stepping..stepping][@core.native]`.
fn signature(text: &str) -> Option<String> {
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    let range = |text: &str| match text.split_once("..") {
        Some((first, last)) => Some((hex(first)?, hex(last)?)),
        None => Some((hex(text)?, hex(text)?)),
    };
    let (text, kind) = text.split_once('@').map_or((text, None), |(text, kind)| (text, Some(kind)));
    let (text, steppings) = text.split_once('/').unwrap_or((text, "0..f"));
    let (family, models) = text.split_once('-')?;
    let family: u16 = family.parse().ok()?;
    let ((first, last), steppings) = (range(models)?, range(steppings)?);
    let kind = match kind {
        Some(kind) => {
            let (core, native) = kind.split_once('.')?;
            Some((hex(core)?, hex(native)?))
        }
        None => None,
    };
    Some(format!(
        "Signature {{ family: {family}, models: ({first}, {last}), steppings: {steppings:?}, \
         kind: {kind:?} }}"
    ))
}

/// Returns an event's name, and its fields as `pack.rs` documents them.
fn event(line: &str) -> Option<(String, Vec<u8>)> {
    let fields: [&str; 8] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let [name, codes, umasks, cmask, counters, letters, registers, value] = fields;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let list = |text: &str| text.split(',').map(hex).collect::<Option<Vec<u64>>>();
    let (codes, umasks) = (list(codes)?, list(umasks)?);
    let registers = if registers == "-" { Vec::new() } else { list(registers)? };
    let (is_fixed, counters) = match counters.strip_prefix("fixed") {
        Some(index) => (true, index.parse().ok()?),
        None => (false, hex(counters)?),
    };
    let mut flags = u8::from(is_fixed) << 5 | (registers.len().min(2) as u8) << 6;
    let equal = u64::from(letters.contains('q'));
    for letter in letters.chars().filter(|letter| !matches!(letter, '-' | 'q')) {
        flags |= 1 << "ieatl".find(letter)?;
    }
    let mut bytes = vec![flags];
    let mut put = |number: u64| leb128(&mut bytes, number);
    put(counters);
    put(*codes.first()?);
    put(*umasks.first()?);
    put(hex(cmask)? | equal << 8);
    for (index, register) in registers.iter().take(2).enumerate() {
        put(*register);
        if index == 0 {
            put(hex(value)?);
        } else {
            put(*codes.get(index).or(codes.first())?);
            put(*umasks.get(index).or(umasks.first())?);
        }
    }
    Some((name.into(), bytes))
}

/// Returns the events in the order of their names in upper case, and the sets of processors.
fn packed(pool: &BTreeMap<(String, Vec<u8>), u64>) -> (Vec<u8>, Vec<u64>) {
    let mut sets: Vec<u64> = Vec::new();
    let mut bytes = Vec::new();
    let mut before = "";
    let mut all: Vec<_> = pool.iter().collect();
    all.sort_by_key(|((name, fields), _)| (name.to_ascii_uppercase(), fields.clone()));
    for ((name, fields), set) in all {
        let shared = name.bytes().zip(before.bytes()).take_while(|(a, b)| a == b).count();
        let index = sets.iter().position(|known| known == set).unwrap_or_else(|| {
            sets.push(*set);
            sets.len() - 1
        });
        bytes.push(u8::try_from(shared).expect("a name has at most 255 bytes"));
        bytes.push(u8::try_from(name.len() - shared).expect("a name has at most 255 bytes"));
        bytes.extend(&name.as_bytes()[shared..]);
        leb128(&mut bytes, index as u64);
        bytes.extend(fields);
        before = name;
    }
    (bytes, sets)
}

/// Appends a number, seven bits a byte, the low ones first; all bytes but the last have bit 7.
fn leb128(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
