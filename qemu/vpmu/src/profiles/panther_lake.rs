//! Panther Lake's performance cores (Cougar Cove), which have version 6 with architectural PEBS.

use super::{
    lunar_lake::{self, of},
    shared::{METRICS, MORE_METRICS},
    tally::TALLY,
};
use crate::{
    event::Event,
    profile::{PebsKind, Profile, QemuMachine},
};

/// Panther Lake: as Lunar Lake, with records of precise samples in a buffer at a physical address.
pub(super) const PROFILE: Profile = Profile {
    name: "panther-lake",
    about: "Intel's version 6 with architectural PEBS, as on Panther Lake's P-cores; the machine is \
            Sapphire Rapids'",
    pebs: Some(PebsKind::PantherLake),
    // Family 6, model CCH.
    signature: 0xc06c1,
    // A performance core, native model 4.
    kind: 0x4000_0004,
    machine: QemuMachine {
        name: "panther-lake",
        cpu: "SapphireRapids,-rdrand,-rdseed",
        counters: 10,
        checks: &["", "pipeline=ooo"],
    },
    tables: &[&SAME, &BRANCHES, METRICS, MORE_METRICS, TALLY],
    ..lunar_lake::PROFILE
};

/// Returns whether Cougar Cove encodes an event of Lion Cove in another way, or does not have it:
/// branches, and arithmetic.
const fn is_other(event: &Event) -> bool {
    matches!(event.code, 0xc4 | 0xc5 | 0xc7)
}

/// Events of Lunar Lake with the same encoding.
const SAME: [Event; COUNT] = {
    let mut all = [lunar_lake::EVENTS[0]; COUNT];
    let (mut index, mut count) = (0, 0);
    while index < lunar_lake::EVENTS.len() {
        if !is_other(&lunar_lake::EVENTS[index]) {
            all[count] = lunar_lake::EVENTS[index];
            count += 1;
        }
        index += 1;
    }
    all
};
const COUNT: usize = {
    let (mut index, mut count) = (0, 0);
    while index < lunar_lake::EVENTS.len() {
        if !is_other(&lunar_lake::EVENTS[index]) {
            count += 1;
        }
        index += 1;
    }
    count
};

/// Branches, with Cougar Cove's unit masks.
#[rustfmt::skip] // One event in a line, as in the vendor's table.
const BRANCHES: [Event; 17] = [
    of("BR_INST_RETIRED.ALL_BRANCHES"),
    of("BR_INST_RETIRED.COND_TAKEN").umask(0x3),
    of("BR_INST_RETIRED.COND_NTAKEN").umask(0x4),
    of("BR_INST_RETIRED.COND").umask(0x7),
    of("BR_INST_RETIRED.NEAR_CALL").umask(0x30),
    of("BR_INST_RETIRED.NEAR_RETURN"),
    of("BR_INST_RETIRED.NEAR_TAKEN").umask(0xfb),
    of("BR_INST_RETIRED.FAR_BRANCH").umask(0x100),
    of("BR_INST_RETIRED.INDIRECT").umask(0x50),
    of("BR_MISP_RETIRED.ALL_BRANCHES"),
    of("BR_MISP_RETIRED.COND_TAKEN").umask(0x3),
    of("BR_MISP_RETIRED.COND_NTAKEN").umask(0x4),
    of("BR_MISP_RETIRED.COND").umask(0x7),
    of("BR_MISP_RETIRED.INDIRECT_CALL").umask(0x10),
    of("BR_MISP_RETIRED.INDIRECT").umask(0x50),
    of("BR_MISP_RETIRED.RET"),
    of("BR_MISP_RETIRED.NEAR_TAKEN").umask(0xfb),
];
