//! Events by which each processor's cycles are divided.

use alloc::{string::String, vec, vec::Vec};
use core::{cell::RefCell, ops::Range};

use super::{
    decoders, first,
    formulas::{self, Further, Metric, TopDown, Whole},
    groups::{self, Group},
    next::{self, Sampled},
    ports, stalls,
};

/// Method and events by which a processor's cycles are divided.
#[derive(Debug)]
pub struct Stack {
    /// Event of core cycles.
    pub cycles: &'static str,
    /// Event of instructions retired.
    pub instructions: &'static str,
    /// Event of mispredicted branches, if the method gives a misprediction's mean cost.
    pub mispredictions: Option<&'static str>,
    /// Groups of events counted in the same slices. Parts are differences of these events, so that
    /// common errors cancel.
    pub groups: &'static [&'static [&'static str]],
    /// Events whose samples show where parts lose their cycles.
    pub(super) sampled: Sampled,
    /// Tree of parts.
    pub(super) method: &'static TopDown,
    /// Metrics counted on request, computed where their events are counted with the stack's.
    pub(super) further: &'static [Further],
    /// Groups of metrics by LIKWID's names, counted on request.
    pub(super) named: &'static [Group],
}

/// Stack of Ice Lake servers, by the slots of dispatch.
static ICE_LAKE: Stack = Stack {
    cycles: "CPU_CLK_UNHALTED.THREAD",
    instructions: "INST_RETIRED.ANY",
    mispredictions: Some("BR_MISP_RETIRED.ALL_BRANCHES"),
    groups: &[
        &[
            "UOPS_RETIRED.SLOTS",
            "IDQ_UOPS_NOT_DELIVERED.CORE",
            "TOPDOWN.BACKEND_BOUND_SLOTS",
            "INT_MISC.CLEARS_COUNT",
        ],
        &[
            "CYCLE_ACTIVITY.STALLS_MEM_ANY",
            "CYCLE_ACTIVITY.STALLS_L1D_MISS",
            "CYCLE_ACTIVITY.STALLS_L2_MISS",
            "CYCLE_ACTIVITY.STALLS_L3_MISS",
        ],
    ],
    sampled: next::ICE_LAKE,
    method: &formulas::ICE_LAKE,
    further: &[
        Further { parent: Some("tma_fetch_latency"), method: &decoders::LATENCY },
        Further { parent: Some("tma_fetch_bandwidth"), method: &decoders::BANDWIDTH },
        Further { parent: Some("tma_core_bound"), method: &ports::ICE_LAKE },
    ],
    named: &groups::ICE_LAKE,
};

/// Stack of Sapphire Rapids, by the slots of dispatch.
static SAPPHIRE_RAPIDS: Stack = Stack {
    groups: &[&[
        "UOPS_RETIRED.SLOTS",
        "IDQ_UOPS_NOT_DELIVERED.CORE",
        "TOPDOWN.BACKEND_BOUND_SLOTS",
        "TOPDOWN.BAD_SPEC_SLOTS",
    ]],
    sampled: next::SAPPHIRE_RAPIDS,
    method: &formulas::SAPPHIRE_RAPIDS,
    // The formulas do not read a count of mispredictions.
    mispredictions: None,
    further: &[
        Further { parent: Some("tma_fetch_latency"), method: &decoders::LATENCY },
        Further { parent: Some("tma_fetch_bandwidth"), method: &decoders::BANDWIDTH },
        Further { parent: Some("tma_core_bound"), method: &ports::SAPPHIRE_RAPIDS },
    ],
    named: &groups::SAPPHIRE_RAPIDS,
    ..ICE_LAKE
};

/// Stack of Zen 4, by the slots of dispatch: AMD's pipeline utilization.
static ZEN_4: Stack = Stack {
    cycles: "CYCLES_NOT_IN_HALT",
    instructions: "RETIRED_INSTRUCTIONS",
    mispredictions: Some("RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED"),
    groups: &[
        &[
            "DISPATCH_STALLS_1.FE_NO_OPS",
            "DISPATCH_STALLS_1.BE_STALLS",
            "OPS_SOURCE_DISPATCHED_FROM_DECODER:DECODER:OPCACHE:LOOP_BUFFER",
            "RETIRED_OPS",
        ],
        &[
            "CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU",
            "CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD",
        ],
    ],
    sampled: next::ZEN_4,
    method: &formulas::ZEN_4,
    further: &[Further { parent: None, method: &decoders::ZEN_4 }],
    named: &groups::ZEN_4,
};

/// Views of a processor's cycles.
struct Views {
    slots: &'static Stack,
    /// First level of the slots: few events, which fit into a list for another purpose.
    first: Stack,
    stalls: Stack,
}

impl Stack {
    /// Event to sample for the lines where the cycles of the part with this name are lost.
    pub fn event_to_sample(&self, part: &str) -> &'static str {
        let mut rows = self.sampled.iter().copied().flatten();
        rows.find(|(name, _)| *name == part).map_or(self.cycles, |(_, event)| event)
    }

