//! The truth over time: every event in every interval, by vCPU, address space and privilege, in rows.
//!
//! A vCPU's intervals are its own, each of so many instructions or cycles of its own. It adds up what
//! it does in each place — an address space, and the regions open there — and writes a row for each
//! place and ring when the interval is over, which is at the end of the block that goes past it. So
//! the rows of a place sum up to exactly what the truth file has for it.
//!
//! The file is comma-separated with a line of names, and described beside it as the W3C's "Metadata
//! Vocabulary for Tabular Data" has it.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};
use tally_abi::truth::Count;
use tally_model::{Counts, GROWTH_PER_SLOT, Ring, Signal};
use tally_vpmu::Profile;

use crate::{
    options::{Every, Series},
    region::{add_differences, events, totals},
};

/// The columns before the events'.
const KEYS: [(&str, &str, &str); 5] = [
    (
        "interval",
        "nonNegativeInteger",
        "Which interval of the vCPU's, from 0; one with no row had nothing in it.",
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
        "Tags of the regions open in that address space, with blanks between.",
    ),
    ("ring", "string", "user: ring 3; kernel: rings 0 to 2."),
];

/// The file, and what went wrong with it first.
struct Sink {
    file: BufWriter<File>,
    path: PathBuf,
    failed: Option<io::Error>,
}

static SINK: Mutex<Option<Sink>> = Mutex::new(None);

fn sink() -> MutexGuard<'static, Option<Sink>> {
    SINK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Begins the file and describes it.
pub(crate) fn create(series: &Series, profile: &Profile) -> Result<(), String> {
    let path = &series.path;
    let failed = |error: io::Error| format!("series={}: {error}", path.display());
    let description = serde_json::to_string_pretty(&metadata(series, profile))
        .map_err(|error| failed(error.into()))?;
    fs::write(beside(path, "-metadata.json"), description).map_err(failed)?;
    let mut file = BufWriter::new(File::create(beside(path, ".part")).map_err(failed)?);
    let names = KEYS.iter().map(|key| key.0).chain(events(profile).map(|event| event.name));
    writeln!(file, "{}", names.collect::<Vec<_>>().join(",")).map_err(failed)?;
    *sink() = Some(Sink { file, path: path.clone(), failed: None });
    Ok(())
}

fn metadata(series: &Series, profile: &Profile) -> Value {
    let every = match series.every {
        Every::Instructions(count) => format!("{count} instructions"),
        Every::Cycles(count) => format!("{count} core cycles"),
    };
    let keys = KEYS.iter().map(|(name, datatype, about)| {
        let mut column = json!({"name": name, "datatype": datatype, "dc:description": about});
        if *name == "regions" {
            column["separator"] = " ".into();
        }
        column
    });
    let counts = events(profile).map(|event| {
        let datatype = "nonNegativeInteger";
        json!({"name": event.name, "datatype": datatype, "dc:description": event.about})
    });
    json!({
        "@context": "http://www.w3.org/ns/csvw",
        "url": series.path.file_name().unwrap_or_default().to_string_lossy(),
        "dc:title": format!("Every event of {}, every {every} of each vCPU", profile.name),
        "tableSchema": {
            "columns": keys.chain(counts).collect::<Vec<_>>(),
            "primaryKey": KEYS.map(|key| key.0),
        },
    })
}

/// Ends the file.
pub(crate) fn finish() -> Result<(), String> {
    let Some(mut sink) = sink().take() else { return Ok(()) };
    let path = sink.path;
    let written = match sink.failed {
        None => sink.file.flush().and_then(|()| fs::rename(beside(&path, ".part"), &path)),
        Some(error) => Err(error),
    };
    written.map_err(|error| format!("series={}: {error}", path.display()))
}

/// Where counts belong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Page number of the address space's top table.
    pub(crate) space: u64,
    /// The regions open in it.
    pub(crate) tags: Vec<u32>,
}

/// What one vCPU has done in the interval that it is in.
#[derive(Debug)]
pub(crate) struct Stretch {
    vcpu: u32,
    every: Every,
    interval: u64,
    place: Place,
    /// Every event's count when the vCPU came to the place, or the interval began.
    since: Vec<Count>,
    /// What was done in each place in this interval, in the order of the first visits.
    sums: Vec<(Place, Vec<Count>)>,
}

impl Stretch {
    /// The first, of a vCPU that has not counted anything yet.
    pub(crate) fn new(vcpu: u32, every: Every, profile: &Profile) -> Stretch {
        let since = vec![Count::default(); events(profile).count()];
        Stretch { vcpu, every, interval: 0, place: Place::default(), since, sums: Vec::new() }
    }

    /// The vCPU goes on in another place.
    pub(crate) fn moved(&mut self, place: Place, counts: &[Counts; 2], profile: &Profile) {
        if place != self.place {
            self.settle(counts, profile);
            self.place = place;
        }
    }

    fn settle(&mut self, counts: &[Counts; 2], profile: &Profile) {
        let now = totals(profile, counts);
        let known = self.sums.iter().position(|(place, _)| *place == self.place);
        let at = known.unwrap_or_else(|| {
            self.sums.push((self.place.clone(), vec![Count::default(); now.len()]));
            self.sums.len() - 1
        });
        add_differences(&mut self.sums[at].1, &self.since, &now);
        self.since = now;
    }

    /// Ends the interval if it is over; how many slots pass at least before the next is.
    pub(crate) fn tick(&mut self, counts: &[Counts; 2], clock: u64, profile: &Profile) -> u64 {
        let width = u64::from(profile.geometry.width);
        let (position, length, per_slot) = match self.every {
            Every::Instructions(length) => (instructions(counts), length, GROWTH_PER_SLOT),
            Every::Cycles(length) => (clock, length * width, 1),
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
        for (place, counts) in self.sums.drain(..) {
            let tags: Vec<_> = place.tags.iter().map(u32::to_string).collect();
            let (interval, vcpu, space) = (self.interval, self.vcpu, place.space << 12);
            let key = format!("{interval},{vcpu},{space},{}", tags.join(" "));
            for ring in [Ring::User, Ring::Kernel] {
                let name = if ring == Ring::User { "user" } else { "kernel" };
                let counts: Vec<_> = counts.iter().map(|count| in_ring(count, ring)).collect();
                if counts.iter().any(|count| *count != 0) {
                    rows += &format!("{key},{name}");
                    counts.iter().for_each(|count| rows += &format!(",{count}"));
                    rows.push('\n');
                }
            }
        }
        if let Some(sink) = sink().as_mut()
            && let Err(error) = sink.file.write_all(rows.as_bytes())
        {
            sink.failed.get_or_insert(error);
        }
    }
}

fn in_ring(count: &Count, ring: Ring) -> u64 {
    match ring {
        Ring::User => count.user,
        Ring::Kernel => count.kernel,
    }
}

/// Instructions retired, in every ring.
pub(crate) fn instructions(counts: &[Counts; 2]) -> u64 {
    [Ring::User, Ring::Kernel].map(|ring| counts[ring as usize][Signal::Instructions]).iter().sum()
}
