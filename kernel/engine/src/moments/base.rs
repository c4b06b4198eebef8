//! The bases of rates.

use crate::demand::Pinned;

/// What rates are relative to: a pinned event, so exact in total and counted in every slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Events per core cycle.
    Cycles,
    /// Events per instruction.
    Instructions,
}

impl Base {
    /// Both.
    pub const ALL: [Base; 2] = [Base::Cycles, Base::Instructions];

    /// The pinned event.
    pub fn event(self) -> Pinned {
        match self {
            Base::Cycles => Pinned::Cycles,
            Base::Instructions => Pinned::Instructions,
        }
    }
}

/// One number for each [`Base`].
pub type PerBase<T> = [T; 2];
