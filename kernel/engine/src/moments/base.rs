//! The bases of rates.

use crate::demand::Pinned;

/// The quantity to which rates are relative: a pinned event, so exact in total and counted in every
/// slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Events per core cycle.
    Cycles,
    /// Events per instruction.
    Instructions,
}

impl Base {
    /// Both bases.
    pub const ALL: [Base; 2] = [Base::Cycles, Base::Instructions];

    /// The base's pinned event.
    pub fn event(self) -> Pinned {
        match self {
            Base::Cycles => Pinned::Cycles,
            Base::Instructions => Pinned::Instructions,
        }
    }
}

/// A number for each [`Base`].
pub type PerBase<T> = [T; 2];
