//! A program's restartable sequences, by which it stops and starts its banks' counters
//! ([`tally_abi::bank`], decision 71).

use tally_abi::{
    Error,
    bank::{SEQUENCE_BYTES, SEQUENCES},
};

/// Addresses from here on are not a program's.
const USER_END: u64 = 1 << 47;

/// Where a program has its sequences: blocks of equal length, one behind the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequences {
    start: u64,
    /// 0: the program has none.
    bytes: u64,
}

impl Sequences {
    /// Those at `address`; 0: none.
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

    /// Returns whether there are any.
    pub fn exist(&self) -> bool {
        self.bytes > 0
    }

    /// Moves `rip`, where ring 3 was interrupted, to the first instruction of the sequence that it
    /// is in.
    #[inline(always)]
    pub fn restart(&self, rip: &mut u64) {
        // The result is a program's address, as `rip` is not below `start`.
        if rip.wrapping_sub(self.start) < self.bytes {
            *rip &= !(SEQUENCE_BYTES - 1);
        }
    }
}
