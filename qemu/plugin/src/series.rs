//! The truth over time: every event, or every signal, in every interval, by vCPU, address space,
//! region and privilege.
//!
//! Each vCPU has its own intervals, measured in its instructions or cycles. An interval ends at the
//! end of the block that exceeds its length. The vCPU sums its counts in each scope: an address
//! space with the regions open there. At the end of an interval it writes a row for each scope and
//! ring. So the rows of a scope add up to exactly its counts in the truth file.
//!
//! The file is comma-separated with a line of names. A file beside it describes the columns as the
//! W3C's "Metadata Vocabulary for Tabular Data" specifies.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};
use tally_abi::truth::{Count, RegionKind};
use tally_model::{Counts, GROWTH_PER_SLOT, Privilege};
use tally_vpmu::{Columns, Interval, Profile, SeriesOptions};

use crate::{
    tag::Tag,
    totals::{add_differences, column_totals, columns, instructions},
};

/// The columns before the counts: name, data type, description.
const KEYS: [(&str, &str, &str); 7] = [
    (
        "interval",
        "nonNegativeInteger",
        "Number of the vCPU's interval, from 0. An interval without counts has no row.",
    ),
    ("vcpu", "nonNegativeInteger", "The vCPU, as QEMU numbers it."),
    (
        "address_space",
        "nonNegativeInteger",
        "Physical address of the address space's top page table (CR3).",
    ),
    (
        "regions",
        "nonNegativeInteger",
        "Tags of the marked regions open in that address space, separated by blanks.",
    ),
    (
        "sessions",
        "nonNegativeInteger",
        "Tags of the sessions open in that address space, separated by blanks.",
    ),
    (
        "core",
        "string",
        "Nothing for the vCPU's own core, else the perfect structures of one that runs beside it.",
    ),
    ("ring", "string", "user: ring 3; kernel: rings 0 to 2."),
];

/// The file, and the first error in writing it.
struct SeriesFile {
    file: BufWriter<File>,
    path: PathBuf,
    failed: Option<io::Error>,
}

static SERIES_FILE: Mutex<Option<SeriesFile>> = Mutex::new(None);

fn series_file() -> MutexGuard<'static, Option<SeriesFile>> {
    SERIES_FILE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `path` with a suffix.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Creates the file and its description.
pub(crate) fn create(options: &SeriesOptions, profile: &Profile) -> Result<(), String> {
    let path = &options.path;
    let failed = |error: io::Error| format!("series={}: {error}", path.display());
    let description = serde_json::to_string_pretty(&metadata(options, profile))
        .map_err(|error| failed(error.into()))?;
    fs::write(with_suffix(path, "-metadata.json"), description).map_err(failed)?;
    let mut file = BufWriter::new(File::create(with_suffix(path, ".part")).map_err(failed)?);
    let counts = columns(profile, options.columns);
    let names = KEYS.iter().map(|key| key.0).chain(counts.iter().map(|(name, _)| &**name));
    writeln!(file, "{}", names.collect::<Vec<_>>().join(",")).map_err(failed)?;
    *series_file() = Some(SeriesFile { file, path: path.clone(), failed: None });
    Ok(())
}

fn metadata(options: &SeriesOptions, profile: &Profile) -> Value {
    let interval = match options.interval {
        Interval::Instructions(count) => format!("{count} instructions"),
        Interval::Cycles(count) => format!("{count} core cycles"),
    };
    let keys = KEYS.iter().map(|(name, datatype, about)| {
        let mut column = json!({"name": name, "datatype": datatype, "dc:description": about});
        if matches!(*name, "regions" | "sessions") {
            column["separator"] = " ".into();
        }
        column
    });
    let counts = columns(profile, options.columns).into_iter().map(|(name, about)| {
        let datatype = "nonNegativeInteger";
        json!({"name": name, "datatype": datatype, "dc:description": about})
    });
    let what = match options.columns {
        Columns::Events => "event",
        Columns::Signals => "signal",
    };
    json!({
        "@context": "http://www.w3.org/ns/csvw",
        "url": options.path.file_name().unwrap_or_default().to_string_lossy(),
        "dc:title": format!("Every {what} of {}, every {interval} of each vCPU", profile.name),
        "tableSchema": {
            "columns": keys.chain(counts).collect::<Vec<_>>(),
            "primaryKey": KEYS.map(|key| key.0),
        },
    })
}

