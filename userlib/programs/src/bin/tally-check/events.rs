//! Events of the catalogue, each on a loop that raises it, on each counter that it may use.

use alloc::{string::String, vec::Vec};
use core::fmt::Display;

use tally::{Direct, Error, Mode, OpenError};
use tally_abi::check::{Event, Refused, Span};

use super::{
    counters::on_counter,
    cpus,
    loops::Memory,
    table::{ROWS, Row},
};

/// Events in excess of the loop's that may be counted: those around it, and those that interrupts
/// add.
const SLACK: u64 = 200;

/// Row whose event this processor has, with the counts so far.
struct Checked<'a> {
    row: &'a Row,
    counters: Vec<u8>,
    on: Vec<Span>,
}

/// Checks all events of the table that this processor has, on all CPUs.
///
/// # Errors
/// A CPU does not exist any more.
pub fn check(
    all: &[u32],
    memory: &Memory,
    print: &mut dyn FnMut(&dyn Display),
) -> Result<(), Error> {
    let mut checked = Vec::new();
    for row in ROWS {
        match counters(row) {
            Ok(counters) => checked.push(Checked { row, counters, on: Vec::new() }),
            Err(refused) if refused.error == Error::UnknownEvent => {}
            Err(refused) => {
                print(&Refused { event: row.event.into(), why: refused.detail });
            }
        }
    }
    for cpu in all {
        cpus::move_to(*cpu)?;
        checked.iter_mut().for_each(|it| count(it, *cpu, memory));
    }
    for Checked { row, on, .. } in checked {
        let turns = row.work.turns();
        let of = |permille: u64| turns * permille / 1000;
        print(&Event {
            event: row.event.into(),
            work: row.work.name().into(),
            least: of(row.least),
            most: of(row.most) + SLACK,
            on,
        });
    }
    Ok(())
}

/// Returns the general counters that can count an event.
fn counters(row: &Row) -> Result<Vec<u8>, OpenError> {
    let spelling = |counter: &u8| on_counter(row.event, *counter);
    let can = |counter: &u8| Direct::open(&spelling(counter), Mode::User).is_ok();
    let counters: Vec<u8> = (0..8_u8).filter(can).collect();
    if counters.is_empty() {
        // Returns the refusal of the event itself, if there is one.
        drop(Direct::open(row.event, Mode::User)?);
        let why = String::from("no general counter can count it");
        return Err(OpenError { error: Error::EventNotSupported, detail: why });
    }
    Ok(counters)
}

/// Counts an event on this CPU, on one counter after the other.
fn count(of: &mut Checked<'_>, cpu: u32, memory: &Memory) {
    for counter in &of.counters {
        let Ok(direct) = Direct::open(&on_counter(of.row.event, *counter), Mode::User) else {
            continue;
        };
        memory.prepare(of.row.work);
        let before = direct.read(0);
        memory.run(of.row.work);
        let counted = direct.read(0).wrapping_sub(before);
        match of.on.iter_mut().find(|span| span.counter == *counter) {
            Some(span) => span.add(cpu, counted),
            None => of.on.push(Span::of(*counter, cpu, counted)),
        }
    }
}
