//! Time by instruction: each cycle goes to the instructions whose latency it exposes (Gottschall,
//! Eeckhout and Jahre, "TIP: Time-Proportional Instruction Profiling", MICRO 2021, section 2), with
//! the events that they met ("TEA: Time-Proportional Event Analysis", ISCA 2023, section 3).
//!
//! | Cycle | Goes to |
//! |---|---|
//! | instructions retire | these, in equal parts |
//! | none retires, the reorder buffer has some | the oldest |
//! | it is empty after a misprediction | the branch |
//! | it is empty for another reason | the next to retire |
//!
//! Beside it stand what samplers would say if they sampled every cycle: so what differs is their
//! bias, without an error of sampling.

use crate::{access::ServedBy, block::Privilege};

/// Parts of a cycle: a multiple of every number up to 16, so that as many instructions that retire
/// in one cycle share it equally.
pub const CYCLE_PARTS: u64 = 720_720;

/// The rule by which an instruction gets a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Rule {
    /// The instructions whose latency the cycle exposes.
    Exposed,
    /// The next instruction to retire, the oldest of several: Intel's PEBS.
    NextToRetire,
    /// The last instruction that retired, the youngest of several.
    LastRetired,
    /// The next instruction to be dispatched, the oldest of several: AMD's IBS, Arm's SPE.
    Dispatched,
}

impl Rule {
    /// Every rule, in the order of a [`Charge`]'s times.
    pub const ALL: [Rule; 4] =
        [Rule::Exposed, Rule::NextToRetire, Rule::LastRetired, Rule::Dispatched];

    /// Name of the rule's column.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Exposed => "exposed",
            Rule::NextToRetire => "next_to_retire",
            Rule::LastRetired => "last_retired",
            Rule::Dispatched => "dispatched",
        }
    }
}

/// Events that an instruction met, each a bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Events(u8);

impl Events {
    /// A miss of its code in the L1.
    pub const CODE_MISS: Events = Events(1);
    /// A miss of its code's translation in the first-level TLB.
    pub const CODE_WALK: Events = Events(1 << 1);
    /// A wait of dispatch for the store queue.
    pub const STORES_FULL: Events = Events(1 << 2);
    /// A mispredicted branch.
    pub const MISPREDICTED: Events = Events(1 << 3);
    /// A miss of its data in the L1.
    pub const DATA_MISS: Events = Events(1 << 4);
    /// A miss of its data in the last level.
    pub const MEMORY: Events = Events(1 << 5);
    /// A page walk for its data.
    pub const DATA_WALK: Events = Events(1 << 6);

    /// Names of the events, from the lowest bit on.
    pub const NAMES: [&'static str; 7] =
        ["l1i", "itlb", "store-queue", "mispredicted", "l1d", "memory", "dtlb"];

    /// The bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    fn add(&mut self, other: Events) {
        self.0 |= other.0;
    }

    /// The events of a data access.
    fn of_data(by: ServedBy, walks: bool) -> Events {
        let miss = if by > ServedBy::L1 { Events::DATA_MISS.0 } else { 0 };
        let memory = if by == ServedBy::Memory { Events::MEMORY.0 } else { 0 };
        Events(miss | memory | if walks { Events::DATA_WALK.0 } else { 0 })
    }
}

/// An instruction's address at translation, and its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Ring.
    pub ring: Privilege,
    /// Address.
    pub pc: u64,
}

/// Time of an execution of an instruction, or of a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    /// The instruction.
    pub place: Place,
    /// The events that it met.
    pub events: Events,
    /// Whether it retires: a part of a repeated string instruction does not.
    pub retires: bool,
    /// The time by each of [`Rule::ALL`], in parts of a cycle ([`CYCLE_PARTS`]).
    pub times: [u64; Rule::ALL.len()],
}

/// The passage of an instruction, in cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    pub(crate) dispatched_at: u64,
    pub(crate) retired_at: u64,
}

