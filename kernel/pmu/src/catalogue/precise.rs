//! Events whose samples are precise: `EVENT:p` to `EVENT:ppp`, and `EVENT:P`, whose samples are
//! precise where that can be had.
//!
//! Every counter can store precise records, of any event. With `p` and `pp` the next event after
//! the overflow writes the record, with `ppp` the overflowing one; from Golden Cove on only general
//! counter 0 and fixed counter 0 do the latter, on Sunny Cove only fixed counter 0, where `ppp` of
//! other events is `pp` (Linux, `glc_get_event_constraints`,
//! `icl_get_event_constraints`).
//!
//! The event of slow loads has precise samples alone: the processor counts some of the loads that
//! it tags by chance. On Golden Cove it needs another event beside it (Linux,
//! `PMU_FL_MEM_LOADS_AUX`), which the counters 0 to 3 have; the engine counts the two as a pair.
//!
//! AMD's op sampler (IBS) has a count of its own, of cycles or of ops: these events alone have
//! precise samples there (Linux, `core_pmu_ibs_config`).

use alloc::format;

use tally_abi::{Error, Mode};
use tally_engine::{Demand, Pinned, Precision, Selector};

use super::{
    Catalogue, Entry,
    demand::Why,
    processors::Vendor,
    resolved::{ResolveError, Resolved},
    spelling::{BEST, MOST_PRECISE},
};
use crate::registers::{
    Register,
    amd::{CYCLES_NOT_IN_HALT, RETIRED_OPS},
    intel::{PebsLdLat, PerfEvtSel},
};

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
        let slow_loads = entry.extra.filter(|extra| extra.msr == PebsLdLat::FIRST);
        match precision {
            0 if slow_loads.is_some() => return Err(Why::NotSupported(NOT_COUNTED.into())),
            0 => return Ok(demand),
            BEST if slow_loads.is_none() => {
                return Ok(self.precise(demand, 1, entry, mode).unwrap_or(demand));
            }
            _ => {}
        }
        self.refuse_precision()?;
        if self.processor.vendor == Vendor::Amd {
            return self.sampled_op(precision, entry, mode);
        }
        if demand.pinned == Some(Pinned::Instructions) {
            return Ok(Demand { precise: Some(Precision::default()), ..demand });
        }
        let demand = self.on_counter_with_records(demand, entry, mode)?;
        let is_very = precision == MOST_PRECISE && self.first_is_exact;
        let counters = if is_very { demand.counters & FIRST_COUNTER } else { demand.counters };
        if counters == 0 {
            return Err(Why::NotSupported(format!(
                "general counter 0 alone samples the very instruction (ppp), and cannot count it; \
                 those of the mask {:#x} can: write pp",
                demand.counters
            )));
        }
        let adaptive = if self.is_adaptive { PerfEvtSel::ADAPTIVE.bits() } else { 0 };
        let selector = Selector(demand.selector.0 | adaptive);
        let is_one = !entry.is_modified() && ONE_AN_INSTRUCTION.contains(&entry.code);
        let precision = Precision {
            most_lost: if is_one { 0 } else { MOST_LOST },
            accesses: ACCESSES.contains(&entry.code),
            slow_load_cycles: 0,
        };
        let demand = Demand { selector, counters, precise: Some(precision), ..demand };
        match slow_loads {
            Some(register) => self.slow_loads(demand, precision, (entry, register.value), mode),
            None => Ok(demand),
        }
    }

    /// Returns the demand for an event that the op sampler counts. There is one sampler: its event
    /// takes one counter, so that two are never counted in the same slice.
    fn sampled_op(&self, precision: u8, entry: &Entry<'_>, mode: Mode) -> Result<Demand, Why> {
        let is_counted = entry.umask == 0 && !entry.is_modified();
        if !is_counted || !matches!(entry.code, CYCLES_NOT_IN_HALT | RETIRED_OPS) {
            return Err(Why::NotSupported(OPS_ALONE.into()));
        }
        if precision == MOST_PRECISE {
            return Err(Why::NotSupported(NOT_MOST.into()));
        }
        let demand = self.general_demand(entry, mode)?;
        let accesses = entry.code == RETIRED_OPS;
        let precise = Some(Precision { accesses, ..Precision::default() });
        match demand.counters & OP_SAMPLER {
            0 => Err(Why::NotSupported(OP_SAMPLER_COUNTER.into())),
            counters => Ok(Demand { counters, precise, ..demand }),
        }
    }

    /// Refuses precise samples where the processor has none.
    fn refuse_precision(&self) -> Result<(), Why> {
        match (self.is_precise, self.processor.vendor) {
            (true, _) => Ok(()),
            (false, Vendor::Amd) => Err(Why::NotSupported(NO_IBS.into())),
            (false, Vendor::Intel) => Err(Why::NotSupported(NO_RECORDS.into())),
        }
    }

    /// Returns the demand for an event on a counter that can store records.
    fn on_counter_with_records(
        &self,
        demand: Demand,
        entry: &Entry<'_>,
        mode: Mode,
    ) -> Result<Demand, Why> {
        match (demand.pinned, demand.metric) {
            (Some(Pinned::Reference), _) => Err(Why::NotSupported(REFERENCE.into())),
            (_, Some(_)) => Err(Why::NotSupported("metrics have no samples".into())),
            // The fixed counter of cycles times the slices.
            (Some(Pinned::Cycles), None) => self.general_demand(entry, mode),
            _ => Ok(demand),
        }
    }

    /// Returns the demand for loads whose latency is above some cycles.
    fn slow_loads(
        &self,
        demand: Demand,
        precision: Precision,
        (entry, cycles): (&Entry<'_>, u64),
        mode: Mode,
    ) -> Result<Demand, Why> {
        let slow_load_cycles = u16::try_from(cycles).ok().filter(|cycles| *cycles >= LEAST_LATENCY);
        let Some(slow_load_cycles) = slow_load_cycles else {
            let why =
                format!("ldlat={cycles}: a latency is {LEAST_LATENCY} to {} cycles", u16::MAX);
            return Err(Why::Bad(why));
        };
        let precise = Some(Precision { slow_load_cycles, ..precision });
        let demand = Demand { precise, ..demand };
        if !self.processor.core.pairs_slow_loads() {
            return Ok(demand);
        }
        let (code, umask) = BESIDE_SLOW_LOADS;
        let beside = Entry { code, umask, cmask: 0, inv: false, edge: false, ..*entry };
        let pair = Some(self.selector(&beside, mode));
        let counters = demand.counters & FIRST_OF_PAIR;
        match counters {
            0 => Err(Why::NotSupported(SLOW_LOADS_COUNTER.into())),
            _ => Ok(Demand { pair, counters, ..demand }),
        }
    }
}

