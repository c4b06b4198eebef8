//! Shared parts of the vendors' tables: a shorthand for an event, and sets of signals.

use tally_model::Signal::{self, *};

use crate::event::Event;

/// Makes an event: shorthand for the tables.
pub(super) const fn e(
    name: &'static str,
    code: u16,
    umask: u16,
    signals: &'static [Signal],
    about: &'static str,
) -> Event {
    Event::new(name, code, umask, signals, about)
}

/// Every load, by the level that served it.
pub(super) const LOADS: &[Signal] = &[LoadL1Hit, LoadL2Hit, LoadL3Hit, LoadL3Miss];
/// Taken branches that were mispredicted.
pub(super) const MISPREDICTS_TAKEN: &[Signal] =
    &[MispredictCondTaken, MispredictReturn, MispredictIndirect];

const IN_LOADS: [Signal; 5] = [StallL1Hit, StallL2Hit, StallL3Hit, StallMemory, StallDtlb];
const IN_MEMORY: [Signal; 6] = Signal::MEMORY_STALLS;
const IN_UNITS: [Signal; 3] = [StallDivider, StallFp, StallInteger];

/// The causes of cycles without retirement that lie in loads.
pub(super) const LOAD_STALLS: &[Signal] = &IN_LOADS;
/// The causes of cycles without retirement that lie in memory.
pub(super) const MEMORY: &[Signal] = &IN_MEMORY;
/// The causes of cycles in which the oldest operation is not complete.
pub(super) const NOT_COMPLETE: &[Signal] = &join::<6, 3, 9>(IN_MEMORY, IN_UNITS);
/// Slots that dispatch lost behind full structures and serializing instructions.
pub(crate) const BACK_END_SLOTS: &[Signal] = &[SlotsMemory, SlotsCore];
/// Slots that dispatch lost because fetch delivered too little, wrong paths aside.
pub(crate) const FETCH_SLOTS: &[Signal] = &[SlotsFetchLatency, SlotsFetchBandwidth];
/// Slots lost to wrong paths: their micro-operations, and the recovery.
pub(crate) const BAD_SPECULATION_SLOTS: &[Signal] = &[SlotsWrongPath, SlotsRefill];

/// First level of PERF_METRICS, by perf's names and codes; no general counter counts these.
#[rustfmt::skip] // One event in a line.
pub(super) const METRICS: &[Event] = &[
    metric("topdown-retiring", 0x80, &[Uops], "Slots of PERF_METRICS: retiring."),
    metric("topdown-bad-spec", 0x81, BAD_SPECULATION_SLOTS, "Slots of PERF_METRICS: wrong paths."),
    metric("topdown-fe-bound", 0x82, FETCH_SLOTS, "Slots of PERF_METRICS: front end."),
    metric("topdown-be-bound", 0x83, BACK_END_SLOTS, "Slots of PERF_METRICS: back end."),
];
/// Second level of PERF_METRICS.
#[rustfmt::skip] // One event in a line.
pub(super) const MORE_METRICS: &[Event] = &[
    metric("topdown-heavy-ops", 0x84, &[UopsMicrocode], "Slots of PERF_METRICS: microcode."),
    metric("topdown-br-mispredict", 0x85, BAD_SPECULATION_SLOTS, "Slots of PERF_METRICS: wrong paths."),
    metric("topdown-fetch-lat", 0x86, &[SlotsFetchLatency], "Slots of PERF_METRICS: fetch latency."),
    metric("topdown-mem-bound", 0x87, &[SlotsMemory], "Slots of PERF_METRICS: waiting for data."),
];

const fn metric(
    name: &'static str,
    umask: u16,
    signals: &'static [Signal],
    about: &'static str,
) -> Event {
    e(name, 0, umask, signals, about).on(0).unlisted()
}

/// Concatenates two arrays of signals.
const fn join<const N: usize, const M: usize, const BOTH: usize>(
    first: [Signal; N],
    second: [Signal; M],
) -> [Signal; BOTH] {
    assert!(N + M == BOTH);
    let mut both = [first[0]; BOTH];
    let mut index = 0;
    while index < BOTH {
        both[index] = if index < N { first[index] } else { second[index - N] };
        index += 1;
    }
    both
}