/// The oracle: keeps the time of the instructions that retired in the last cycle, whose number and
/// events are not yet known, and those before until they are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    /// The cycle up to which all are charged, but for those of `group`.
    at: u64,
    /// The instructions that retired in the cycle `at`.
    group: Vec<Charge>,
    /// Whether something else had the cycle `at` to itself.
    is_taken: bool,
    /// Whether the last instruction is a mispredicted branch, and nothing came between.
    is_flushed: bool,
    /// Events of the instruction that is on its way.
    events: Events,
    /// The last cycle of dispatch.
    dispatched_at: u64,
    charges: Vec<Charge>,
}

impl Oracle {
    /// Notes an event of the instruction that is on its way.
    pub(crate) fn meet(&mut self, events: Events) {
        self.events.add(events);
    }

    /// Notes a data access of the instruction that is on its way.
    pub(crate) fn access(&mut self, by: ServedBy, walks: bool) {
        self.meet(Events::of_data(by, walks));
    }

    /// Notes that the last instruction is a mispredicted branch.
    pub(crate) fn mispredicted(&mut self) {
        if let Some(last) = self.group.last_mut() {
            last.events.add(Events::MISPREDICTED);
            self.is_flushed = true;
        }
    }

    /// Notes that an interrupt came between: the pipeline is empty because of it.
    pub(crate) fn interrupted(&mut self) {
        self.is_flushed = false;
    }

    /// Charges the cycles up to the retirement of an instruction.
    pub(crate) fn retire(&mut self, place: Place, passage: Passage) {
        let Passage { dispatched_at, retired_at } = passage;
        let events = std::mem::take(&mut self.events);
        let mut charge = Charge { place, events, retires: true, times: [0; Rule::ALL.len()] };
        charge.times[Rule::Dispatched as usize] = self.dispatch(dispatched_at);
        if retired_at > self.at {
            self.pass_gap(&mut charge, passage);
            self.at = retired_at;
            self.is_taken = false;
        }
        self.is_flushed = false;
        self.group.push(charge);
    }

    /// Charges the cycles without retirement before that of `next`, and ends the group before.
    fn pass_gap(&mut self, next: &mut Charge, Passage { dispatched_at, retired_at }: Passage) {
        let gap = retired_at - self.at - 1;
        let empty = dispatched_at.min(retired_at).saturating_sub(self.at + 1);
        next.times[Rule::NextToRetire as usize] += gap * CYCLE_PARTS;
        let mut exposed = gap;
        if let Some(last) = self.group.last_mut() {
            last.times[Rule::LastRetired as usize] += gap * CYCLE_PARTS;
            if self.is_flushed {
                last.times[Rule::Exposed as usize] += empty * CYCLE_PARTS;
                exposed -= empty;
            }
        } else {
            next.times[Rule::LastRetired as usize] += gap * CYCLE_PARTS;
        }
        next.times[Rule::Exposed as usize] += exposed * CYCLE_PARTS;
        self.end_group();
    }

    /// The time since the last cycle of dispatch.
    fn dispatch(&mut self, at: u64) -> u64 {
        let cycles = at.saturating_sub(self.dispatched_at);
        self.dispatched_at = self.dispatched_at.max(at);
        cycles * CYCLE_PARTS
    }

    /// Charges cycles that an instruction has to itself.
    pub(crate) fn occupy(&mut self, place: Place, cycles: u64) {
        if cycles == 0 {
            return;
        }
        self.end_group();
        self.is_flushed = false;
        self.at += cycles;
        self.is_taken = true;
        let mut times = [cycles * CYCLE_PARTS; Rule::ALL.len()];
        times[Rule::Dispatched as usize] = self.dispatch(self.at);
        self.charges.push(Charge { place, events: Events::default(), retires: false, times });
    }

    /// Charges the last cycle to the instructions that retired in it.
    fn end_group(&mut self) {
        let count = self.group.len() as u64;
        if count > 0 && !self.is_taken {
            let (share, rest) = (CYCLE_PARTS / count, CYCLE_PARTS % count);
            self.group.iter_mut().for_each(|one| one.times[Rule::Exposed as usize] += share);
            let first = &mut self.group[0].times;
            first[Rule::Exposed as usize] += rest;
            first[Rule::NextToRetire as usize] += CYCLE_PARTS;
            let last = &mut self.group[count as usize - 1].times;
            last[Rule::LastRetired as usize] += CYCLE_PARTS;
        }
        self.charges.append(&mut self.group);
    }

