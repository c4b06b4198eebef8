//! Settings of a program: values that it sets by system calls and reads again.

use super::limits::Limits;

/// The mask of `umask` at first: Linux's usual one.
const FILE_MASK: u64 = 0o22;

/// The settings of a program.
pub struct Settings {
    /// Resource limits.
    pub limits: Limits,
    /// The mask of `umask`, without effect: files have no modes.
    pub file_mask: u64,
    /// The number of `personality`.
    pub personality: u64,
    /// Kinds of `membarrier` for which it has registered, a bit for each.
    pub barriers: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { limits: Limits::default(), file_mask: FILE_MASK, personality: 0, barriers: 0 }
    }
}
