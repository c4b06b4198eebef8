//! Treatment of counters that are on before the kernel uses them.

/// Action on a CPU of which firmware or a hypervisor has left a counter on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Takeover {
    /// Takes the counters over, with a warning; refuses to count if they are written again.
    #[default]
    Take,
    /// Refuses to count.
    Refuse,
}

impl Takeover {
    /// Parses the value of `pmu` on the command line.
    pub fn parse(text: &str) -> Option<Takeover> {
        match text {
            "take" => Some(Takeover::Take),
            "refuse" => Some(Takeover::Refuse),
            _ => None,
        }
    }
}
