//! Which cycles each processor tells apart, by its own events.

use alloc::{string::String, vec, vec::Vec};
use core::ops::Range;

use super::{
    decoders,
    formulas::{self, Further, Metric, TopDown},
    ports,
};

/// A processor's parts of a program's cycles. Together they are all cycles, whatever the events'
/// counts: the sum of all terms is the cycles, once.
#[derive(Debug)]
pub struct Stack {
    /// The event of core cycles.
    pub cycles: &'static str,
    /// The event of instructions retired.
    pub instructions: &'static str,
    /// The parts, in the order of the pipeline.
    pub parts: &'static [Part],
    /// Cycles in which the divider was busy, if they are counted. They are in other parts too.
    pub divider: Option<&'static str>,
    /// What this processor does not tell apart, for the user.
    pub together: &'static str,
    /// Events that are counted in the same slices, as parts are differences of them: what they err
    /// by cancels.
    pub groups: &'static [&'static [&'static str]],
    /// The vendor's top-down method; one without metrics if slots are not divided.
    pub(super) slots: &'static TopDown,
    /// Metrics that are computed where their events are counted beside these: on request.
    pub(super) further: &'static [Further],
}

/// A part of the cycles: the counts of some events less those of others.
#[derive(Debug)]
pub struct Part {
    /// What the cycles go to.
    pub name: &'static str,
    /// Events.
    pub plus: &'static [&'static str],
    /// Events that `plus` contains.
    pub minus: &'static [&'static str],
}

const fn part(
    name: &'static str,
    plus: &'static [&'static str],
    minus: &'static [&'static str],
) -> Part {
    Part { name, plus, minus }
}

const STALLS: &str = "UOPS_RETIRED.STALL_CYCLES";
const FRONT_END: &str = "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE";
const IN_MEMORY: &str = "CYCLE_ACTIVITY.STALLS_MEM_ANY";
const BEYOND_L1: &str = "CYCLE_ACTIVITY.STALLS_L1D_MISS";
const BEYOND_L2: &str = "CYCLE_ACTIVITY.STALLS_L2_MISS";
const BEYOND_L3: &str = "CYCLE_ACTIVITY.STALLS_L3_MISS";
const CODE: &str = "ICACHE_DATA.STALLS";
const TRANSLATION: &str = "ICACHE_TAG.STALLS";
const RESTEER: &str = "INT_MISC.CLEAR_RESTEER_CYCLES";
const SERIALIZING: &str = "RESOURCE_STALLS.SCOREBOARD";

impl Part {
    /// Its events, each with its sign.
    pub(super) fn terms(&self) -> Vec<(&'static str, f64)> {
        let plus = self.plus.iter().map(|name| (*name, 1.0));
        plus.chain(self.minus.iter().map(|name| (*name, -1.0))).collect()
    }
}

/// Ice Lake servers. Source of the events: Intel's event files (`perfmon`, ICX).
pub static ICE_LAKE: Stack = Stack {
    cycles: "CPU_CLK_UNHALTED.THREAD",
    instructions: "INST_RETIRED.ANY",
    parts: &[
        part("work", &["CPU_CLK_UNHALTED.THREAD"], &[STALLS]),
        part("instruction cache misses", &[CODE], &[]),
        part("instruction TLB misses", &[TRANSLATION], &[]),
        part("rest of the front end", &[FRONT_END], &[CODE, TRANSLATION]),
        part("mispredicted branches", &[RESTEER], &[]),
        part("memory", &[BEYOND_L3], &[]),
        part("last-level cache", &[BEYOND_L2], &[BEYOND_L3]),
        part("second-level cache", &[BEYOND_L1], &[BEYOND_L2]),
        part("first-level cache, TLB, stores", &[IN_MEMORY], &[BEYOND_L1]),
        part("serializing instructions", &[SERIALIZING], &[]),
        part("execution units", &[STALLS], &[FRONT_END, RESTEER, IN_MEMORY, SERIALIZING]),
    ],
    divider: Some("ARITH.DIVIDER_ACTIVE"),
    together: "first-level cache, data TLB, stores",
    groups: &[
        &[IN_MEMORY, BEYOND_L1, BEYOND_L2, BEYOND_L3],
        &[STALLS, FRONT_END, RESTEER, SERIALIZING],
    ],
    slots: &formulas::ICE_LAKE,
    further: &[
        Further { parent: Some("tma_fetch_latency"), method: &decoders::LATENCY },
        Further { parent: Some("tma_fetch_bandwidth"), method: &decoders::BANDWIDTH },
        Further { parent: Some("tma_backend_bound"), method: &ports::ICE_LAKE },
    ],
};

