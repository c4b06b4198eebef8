//! Claims on counters: a program's exclusive use of its counters and sessions on whole CPUs exclude
//! each other.

use alloc::format;

use spin::Mutex;
use tally_abi::Error;

use super::refusal::Refusal;

/// Purpose of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A program's counters for one session only, or for direct mode.
    Alone,
    /// Turns on the counters of CPUs, whatever program they run.
    Cpus,
}

/// Number of claims for each purpose.
static CLAIMS: Mutex<[u32; 2]> = Mutex::new([0; 2]);

/// A claim; dropping it releases it.
#[derive(Debug)]
pub struct Claim(Purpose);

impl Claim {
    /// Takes a claim.
    ///
    /// # Errors
    /// A claim for the other purpose exists.
    pub fn take(purpose: Purpose) -> Result<Claim, Refusal> {
        let (other, holder) = match purpose {
            Purpose::Alone => (Purpose::Cpus, "a session counts whole CPUs"),
            Purpose::Cpus => (
                Purpose::Alone,
                "a session of a program is exclusive or counts ring 0, or a program has the \
                 counters in direct mode",
            ),
        };
        let mut claims = CLAIMS.lock();
        if claims[other as usize] > 0 {
            let detail = format!("{holder}: close it first");
            return Err(Refusal { error: Error::Busy, detail });
        }
        claims[purpose as usize] += 1;
        Ok(Claim(purpose))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        CLAIMS.lock()[self.0 as usize] -= 1;
    }
}
