//! A session's configuration and statistics.

use serde::{Deserialize, Serialize};

use crate::Malformed;

/// The most events in one session's list. With 8 counters and a slice of 200,000 cycles a round of
/// this many takes 26 million cycles: beyond that no estimate is worth its name.
pub const MAX_EVENTS: usize = 1024;
/// The longest list of events, in bytes.
pub const MAX_EVENT_LIST_BYTES: usize = 64 * 1024;
/// The longest text about an error that a call writes back, in bytes.
pub const MAX_DETAIL_BYTES: usize = 512;
/// The default slice (paper 000, section 2): 100 µs at 2 GHz.
pub const DEFAULT_SLICE_CYCLES: u64 = 200_000;
/// The shortest slice, in cycles or instructions: "a few thousand cycles" (paper 000, section 3),
/// and no less than twice what a switch costs.
pub const MIN_SLICE: u64 = 5_000;
/// The longest slice, in cycles or instructions. A reload is written sign-extended from 32 bits on
/// processors without full-width writes (Intel SDM volume 3, "Full-Width Writes to Performance
/// Counter Registers").
pub const MAX_SLICE: u64 = 1 << 30;

/// What `SESSION_OPEN` returns, in one word: the events in its upper half, the session in its
/// lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The session's number, from 1.
    pub session: u32,
    /// How many events it has, 1 to [`MAX_EVENTS`].
    pub events: u32,
}

impl Opened {
    /// The word.
    pub fn to_word(self) -> u64 {
        u64::from(self.events) << 32 | u64::from(self.session)
    }

    /// The session and its events out of the word.
    pub fn from_word(word: u64) -> Opened {
        Opened { session: word as u32, events: (word >> 32) as u32 }
    }
}

/// At which privilege events are counted (paper 000, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// In ring 3 alone.
    User,
    /// In ring 0 alone, while the context's program is current.
    Kernel,
    /// In both.
    Full,
}

impl Mode {
    /// Whether ring 3 counts.
    pub fn user(self) -> bool {
        self != Mode::Kernel
    }

    /// Whether ring 0 counts.
    pub fn kernel(self) -> bool {
        self != Mode::User
    }

    /// The mode of this number.
    ///
    /// # Errors
    /// There is none.
    pub fn from_word(word: u64) -> Result<Mode, Malformed> {
        let all = [Mode::User, Mode::Kernel, Mode::Full];
        all.into_iter().find(|mode| *mode as u64 == word).ok_or(Malformed)
    }
}

/// The length of a time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slice {
    /// In core cycles at the session's privilege.
    Cycles(u64),
    /// In instructions retired at the session's privilege (paper 000, section 3).
    Instructions(u64),
}

impl Slice {
    /// The number, whatever it counts.
    pub fn length(self) -> u64 {
        match self {
            Slice::Cycles(n) | Slice::Instructions(n) => n,
        }
    }
}

/// The default of [`SessionConfig::budget_ppm`]: 2 %.
pub const DEFAULT_BUDGET_PPM: u32 = 20_000;
/// A budget that limits nothing.
pub const NO_BUDGET_PPM: u32 = 1_000_000;

/// Which groups get how many slices of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shares {
    /// As many as was asked for each, in every round.
    #[default]
    Planned,
    /// At least as many as was asked for; and as many again go to those whose events are least
    /// certain. A round has twice the slices.
    Adaptive,
}

impl Shares {
    /// The word that options have for it.
    pub fn word(self) -> &'static str {
        match self {
            Shares::Planned => "planned",
            Shares::Adaptive => "adaptive",
        }
    }

    /// By its word.
    pub fn parse(word: &str) -> Option<Shares> {
        [Shares::Planned, Shares::Adaptive].into_iter().find(|shares| shares.word() == word)
    }
}

/// How a session counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionConfig {
    /// Privilege.
    pub mode: Mode,
    /// Slice length, [`MIN_SLICE`] to [`MAX_SLICE`].
    pub slice: Slice,
    /// The share of the program's time that the engine may take, in parts per million, 1 to
    /// [`NO_BUDGET_PPM`]. Where slices are so short that it would take more, it lengthens them.
    pub budget_ppm: u32,
    /// How the groups share the slices.
    pub shares: Shares,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            mode: Mode::User,
            slice: Slice::Cycles(DEFAULT_SLICE_CYCLES),
            budget_ppm: DEFAULT_BUDGET_PPM,
            shares: Shares::Planned,
        }
    }
}

/// A [`SessionConfig`] as it crosses the system-call boundary.
pub type ConfigWords = [u64; 5];

impl SessionConfig {
    /// Encodes: mode, unit of the slice, length of the slice, budget, shares.
    pub fn to_words(self) -> ConfigWords {
        let unit = matches!(self.slice, Slice::Instructions(_));
        let (mode, shares) = (self.mode as u64, self.shares as u64);
        [mode, u64::from(unit), self.slice.length(), self.budget_ppm.into(), shares]
    }

