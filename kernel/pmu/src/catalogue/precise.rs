//! Events whose samples are precise: `EVENT:p` to `EVENT:ppp`, and `EVENT:P`, whose samples are
//! precise where that can be had.
//!
//! Every counter can store precise records, of any event. With `p` and `pp` the next event after
//! the overflow writes the record, with `ppp` the overflowing one; on Golden Cove and Redwood Cove
//! only general counter 0 and fixed counter 0 do the latter, on Sunny Cove only fixed counter 0,
//! where `ppp` of other events is `pp` (Linux, `glc_get_event_constraints`,
//! `icl_get_event_constraints`).

use alloc::format;

use tally_abi::Mode;
use tally_engine::{Demand, Pinned, Selector};

use super::{
    Catalogue, Entry,
    demand::Why,
    processors::Vendor,
    spelling::{BEST, MOST_PRECISE},
};
use crate::registers::intel::PerfEvtSel;

/// General counter 0.
const FIRST_COUNTER: u16 = 1;

impl Catalogue {
    /// Returns the demand for an event with precise samples.
    pub(super) fn precise(
        &self,
        demand: Demand,
        precision: u8,
        entry: &Entry<'_>,
        mode: Mode,
    ) -> Result<Demand, Why> {
        match precision {
            0 => return Ok(demand),
            BEST => return Ok(self.precise(demand, 1, entry, mode).unwrap_or(demand)),
            _ => {}
        }
        let not_supported = |why: &str| Err(Why::NotSupported(why.into()));
        match (self.is_precise, self.processor.vendor) {
            (true, _) => {}
            (false, Vendor::Amd) => {
                return not_supported(
                    "precise samples (p) need IBS, which the engine does not drive",
                );
            }
            (false, Vendor::Intel) => return not_supported(NO_RECORDS),
        }
        let demand = match (demand.pinned, demand.metric) {
            (Some(Pinned::Instructions), _) => return Ok(Demand { precise: Some(0), ..demand }),
            (Some(Pinned::Reference), _) => {
                return not_supported("reference cycles have no precise samples: sample cycles:pp");
            }
            (_, Some(_)) => return not_supported("metrics have no samples"),
            // The fixed counter of cycles times the slices.
            (Some(Pinned::Cycles), None) => self.general_demand(entry, mode)?,
            (None, None) => demand,
        };
        let is_very = precision == MOST_PRECISE && self.first_is_exact();
        let counters = if is_very { demand.counters & FIRST_COUNTER } else { demand.counters };
        if counters == 0 {
            return Err(Why::NotSupported(format!(
                "general counter 0 alone samples the very instruction (ppp), and cannot count it; \
                 those of the mask {:#x} can: write pp",
                demand.counters
            )));
        }
        let selector = Selector(demand.selector.0 | PerfEvtSel::ADAPTIVE.bits());
        let is_one = !entry.is_modified() && ONE_AN_INSTRUCTION.contains(&entry.code);
        let precise = Some(if is_one { 0 } else { MOST_LOST });
        Ok(Demand { selector, counters, precise, ..demand })
    }
}

/// Codes of events that an instruction has at most once: instructions, branches, mispredicted
/// branches, and retired loads and stores by what they met.
const ONE_AN_INSTRUCTION: [u16; 8] = [0xc0, 0xc4, 0xc5, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4];

/// Upper bound of the events of one instruction, of which the reload drops all but the first: a
/// load from memory takes some 300 cycles.
const MOST_LOST: u16 = 512;

const NO_RECORDS: &str = "precise samples (p) need PEBS with adaptive records, which the engine drives on Ice Lake \
     and Sapphire Rapids, and which this processor, or a hypervisor, does not show: leave p out";
