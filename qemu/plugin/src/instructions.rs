//! The time of each instruction inside regions and sessions, by address space, ring and address, as
//! the model's oracle charges it. The option `instructions=FILE` enables it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

use tally_model::{CYCLE_PARTS, Charge, Events, Privilege, Rule};

use crate::files;

/// The page number of the address space's top-level table, the ring, the address, the events.
type Key = (u64, Privilege, u64, Events);

/// Executions of an instruction that met the same events, and their time.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    executions: u64,
    times: [u64; Rule::ALL.len()],
}

impl Sum {
    fn add(&mut self, executions: u64, times: &[u64]) {
        self.executions += executions;
        self.times.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
    }
}

/// The instructions of one vCPU.
#[derive(Debug, Default)]
pub(crate) struct Instructions(HashMap<Key, Sum>);

/// The instructions of vCPUs that have ended.
static ALL: Mutex<BTreeMap<Key, Sum>> = Mutex::new(BTreeMap::new());

impl Instructions {
    /// Adds charges in the address space `space`.
    pub(crate) fn add(&mut self, space: u64, charges: impl Iterator<Item = Charge>) {
        for Charge { place, events, retires, times } in charges {
            let key = (space, place.ring, place.pc, events);
            self.0.entry(key).or_default().add(retires.into(), &times);
        }
    }

    /// Adds the vCPU's instructions to those of all.
    pub(crate) fn finish(self) {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, sum) in self.0 {
            all.entry(key).or_default().add(sum.executions, &sum.times);
        }
    }
}

/// Writes the file: a line of names, and one for each instruction and set of events.
pub(crate) fn write(path: &Path) -> Result<(), String> {
    let names = ["address_space", "ring", "address", "events", "executions"].into_iter();
    let names: Vec<&str> = names.chain(Rule::ALL.map(Rule::name)).collect();
    let mut text = names.join(",") + "\n";
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    for ((space, ring, address, events), sum) in all.iter() {
        let ring = ring.name();
        let met = (0..).zip(Events::NAMES).filter(|(bit, _)| events.bits() >> bit & 1 == 1);
        let met = met.map(|(_, name)| name).collect::<Vec<_>>().join("+");
        // Writing to a string does not fail.
        let _ = write!(text, "{},{ring},{address},{met},{}", space << 12, sum.executions);
        for parts in sum.times {
            let _ = write!(text, ",{:.3}", parts as f64 / CYCLE_PARTS as f64);
        }
        text.push('\n');
    }
    files::write("instructions", path, &text)
}
