//! Linux's signals on x86-64, by their numbers.

/// The names of signals 1 to 31, in the order of their numbers.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The name of a signal; `None` if the number has no name.
pub fn name(signal: u32) -> Option<&'static str> {
    NAMES.get(usize::try_from(signal).ok()?.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_linux_names() {
        let named = [0, 1, 9, 11, 14, 31, 32, 64].map(name);
        let known = ["SIGHUP", "SIGKILL", "SIGSEGV", "SIGALRM", "SIGSYS"].map(Some);
        assert_eq!((named[0], &named[1..6], &named[6..]), (None, &known[..], &[None, None][..]));
    }
}
