//! Savings without each cause of lost cycles, from shadow cores of the virtual PMU: they ran beside
//! the machine's own core on the same instructions, each with some perfect structures.
//!
//! The computation is pure and uses only the truth. The shadow cores execute the machine's own
//! instruction stream, so timing does not change the program's behaviour.

use std::{borrow::Cow, fmt};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tally_abi::{
    text::{Grouped, percent},
    truth::{Region, ShadowTruth, Truth},
};

use crate::{
    Result,
    shadows::{self, wrong},
};

/// A cause of lost cycles, and the structures whose imperfection is the cause.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Name in tables.
    pub name: &'static str,
    /// The structures, as in the virtual PMU's option `shadows`.
    pub perfect: &'static str,
}

const fn cause(name: &'static str, perfect: &'static str) -> Cause {
    Cause { name, perfect }
}

const BRANCHES: Cause = cause("mispredicted branches", "branch+indirect+returns");
const UNITS: Cause = cause("execution units", "units");
const QUEUES: Cause = cause("full queues", "queues");

/// The causes, in the order of the pipeline. The cause of a cache or a TLB includes the levels
/// behind it, which a perfect one never accesses. A perfect second-level TLB would serve code too.
pub const CAUSES: [Cause; 10] = [
    BRANCHES,
    cause("L1I misses", "l1i"),
    cause("ITLB misses", "itlb"),
    cause("taken and unknown branches", "fetch"),
    cause("L1D misses", "l1d"),
    cause("L2 misses of data", "l2d"),
    cause("last-level misses of data", "llcd"),
    cause("DTLB misses", "dtlb"),
    UNITS,
    QUEUES,
];

/// The groups of causes. Each pair of them is also made perfect together.
pub const GROUPS: [Cause; 5] = [
    Cause { name: "branches", ..BRANCHES },
    cause("code", "l1i+itlb+fetch"),
    cause("data", "l1d+dtlb"),
    Cause { name: "units", ..UNITS },
    Cause { name: "queues", ..QUEUES },
];

/// Tolerance of an answer: a cause is accepted as the largest if it saves at most this share of the
/// cycles less than the cause that saves most.
pub const AS_GOOD: f64 = 0.02;

/// Share of the cycles from which on an interaction is printed.
const SMALL: f64 = 0.05;

/// Columns of a cause's name, and of its structures.
const NAME: usize = 28;
const PERFECT: usize = 26;

/// All pairs of groups.
fn pairs() -> impl Iterator<Item = [Cause; 2]> {
    let others = |first| GROUPS.into_iter().skip(first + 1);
    let with = move |(first, one)| others(first).map(move |other| [one, other]);
    GROUPS.into_iter().enumerate().flat_map(with)
}

/// The structures of two groups.
fn both([one, other]: [Cause; 2]) -> String {
    format!("{}+{}", one.perfect, other.perfect)
}

/// Extent of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Wanted {
    /// Each cause alone
    Causes,
    /// Each of five groups of causes alone
    Groups,
    /// Each cause and group alone, each two groups, and how they overlap
    Pairs,
}

impl Wanted {
    /// The perfect structures of each shadow core that is needed.
    pub fn cores(self) -> Vec<String> {
        let alone = |causes: &[Cause]| -> Vec<String> {
            causes.iter().map(|cause| cause.perfect.to_owned()).collect()
        };
        match self {
            Wanted::Causes => alone(&CAUSES),
            Wanted::Groups => alone(&GROUPS),
            Wanted::Pairs => {
                let mut all = alone(&CAUSES);
                for perfect in alone(&GROUPS).into_iter().chain(pairs().map(both)) {
                    if !all.contains(&perfect) {
                        all.push(perfect);
                    }
                }
                all
            }
        }
    }

    /// The virtual PMU's option for these cores.
    pub fn option(self) -> String {
        format!("shadows={}", self.cores().join("/"))
    }
}

/// The program's savings without each cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WhatIf {
    /// The program's core cycles in user mode, as it ran.
    pub cycles: u64,
    /// The savings without each cause, the largest first, if the cores for it ran.
    pub causes: Vec<Saving>,
    /// The savings without each group of causes.
    pub groups: Vec<Saving>,
    /// The savings without two groups of causes, in the order of the pipeline, if the cores for it
    /// ran.
    pub interactions: Vec<Interaction>,
}

/// The saving without a cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saving {
    /// The cause.
    pub cause: Cow<'static, str>,
    /// The structures that were perfect.
    pub perfect: Cow<'static, str>,
    /// Core cycles saved; below 0 if the program would take more.
    pub saved_cycles: i64,
    /// The saving as a share of the program's cycles.
    pub saved_share: f64,
}

/// The savings without two groups of causes, as shares of the program's cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interaction {
    /// The groups.
    pub causes: [Cow<'static, str>; 2],
    /// Saving without each group alone.
    pub saved_alone: [f64; 2],
    /// Saving without both groups.
    pub saved_both: f64,
    /// Excess over the sum of the two single savings: cycles that each group hides of the other. If
    /// negative, cycles that the sum counts twice.
    pub difference: f64,
}

