//! Output of perf for the same commands, under Linux on the same virtual PMU.

use std::{path::PathBuf, sync::OnceLock};

use xtask::machine::Pmu;

use super::{CPUS, EVENTS, METRICS};
use crate::{command::guest, linux};

/// Line that perf's script prints between two commands.
const SEPARATOR: &str = "----";

/// Output of perf, by kind.
pub(super) struct Perf {
    pub(super) default: String,
    pub(super) fields: String,
    pub(super) repeated_fields: String,
    pub(super) json: String,
    pub(super) repeated: String,
    pub(super) intervals: String,
    pub(super) metrics: String,
    /// Counts of each CPU as text, fields and JSON.
    pub(super) cpus: [String; 3],
}

/// Shared boot of Linux, remembered even if it fails.
pub(super) fn perf() -> &'static Perf {
    static PERF: OnceLock<Option<Perf>> = OnceLock::new();
    let boot = || std::panic::catch_unwind(boot_linux).ok();
    PERF.get_or_init(boot).as_ref().expect("Linux boots and runs perf")
}

fn boot_linux() -> Perf {
    let script = format!(
        "perf stat phases 30\necho {SEPARATOR}; perf stat -x, -e {EVENTS} phases 9\n\
         echo {SEPARATOR}; perf stat -r 3 -x, -e {EVENTS} phases 9\n\
         echo {SEPARATOR}; perf stat -j -e {EVENTS} phases 9\n\
         echo {SEPARATOR}; perf stat -r 3 -e {EVENTS} phases 9\n\
         echo {SEPARATOR}; perf stat -I 100 -e instructions:u phases 300\n\
         echo {SEPARATOR}; perf stat -M {METRICS} phases 30\n\
         echo {SEPARATOR}; perf stat {CPUS} phases 9\n\
         echo {SEPARATOR}; perf stat -x, {CPUS} phases 9\n\
         echo {SEPARATOR}; perf stat -j {CPUS} phases 9\n"
    );
    let (status, output) = linux::run(Pmu::Intel, &[PathBuf::from(guest("phases"))], &script);
    assert_eq!(status, 0, "{output}");
    let output = without_colours(&output);
    let parts: Vec<String> = output.split(&format!("{SEPARATOR}\n")).map(String::from).collect();
    let Ok([default, fields, repeated_fields, json, repeated, intervals, metrics, cpus @ ..]) =
        <[String; 10]>::try_from(parts)
    else {
        panic!("the script prints nine separators:\n{output}");
    };
    Perf { default, fields, repeated_fields, json, repeated, intervals, metrics, cpus }
}

/// Removes the colour sequences from `text`, which perf writes to a console.
fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, piece| all + piece.split_once('m').map_or("", |(_, rest)| rest))
}
