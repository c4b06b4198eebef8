//! Generates the event catalogues of tally-pmu from the vendors' tables.
//!
//! ```text
//! tally-catalogue <folder> <to>    writes <to>/events.tsv and <to>/processors.tsv
//! ```
//!
//! The folder has `intel/mapfile.csv` and `intel/*_core.json` (github.com/intel/perfmon), and
//! `amd/*.tsv` (facts of libpfm4). The results are in `kernel/pmu/src/catalogue/`. They contain the
//! vendors' facts (names, codes, masks, counters, extra registers), not their descriptions. An
//! event that several processors have alike is one line.

mod amd;
mod intel;
mod line;
mod processors;

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path, process::ExitCode};

use line::{COLUMNS, Event, mark_later_names};
use processors::{AMD, KNOWN};

const SOURCES: &str = "\
# Made by tally-catalogue; facts only.
# Intel: github.com/intel/perfmon. Copyright (c) 2001 - 2026 Intel Corporation. All rights reserved.
# Licence of the source: BSD-3-Clause, text in kernel/pmu/LICENSES/BSD-3-Clause-Intel.txt.
# AMD: libpfm4. Licence of the source: MIT, text in kernel/pmu/LICENSES/MIT-libpfm4.txt.
";
/// Processor whose off-core responses are left out: its file has each of 2,016 combinations of a
/// request and a response. `cpu/event=0xb7,umask=1,offcore_rsp=…/` counts them.
const WITHOUT_RESPONSES: &str = "cascadelakex";
const RESPONSES: [&str; 3] = ["OFFCORE_RESPONSE.", "OFFCORE_RESPONSE:", "OCR."];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let made = match &words[..] {
        [from, to] => make(Path::new(from), Path::new(to)),
        _ => Err("usage: tally-catalogue <folder of tables> <folder for the results>".into()),
    };
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("tally-catalogue: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A processor's table.
struct Table {
    name: String,
    vendor: &'static str,
    signatures: String,
    title: String,
    events: Vec<Event>,
}

fn make(from: &Path, to: &Path) -> Result<(), String> {
    let mut tables: Vec<Table> = intel_tables(from)?.into_iter().chain(amd_tables(from)?).collect();
    tables.iter_mut().for_each(|table| mark_later_names(&mut table.events));
    let mut names = String::from(SOURCES);
    names += "# name\tvendor\tmicroarchitecture\tlibpfm4\tevents\tsignatures\tsource\n";
    let mut lines: BTreeMap<&Event, Vec<&str>> = BTreeMap::new();
    for table in &tables {
        let Table { name, vendor, signatures, title, events } = table;
        let known = KNOWN.iter().find(|(known, ..)| known == name);
        let Some((_, core, pfm)) = known else {
            return Err(format!("{name}: its microarchitecture is not known (processors.rs)"));
        };
        let count = events.len();
        let _ = writeln!(names, "{name}\t{vendor}\t{core}\t{pfm}\t{count}\t{signatures}\t{title}");
        for event in events {
            lines.entry(event).or_default().push(name);
        }
    }
    let mut text = String::from(SOURCES) + COLUMNS;
    for (event, of) in lines {
        let _ = writeln!(text, "{event}\t{}", of.join(","));
    }
    write(to, "processors.tsv", &names)?;
    write(to, "events.tsv", &text)
}

fn intel_tables(from: &Path) -> Result<Vec<Table>, String> {
    let folder = from.join("intel");
    let file = |stem: &str| folder.join(format!("{stem}_core.json"));
    let processors =
        processors::intel(&read(&folder.join("mapfile.csv"))?, |it| file(it).exists())?;
    let table = |processor: processors::Processor| {
        let path = file(&processor.name);
        let json = read(&path)?;
        let all = intel::events(&json).map_err(|why| format!("{}: {why}", path.display()));
        let (title, mut events) = all?;
        if processor.name == WITHOUT_RESPONSES {
            let is_response = |event: &Event| RESPONSES.iter().any(|it| event.name.starts_with(it));
            events.retain(|event| !is_response(event));
        }
        let processors::Processor { name, signatures } = processor;
        Ok(Table { name, vendor: "intel", signatures, title, events })
    };
    processors.into_iter().map(table).collect()
}

fn amd_tables(from: &Path) -> Result<Vec<Table>, String> {
    let table = |(name, file, signatures): (&str, &str, &str)| {
        let path = from.join("amd").join(format!("{file}.tsv"));
        let events = amd::events(&read(&path)?);
        let events = events.map_err(|why| format!("{}: {why}", path.display()))?;
        let title = format!("libpfm4, amd64_{file}");
        Ok(Table { name: name.into(), vendor: "amd", signatures: signatures.into(), title, events })
    };
    AMD.into_iter().map(table).collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}