    /// Names of the parts of the cycles, of the first level and of the whole tree.
    pub fn part_names(&self) -> impl Iterator<Item = &'static str> {
        self.method.metrics.iter().map(|metric| metric.name)
    }

    /// Stack of the same processor with another method: these groups, and nothing on request.
    const fn by(
        &self,
        method: &'static TopDown,
        groups: &'static [&'static [&'static str]],
    ) -> Stack {
        let (further, named) = (&[], &[]);
        Stack { mispredictions: None, groups, method, further, named, ..*self }
    }
}

static ICE_LAKE_VIEWS: Views = Views {
    slots: &ICE_LAKE,
    first: ICE_LAKE.by(&first::ICE_LAKE, ICE_LAKE.groups.split_at(1).0),
    stalls: ICE_LAKE.by(&stalls::ICE_LAKE, stalls::ICE_LAKE_GROUPS),
};
static SAPPHIRE_RAPIDS_VIEWS: Views = Views {
    slots: &SAPPHIRE_RAPIDS,
    first: SAPPHIRE_RAPIDS.by(&first::SAPPHIRE_RAPIDS, SAPPHIRE_RAPIDS.groups.split_at(1).0),
    stalls: SAPPHIRE_RAPIDS.by(&stalls::SAPPHIRE_RAPIDS, stalls::SAPPHIRE_RAPIDS_GROUPS),
};
static ZEN_4_VIEWS: Views = Views {
    slots: &ZEN_4,
    first: ZEN_4.by(&first::ZEN_4, ZEN_4.groups),
    stalls: ZEN_4.by(&stalls::ZEN_4, stalls::ZEN_4_GROUPS),
};

/// Stacks of all processors, by the slots of dispatch.
pub static ALL: [&Stack; 3] = [&ICE_LAKE, &SAPPHIRE_RAPIDS, &ZEN_4];

/// Stack of the processor with this signature (CPUID leaf 1, EAX), if it has events for one.
pub fn of(signature: u32) -> Option<&'static Stack> {
    views_of(signature).map(|views| views.slots)
}

/// First level of the processor's stack.
pub fn short_of(signature: u32) -> Option<&'static Stack> {
    views_of(signature).map(|views| &views.first)
}

/// Completion stalls of the processor.
pub fn stalls_of(signature: u32) -> Option<&'static Stack> {
    views_of(signature).map(|views| &views.stalls)
}

fn views_of(signature: u32) -> Option<&'static Views> {
    let model = signature >> 12 & 0xf0 | signature >> 4 & 0xf;
    match (signature & 0x0ff0_0f00, model) {
        (0x600, 0x6a | 0x6c) => Some(&ICE_LAKE_VIEWS),
        (0x600, 0x8f | 0xcf) => Some(&SAPPHIRE_RAPIDS_VIEWS),
        (0xa0_0f00, 0x10..=0x1f | 0x60..=0xaf) => Some(&ZEN_4_VIEWS),
        _ => None,
    }
}

/// Message that a processor has no stack, with the alternatives.
pub fn missing() -> String {
    "no events of this processor tell apart what cycles are lost to: Ice Lake, Sapphire and Emerald \
     Rapids servers and Zen 4 have such events. Sampling cycles finds where they go, without the cause: \
     `record -e cycles PROGRAM`; counts of single causes can be had: `stat -e \
     cycles,instructions,branch-misses,cache-misses PROGRAM`"
        .into()
}

impl Stack {
    /// Events to count. Events to be counted together are adjacent, so that the planner puts them
    /// into one group if it fits on the counters.
    pub fn events(&self) -> Vec<&'static str> {
        self.ordered(self.method.events.iter().copied())
    }

    /// Events needed by the parts without children.
    pub fn of_cycles(&self) -> Vec<&'static str> {
        let is_read = |event: &str| {
            leaves(self.method).any(|metric| events_of(self.method, metric).contains(&event))
        };
        self.ordered(self.method.events.iter().copied().filter(|event| is_read(event)))
    }

    /// Core cycles, instructions, and then `events`, those of groups first.
    fn ordered(&self, events: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
        let mut rest: Vec<&'static str> = events.collect();
        let mut ordered = vec![self.cycles, self.instructions];
        let grouped = self.groups.iter().copied().flatten().copied();
        let grouped: Vec<&str> = grouped.filter(|event| rest.contains(event)).collect();
        rest.splice(0..0, grouped);
        for event in rest {
            if !ordered.contains(&event) {
                ordered.push(event);
            }
        }
        ordered
    }

    /// Metrics of the vendor in the order of its tree. Metrics of `further` for which `is_wanted`
    /// holds follow the other parts of their parents.
    pub(super) fn tree(
        &self,
        is_wanted: impl Fn(&Further) -> bool,
    ) -> Vec<(&'static TopDown, &'static Metric)> {
        let of = |method: &'static TopDown| method.metrics.iter().map(move |it| (method, it));
        let mut tree: Vec<_> = of(self.method).collect();
        for further in self.further.iter().filter(|further| is_wanted(further)) {
            let parts = further.parent.and_then(|parent| parts_of(&tree, parent));
            let end = parts.map_or(tree.len(), |parts| parts.end);
            tree.splice(end..end, of(further.method));
        }
        tree
    }

    /// Text for the user: distinctions not made by the processor, and missing parts.
    pub fn missing(&self) -> &'static str {
        self.method.missing
    }

    /// Events to count, followed by those of a list for another purpose.
    pub fn before<'a>(&self, list: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let own = self.events();
        let others = list.filter(|event| !own.contains(event)).collect::<Vec<_>>();
        [own, others].concat()
    }
}

