//! Named regions of a program: the number of visits of each thread, and the counts during them.
//!
//! ```no_run
//! use tally::regions;
//!
//! let _printer = regions::print_at_end();
//! for _ in 0..10 {
//!     let _region = regions::enter("parse");
//!     // … counted until the end of the block …
//! }
//! ```
//!
//! Regions may nest, repeat, and run in several threads at the same time. A count is that of the
//! thread alone, without events of other threads. An outer region includes the counts of the inner
//! ones, and those of the library's own work at their ends (some hundred instructions). A region
//! that is entered again before its end counts from the outermost start to its end, once.
//!
//! The first region opens a session on [`EVENTS`], unless [`open`] has opened one on other events.
//! On kernels other than Tally regions have no effect.

mod table;

use alloc::{string::String, vec, vec::Vec};
use core::fmt::Write;

use tally_abi::{
    Error, Reading, SessionConfig, Slice,
    events::words,
    text::{Grouped, Visible},
    thread::{self, TID},
};

use self::table::{Row, Table};
use crate::{
    Value,
    counting::Session,
    error::OpenError,
    io::Output,
    lock::Lock,
    part::wholes,
    sums::{SLICE_CYCLES, Whole},
    sys,
};

/// The events of a session that the first region opens.
pub const EVENTS: &str = "instructions,cycles,branches,branch-misses,L1-dcache-loads,\
                          L1-dcache-load-misses,dTLB-load-misses";

/// Regions of this program.
static REGIONS: Lock<Option<Regions>> = Lock::new(None);

struct Regions {
    session: Session,
    events: Vec<String>,
    table: Table,
    /// Words of the visit that ends.
    now: Vec<u64>,
}

/// Totals of a region for one thread, or for all threads together, over the visits that have ended.
#[derive(Clone, Debug)]
pub struct Region {
    /// Name of the region.
    pub name: String,
    /// Number of the thread, as `gettid` returns it; `None` for all threads together.
    pub thread: Option<u64>,
    /// Number of visits that have ended, those inside another one of the region too.
    pub calls: u64,
    /// Nanoseconds between entering and leaving, by the clock.
    pub time_ns: u64,
    /// Cycles of ring 3 that the thread itself used.
    pub cycles: u64,
    /// Events with their counts, in the order of the session's list.
    pub events: Vec<(String, Reading)>,
}

/// Visit of a region, which ends when this value is dropped.
#[derive(Debug)]
#[must_use = "the region ends when the value is dropped"]
pub struct Guard<'a>(&'a str);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // An error means that the region was not entered, or that the kernel is not Tally.
        let _ = stop(self.0);
    }
}

/// Opens the session of regions on a list of events.
///
/// # Errors
/// See [`Session::open`]; `Busy` also if regions have a session already.
pub fn open(events: &str) -> Result<(), OpenError> {
    let mut regions = REGIONS.lock();
    if regions.is_some() {
        return Err(Error::Busy.into());
    }
    *regions = Some(Regions::open(events)?);
    Ok(())
}

/// Enters a region, until the value is dropped.
pub fn enter(name: &str) -> Guard<'_> {
    // On another kernel, or if the session cannot be opened, `print` prints the reason.
    let _ = start(name);
    Guard(name)
}

/// Enters a region. Opens a session on [`EVENTS`] if there is none.
///
/// # Errors
/// The session cannot be opened, or memory is short.
pub fn start(name: &str) -> Result<(), OpenError> {
    // SAFETY: the call has no buffer.
    let thread = unsafe { sys::call(sys::GETTID, [0; 6]) } as u64;
    let mut regions = REGIONS.lock();
    let regions = match &mut *regions {
        Some(regions) => regions,
        none => none.insert(Regions::open(EVENTS)?),
    };
    let words = regions.table.enter(name, thread, regions.now.len());
    let started = regions.session.read_thread(words);
    if started.is_err() {
        regions.table.leave(name, thread);
    }
    Ok(started?)
}

/// Leaves the region that this thread entered last.
///
/// # Errors
/// The region has another name, or the thread is in no region.
pub fn stop(name: &str) -> Result<(), Error> {
    let mut regions = REGIONS.lock();
    let Some(regions) = &mut *regions else {
        return Err(if sys::is_tally() { Error::WrongState } else { Error::NotTally });
    };
    regions.session.read_thread(&mut regions.now)?;
    let thread = regions.now[TID];
    let (row, began) = regions.table.leave(name, thread).ok_or(Error::WrongState)?;
    row.visit(began.as_deref(), &regions.now);
    Ok(())
}

