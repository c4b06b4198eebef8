//! Thresholds as calls set them, and the upcalls that they make.

/// A program's function that a threshold calls.
#[derive(Clone, Copy, Debug)]
pub struct UpcallHandler {
    /// Its first instruction, an address of the program's.
    pub entry: u64,
    /// A word that it is given.
    pub data: u64,
}

/// An upcall that is due: the handler, and the words that say why.
pub type Upcall = (UpcallHandler, u64, u64);

/// A threshold of an event.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// The event, by its index in the session's list.
    pub event: usize,
    /// The count at which it fires; none removes the one that the event has.
    pub count: Option<u64>,
    /// Whom it calls.
    pub handler: Option<UpcallHandler>,
}
