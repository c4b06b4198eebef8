//! Costs of events on each processor: the table of the cost model (paper 004, Figure 3 and Table
//! I).
//!
//! Penalties are published latencies. Those of caches, TLBs and pipelines are from the model's
//! profiles (`qemu/model/src/profiles`, which name the sources), minus the part that is already
//! counted: a miss of the second level costs the latency of the third level beyond the second. A
//! page walk is taken as 30 cycles (Table I). No penalty is fitted to counts of the virtual PMU.

use alloc::{vec, vec::Vec};

use tally_abi::{Mode, phase::Bottleneck};
use tally_engine::{
    Plan,
    phase::{MAX_TERMS, Model, Place, cost::CYCLE},
    plan::CounterAssignment,
};

use super::{Catalogue, Resolved};

/// An event that costs cycles.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// Kind of stall that the cycles are attributed to.
    pub kind: Bottleneck,
    /// Name of the event in the vendor's table.
    pub event: &'static str,
    /// Cycles for each occurrence.
    pub penalty_cycles: u32,
}

/// Cost model of a processor.
#[derive(Clone, Copy, Debug)]
pub struct CostTable {
    /// Instructions that can be dispatched per cycle.
    pub width: u32,
    /// Events that cost cycles, at most [`MAX_TERMS`].
    pub terms: &'static [Term],
}

const fn term(kind: Bottleneck, event: &'static str, penalty_cycles: u32) -> Term {
    Term { kind, event, penalty_cycles }
}

use Bottleneck::{
    DirectMisprediction, Dl1Miss, Dl2Miss, DtlbMiss, ExpensiveInstructions, Il1Miss, Il2Miss,
    IndirectMisprediction, ItlbMiss, QueueFull,
};

/// Terms for Intel servers from Ice Lake on. The penalties are for a second-level hit, for a
/// third-level hit in addition to it, and for memory in addition to that.
const fn intel(second: u32, third: u32, memory: u32) -> [Term; 13] {
    [
        term(ItlbMiss, "ITLB_MISSES.WALK_COMPLETED", 30),
        term(Il1Miss, "L2_RQSTS.ALL_CODE_RD", second),
        term(Il2Miss, "L2_RQSTS.CODE_RD_MISS", third),
        term(DirectMisprediction, "BR_MISP_RETIRED.COND", 17),
        // Full store buffer; these tables have no event for other queues.
        term(QueueFull, "RESOURCE_STALLS.SB", 1),
        // Counts cycles already: number times latency.
        term(ExpensiveInstructions, "ARITH.DIVIDER_ACTIVE", 1),
        term(DtlbMiss, "DTLB_LOAD_MISSES.WALK_COMPLETED", 30),
        term(DtlbMiss, "DTLB_LOAD_MISSES.STLB_HIT", 7),
        term(Dl1Miss, "MEM_LOAD_RETIRED.L1_MISS", second),
        term(Dl2Miss, "MEM_LOAD_RETIRED.L2_MISS", third),
        term(Dl2Miss, "MEM_LOAD_RETIRED.L3_MISS", memory),
        term(IndirectMisprediction, "BR_MISP_RETIRED.INDIRECT", 17),
        term(IndirectMisprediction, "BR_MISP_RETIRED.RET", 17),
    ]
}

/// Ice Lake: latencies of 14, 70 and 250 cycles.
static ICE_LAKE: CostTable = CostTable { width: 5, terms: &intel(14, 56, 180) };
/// Sapphire Rapids: latencies of 16, 100 and 280 cycles.
static SAPPHIRE_RAPIDS: CostTable = CostTable { width: 6, terms: &intel(16, 84, 180) };

