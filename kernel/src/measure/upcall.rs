//! Thresholds as set by calls, and their upcalls.

/// A program's function that a threshold calls.
#[derive(Clone, Copy, Debug)]
pub struct UpcallHandler {
    /// Address of the function's first instruction, in the program.
    pub entry: u64,
    /// Argument word for the function.
    pub data: u64,
}

/// A due upcall: the handler, and its two argument words.
pub type Upcall = (UpcallHandler, u64, u64);

/// A threshold of an event.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// The event, by its index in the session's list.
    pub event: usize,
    /// The count at which it fires; `None` removes the event's threshold.
    pub count: Option<u64>,
    /// The function that it calls.
    pub handler: Option<UpcallHandler>,
}