/// The first level of [`ICE_LAKE`]: what fits on four counters.
static ICE_LAKE_SHORT: Stack = Stack {
    parts: &[
        part("work", &["CPU_CLK_UNHALTED.THREAD"], &[STALLS]),
        part("front end", &[FRONT_END], &[]),
        part("mispredicted branches", &[RESTEER], &[]),
        part("memory, caches, TLB, stores", &[IN_MEMORY], &[]),
        part("execution units, serializing", &[STALLS], &[FRONT_END, RESTEER, IN_MEMORY]),
    ],
    divider: None,
    together: "the causes of one line: --breakdown does",
    groups: &[&[STALLS, FRONT_END, RESTEER, IN_MEMORY]],
    slots: &formulas::NONE,
    further: &[],
    ..ICE_LAKE
};

const IN_LOADS: &str = "EXE_ACTIVITY.BOUND_ON_LOADS";
const LOADS_BEYOND_L1: &str = "MEMORY_ACTIVITY.STALLS_L1D_MISS";
const LOADS_BEYOND_L2: &str = "MEMORY_ACTIVITY.STALLS_L2_MISS";
const LOADS_BEYOND_L3: &str = "MEMORY_ACTIVITY.STALLS_L3_MISS";

/// Sapphire Rapids. Source of the events: Intel's event files (`perfmon`, SPR).
pub static SAPPHIRE_RAPIDS: Stack = Stack {
    cycles: "CPU_CLK_UNHALTED.THREAD",
    instructions: "INST_RETIRED.ANY",
    parts: &[
        part("work", &["CPU_CLK_UNHALTED.THREAD"], &[STALLS]),
        part("instruction cache misses", &[CODE], &[]),
        part("instruction TLB misses", &[TRANSLATION], &[]),
        part("rest of the front end", &[FRONT_END], &[CODE, TRANSLATION]),
        part("mispredicted branches", &[RESTEER], &[]),
        part("memory", &[LOADS_BEYOND_L3], &[]),
        part("last-level cache", &[LOADS_BEYOND_L2], &[LOADS_BEYOND_L3]),
        part("second-level cache", &[LOADS_BEYOND_L1], &[LOADS_BEYOND_L2]),
        part("first-level cache, TLB", &[IN_LOADS], &[LOADS_BEYOND_L1]),
        part("serializing instructions", &[SERIALIZING], &[]),
        part("execution units, stores", &[STALLS], &[FRONT_END, RESTEER, IN_LOADS, SERIALIZING]),
    ],
    divider: Some("ARITH.DIVIDER_ACTIVE"),
    together: "first-level cache and data TLB; execution units and stores",
    groups: &[
        &[IN_LOADS, LOADS_BEYOND_L1, LOADS_BEYOND_L2, LOADS_BEYOND_L3],
        &[STALLS, FRONT_END, RESTEER, SERIALIZING],
    ],
    slots: &formulas::SAPPHIRE_RAPIDS,
    further: &[
        Further { parent: Some("tma_fetch_latency"), method: &decoders::LATENCY },
        Further { parent: Some("tma_fetch_bandwidth"), method: &decoders::BANDWIDTH },
        Further { parent: Some("tma_core_bound"), method: &ports::SAPPHIRE_RAPIDS },
    ],
};