/// Returns the refusal of a list whose slow loads have several latencies; all share a register.
pub(super) fn refuse_latencies(resolved: &[Resolved]) -> Result<(), ResolveError> {
    let cycles = |one: &&Resolved| one.demand.precise.map_or(0, |it| it.slow_load_cycles);
    let mut slow = resolved.iter().filter(|one| cycles(one) != 0);
    let Some(first) = slow.next() else { return Ok(()) };
    match slow.find(|one| cycles(one) != cycles(&first)) {
        None => Ok(()),
        Some(other) => Err(ResolveError {
            event: other.name.clone(),
            error: Error::EventNotSupported,
            detail: format!(
                "loads above {} cycles, and above {} by '{}': a session has one latency",
                cycles(&other),
                cycles(&first),
                first.name
            ),
        }),
    }
}

/// The least latency that the processor distinguishes, in cycles.
const LEAST_LATENCY: u16 = 3;
/// Code and unit mask of the event that Golden Cove needs beside that of slow loads.
const BESIDE_SLOW_LOADS: (u16, u16) = (0x03, 0x82);
/// General counter 1: it has the event of slow loads, and the counter after it the other one.
const FIRST_OF_PAIR: u16 = 1 << 1;
const SLOW_LOADS_COUNTER: &str = "it takes the general counters 1 and 2: name no other counter";
const NOT_COUNTED: &str = "the processor tags some of the loads by chance and counts these alone: the number says \
     nothing. Sample it: record -e with :pp";

/// Codes of events of instructions that access memory, whose records have the access.
const ACCESSES: [u16; 6] = [0xcd, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4];

/// Codes of events that an instruction has at most once: instructions, branches, mispredicted
/// branches, and retired loads and stores by what they met.
const ONE_AN_INSTRUCTION: [u16; 9] = [0xc0, 0xc4, 0xc5, 0xcd, 0xd0, 0xd1, 0xd2, 0xd3, 0xd4];

/// Upper bound of the events of one instruction, of which the reload drops all but the first: a
/// load from memory takes some 300 cycles.
const MOST_LOST: u16 = 512;

const REFERENCE: &str = "reference cycles have no precise samples: sample cycles:pp";
/// General counter 2, the first that groups have on AMD: it has the event of the op sampler.
const OP_SAMPLER: u16 = 1 << 2;
const OP_SAMPLER_COUNTER: &str = "it takes general counter 2: name no other counter";
const OPS_ALONE: &str =
    "precise samples (p) are of cycles and of ops alone, which IBS counts: cycles:p, ex_ret_ops:p";
const NOT_MOST: &str = "IBS has no samples of the very event (ppp): write pp";
const NO_IBS: &str = "precise samples (p) need IBS, which the engine drives from Zen 3 on, and which this processor, or a \
     hypervisor, does not show: leave p out";
const NO_RECORDS: &str = "precise samples (p) need PEBS with adaptive records, which the engine drives from Ice Lake \
     to Panther Lake, and which this processor, or a hypervisor, does not show: leave p out";
