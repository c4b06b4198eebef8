//! When a timer expires: first at a time, and then at an interval.

/// When a timer expires next. Times are [`crate::machine::clock`]'s, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// When it expires.
    pub at_ns: u64,
    /// Its interval; 0: it expires once.
    pub interval_ns: u64,
}

impl Expiry {
    /// How often it has expired by now.
    pub fn count(&self, now_ns: u64) -> u64 {
        let since = now_ns.checked_sub(self.at_ns);
        since.map_or(0, |since| since.checked_div(self.interval_ns).unwrap_or(0) + 1)
    }

    /// When it expires next after `count` expirations, of which there is one at least; none if it
    /// expires once.
    pub fn after(&self, count: u64) -> Option<Expiry> {
        let later = count.saturating_mul(self.interval_ns);
        let next = Expiry { at_ns: self.at_ns.saturating_add(later), ..*self };
        (self.interval_ns > 0).then_some(next)
    }

    /// The rest of the time until it expires, 0 if it has expired for the last time, and its
    /// interval.
    pub fn rest(&self, now_ns: u64) -> (u64, u64) {
        let next = match self.count(now_ns) {
            0 => Some(*self),
            count => self.after(count),
        };
        next.map_or((0, 0), |next| (next.at_ns.saturating_sub(now_ns), next.interval_ns))
    }
}
