//! The result of opening a session.

/// The result of `SESSION_OPEN`, in one word: the number of events in the high half, the session in
/// the low half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The session's number, from 1.
    pub session: u32,
    /// The number of events, 1 to 1,024.
    pub events: u32,
}

impl Opened {
    /// Encodes the word.
    pub fn to_word(self) -> u64 {
        u64::from(self.events) << 32 | u64::from(self.session)
    }

    /// Decodes the word.
    pub fn from_word(word: u64) -> Opened {
        Opened { session: word as u32, events: (word >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opened_keeps_session_and_events_apart() {
        let opened = Opened { session: u32::MAX, events: 1024 };
        assert_eq!(opened.to_word(), 0x0000_0400_ffff_ffff);
        assert_eq!(Opened::from_word(opened.to_word()), opened);
        // A negative result is an error number, so no session's word is negative.
        assert!(i64::try_from(opened.to_word()).is_ok());
    }
}
