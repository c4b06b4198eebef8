//! The system calls of a program that the kernel refused as unknown or unsupported, for a log line
//! at its end. EINVAL may mean an unsupported argument, or the program's mistake.

use alloc::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

use tally_abi::syscall::{
    self,
    errno::{EACCES, EAFNOSUPPORT, EINVAL, ENOSYS, EOPNOTSUPP},
};

/// Maximum number of kinds of refusals kept for a program.
const MAX_KINDS: usize = 64;
/// Maximum number of kinds in the log line.
const MAX_NAMED: usize = 12;
/// Calls that C libraries try first on any Linux, and can do without.
const EXPECTED: [u64; 2] = [syscall::RSEQ, syscall::CLONE3];

/// Number of refusals, by call and error.
#[derive(Default)]
pub struct RefusedCalls(BTreeMap<(u64, i64), u64>);

impl RefusedCalls {
    /// Counts a call that failed with an error.
    pub fn count(&mut self, call: u64, error: i64) {
        // Memory that is writable and executable at once.
        let is_code = matches!(call, syscall::MMAP | syscall::MPROTECT) && error == EACCES;
        let is_refusal = matches!(error, ENOSYS | EINVAL | EOPNOTSUPP | EAFNOSUPPORT) || is_code;
        // Linux answers so for a file that is no link.
        let is_answer = matches!(call, syscall::READLINK | syscall::READLINKAT) && error == EINVAL;
        if !is_refusal || is_answer || EXPECTED.contains(&call) {
            return;
        }
        if let Some(count) = self.0.get_mut(&(call, error)) {
            *count += 1;
        } else if self.0.len() < MAX_KINDS {
            self.0.insert((call, error), 1);
        }
    }

    /// Describes the calls, their errors, and how often; `None` if no call was refused.
    pub fn describe(&self) -> Option<String> {
        let name = |call: u64| match syscall::name(call) {
            Some(name) => name.to_ascii_lowercase(),
            None => format!("call {call}"),
        };
        let one = |((call, error), count): (&(u64, i64), &u64)| {
            let error = syscall::errno::name(*error).unwrap_or_default();
            format!("{} ({error}) {count}×", name(*call))
        };
        let mut all: Vec<String> = self.0.iter().take(MAX_NAMED).map(one).collect();
        if self.0.len() > MAX_NAMED {
            all.push("…".to_string());
        }
        (!all.is_empty()).then(|| all.join(", "))
    }
}
