//! Resource limits of a program (`getrlimit(2)`): it sets and reads them. The limit of descriptors
//! has an effect; what the kernel itself limits, it limits for all programs alike.

use super::{loader::STACK_BYTES, signal::MAX_PENDING};
use crate::files::open::MAX_DESCRIPTORS;

/// Number of resources (`RLIM_NLIMITS`).
const RESOURCES: usize = 16;
// Resources with a limit at first (`asm-generic/resource.h`).
const STACK: usize = 3;
const CORE: usize = 4;
/// `RLIMIT_NOFILE`.
pub const DESCRIPTORS: u64 = 7;
const PENDING_SIGNALS: usize = 11;
/// `RLIM_INFINITY`.
const NONE: u64 = u64::MAX;

/// Reason why a limit was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitError {
    /// The resource does not exist, or the soft limit is above the hard one.
    Invalid,
    /// The hard limit would rise.
    NotPermitted,
}

/// The soft and the hard limit of each resource.
pub struct Limits([[u64; 2]; RESOURCES]);

impl Default for Limits {
    fn default() -> Self {
        let mut all = [[NONE; 2]; RESOURCES];
        all[STACK] = [STACK_BYTES; 2];
        all[CORE] = [0, NONE];
        all[DESCRIPTORS as usize] = [MAX_DESCRIPTORS; 2];
        all[PENDING_SIGNALS] = [MAX_PENDING as u64; 2];
        Limits(all)
    }
}

impl Limits {
    /// The soft and the hard limit of a resource, if it exists.
    pub fn get(&self, resource: u64) -> Option<[u64; 2]> {
        self.0.get(usize::try_from(resource).ok()?).copied()
    }

    /// Sets the soft and the hard limit of a resource.
    ///
    /// # Errors
    /// The limits are not valid, or the hard one would rise.
    pub fn set(&mut self, resource: u64, new: [u64; 2]) -> Result<(), LimitError> {
        let place = usize::try_from(resource).ok().and_then(|index| self.0.get_mut(index));
        let place = place.filter(|_| new[0] <= new[1]).ok_or(LimitError::Invalid)?;
        if new[1] > place[1] {
            return Err(LimitError::NotPermitted);
        }
        *place = new;
        Ok(())
    }
}
