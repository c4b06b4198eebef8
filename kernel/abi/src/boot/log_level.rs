//! The levels of the kernel's log, by name.

/// Level of the kernel's log. A log of one level also has the messages of the levels listed before
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Missing features that the kernel can work without.
    Warn,
    /// The boot, and the ends of programs.
    #[default]
    Info,
    /// The steps of the boot, of loading a program and of opening a session; delivered signals.
    Debug,
    /// Frequent events: mappings, context switches.
    Trace,
}

impl LogLevel {
    pub(super) const ALL: [(&str, LogLevel); 5] = [
        ("error", LogLevel::Error),
        ("warn", LogLevel::Warn),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
        ("trace", LogLevel::Trace),
    ];

    /// Parses a level's name.
    pub fn parse(name: &str) -> Option<LogLevel> {
        LogLevel::ALL.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }

    /// The level's name.
    pub fn name(self) -> &'static str {
        LogLevel::ALL[self as usize].0
    }
}