/// The first level of [`SAPPHIRE_RAPIDS`].
static SAPPHIRE_RAPIDS_SHORT: Stack = Stack {
    parts: &[
        part("work", &["CPU_CLK_UNHALTED.THREAD"], &[STALLS]),
        part("front end", &[FRONT_END], &[]),
        part("mispredicted branches", &[RESTEER], &[]),
        part("memory, caches, TLB", &[IN_LOADS], &[]),
        part("execution units, stores, others", &[STALLS], &[FRONT_END, RESTEER, IN_LOADS]),
    ],
    groups: &[&[STALLS, FRONT_END, RESTEER, IN_LOADS]],
    ..ICE_LAKE_SHORT
};

const EMPTY: &str = "CYCLES_NO_RETIRE.EMPTY";
const NOT_COMPLETE: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU";
const MISSING: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD";
const OTHER: &str = "CYCLES_NO_RETIRE.OTHER";

/// Zen 4. Source of the events: AMD's Processor Programming Reference, family 19h model 10h, event
/// D6h.
pub static ZEN_4: Stack = Stack {
    cycles: "CYCLES_NOT_IN_HALT",
    instructions: "RETIRED_INSTRUCTIONS",
    parts: &[
        part("work", &["CYCLES_NOT_IN_HALT"], &[EMPTY, NOT_COMPLETE, OTHER]),
        part("front end, mispredicted branches", &[EMPTY], &[]),
        part("loads that missed the L1", &[MISSING], &[]),
        part("execution units, L1, stores", &[NOT_COMPLETE], &[MISSING]),
        part("serializing, full structures", &[OTHER], &[]),
    ],
    divider: Some("DIV_CYCLES_BUSY_COUNT"),
    together: "front end and mispredictions; levels of caches beyond L1",
    groups: &[&[EMPTY, NOT_COMPLETE, MISSING, OTHER]],
    slots: &formulas::ZEN_4,
    further: &[Further { parent: None, method: &decoders::ZEN_4 }],
};

/// [`ZEN_4`] without slots.
static ZEN_4_SHORT: Stack = Stack { divider: None, slots: &formulas::NONE, further: &[], ..ZEN_4 };

/// Those of all processors.
pub static ALL: [&Stack; 3] = [&ICE_LAKE, &SAPPHIRE_RAPIDS, &ZEN_4];

/// The stack of the processor with this signature (CPUID leaf 1, EAX), if it has events for one.
pub fn of(signature: u32) -> Option<&'static Stack> {
    of_both(signature).map(|[whole, _]| whole)
}

/// The first level of the same: few events, which a list for something else has room for.
pub fn short_of(signature: u32) -> Option<&'static Stack> {
    of_both(signature).map(|[_, short]| short)
}

fn of_both(signature: u32) -> Option<[&'static Stack; 2]> {
    let model = signature >> 12 & 0xf0 | signature >> 4 & 0xf;
    match (signature & 0x0ff0_0f00, model) {
        (0x600, 0x6a | 0x6c) => Some([&ICE_LAKE, &ICE_LAKE_SHORT]),
        (0x600, 0x8f) => Some([&SAPPHIRE_RAPIDS, &SAPPHIRE_RAPIDS_SHORT]),
        (0xa0_0f00, 0x10..=0x1f | 0x60..=0xaf) => Some([&ZEN_4, &ZEN_4_SHORT]),
        _ => None,
    }
}

/// Why there is no stack of a processor, and what can be had instead.
pub fn missing() -> String {
    "no events of this processor tell apart what cycles are lost to: Ice Lake and Sapphire Rapids \
     servers and Zen 4 have such events. Sampling cycles finds where they go, without the cause: \
     `record -e cycles PROGRAM`; counts of single causes can be had: `stat -e \
     cycles,instructions,branch-misses,cache-misses PROGRAM`"
        .into()
}

