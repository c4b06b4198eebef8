//! Counts of a machine's own core and of its shadow cores, from the truth.

use std::collections::BTreeMap;

use tally_abi::{
    ExitStatus,
    truth::{Count, Region},
};

use crate::{Failure, Result};

/// Names of the event of core cycles, by vendor.
const CYCLES: [&str; 2] = ["CPU_CLK_UNHALTED.THREAD", "CYCLES_NOT_IN_HALT"];
/// Names of the event of instructions, by vendor.
const INSTRUCTIONS: [&str; 2] = ["INST_RETIRED.ANY", "RETIRED_INSTRUCTIONS"];

/// Core cycles in ring 3.
///
/// # Errors
/// The truth lacks the event.
pub fn cycles(region: &Region) -> Result<u64> {
    one_of(&region.events, CYCLES)
}

/// Instructions in ring 3.
///
/// # Errors
/// The truth lacks the event.
pub fn instructions(region: &Region) -> Result<u64> {
    one_of(&region.events, INSTRUCTIONS)
}

/// The failure of a check of the truth.
pub fn wrong(why: String) -> Failure {
    Failure::new(ExitStatus::CheckFailed, why)
}

/// The core cycles of each shadow core, by its name.
///
/// # Errors
/// The truth lacks an event, or a core executed something else.
pub fn beside(own: &Region, shadows: &[(&str, &Region)]) -> Result<BTreeMap<String, u64>> {
    let executed = instructions(own)?;
    let one = |(name, region): &(&str, &Region)| match instructions(region)? {
        same if same == executed => Ok(((*name).to_owned(), cycles(region)?)),
        _ => Err(wrong(format!("the core {name} ran another program"))),
    };
    shadows.iter().map(one).collect()
}

fn one_of(events: &BTreeMap<String, Count>, names: [&str; 2]) -> Result<u64> {
    let found = names.iter().find_map(|name| events.get(*name));
    found.map(|count| count.user).ok_or_else(|| wrong(format!("the truth has no {}", names[0])))
}
