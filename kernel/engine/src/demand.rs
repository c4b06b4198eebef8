//! The planner's input: the needs of events, and the counters of the PMU.

use tally_abi::{Mode, trace::MAX_COUNTS};

use crate::{metrics::Metric, precise::Precision};

/// Maximum number of general counters of a group. Counters are identified by their hardware index,
/// and sets of them are bit masks of 16 bits.
pub const MAX_GENERAL: usize = 10;
const _: () = assert!(MAX_GENERAL == MAX_COUNTS);

/// An event select as the PMU takes it, complete with privilege and enable bits; opaque to the
/// engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector(pub u64);

/// An event with a counter of its own, in every slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// Instructions retired.
    Instructions,
    /// Core cycles.
    Cycles,
    /// Cycles of the reference clock (the TSC's rate), while not halted.
    Reference,
}

impl Pinned {
    /// All, in the order of their values.
    pub const ALL: [Pinned; 3] = [Pinned::Instructions, Pinned::Cycles, Pinned::Reference];
}

/// Maximum number of extra registers ([`Extra`]). They are identified by the driver's numbers, and
/// sets of them are bit masks.
pub const MAX_EXTRA: usize = 3;

/// Maximum number of slices of a group in a round.
pub const MAX_SHARE: u16 = 64;

/// An event's need of a value in a register that all counters share, such as Intel's off-core
/// response registers. A register can hold only one value at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extra {
    /// The value.
    pub value: u64,
    /// The registers that may hold it, as a mask; one or two.
    pub registers: u8,
    /// The event's selector if the second of two registers holds the value.
    pub second: Selector,
}

/// The needs of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Value of a general counter's event select for this event.
    pub selector: Selector,
    /// The general counters that can count it, as a mask.
    pub counters: u16,
    /// The select that the counter after the event's own needs: the event then takes both, and
    /// its count is in the first of them.
    pub pair: Option<Selector>,
    /// The pinned event, if it is one; then the other fields are not used.
    pub pinned: Option<Pinned>,
    /// The metric, if it is one; then only [`Self::together`] is used of the other fields.
    pub metric: Option<Metric>,
    /// The value that it needs in an extra register.
    pub extra: Option<Extra>,
    /// Whether no other event may be on a general counter at the same time.
    pub alone: bool,
    /// Whether the event is counted in ring 0 too, whatever the session's mode; not for a pinned
    /// event, whose privilege is the session's.
    pub kernel: bool,
    /// Whether the event counts retired instructions or branches: many processors count an
    /// interrupt as one ([`crate::Session::set_overcount`]). Pinned instructions are affected in
    /// any case.
    pub retired: bool,
    /// The need of precise samples; `None` if samples are not precise.
    pub precise: Option<Precision>,
    /// Minimum number of slices of its group in a round: 1 to [`MAX_SHARE`].
    pub share: u16,
    /// Number of a set of events that are counted in the same slices.
    pub together: Option<u16>,
}

impl Demand {
    /// An event for any of `counters`, without other needs.
    pub const fn general(selector: Selector, counters: u16) -> Demand {
        Demand {
            selector,
            counters,
            pair: None,
            pinned: None,
            metric: None,
            extra: None,
            alone: false,
            kernel: false,
            retired: false,
            precise: None,
            share: 1,
            together: None,
        }
    }

    /// A pinned event.
    pub const fn pinned(event: Pinned) -> Demand {
        Demand { pinned: Some(event), ..Demand::general(Selector(0), 0) }
    }

    /// A metric.
    pub const fn metric(metric: Metric) -> Demand {
        Demand { metric: Some(metric), ..Demand::general(Selector(0), 0) }
    }

    /// Returns whether the event takes no general counter: it has a counter of its own, or is a
    /// metric.
    pub const fn is_always_counted(&self) -> bool {
        self.pinned.is_some() || self.metric.is_some()
    }

    /// Returns whether the event is counted in ring 0, in a session of this mode.
    pub(crate) fn is_in_ring_0(&self, mode: Mode) -> bool {
        if self.is_always_counted() { mode.kernel() } else { self.kernel }
    }

    /// Returns whether the event also counts interrupts.
    pub(crate) fn is_overcounted(&self) -> bool {
        self.retired || self.pinned == Some(Pinned::Instructions)
    }
}

/// The counters and registers of a PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The general counters that groups may use, as a mask.
    pub general: u16,
    /// Whether the PMU counts [`Pinned::Reference`]; it counts the other two in any case.
    pub reference: bool,
    /// The extra registers that groups may use, as a mask.
    pub extra: u8,
    /// The widths of the counters.
    pub widths: Widths,
}

/// The widths of counters, as masks of their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Mask of the pinned events' counters, the slice timer among them.
    pub pinned: u64,
    /// Mask of the general counters.
    pub general: u64,
}

impl Widths {
    /// The widths of counters that all have `bits` bits, fewer than 64.
    pub const fn of(bits: u32) -> Widths {
        let mask = (1 << bits) - 1;
        Widths { pinned: mask, general: mask }
    }
}
