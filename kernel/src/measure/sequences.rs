//! A program's restartable sequences, with which it stops and starts its banks' counters
//! ([`tally_abi::bank`], decision 71).

use tally_abi::{
    Error,
    bank::{SEQUENCE_BYTES, SEQUENCES},
};

/// End of the addresses that a program can have.
const USER_END: u64 = 1 << 47;

/// Location of a program's sequences: blocks of equal length, adjacent to each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequences {
    start: u64,
    /// Length of the sequences; 0 if the program has none.
    bytes: u64,
}

impl Sequences {
    /// Makes the sequences at `address`; 0 for none.
    ///
    /// # Errors
    /// The address is not aligned, or not a program's.
    pub fn at(address: u64) -> Result<Sequences, Error> {
        let bytes = SEQUENCES * SEQUENCE_BYTES;
        if address == 0 {
            return Ok(Sequences::default());
        }
        if !address.is_multiple_of(SEQUENCE_BYTES) || address > USER_END - bytes {
            return Err(Error::BadArgument);
        }
        Ok(Sequences { start: address, bytes })
    }

    /// Returns whether the program has sequences.
    pub fn exist(&self) -> bool {
        self.bytes > 0
    }

    /// Moves `rip`, at which ring 3 was interrupted, to the first instruction of its sequence, if
    /// it is in one.
    #[inline(always)]
    pub fn restart(&self, rip: &mut u64) {
        // The result is one of the program's addresses, because `rip` is not below `start`.
        if rip.wrapping_sub(self.start) < self.bytes {
            *rip &= !(SEQUENCE_BYTES - 1);
        }
    }
}