/// Properties of a metric or a part of a tree that [`leaves_of`] needs.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) level: u8,
    pub(super) is_slots: bool,
    pub(super) is_work: bool,
}

/// Indices of the nodes of a tree that divide all slots once: nodes of slots without such children,
/// and retiring as a whole.
pub(super) fn leaves_of(tree: &[Node]) -> Vec<usize> {
    let is_leaf = |at: &usize| {
        let node = tree[*at];
        let mut parts = tree[at + 1..].iter().take_while(|it| it.level > node.level);
        let is_divided = parts.any(|it| it.is_slots) && !node.is_work;
        let first = tree[..*at].iter().rev().find(|it| it.level == 1);
        let is_of_work = node.level > 1 && first.is_some_and(|it| it.is_work);
        node.is_slots && !is_divided && !is_of_work
    };
    (0..tree.len()).filter(is_leaf).collect()
}

/// Metrics that divide all slots once.
pub(super) fn leaves(method: &'static TopDown) -> impl Iterator<Item = &'static Metric> {
    let node = |metric: &Metric| Node {
        level: metric.level,
        is_slots: metric.whole == Whole::Slots,
        is_work: metric.name == RETIRING,
    };
    let tree: Vec<Node> = method.metrics.iter().map(node).collect();
    leaves_of(&tree).into_iter().map(|at| &method.metrics[at])
}

/// Part of the slots that is not lost.
pub(super) const RETIRING: &str = "retiring";

/// Events that a metric's formula reads.
pub(super) fn events_of(method: &TopDown, metric: &Metric) -> Vec<&'static str> {
    let read = RefCell::new(Vec::new());
    (metric.formula)(&|name| {
        read.borrow_mut().extend(method.events.iter().find(|event| **event == name));
        1.0
    });
    let mut events = read.into_inner();
    events.sort_unstable();
    events.dedup();
    events
}

/// Range of the parts of a metric in a tree, at all levels.
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
    use super::*;

    const SIGNATURES: [u32; 3] = [0x606a6, 0x806f8, 0xa1_0f11];

    #[test]
    fn a_first_level_is_a_few_groups_of_events_of_the_whole_stack() {
        for signature in SIGNATURES {
            let (whole, short) = (of(signature).unwrap(), short_of(signature).unwrap());
            let group = short.groups.concat();
            assert!(short.groups.iter().all(|group| group.len() <= 4), "{group:?}");
            let events = short.events();
            assert_eq!(events[..2], [whole.cycles, whole.instructions]);
            assert!(events[2..].starts_with(&group), "{events:?}");
            assert!(events.len() <= 3 + group.len(), "{events:?}");
            assert!(events.iter().all(|event| whole.events().contains(event)), "{events:?}");
            let list = ["A", group[1], "B", whole.cycles];
            assert_eq!(short.before(list.into_iter()), [&events[..], &["A", "B"]].concat());
        }
    }

    #[test]
    fn metrics_on_request_are_behind_the_other_parts_of_their_parents() {
        for stack in ALL {
            let usual = stack.method.metrics.iter().map(|metric| metric.metric);
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
    fn parts_have_names_of_their_own() {
        for signature in SIGNATURES {
            for stack in [of, short_of, stalls_of].map(|of| of(signature).unwrap()) {
                let mut names: Vec<&str> = stack.method.metrics.iter().map(|it| it.name).collect();
                names.sort_unstable();
                assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
                assert_eq!(stack.method.metrics[0].name, RETIRING);
                let events = stack.of_cycles();
                assert!(events.iter().all(|event| stack.events().contains(event)), "{events:?}");
            }
        }
    }

    #[test]
    fn leaves_divide_all_slots_once() {
        let names = |signature| -> Vec<&str> {
            leaves(of(signature).unwrap().method).map(|metric| metric.name).collect()
        };
        let intel = [
            "retiring",
            "fetch latency",
            "fetch bandwidth",
            "mispredicted branches",
            "machine clears",
            "memory",
            "core",
        ];
        assert_eq!([names(0x606a6), names(0x806f8)], [intel, intel]);
        let [first, others @ ..] = &names(0xa1_0f11)[..] else { panic!("there are parts") };
        assert_eq!((*first, others.len()), ("retiring", 8));
        assert_eq!(others.last(), Some(&"the core's other thread"));
    }
}