/// Completes the file.
pub(crate) fn finish() -> Result<(), String> {
    let Some(mut series_file) = series_file().take() else { return Ok(()) };
    let path = series_file.path;
    let written = match series_file.failed {
        None => {
            series_file.file.flush().and_then(|()| fs::rename(with_suffix(&path, ".part"), &path))
        }
        Some(error) => Err(error),
    };
    written.map_err(|error| format!("series={}: {error}", path.display()))
}

/// Key of sums, besides interval, vCPU and ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Page number of the address space's top-level table.
    pub(crate) space: u64,
    /// The regions that are open in the address space.
    pub(crate) tags: Vec<Tag>,
}

impl Scope {
    /// The tags of one kind, separated by blanks.
    fn tags(&self, kind: RegionKind) -> String {
        let tags = self.tags.iter().filter(|tag| tag.kind == kind);
        tags.map(|tag| tag.number.to_string()).collect::<Vec<_>>().join(" ")
    }
}

/// A vCPU's current interval.
#[derive(Debug)]
pub(crate) struct Series {
    vcpu: u32,
    /// The name of a shadow core; empty for the vCPU's own.
    core: String,
    length: Interval,
    columns: Columns,
    interval: u64,
    scope: Scope,
    /// Every column's count when the vCPU entered the scope, or when the interval began.
    since: Vec<Count>,
    /// The interval's counts in each scope, in the order of the first visits.
    sums: Vec<(Scope, Vec<Count>)>,
}

impl Series {
    /// Makes the first interval of a vCPU that has not counted anything yet.
    pub(crate) fn new(vcpu: u32, core: &str, options: &SeriesOptions, profile: &Profile) -> Series {
        Series {
            vcpu,
            core: core.to_owned(),
            length: options.interval,
            columns: options.columns,
            interval: 0,
            scope: Scope::default(),
            since: vec![Count::default(); columns(profile, options.columns).len()],
            sums: Vec::new(),
        }
    }

    /// Enters a scope.
    pub(crate) fn enter(&mut self, scope: Scope, counts: &[Counts; 2], profile: &Profile) {
        if scope != self.scope {
            self.settle(counts, profile);
            self.scope = scope;
        }
    }

    /// Adds the counts since the last call to the current scope.
    fn settle(&mut self, counts: &[Counts; 2], profile: &Profile) {
        let now = column_totals(profile, self.columns, counts);
        let known = self.sums.iter().position(|(scope, _)| *scope == self.scope);
        let at = known.unwrap_or_else(|| {
            self.sums.push((self.scope.clone(), vec![Count::default(); now.len()]));
            self.sums.len() - 1
        });
        add_differences(&mut self.sums[at].1, &self.since, &now);
        self.since = now;
    }

    /// Ends the interval if it is over; returns the least number of slots until the next one ends.
    pub(crate) fn tick(&mut self, counts: &[Counts; 2], clock: u64, profile: &Profile) -> u64 {
        let width = u64::from(profile.geometry.width);
        let (position, length, per_slot) = match self.length {
            Interval::Instructions(length) => (instructions(counts), length, GROWTH_PER_SLOT),
            Interval::Cycles(length) => (clock, length * width, 1),
        };
        if position / length != self.interval {
            self.end(counts, profile);
            self.interval = position / length;
        }
        (length - position % length) / per_slot
    }

    /// Ends the interval: writes its rows.
    pub(crate) fn end(&mut self, counts: &[Counts; 2], profile: &Profile) {
        self.settle(counts, profile);
        let mut rows = String::new();
        for (scope, counts) in self.sums.drain(..) {
            let (interval, vcpu, space) = (self.interval, self.vcpu, scope.space << 12);
            let [marked, sessions] =
                [RegionKind::Marked, RegionKind::Session].map(|kind| scope.tags(kind));
            let key = format!("{interval},{vcpu},{space},{marked},{sessions}");
            for ring in [Privilege::User, Privilege::Kernel] {
                let name = ring.name();
                let counts: Vec<_> = counts.iter().map(|count| in_ring(count, ring)).collect();
                if counts.iter().any(|count| *count != 0) {
                    rows += &format!("{key},{},{name}", self.core);
                    counts.iter().for_each(|count| rows += &format!(",{count}"));
                    rows.push('\n');
                }
            }
        }
        if let Some(series_file) = series_file().as_mut()
            && let Err(error) = series_file.file.write_all(rows.as_bytes())
        {
            series_file.failed.get_or_insert(error);
        }
    }
}

fn in_ring(count: &Count, ring: Privilege) -> u64 {
    match ring {
        Privilege::User => count.user,
        Privilege::Kernel => count.kernel,
    }
}