    /// Takes what has been charged.
    pub(crate) fn take(&mut self) -> std::vec::Drain<'_, Charge> {
        self.charges.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(pc: u64) -> Place {
        Place { ring: Privilege::User, pc }
    }

    /// Cycles by address and rule.
    fn cycles(oracle: &mut Oracle, pc: u64) -> [f64; 4] {
        let mut sums = [0; 4];
        for charge in oracle.charges.iter().filter(|charge| charge.place.pc == pc) {
            sums.iter_mut().zip(charge.times).for_each(|(sum, time)| *sum += time);
        }
        sums.map(|sum| sum as f64 / CYCLE_PARTS as f64)
    }

    fn retire(oracle: &mut Oracle, pc: u64, dispatched_at: u64, retired_at: u64) {
        oracle.retire(place(pc), Passage { dispatched_at, retired_at });
    }

    /// The four states of the paper's figure 2: computing, stalled, flushed, drained.
    #[test]
    fn each_state_goes_to_the_instruction_whose_latency_it_exposes() {
        let mut oracle = Oracle::default();
        retire(&mut oracle, 1, 1, 4);
        // Two retire in cycle 4, the third waits for its data until cycle 10.
        retire(&mut oracle, 2, 1, 4);
        oracle.access(ServedBy::Memory, false);
        retire(&mut oracle, 3, 2, 10);
        // A mispredicted branch; the right path is dispatched in cycle 30.
        retire(&mut oracle, 4, 3, 11);
        oracle.mispredicted();
        retire(&mut oracle, 5, 30, 33);
        // The next line of code comes from the L2.
        oracle.meet(Events::CODE_MISS);
        retire(&mut oracle, 6, 44, 47);
        oracle.end_group();
        assert_eq!(cycles(&mut oracle, 1), [3.5, 4.0, 3.0, 1.0]);
        assert_eq!(cycles(&mut oracle, 2), [0.5, 0.0, 6.0, 0.0]);
        assert_eq!(cycles(&mut oracle, 3), [6.0, 6.0, 1.0, 1.0]);
        // Cycles 12 to 29 the reorder buffer is empty.
        assert_eq!(cycles(&mut oracle, 4), [19.0, 1.0, 22.0, 1.0]);
        assert_eq!(cycles(&mut oracle, 5), [4.0, 22.0, 14.0, 27.0]);
        assert_eq!(cycles(&mut oracle, 6), [14.0, 14.0, 1.0, 14.0]);
        let events: Vec<u8> = oracle.charges.iter().map(|charge| charge.events.bits()).collect();
        let missed = Events::DATA_MISS.0 | Events::MEMORY.0;
        assert_eq!(events, [0, 0, missed, Events::MISPREDICTED.0, 0, Events::CODE_MISS.0]);
    }

    #[test]
    fn cycles_of_one_instruction_alone_are_charged_once() {
        let mut oracle = Oracle::default();
        retire(&mut oracle, 1, 1, 4);
        oracle.occupy(place(2), 10);
        // The instruction itself retires in the last of its cycles.
        retire(&mut oracle, 2, 14, 14);
        retire(&mut oracle, 3, 15, 18);
        oracle.end_group();
        assert_eq!(cycles(&mut oracle, 2)[0], 10.0);
        let exposed: f64 = (1..=3).map(|pc| cycles(&mut oracle, pc)[0]).sum();
        assert_eq!(exposed, 18.0);
    }

    #[test]
    fn an_interrupt_behind_a_mispredicted_branch_is_not_the_branch_s() {
        let mut oracle = Oracle::default();
        retire(&mut oracle, 1, 1, 4);
        oracle.mispredicted();
        oracle.interrupted();
        retire(&mut oracle, 2, 101, 104);
        oracle.end_group();
        assert_eq!([1, 2].map(|pc| cycles(&mut oracle, pc)[0]), [4.0, 100.0]);
    }

    #[test]
    fn as_many_as_can_retire_in_a_cycle_share_it_equally() {
        (1..=16).for_each(|count| assert_eq!(CYCLE_PARTS % count, 0));
    }
}