/// Zen 4: latencies of 14, 50 and 280 cycles.
static ZEN_4: CostTable = CostTable {
    width: 6,
    terms: &[
        term(ItlbMiss, "L1_ITLB_MISS_L2_ITLB_MISS.IF4K", 30),
        term(Il1Miss, "INSTRUCTION_CACHE_REFILLS_FROM_L2", 14),
        term(Il2Miss, "INSTRUCTION_CACHE_REFILLS_FROM_SYSTEM", 50),
        term(DirectMisprediction, "RETIRED_BRANCH_MISPREDICTED_DIRECTION_MISMATCH", 13),
        term(QueueFull, "DISPATCH_RESOURCE_STALL_CYCLES_2.RETIRE_TOKEN_STALL", 1),
        term(QueueFull, "DISPATCH_RESOURCE_STALL_CYCLES_1.LOAD_QUEUE_RSRC_STALL", 1),
        term(QueueFull, "DISPATCH_RESOURCE_STALL_CYCLES_1.STORE_QUEUE_RSRC_STALL", 1),
        term(QueueFull, "DISPATCH_RESOURCE_STALL_CYCLES_2.INT_SCHEDULER_0_TOKEN_STALL", 1),
        term(QueueFull, "DISPATCH_RESOURCE_STALL_CYCLES_2.INT_SCHEDULER_1_TOKEN_STALL", 1),
        term(QueueFull, "DISPATCH_RESOURCE_STALL_CYCLES_2.INT_SCHEDULER_2_TOKEN_STALL", 1),
        term(QueueFull, "DISPATCH_RESOURCE_STALL_CYCLES_2.INT_SCHEDULER_3_TOKEN_STALL", 1),
        term(ExpensiveInstructions, "DIV_CYCLES_BUSY_COUNT", 1),
        term(DtlbMiss, "L1_DTLB_MISS.TLB_RELOAD_4K_L2_MISS", 30),
        term(DtlbMiss, "L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT", 7),
        term(Dl1Miss, "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2", 14),
        term(Dl2Miss, "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LOCAL_CCX", 50),
        term(Dl2Miss, "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.DRAM_IO_NEAR", 280),
        term(IndirectMisprediction, "RETIRED_INDIRECT_BRANCH_INSTRUCTIONS_MISPREDICTED", 13),
        term(IndirectMisprediction, "RETIRED_NEAR_RETURNS_MISPREDICTED", 13),
    ],
};

impl Catalogue {
    /// Returns the cost model of this processor, if it has one.
    pub fn costs(&self) -> Option<&'static CostTable> {
        match self.name() {
            "icelakex" => Some(&ICE_LAKE),
            "sapphirerapids" | "emeraldrapids" => Some(&SAPPHIRE_RAPIDS),
            "zen4" => Some(&ZEN_4),
            _ => None,
        }
    }
}

impl CostTable {
    /// Returns the model for a session's events, and the place where each of them is counted.
    /// Events of the table that are not in the list, or not counted at the session's privilege, are
    /// left out.
    pub fn model(
        &self,
        list: &[Resolved],
        plan: &Plan,
        mode: Mode,
    ) -> (Model, [Option<Place>; MAX_TERMS]) {
        let place = |event: &str| {
            let is_it = |of: &Resolved| of.native == Some(event) && of.mode == mode;
            match plan.assignments.get(list.iter().position(is_it)?)? {
                CounterAssignment::General { group, counter } => {
                    Some(Place { group: *group, counter: *counter })
                }
                CounterAssignment::Pinned(_) | CounterAssignment::Metric(_) => None,
            }
        };
        let (model, events) = self.model_of(|event| place(event).is_some());
        let mut places = [None; MAX_TERMS];
        places.iter_mut().zip(events).for_each(|(slot, event)| *slot = place(event));
        (model, places)
    }

    /// Returns the model for the events that are counted, and these events in the order of its
    /// terms.
    pub fn model_of(&self, is_counted: impl Fn(&str) -> bool) -> (Model, Vec<&'static str>) {
        let mut model = Model { width: self.width, ..Model::default() };
        let terms = || self.terms.iter().filter(|term| is_counted(term.event));
        for (slot, term) in model.terms.iter_mut().zip(terms()) {
            *slot = Some((term.kind, term.penalty_cycles * CYCLE));
        }
        (model, terms().map(|term| term.event).collect())
    }

    /// Returns the kinds of cost for which the model has no event.
    pub fn missing(model: &Model) -> Vec<Bottleneck> {
        Bottleneck::ALL.into_iter().filter(|kind| !model.has(*kind)).collect()
    }

    /// Returns all events of the table, each once.
    pub fn events(&self) -> Vec<&'static str> {
        let mut events = vec![];
        for term in self.terms {
            if !events.contains(&term.event) {
                events.push(term.event);
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_tables_are_in_the_catalogues() {
        let all = [
            Catalogue::intel(6, 0x6a, 6, 0),
            Catalogue::intel(6, 0x8f, 8, 0),
            Catalogue::intel(6, 0xcf, 2, 0),
            Catalogue::amd(0x19, 0x11),
        ];
        for catalogue in all {
            let costs = catalogue.costs().expect("this processor has a table");
            assert!(costs.terms.len() <= MAX_TERMS);
            for event in costs.events() {
                assert!(catalogue.find(event).is_some(), "{}: {event}", catalogue.name());
            }
            // Only waiting for ports has no event.
            let kinds = |kind: &Bottleneck| costs.terms.iter().any(|term| term.kind == *kind);
            let without: Vec<Bottleneck> =
                Bottleneck::ALL.into_iter().filter(|kind| !kinds(kind)).collect();
            assert_eq!(without, [Bottleneck::ResourceContention]);
        }
        assert!(Catalogue::amd(0x19, 0x01).costs().is_none());
    }
}
