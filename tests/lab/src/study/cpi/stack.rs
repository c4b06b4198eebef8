//! CPI stacks: of the reference, from runs with perfect structures, and of each architecture, from
//! its counters.

use std::collections::BTreeMap;

use serde::Serialize;
use tally_abi::truth::Region;
use xtask::{
    Result,
    shadows::{self, wrong},
};

/// The components of a stack, from the bottom.
pub(super) const COMPONENTS: [&str; 8] =
    ["base", "l1i", "l2i", "itlb", "branch", "l1d", "l2d", "dtlb"];
/// Number of components that an architecture counts: all except the base.
const COUNTED: usize = COMPONENTS.len() - 1;

/// A method of counting a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    /// The architecture's name in the names of the events.
    events: &'static str,
    /// The paper's name, or a name for a variant.
    pub(super) name: &'static str,
    /// Whether cycles of units before the resolution of a mispredicted branch are attributed to the
    /// branch.
    pub(super) takes_units: bool,
}

const fn method(events: &'static str, name: &'static str) -> Method {
    Method { events, name, takes_units: false }
}

/// The paper's architectures, and the table with one more counter per row.
pub(super) const METHODS: [Method; 6] = [
    method("naive", "naive"),
    method("nonspec", "naive non-spec"),
    method("power5", "POWER5"),
    method("fmt", "FMT"),
    method("sfmt", "sFMT"),
    Method { takes_units: true, ..method("fmt", "FMT+units") },
];

/// A core of the reference: its perfect structures, as in the virtual PMU's option.
const BASE: &str = "l1i+l1d+itlb+dtlb+branch+indirect+returns";
const WITH_L1D: &str = "l1i+l2d+itlb+dtlb+branch+indirect+returns";
const WITH_BRANCH: &str = "l1i+l2d+itlb+dtlb";

/// The real core: the machine's own.
const REAL: &str = "";

/// The components with the structures that are perfect in turn: from one entry to the next, one
/// structure becomes real.
type Order = [(&'static str, &'static str); COMPONENTS.len()];

/// The paper's order: the front end before the back end's long misses.
const DIRECT: Order = [
    ("base", BASE),
    ("l1d", WITH_L1D),
    ("branch", WITH_BRANCH),
    ("l1i", "l2i+l2d+itlb+dtlb"),
    ("l2i", "l2d+itlb+dtlb"),
    ("itlb", "l2d+dtlb"),
    ("l2d", "dtlb"),
    ("dtlb", REAL),
];

/// The order with its last two groups exchanged.
const INVERSE: Order = [
    ("base", BASE),
    ("l1d", WITH_L1D),
    ("branch", WITH_BRANCH),
    ("l2d", "l1i+itlb+dtlb"),
    ("dtlb", "l1i+itlb"),
    ("l1i", "l2i+itlb"),
    ("l2i", "itlb"),
    ("itlb", REAL),
];

/// Cycles per instruction by component, in the order of [`COMPONENTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Stack(pub(super) [f64; COMPONENTS.len()]);

impl Stack {
    /// The component in which another stack differs most, and the difference as a share of the
    /// total.
    pub(super) fn largest_error(&self, reference: &Stack) -> (&'static str, f64) {
        let total: f64 = reference.0.iter().sum();
        let apart = self.0.iter().zip(&reference.0).map(|(one, other)| (one - other).abs() / total);
        let named = COMPONENTS.into_iter().zip(apart);
        named.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or(("base", 0.0))
    }
}

/// The option of the virtual PMU for all cores of both orders.
pub(super) fn shadows() -> String {
    let mut all: Vec<&str> = Vec::new();
    for (_, perfect) in DIRECT.iter().chain(&INVERSE) {
        if *perfect != REAL && !all.contains(perfect) {
            all.push(perfect);
        }
    }
    format!("shadows={}", all.join("/"))
}

/// Counts of a run in ring 3: of the machine's own core, and of each shadow core by its structures.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    own: BTreeMap<String, u64>,
    cycles: BTreeMap<String, u64>,
    instructions: u64,
}

impl Counted {
    /// Reads the counts from the truth's region of the program, and from the same region of the
    /// shadow cores.
    ///
    /// # Errors
    /// The truth lacks an event, or a shadow core executed something else.
    pub(super) fn of(own: &Region, shadows: &[(&str, &Region)]) -> Result<Counted> {
        let mut cycles = shadows::beside(own, shadows)?;
        cycles.insert(REAL.to_owned(), shadows::cycles(own)?);
        let instructions = shadows::instructions(own)?;
        let own = own.events.iter().map(|(name, count)| (name.clone(), count.user)).collect();
        Ok(Counted { own, cycles, instructions })
    }

    /// Instructions retired.
    pub(super) fn instructions(&self) -> u64 {
        self.instructions.max(1)
    }

    /// The reference's stacks, in the paper's order and in the inverse order.
    ///
    /// # Errors
    /// A core of the order did not run.
    pub(super) fn references(&self) -> Result<[Stack; 2]> {
        Ok([self.reference(&DIRECT)?, self.reference(&INVERSE)?])
    }

    fn reference(&self, order: &Order) -> Result<Stack> {
        let (mut stack, mut before) = (Stack::default(), 0.0);
        for (component, perfect) in order {
            let cycles = self.cycles.get(*perfect);
            let cycles = *cycles.ok_or_else(|| wrong(format!("no core {perfect} ran")))? as f64;
            // A real structure can shorten a run, by other overlaps.
            stack.0[index(component)] = (cycles - before) / self.instructions() as f64;
            before = cycles;
        }
        Ok(stack)
    }

