//! A timer's expiry: a first time, and then an interval.

/// The next expiry of a timer. Times are [`crate::machine::clock`]'s, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Time of the expiry.
    pub at_ns: u64,
    /// Interval of later expiries; 0 if there are none.
    pub interval_ns: u64,
}

impl Expiry {
    /// Number of expiries up to now.
    pub fn count(&self, now_ns: u64) -> u64 {
        let since = now_ns.checked_sub(self.at_ns);
        since.map_or(0, |since| since.checked_div(self.interval_ns).unwrap_or(0) + 1)
    }

    /// The next expiry after `count` expiries, at least one; `None` if the timer expires once.
    pub fn after(&self, count: u64) -> Option<Expiry> {
        let later = count.saturating_mul(self.interval_ns);
        let next = Expiry { at_ns: self.at_ns.saturating_add(later), ..*self };
        (self.interval_ns > 0).then_some(next)
    }

    /// The remaining time, 0 after the last expiry, and the interval.
    pub fn rest(&self, now_ns: u64) -> (u64, u64) {
        let next = match self.count(now_ns) {
            0 => Some(*self),
            count => self.after(count),
        };
        next.map_or((0, 0), |next| (next.at_ns.saturating_sub(now_ns), next.interval_ns))
    }
}
