//! The threshold that a call requests.

use tally_abi::{Error, bank::NO_THRESHOLD};

use crate::{
    measure::{Threshold, UpcallHandler},
    memory::space::USER_END,
};

/// The handler at `entry`; `None` for 0.
///
/// # Errors
/// The address is not in a program's memory range.
pub(super) fn handler_of(entry: u64, data: u64) -> Result<Option<UpcallHandler>, Error> {
    if entry >= USER_END {
        return Err(Error::BadPointer);
    }
    Ok((entry != 0).then_some(UpcallHandler { entry, data }))
}

/// The threshold of `session_threshold(session, event, count, handler, data, cpu)`.
///
/// # Errors
/// The event or handler is impossible.
pub(super) fn threshold_of(
    [_, event, count, entry, data, _]: [u64; 6],
) -> Result<Threshold, Error> {
    let handler = handler_of(entry, data)?;
    let event = usize::try_from(event).map_err(|_| Error::BadArgument)?;
    Ok(Threshold { event, count: (count != NO_THRESHOLD).then_some(count), handler })
}