impl Interaction {
    /// Returns whether the interaction is printed.
    pub fn is_large(&self) -> bool {
        self.difference.abs() > SMALL
    }
}

impl WhatIf {
    /// Computes the savings from the truth's region of a program, and the same region of the shadow
    /// cores, by their structures.
    ///
    /// # Errors
    /// The truth lacks an event or a core, or a core executed something else.
    pub fn of(own: &Region, beside: &[(&str, &Region)]) -> Result<WhatIf> {
        let cycles = shadows::cycles(own)?;
        let beside = shadows::beside(own, beside)?;
        let saved = |perfect: &str| {
            let found = beside.get(perfect).copied();
            let cycles_of = found.ok_or_else(|| wrong(format!("no core {perfect} ran")))?;
            Ok(cycles as i64 - cycles_of as i64)
        };
        let share = |saved: i64| saved as f64 / cycles.max(1) as f64;
        let saving = |cause: &Cause| {
            let saved_cycles = saved(cause.perfect)?;
            let (name, perfect) = (cause.name.into(), cause.perfect.into());
            Ok(Saving { cause: name, perfect, saved_cycles, saved_share: share(saved_cycles) })
        };
        let interaction = |pair: [Cause; 2]| {
            let [one, other] = pair.map(|cause| saved(cause.perfect));
            let saved_alone = [share(one?), share(other?)];
            let saved_both = share(saved(&both(pair))?);
            let difference = saved_both - saved_alone.iter().sum::<f64>();
            let causes = pair.map(|cause| cause.name.into());
            Ok(Interaction { causes, saved_alone, saved_both, difference })
        };
        let alone = |causes: &[Cause]| {
            let ran = causes.iter().all(|cause| beside.contains_key(cause.perfect));
            let causes = causes.iter().filter(|_| ran).map(saving);
            let mut savings = causes.collect::<Result<Vec<_>>>()?;
            savings.sort_by_key(|saving| std::cmp::Reverse(saving.saved_cycles));
            Ok(savings)
        };
        let (causes, groups) = (alone(&CAUSES)?, alone(&GROUPS)?);
        if causes.is_empty() && groups.is_empty() {
            return Err(wrong("not all cores with perfect structures ran".into()));
        }
        let ran = |pair: &[Cause; 2]| beside.contains_key(&both(*pair));
        let interactions = pairs().filter(ran).map(interaction).collect::<Result<_>>()?;
        Ok(WhatIf { cycles, causes, groups, interactions })
    }

    /// Computes the savings of a session.
    ///
    /// # Errors
    /// As [`Self::of`], or the truth lacks the session.
    pub fn of_session(truth: &Truth, tag: u32) -> Result<WhatIf> {
        let missing = || wrong(format!("the truth has no session {tag}"));
        let own = truth.session(tag).ok_or_else(missing)?;
        let of = |core: &ShadowTruth| core.session(tag);
        let regions: Option<Vec<Region>> = truth.shadows.iter().map(of).collect();
        let regions = regions.ok_or_else(missing)?;
        let names = truth.shadows.iter().map(|core| &*core.perfect);
        let beside: Vec<_> = names.zip(&regions).collect();
        WhatIf::of(&own, &beside)
    }

    /// The saving without a group of causes alone, as a share of the program's cycles; 0 if its
    /// core did not run.
    pub fn alone(&self, group: &str) -> f64 {
        let found = self.groups.iter().find(|saving| saving.cause == group);
        found.map_or(0.0, |saving| saving.saved_share)
    }

    /// The savings without each cause, or without each group of causes if only these ran.
    fn shown(&self) -> &[Saving] {
        if self.causes.is_empty() { &self.groups } else { &self.causes }
    }

    /// The cause without which the program would save most.
    pub fn largest(&self) -> Option<&Saving> {
        self.shown().first()
    }
}

impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<NAME$} {:<PERFECT$} {:>13} {:>7}",
            "what if without", "perfect", "saved", "share"
        )?;
        for Saving { cause, perfect, saved_cycles, saved_share } in self.shown() {
            let sign = if *saved_cycles < 0 { "-" } else { "" };
            let saved = format!("{sign}{}", Grouped(saved_cycles.unsigned_abs()));
            let share = percent(*saved_share, false);
            writeln!(f, "{cause:<NAME$} {perfect:<PERFECT$} {saved:>13} {share:>7}")?;
        }
        for interaction in self.interactions.iter().filter(|one| one.is_large()) {
            writeln!(f, "{interaction}")?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Interaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interaction { causes: [one, other], saved_alone, saved_both, difference } = self;
        let all = [*saved_both, saved_alone[0], saved_alone[1]];
        let [both, first, second] = all.map(|share| percent(share, false));
        let (sign, what) = if *difference > 0.0 { ('+', "hidden") } else { ('-', "twice") };
        write!(f, "{sign} {one}, {other}: {both} together, {first} and {second} alone: ")?;
        write!(f, "{} {what}", percent(difference.abs(), false))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;
    use tally_abi::truth::{Count, PmiCost, RegionKind};
    use tally_model::Perfect;

    use super::*;

    fn region(instructions: u64, cycles: u64) -> Region {
        let count = |(name, user): (&str, u64)| (name.to_owned(), Count { user, kernel: 7 });
        let events = [("INST_RETIRED.ANY", instructions), ("CPU_CLK_UNHALTED.THREAD", cycles)];
        Region {
            kind: RegionKind::Session,
            tag: 1,
            address_space: 0,
            closed: true,
            events: events.map(count).into_iter().collect::<BTreeMap<_, _>>(),
            cpus: Vec::new(),
            pmi: PmiCost::default(),
        }
    }

    /// A program of 1,000,000 cycles. A quarter of the branches' cycles is a wait for data. Code is
    /// late behind busy units, so that either alone saves nothing.
    fn truth() -> Truth {
        let cycles = |perfect: &str| {
            let is = |name: &str| perfect.split('+').any(|one| one == name);
            let branches = if is("branch") { 0 } else { 400_000 };
            let data = if is("l1d") || is("l2d") { 0 } else { 200_000 };
            let last = if is("llcd") && data > 0 { 50_000 } else { 0 };
            let waits = if branches > 0 && data == 0 { 100_000 } else { 0 };
            let late = if is("units") && is("l1i") { 0 } else { 60_000 };
            let more = if is("queues") { 1_000 } else { 0 };
            240_000 + branches - waits + data - last + late + more + 100_000
        };
        let core = |perfect: String| {
            let regions = vec![region(500, cycles(&perfect))];
            ShadowTruth { perfect, regions }
        };
        Truth {
            version: tally_abi::truth::VERSION,
            profile: "icelake-server".into(),
            regions: vec![region(500, 1_000_000)],
            shadows: Wanted::Pairs.cores().into_iter().map(core).collect(),
        }
    }

    #[test]
    fn each_cause_has_what_its_core_saves() {
        let what_if = WhatIf::of_session(&truth(), 1).unwrap();
        let largest = what_if.largest().unwrap();
        assert_eq!((&*largest.cause, largest.saved_cycles), ("mispredicted branches", 400_000));
        let text = what_if.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        expect![[r#"
            what if without              perfect                            saved   share
            mispredicted branches        branch+indirect+returns          400,000   40.0%
            L1D misses                   l1d                              300,000   30.0%
            L2 misses of data            l2d                              300,000   30.0%
            last-level misses of data    llcd                              50,000   5.00%
            L1I misses                   l1i                                    0   0.00%
            ITLB misses                  itlb                                   0   0.00%
            taken and unknown branches   fetch                                  0   0.00%
            DTLB misses                  dtlb                                   0   0.00%
            execution units              units                                  0   0.00%
            full queues                  queues                            -1,000  -0.10%
            - branches, data: 60.0% together, 40.0% and 30.0% alone: 10.0% twice
            + code, units: 6.00% together, 0.00% and 0.00% alone: 6.00% hidden

        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_truth_without_a_core_or_of_another_program_is_refused() {
        let of = |change: fn(&mut Truth)| {
            let mut truth = truth();
            change(&mut truth);
            WhatIf::of_session(&truth, 1).unwrap_err().message
        };
        assert!(of(|truth| truth.shadows.truncate(8)).contains("not all cores"));
        assert!(of(|truth| truth.shadows[0].regions[0] = region(501, 9)).contains("another"));
        assert!(of(|truth| truth.shadows[0].regions.clear()).contains("no session 1"));
        assert!(of(|truth| truth.regions.clear()).contains("no session 1"));
    }

    #[test]
    fn one_run_has_room_for_all_cores_which_exist() {
        let all = Wanted::Pairs.cores();
        assert_eq!(all.len(), CAUSES.len() + 2 + 10);
        assert_eq!(all[..CAUSES.len()], Wanted::Causes.cores());
        assert!(all.len() <= 32, "the most that a run can have");
        for perfect in &all {
            let mut structures = Perfect::default();
            assert!(perfect.split('+').all(|name| structures.set(name)), "{perfect}");
        }
    }

    #[test]
    fn without_the_cores_of_pairs_there_are_causes_alone() {
        let mut truth = truth();
        let all = WhatIf::of_session(&truth, 1).unwrap();
        truth.shadows.truncate(CAUSES.len());
        let alone = WhatIf::of_session(&truth, 1).unwrap();
        assert_eq!((alone.causes, alone.interactions), (all.causes, Vec::new()));
    }

    #[test]
    fn the_names_in_json_are_those_documented() {
        let what_if = WhatIf::of_session(&truth(), 1).unwrap();
        let json = serde_json::to_value(&what_if).unwrap();
        assert_eq!(json["cycles"], 1_000_000);
        assert_eq!(json["causes"][0]["cause"], "mispredicted branches");
        assert_eq!(json["causes"][0]["saved_share"], 0.4);
        assert_eq!(json["causes"][0]["saved_cycles"], 400_000);
        assert_eq!(json["interactions"].as_array().map(Vec::len), Some(10));
        assert_eq!(json["interactions"][1]["causes"], serde_json::json!(["branches", "data"]));
        assert_eq!(serde_json::from_value::<WhatIf>(json).unwrap(), what_if);
    }
}
