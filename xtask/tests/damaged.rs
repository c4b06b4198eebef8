//! Damaged files: every reader of files from other programs refuses or reads them without a panic,
//! and within bounds of memory and work that are proportional to the file's length.
//!
//! Work is measured as the number of memory requests, because seconds differ from machine to
//! machine.

#[path = "damaged/corpus.rs"]
mod corpus;
#[path = "damaged/heap.rs"]
mod heap;
#[path = "damaged/mutate.rs"]
mod mutate;

use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use mutate::{Random, mutate};
use xtask::readers;

/// Number of cases: with optimization enough to find the effects of single flipped bits, without it
/// some seconds of work.
const CASES: u64 = if cfg!(debug_assertions) { 1_000 } else { 60_000 };
/// Environment variable with the number of cases to run.
const COUNT: &str = "TALLY_TEST_CASES";
/// Environment variable with the number of the only case to run.
const ONLY: &str = "TALLY_TEST_CASE";
/// Bytes that a reader may have in use: a constant, and a number for each byte of the file.
const LEAST_BYTES: usize = 64 << 20;
const BYTES_A_BYTE: usize = 1_024;
/// Memory requests that a reader may make: a constant, and a number for each byte.
const LEAST_REQUESTS: u64 = 1 << 20;
const REQUESTS_A_BYTE: u64 = 64;

/// Reads bytes; returns whether the reader accepts them.
type Read = dyn Fn(&[u8]) -> bool;

/// Reader with an undamaged input.
struct Seed {
    name: &'static str,
    bytes: Vec<u8>,
    read: Box<Read>,
    /// Weight among the cases.
    weight: u64,
}

fn seed(
    name: &'static str,
    weight: u64,
    bytes: Vec<u8>,
    read: impl Fn(&[u8]) -> bool + 'static,
) -> Seed {
    Seed { name, bytes, read: Box::new(read), weight }
}

/// Folder for the files of this process.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Folder {
        let path = env::temp_dir().join(format!("xtask-damaged-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn written<T>(path: &Path, bytes: &[u8], read: impl Fn(&Path) -> T) -> T {
    fs::write(path, bytes).unwrap();
    read(path)
}

fn seeds(folder: &Path) -> Vec<Seed> {
    let trace = corpus::trace();
    let (of_program, of_blocks) = (trace.clone(), trace.clone());
    let (program, picture) = (folder.join("program"), folder.join("picture"));
    let mut seeds = vec![
        seed("messages", 4, corpus::messages(&trace), |bytes| readers::messages(bytes).is_ok()),
        seed("messages of a check", 2, corpus::check_messages(), |bytes| {
            readers::messages(bytes).is_ok()
        }),
        seed("stream", 4, trace.clone(), |bytes| readers::stream(bytes).is_ok()),
        seed("trace", 8, trace, |bytes| readers::trace(bytes).is_ok()),
        seed("program", 8, include_bytes!("damaged/program").to_vec(), move |bytes| {
            written(&program, bytes, |path| readers::program(path, &of_program)).is_ok()
        }),
        seed("results", 4, corpus::results(), |bytes| readers::results(bytes).is_ok()),
        seed("report of a check", 2, corpus::check_report(), |bytes| {
            readers::check_report(bytes).is_ok()
        }),
        seed("counts of perf", 1, corpus::counts(), |bytes| readers::counts(bytes) > 0),
        seed("blocks", 1, corpus::blocks(), move |bytes| {
            readers::blocks(bytes, &of_blocks).is_ok()
        }),
    ];
    for bytes in corpus::pictures() {
        let picture = picture.clone();
        let read = move |bytes: &[u8]| written(&picture, bytes, readers::photograph);
        seeds.push(seed("photograph", 1, bytes, read));
    }
    seeds
}

/// Reads within the limits for these bytes; `None` if the reader panics.
fn read(seed: &Seed, case: u64, bytes: &[u8]) -> Option<bool> {
    let more = REQUESTS_A_BYTE * bytes.len() as u64;
    heap::begin(case, LEAST_BYTES + BYTES_A_BYTE * bytes.len(), LEAST_REQUESTS + more);
    let read = catch_unwind(AssertUnwindSafe(|| (seed.read)(bytes)));
    heap::end();
    read.ok()
}

/// Reads a damaged file; the case's number determines the file and the damage.
fn damage(seeds: &[Seed], case: u64) -> (&'static str, Option<bool>) {
    let mut random = Random::new(case);
    let all: u64 = seeds.iter().map(|seed| seed.weight).sum();
    let mut place = random.below(all as usize) as u64;
    let is_it = |seed: &&Seed| {
        let is_it = place < seed.weight;
        place = place.saturating_sub(seed.weight);
        is_it
    };
    let seed = seeds.iter().find(is_it).expect("a place is below the sum of the weights");
    let other = &seeds[random.below(seeds.len())].bytes;
    (seed.name, read(seed, case, &mutate(&seed.bytes, other, &mut random)))
}

#[test]
fn damaged_files_are_refused_or_read_within_bounds() {
    xtask::output::silence_notes();
    let folder = Folder::make();
    let seeds = seeds(&folder.0);
    for seed in &seeds {
        assert_eq!(read(seed, 0, &seed.bytes), Some(true), "the whole file of {}", seed.name);
    }
    let number = |name| env::var(name).ok().and_then(|number| number.parse().ok());
    let (only, count): (Option<u64>, u64) = (number(ONLY), number(COUNT).unwrap_or(CASES));
    let (mut taken, mut panicked) = (0, Vec::new());
    for case in only.map_or(1..count + 1, |case| case..case + 1) {
        match damage(&seeds, case) {
            (_, Some(is_taken)) => taken += u64::from(is_taken),
            (name, None) => panicked.push(format!("{ONLY}={case}: {name}")),
        }
    }
    assert!(panicked.is_empty(), "readers panicked:\n{}", panicked.join("\n"));
    // The test would be weak if readers accepted all damaged files, or none.
    let share = count / 50..count * 49 / 50;
    assert!(only.is_some() || share.contains(&taken), "{taken} of {count} are read");
}