impl Stack {
    /// The events to count.
    pub fn events(&self) -> Vec<&'static str> {
        let mut events = self.of_cycles();
        for event in self.divider.iter().chain(self.slots.events) {
            if !events.contains(event) {
                events.push(event);
            }
        }
        events
    }

    /// The vendor's metrics in the order of its tree, those of `further` for which `is_wanted`
    /// holds behind the other parts of their parents.
    pub(super) fn tree(
        &self,
        is_wanted: impl Fn(&Further) -> bool,
    ) -> Vec<(&'static TopDown, &'static Metric)> {
        let of = |method: &'static TopDown| method.metrics.iter().map(move |it| (method, it));
        let mut tree: Vec<_> = of(self.slots).collect();
        for further in self.further.iter().filter(|further| is_wanted(further)) {
            let parts = further.parent.and_then(|parent| parts_of(&tree, parent));
            let end = parts.map_or(tree.len(), |parts| parts.end);
            tree.splice(end..end, of(further.method));
        }
        tree
    }

    /// The events to count, and behind them those of a list for something else.
    pub fn before<'a>(&self, list: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let own = self.events();
        let others = list.filter(|event| !own.contains(event)).collect::<Vec<_>>();
        [own, others].concat()
    }

    /// The events that the parts of the cycles need; those that are counted together follow one
    /// another, by which the planner puts them into one group if it fits on the counters.
    pub fn of_cycles(&self) -> Vec<&'static str> {
        let of_parts = self.parts.iter().flat_map(|part| part.plus.iter().chain(part.minus));
        let mut events = vec![self.cycles, self.instructions];
        for event in self.groups.iter().copied().flatten().chain(of_parts) {
            if !events.contains(event) {
                events.push(event);
            }
        }
        events
    }
}

/// Where the parts of a metric are in a tree, on all levels.
pub(super) fn parts_of(
    tree: &[(&'static TopDown, &'static Metric)],
    parent: &str,
) -> Option<Range<usize>> {
    let at = tree.iter().position(|(_, metric)| metric.metric == parent)?;
    let is_part = |(_, metric): &&(_, &Metric)| metric.level > tree[at].1.level;
    let parts = tree[at + 1..].iter().take_while(is_part).count();
    Some(at + 1..at + 1 + parts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SHORT: [&Stack; 3] = [&ICE_LAKE_SHORT, &SAPPHIRE_RAPIDS_SHORT, &ZEN_4_SHORT];

    #[test]
    fn a_first_level_is_one_group_of_events_of_the_whole_stack() {
        for (whole, short) in ALL.into_iter().zip(SHORT) {
            let [group] = short.groups else { panic!("{short:?}") };
            assert!(group.len() <= 4, "{group:?}");
            let events = short.events();
            assert_eq!(events[..2], [whole.cycles, whole.instructions]);
            assert_eq!(events[2..], **group);
            assert!(events.iter().all(|event| whole.events().contains(event)), "{events:?}");
            let list = ["A", group[1], "B", whole.cycles];
            assert_eq!(short.before(list.into_iter()), [&events[..], &["A", "B"]].concat());
        }
    }

    #[test]
    fn metrics_on_request_are_behind_the_other_parts_of_their_parents() {
        for stack in ALL {
            let usual = stack.slots.metrics.iter().map(|metric| metric.metric);
            let names = |tree: &[(_, &Metric)]| -> Vec<&str> {
                tree.iter().map(|(_, metric)| metric.metric).collect()
            };
            assert!(usual.eq(names(&stack.tree(|_| false))));
            let tree = stack.tree(|further| further.parent.is_some());
            assert!(tree.iter().all(|(_, metric)| metric.level > 0), "{tree:?}");
            for Further { parent, method } in stack.further {
                let Some(parent) = parent else { continue };
                let parts = names(&tree[parts_of(&tree, parent).expect(parent)]);
                let own: Vec<&str> = method.metrics.iter().map(|metric| metric.metric).collect();
                assert!(parts.ends_with(&own), "{parent}: {parts:?}");
            }
        }
    }

    #[test]
    fn the_parts_of_each_stack_are_all_cycles_once() {
        for stack in ALL.into_iter().chain(SHORT) {
            let mut sum: BTreeMap<&str, i32> = BTreeMap::new();
            for part in stack.parts {
                part.plus.iter().for_each(|event| *sum.entry(event).or_default() += 1);
                part.minus.iter().for_each(|event| *sum.entry(event).or_default() -= 1);
            }
            sum.retain(|_, times| *times != 0);
            assert_eq!(sum, BTreeMap::from([(stack.cycles, 1)]));
        }
    }
}