/// Returns a region by its name, for one thread or for all together; `None` if no visit of it has
/// ended.
pub fn read(name: &str, thread: Option<u64>) -> Option<Region> {
    let mut regions = REGIONS.lock();
    let regions = regions.as_mut()?;
    let mut rows = regions.table.rows().filter(|row| row.is(name, thread));
    let mut sum = rows.next()?.clone();
    rows.for_each(|row| sum.add(row));
    let whole = regions.whole();
    Some(regions.region(&sum, thread, &whole))
}

/// Returns all regions, with one entry for each thread, in the order in which they were first left.
pub fn all() -> Vec<Region> {
    let mut regions = REGIONS.lock();
    let Some(regions) = &mut *regions else { return Vec::new() };
    let whole = regions.whole();
    let rows = regions.table.rows();
    rows.map(|row| regions.region(row, Some(row.thread), &whole)).collect()
}

/// Ends the session of regions and discards the counts. Threads are in no region then.
pub fn close() {
    *REGIONS.lock() = None;
}

/// Prints all regions, a line for each event, or the reason why there are none.
pub fn print(mut output: Output) {
    let mut text = String::new();
    if !sys::is_tally() {
        text = alloc::format!("regions are not counted: {}\n", Error::NotTally);
    }
    let cost = REGIONS.lock().as_ref().and_then(|of| of.session.cost_beside().map(String::from));
    if let Some(cost) = cost {
        text = alloc::format!("regions: {cost}\n");
    }
    for region in all() {
        // Writing to a string does not fail.
        let _ = render(&mut text, &region);
    }
    if let Some(regions) = &*REGIONS.lock() {
        for (row, number) in regions.table.open() {
            let (name, thread) = (Visible::word(&row.name), row.thread);
            let is_one = if number == 1 { "visit has" } else { "visits have" };
            let _ = writeln!(text, "region {name}, thread {thread}: {number} {is_one} not ended");
        }
    }
    // A write error is ignored, because there is no other place to report it.
    let _ = output.write_str(&text);
}

/// Prints all regions to standard output when the value is dropped, at the end of `main`.
pub fn print_at_end() -> Printer {
    Printer(())
}

/// Prints all regions when it is dropped; see [`print_at_end`].
#[derive(Debug)]
#[must_use = "regions are printed when the value is dropped"]
pub struct Printer(());

impl Drop for Printer {
    fn drop(&mut self) {
        print(Output::Out);
    }
}

impl Regions {
    fn open(events: &str) -> Result<Regions, OpenError> {
        let config = SessionConfig { slice: Slice::Cycles(SLICE_CYCLES), ..Default::default() };
        let session = Session::open(events, config)?;
        session.start()?;
        let now = vec![0; thread::words(session.events())];
        let events = words(events).map(String::from).collect();
        Ok(Regions { session, events, table: Table::default(), now })
    }

    /// Returns the values of each event for the whole session.
    fn whole(&self) -> Vec<Whole> {
        wholes(self.session.id(), self.events.len()).unwrap_or_default()
    }

    fn region(&self, row: &Row, thread: Option<u64>, whole: &[Whole]) -> Region {
        let values =
            row.sums.iter().zip(whole).map(|(sums, whole)| sums.reading(row.bases, *whole));
        Region {
            name: row.name.clone(),
            thread,
            calls: row.calls,
            time_ns: row.time_ns,
            cycles: row.bases[0],
            events: self.events.iter().cloned().zip(values).collect(),
        }
    }
}

fn render(text: &mut String, region: &Region) -> core::fmt::Result {
    let Region { calls, time_ns, .. } = region;
    let name = Visible::word(&region.name);
    let thread = region.thread.unwrap_or_default();
    let us = Grouped(time_ns / 1000);
    writeln!(text, "region {name}, thread {thread}: {calls} calls, {us} us")?;
    for (event, reading) in &region.events {
        write!(text, "  {event:<28} ")?;
        match reading.value {
            Value::Exact { count } => writeln!(text, "{:>18}  exact", Grouped(count))?,
            Value::Estimated { estimate, half_width_95, .. } => {
                let half_width = Grouped((half_width_95 + 0.5) as u64);
                writeln!(text, "{:>18}  ± {half_width}", Grouped(estimate))?;
            }
            Value::NotMeasured { reason } => writeln!(text, "not measured: {}", reason.message())?,
        }
    }
    Ok(())
}