    /// The stack by an architecture's counters.
    ///
    /// # Errors
    /// The virtual PMU has no such counter.
    pub(super) fn by(&self, method: Method) -> Result<Stack> {
        let instructions = self.instructions() as f64;
        let per_instruction = |component: &str| {
            let name = format!("tally.{}.{component}", method.events);
            let count = self.own.get(&name);
            let count = count.ok_or_else(|| wrong(format!("the truth has no {name}")))?;
            Ok(*count as f64 / instructions)
        };
        let mut stack = Stack::default();
        for (at, component) in COMPONENTS.iter().enumerate().skip(1) {
            stack.0[at] = per_instruction(component)?;
        }
        if method.takes_units {
            stack.0[index("branch")] += per_instruction("branch_units")?;
        }
        let total = self.cycles.get(REAL).copied().unwrap_or(0) as f64 / instructions;
        stack.0[0] = total - stack.0[COMPONENTS.len() - COUNTED..].iter().sum::<f64>();
        Ok(stack)
    }
}

fn index(component: &str) -> usize {
    COMPONENTS.iter().position(|name| *name == component).unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests {
    use tally_abi::truth::{Count, PmiCost, RegionKind};
    use tally_model::Perfect;

    use super::*;

    fn region(events: &[(&str, u64)]) -> Region {
        let count =
            |(name, user): &(&str, u64)| ((*name).to_owned(), Count { user: *user, kernel: 7 });
        Region {
            kind: RegionKind::Marked,
            tag: 3,
            address_space: 0,
            closed: true,
            events: events.iter().map(count).collect(),
            cpus: Vec::new(),
            pmi: PmiCost::default(),
        }
    }

    /// A program of 1,000 instructions. Each structure that becomes real costs 100 cycles, whatever
    /// the order. FMT's counters are right except for 20 cycles of branches.
    pub(in super::super) fn counted() -> Counted {
        let perfect = |order: &Order| order.map(|(_, perfect)| perfect);
        let cores =
            perfect(&DIRECT).into_iter().zip(1..).chain(perfect(&INVERSE).into_iter().zip(1..));
        let regions: Vec<(&str, Region)> = cores
            .map(|(name, place)| {
                let cycles = ("CPU_CLK_UNHALTED.THREAD", 100 * place);
                (name, region(&[("INST_RETIRED.ANY", 1_000), cycles]))
            })
            .collect();
        let shadows: Vec<(&str, &Region)> = regions
            .iter()
            .filter(|(name, _)| *name != REAL)
            .map(|(name, of)| (*name, of))
            .collect();
        let names: Vec<(String, u64)> = METHODS
            .iter()
            .take(METHODS.len() - 1)
            .flat_map(|Method { events, .. }| {
                COMPONENTS[1..].iter().map(move |component| {
                    let off = match (*component, *events) {
                        ("branch", "fmt" | "sfmt") => 20,
                        ("branch", _) => 80,
                        _ => 0,
                    };
                    (format!("tally.{events}.{component}"), 100 - off)
                })
            })
            .collect();
        let mut events: Vec<(&str, u64)> = names.iter().map(|(name, of)| (&**name, *of)).collect();
        events.extend([("INST_RETIRED.ANY", 1_000), ("CPU_CLK_UNHALTED.THREAD", 800)]);
        events.push(("tally.fmt.branch_units", 20));
        Counted::of(&region(&events), &shadows).unwrap()
    }

    #[test]
    fn stacks_add_up_to_the_cycles() {
        let counted = counted();
        let near = |stack: Stack, want: [f64; 8]| {
            let apart = stack.0.iter().zip(want).map(|(one, other)| (one - other).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-9, "{stack:?}");
        };
        for reference in counted.references().unwrap() {
            near(reference, [0.1; 8]);
        }
        let fmt = counted.by(METHODS[3]).unwrap();
        near(fmt, [0.12, 0.1, 0.1, 0.1, 0.08, 0.1, 0.1, 0.1]);
        let (_, error) = fmt.largest_error(&counted.references().unwrap()[0]);
        assert!((error - 0.025).abs() < 1e-9, "{error}");
        near(counted.by(METHODS[5]).unwrap(), [0.1; 8]);
        assert!(counted.by(method("other", "other")).is_err());
    }

    #[test]
    fn a_core_that_ran_another_program_is_refused() {
        let own = region(&[("INST_RETIRED.ANY", 10), ("CPU_CLK_UNHALTED.THREAD", 20)]);
        let other = region(&[("INST_RETIRED.ANY", 11), ("CPU_CLK_UNHALTED.THREAD", 20)]);
        assert!(Counted::of(&own, &[("l1d", &other)]).is_err());
        assert!(Counted::of(&own, &[("l1d", &own)]).unwrap().references().is_err());
        assert!(Counted::of(&region(&[]), &[]).is_err());
    }

    #[test]
    fn each_order_makes_one_structure_real_at_a_time() {
        for order in [DIRECT, INVERSE] {
            let mut names: Vec<&str> = order.iter().map(|(component, _)| *component).collect();
            names.sort_unstable();
            let mut all = COMPONENTS;
            all.sort_unstable();
            assert_eq!(names, all);
            for (_, perfect) in order.iter().filter(|(_, perfect)| *perfect != REAL) {
                let mut structures = Perfect::default();
                assert!(perfect.split('+').all(|name| structures.set(name)), "{perfect}");
            }
        }
        assert_eq!(shadows().matches('/').count() + 1, 11);
    }
}
