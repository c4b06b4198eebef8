//! The planner's input: what events need, and what counters there are.

use tally_abi::{Mode, trace::MAX_COUNTS};

/// The most general counters of a group. Counters are named by their hardware index, and sets of
/// them are bit masks of eight bits.
pub const MAX_GENERAL: usize = 8;
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

/// The most extra registers ([`Extra`]). They are named by the driver's numbers, and sets of them
/// are bit masks.
pub const MAX_EXTRA: usize = 4;

/// The most slices that a group can have in a round.
pub const MAX_SHARE: u16 = 64;

/// What an event needs besides a counter: a value in a register that all counters share, such as
/// Intel's off-core response registers. Two values cannot be in one register at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extra {
    /// The value.
    pub value: u64,
    /// The registers that may hold it, as a mask; one or two.
    pub registers: u8,
    /// The event's selector where the second of two registers holds the value.
    pub second: Selector,
}

/// What one event needs of the PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// What to write into a general counter's event select.
    pub selector: Selector,
    /// The general counters that can count it, as a mask.
    pub counters: u8,
    /// If the event is pinned; then the rest is not used.
    pub pinned: Option<Pinned>,
    /// The extra register that it needs.
    pub extra: Option<Extra>,
    /// Whether no other event may be on a general counter at the same time.
    pub alone: bool,
    /// Whether it is counted in ring 0 too, whatever the session's mode; not for a pinned event,
    /// which is counted at the session's.
    pub kernel: bool,
    /// Whether it counts retired instructions or branches: on many processors an interrupt is
    /// counted as one ([`crate::Session::set_overcount`]). Pinned instructions are, in any case.
    pub retired: bool,
    /// The fewest slices of a round for its group: 1 to [`MAX_SHARE`].
    pub share: u16,
    /// The events with the same number here are counted in the same slices.
    pub together: Option<u16>,
}

impl Demand {
    /// An event for any of `counters`, without further needs.
    pub const fn general(selector: Selector, counters: u8) -> Demand {
        Demand {
            selector,
            counters,
            pinned: None,
            extra: None,
            alone: false,
            kernel: false,
            retired: false,
            share: 1,
            together: None,
        }
    }

    /// A pinned event.
    pub const fn pinned(event: Pinned) -> Demand {
        Demand { pinned: Some(event), ..Demand::general(Selector(0), 0) }
    }

    /// Returns whether it is counted in ring 0, in a session of this mode.
    pub(crate) fn is_in_ring_0(&self, mode: Mode) -> bool {
        if self.pinned.is_some() { mode.kernel() } else { self.kernel }
    }

    /// Returns whether interrupts may be counted too.
    pub(crate) fn is_overcounted(&self) -> bool {
        self.retired || self.pinned == Some(Pinned::Instructions)
    }
}

/// The counters and registers of a PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The general counters that groups may use, as a mask.
    pub general: u8,
    /// Whether the PMU counts [`Pinned::Reference`]; it counts the other two in any case.
    pub reference: bool,
    /// The extra registers that groups may use, as a mask.
    pub extra: u8,
    /// The widths of the counters.
    pub widths: Widths,
}

/// The widths of counters, as masks of the bits that they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Of the pinned events' counters, the slice timer among them.
    pub pinned: u64,
    /// Of the general counters.
    pub general: u64,
}

impl Widths {
    /// Counters of `bits` bits each, fewer than 64.
    pub const fn of(bits: u32) -> Widths {
        let mask = (1 << bits) - 1;
        Widths { pinned: mask, general: mask }
    }
}