    /// Decodes what [`Self::to_words`] made. The range of the slice is the engine's to check.
    ///
    /// # Errors
    /// A mode, unit or kind of shares that this version does not define, or a budget out of range.
    pub fn from_words(words: ConfigWords) -> Result<Self, Malformed> {
        let [mode, unit, length, budget, shares] = words;
        let mode = Mode::from_word(mode)?;
        let slice = match unit {
            0 => Slice::Cycles(length),
            1 => Slice::Instructions(length),
            _ => return Err(Malformed),
        };
        let budget_ppm = u32::try_from(budget).map_err(|_| Malformed)?;
        if !(1..=NO_BUDGET_PPM).contains(&budget_ppm) {
            return Err(Malformed);
        }
        let shares = match shares {
            0 => Shares::Planned,
            1 => Shares::Adaptive,
            _ => return Err(Malformed),
        };
        Ok(SessionConfig { mode, slice, budget_ppm, shares })
    }
}

/// The engine's statistics of a session and of its own work for it. All counts since the session
/// opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStats {
    /// Groups of events that take turns.
    pub groups: u64,
    /// Slices begun and ended, those cut short by a switch of context or a stop among them.
    pub slices: u64,
    /// Rounds finished: every group had its turn.
    pub rounds: u64,
    /// Overflow interrupts that ended a slice.
    pub pmis: u64,
    /// Overflow interrupts that ended nothing: no slice's counter had overflowed.
    pub spurious_pmis: u64,
    /// Reads and writes of MSRs in the overflow path, the interrupt controller's among them.
    pub msr_accesses: u64,
    /// RDPMC instructions in the overflow path.
    pub rdpmcs: u64,
    /// Cycles counted, at the session's privilege.
    pub cycles: u64,
    /// Instructions counted, at the session's privilege.
    pub instructions: u64,
    /// TSC ticks spent in the overflow path.
    pub engine_ticks: u64,
    /// TSC ticks for which the session ran, the engine's among them.
    pub session_ticks: u64,
    /// Trace records of this session's slices that were offered to the ring: those among them for
    /// which it had no room, and without those of thresholds and samples.
    pub records: u64,
    /// Slices that the budget made longer than asked for.
    pub lengthened: u64,
}

/// A [`SessionStats`] as it crosses the system-call boundary.
pub type StatsWords = [u64; 13];

impl SessionStats {
    /// Encodes in the order of the fields.
    pub fn to_words(&self) -> StatsWords {
        [
            self.groups,
            self.slices,
            self.rounds,
            self.pmis,
            self.spurious_pmis,
            self.msr_accesses,
            self.rdpmcs,
            self.cycles,
            self.instructions,
            self.engine_ticks,
            self.session_ticks,
            self.records,
            self.lengthened,
        ]
    }

    /// Decodes what [`Self::to_words`] made.
    pub fn from_words(words: StatsWords) -> Self {
        let [groups, slices, rounds, pmis, spurious_pmis, msr_accesses, rdpmcs, ..] = words;
        let [.., cycles, instructions, engine_ticks, session_ticks, records, lengthened] = words;
        SessionStats {
            groups,
            slices,
            rounds,
            pmis,
            spurious_pmis,
            msr_accesses,
            rdpmcs,
            cycles,
            instructions,
            engine_ticks,
            session_ticks,
            records,
            lengthened,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_round_trips_and_rejects() {
        for mode in [Mode::User, Mode::Kernel, Mode::Full] {
            for slice in [Slice::Cycles(9), Slice::Instructions(7)] {
                for shares in [Shares::Planned, Shares::Adaptive] {
                    let config = SessionConfig { mode, slice, budget_ppm: 7, shares };
                    assert_eq!(SessionConfig::from_words(config.to_words()), Ok(config));
                }
            }
        }
        assert_eq!(SessionConfig::from_words([3, 0, 1, 1, 0]), Err(Malformed));
        assert_eq!(SessionConfig::from_words([0, 2, 1, 1, 0]), Err(Malformed));
        assert_eq!(SessionConfig::from_words([0, 0, 1, 1, 2]), Err(Malformed));
        for budget in [0, 1_000_001, u64::MAX] {
            assert_eq!(SessionConfig::from_words([0, 0, 1, budget, 0]), Err(Malformed));
        }
    }

    #[test]
    fn stats_round_trip() {
        let words: StatsWords = core::array::from_fn(|i| i as u64 + 1);
        assert_eq!(SessionStats::from_words(words).to_words(), words);
    }
    #[test]
    fn opened_keeps_session_and_events_apart() {
        let opened = Opened { session: u32::MAX, events: MAX_EVENTS as u32 };
        assert_eq!(opened.to_word(), 0x0000_0400_ffff_ffff);
        assert_eq!(Opened::from_word(opened.to_word()), opened);
        // A negative result is an error number: no session's word is negative.
        assert!(i64::try_from(opened.to_word()).is_ok());
    }
}
