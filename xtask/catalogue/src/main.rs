//! Generates the event catalogues of tally-pmu from the vendors' tables.
//!
//! ```text
//! tally-catalogue intel <events.json>       Intel's core events (github.com/intel/perfmon)
//! LIBPFM_ENCODE_INACTIVE=1 tally-catalogue amd zen3|zen4    from libpfm.so.4, if installed
//! ```
//!
//! The table goes to standard output; the tables are in `kernel/pmu/src/catalogue/`. They contain
//! the vendors' facts (names, codes, masks, counters, extra registers), not their descriptions.

mod intel;
mod libpfm;
mod line;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let table = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["intel", path] => std::fs::read_to_string(path)
            .map_err(|error| format!("{path}: {error}"))
            .and_then(|json| intel::table(&json)),
        ["amd", processor] => libpfm::table(processor),
        _ => Err("usage: tally-catalogue intel <events.json> | amd zen3|zen4".into()),
    };
    match table {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("tally-catalogue: {why}");
            ExitCode::FAILURE
        }
    }
}
