//! A session's configuration and statistics.

use serde::{Deserialize, Serialize};

use crate::{Malformed, instance::Scope};

mod slice;

pub use self::slice::{AUTO_UNIT, Slice};
pub use crate::opened::Opened;

/// The most events in one session's list. With 8 counters and a slice of 200,000 cycles, a round of
/// this many events takes 26 million cycles. Longer rounds give no useful estimates.
pub const MAX_EVENTS: usize = 1024;
/// The longest list of events, in bytes.
pub const MAX_EVENT_LIST_BYTES: usize = 64 * 1024;
/// The highest rate of samples of an event, in Hz; the budget may allow less.
pub const MAX_SAMPLE_HZ: u64 = 1_000_000;
/// The longest error message that a call writes to `detail`, in bytes.
pub const MAX_DETAIL_BYTES: usize = 512;
/// The first length of slices that the engine chooses, in units of [`AUTO_UNIT`]: 200,000 cycles
/// (paper 000, section 2: 100 µs at 2 GHz).
pub const AUTO_FIRST: u32 = 40;
/// The shortest slice, in cycles or instructions: "a few thousand cycles" (paper 000, section 3).
/// It is longer than the overflow interrupt's entry and exit, so that a program makes progress in
/// each slice even if its session counts ring 0. The budget decides whether slices are as short as
/// requested.
pub const MIN_SLICE: u64 = 1_800;
/// The longest slice, in cycles or instructions. A reload is written sign-extended from 32 bits on
/// processors without full-width writes (Intel SDM volume 3, "Full-Width Writes to Performance
/// Counter Registers").
pub const MAX_SLICE: u64 = 1 << 30;

/// The privilege at which events are counted (paper 000, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Ring 3 only.
    User,
    /// Ring 0 only, while the context's program is current.
    Kernel,
    /// Both rings.
    Full,
}

impl Mode {
    pub(crate) const WORDS: [&str; 3] = ["user", "kernel", "full"];

    /// The mode's name in descriptions of records.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Returns whether events in ring 3 are counted.
    pub fn user(self) -> bool {
        self != Mode::Kernel
    }

    /// Returns whether events in ring 0 are counted.
    pub fn kernel(self) -> bool {
        self != Mode::User
    }

    /// Decodes a mode.
    ///
    /// # Errors
    /// No mode has this number.
    pub fn from_word(word: u64) -> Result<Mode, Malformed> {
        let all = [Mode::User, Mode::Kernel, Mode::Full];
        all.into_iter().find(|mode| *mode as u64 == word).ok_or(Malformed)
    }
}

/// The default of [`SessionConfig::budget_ppm`]: 2 %.
pub const DEFAULT_BUDGET_PPM: u32 = 20_000;
/// A budget of 100 %: no limit.
pub const NO_BUDGET_PPM: u32 = 1_000_000;

/// Division of a round's slices among the groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shares {
    /// Each group gets the slices that the list of events asks for, in every round.
    #[default]
    Planned,
    /// A round has twice as many slices. The engine gives the additional ones to the groups whose
    /// events have the largest relative errors.
    Adaptive,
    /// Planned shares, in pairs of rounds: in one round of each pair, drawn at random, slices are
    /// as long as requested, in the other four times as long. So the effect of the interrupts can
    /// be separated from the program's own events (decision 34).
    Paired,
}

impl Shares {
    /// The name in options.
    pub fn word(self) -> &'static str {
        match self {
            Shares::Planned => "planned",
            Shares::Adaptive => "adaptive",
            Shares::Paired => "paired",
        }
    }

    /// Parses the name in options.
    pub fn parse(word: &str) -> Option<Shares> {
        let all = [Shares::Planned, Shares::Adaptive, Shares::Paired];
        all.into_iter().find(|shares| shares.word() == word)
    }
}

/// Configuration of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionConfig {
    /// Privilege.
    pub mode: Mode,
    /// Slice length, [`MIN_SLICE`] to [`MAX_SLICE`]. The first rounds have shorter slices, so that
    /// short programs get values too (decision 25).
    pub slice: Slice,
    /// The share of the program's time that the engine may take, in parts per million, 1 to
    /// [`NO_BUDGET_PPM`]. If short slices would take more, the engine lengthens them.
    pub budget_ppm: u32,
    /// Division of the slices among the groups.
    pub shares: Shares,
    /// Whether no other session may count the program while this one is open.
    pub exclusive: bool,
    /// Division of the session's counts into instances.
    pub scope: Scope,
    /// Whether the counter unit counts the whole list too, all the time: exact counts beside the
    /// estimates. Only the virtual PMU has the unit (decision 68).
    pub unit: bool,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            mode: Mode::User,
            slice: Slice::Auto,
            budget_ppm: DEFAULT_BUDGET_PPM,
            shares: Shares::Planned,
            exclusive: false,
            scope: Scope::Program,
            unit: false,
        }
    }
}

/// A [`SessionConfig`] as it crosses the system-call boundary.
pub type ConfigWords = [u64; 6];

impl SessionConfig {
    /// Encodes: mode, unit of the slice, length of the slice, budget, shares, flags: 1 exclusive,
    /// 2 threads separately, 4 CPUs, 8 the counter unit too.
    pub fn to_words(self) -> ConfigWords {
        let (unit, length) = match self.slice {
            Slice::Cycles(length) => (0, length),
            Slice::Instructions(length) => (1, length),
            Slice::Auto => (2, 0),
        };
        let (mode, shares) = (self.mode as u64, self.shares as u64);
        let flags =
            u64::from(self.exclusive) | (self.scope as u64) << 1 | u64::from(self.unit) << 3;
        [mode, unit, length, self.budget_ppm.into(), shares, flags]
    }

    /// Decodes the words of [`Self::to_words`]. The engine checks the range of the slice.
    ///
    /// # Errors
    /// A mode, unit, kind of shares or flag that this version does not define, or a budget out of
    /// range.
    pub fn from_words(words: ConfigWords) -> Result<Self, Malformed> {
        let [mode, unit, length, budget, shares, flags] = words;
        let mode = Mode::from_word(mode)?;
        let slice = match unit {
            0 => Slice::Cycles(length),
            1 => Slice::Instructions(length),
            2 if length == 0 => Slice::Auto,
            _ => return Err(Malformed),
        };
        let budget_ppm = u32::try_from(budget).map_err(|_| Malformed)?;
        if !(1..=NO_BUDGET_PPM).contains(&budget_ppm) {
            return Err(Malformed);
        }
        let shares = match shares {
            0 => Shares::Planned,
            1 => Shares::Adaptive,
            2 => Shares::Paired,
            _ => return Err(Malformed),
        };
        let exclusive = flags & 1 != 0;
        let (scope, unit) = match (flags >> 1 & 3, flags >> 3) {
            (0, unit @ 0..2) => (Scope::Program, unit == 1),
            (1, 0) => (Scope::Threads, false),
            (2, 0) => (Scope::Cpus, false),
            _ => return Err(Malformed),
        };
        Ok(SessionConfig { mode, slice, budget_ppm, shares, exclusive, scope, unit })
    }
}

/// Statistics of a session and of the engine's work for it, since the session opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStats {
    /// Event groups.
    pub groups: u64,
    /// Slices ended, including those that a context switch or a stop cut short.
    pub slices: u64,
    /// Rounds ended.
    pub rounds: u64,
    /// Overflow interrupts that ended a slice.
    pub pmis: u64,
    /// Overflow interrupts for which no counter of the session showed an overflow.
    pub spurious_pmis: u64,
    /// Reads and writes of MSRs in the overflow path, including the interrupt controller's.
    pub msr_accesses: u64,
    /// RDPMC instructions in the overflow path.
    pub rdpmcs: u64,
    /// Cycles counted, at the session's privilege.
    pub cycles: u64,
    /// Instructions counted, at the session's privilege.
    pub instructions: u64,
    /// TSC ticks spent in the overflow path.
    pub engine_ticks: u64,
    /// TSC ticks for which the session ran, including the engine's.
    pub session_ticks: u64,
    /// Trace records of this session's slices, lost ones included; not those of thresholds and
    /// samples.
    pub records: u64,
    /// Slices that the engine lengthened to keep the budget.
    pub lengthened: u64,
    /// Core cycles of a group switch, with the interrupt's delivery and return and the folding of
    /// the slice. 0 while not known: the processor does not count core cycles (IA32_APERF), or too
    /// few slices have ended.
    pub switch_cycles: u64,
    /// Slices whose overflow interrupt never came; the scheduler's timer ended them.
    pub lost_pmis: u64,
    /// Interrupts and exceptions other than PMIs in ring 3 while the session was on the counters.
    pub interruptions: u64,
    /// Cycles at the session's privilege between the program's stop of its counters through its
    /// bank and the kernel's notice of it. No count contains them.
    pub stopped_cycles: u64,
}

/// A [`SessionStats`] as it crosses the system-call boundary.
pub type StatsWords = [u64; 17];

impl SessionStats {
    /// Overflow interrupts of the session.
    pub fn overflow_interrupts(&self) -> u64 {
        self.pmis + self.spurious_pmis
    }

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
            self.switch_cycles,
            self.lost_pmis,
            self.interruptions,
            self.stopped_cycles,
        ]
    }

    /// The sum of two sessions' statistics; both sessions have the same groups.
    pub fn with(self, other: SessionStats) -> SessionStats {
        let (own, others) = (self.to_words(), other.to_words());
        let sum = SessionStats::from_words(core::array::from_fn(|word| own[word] + others[word]));
        let switch_cycles = self.switch_cycles.max(other.switch_cycles);
        SessionStats { groups: self.groups, switch_cycles, ..sum }
    }

    /// Decodes the words of [`Self::to_words`].
    pub fn from_words(words: StatsWords) -> Self {
        let [groups, slices, rounds, pmis, spurious_pmis, msr_accesses, rdpmcs, ..] = words;
        let [.., cycles, instructions, engine_ticks, session_ticks, _, _, _, _, _, _] = words;
        let [.., records, lengthened, switch_cycles, lost_pmis, interruptions, stopped_cycles] =
            words;
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
            switch_cycles,
            lost_pmis,
            interruptions,
            stopped_cycles,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_round_trips_and_rejects() {
        for mode in [Mode::User, Mode::Kernel, Mode::Full] {
            for slice in [Slice::Cycles(9), Slice::Instructions(7), Slice::Auto] {
                for shares in [Shares::Planned, Shares::Adaptive, Shares::Paired] {
                    let exclusive = shares == Shares::Adaptive;
                    for scope in [Scope::Program, Scope::Threads, Scope::Cpus] {
                        let (budget_ppm, unit) = (7, exclusive && scope == Scope::Program);
                        #[rustfmt::skip]
                        let config = SessionConfig {
                            mode, slice, budget_ppm, shares, exclusive, scope, unit,
                        };
                        assert_eq!(SessionConfig::from_words(config.to_words()), Ok(config));
                    }
                }
            }
        }
        assert_eq!(SessionConfig::from_words([3, 0, 1, 1, 0, 0]), Err(Malformed));
        assert_eq!(SessionConfig::from_words([0, 2, 1, 1, 0, 0]), Err(Malformed));
        assert_eq!(SessionConfig::from_words([0, 0, 1, 1, 3, 0]), Err(Malformed));
        for flags in [6, 8 + 2, 8 + 4, 16] {
            assert_eq!(SessionConfig::from_words([0, 0, 1, 1, 0, flags]), Err(Malformed));
        }
        for budget in [0, 1_000_001, u64::MAX] {
            assert_eq!(SessionConfig::from_words([0, 0, 1, budget, 0, 0]), Err(Malformed));
        }
    }

    #[test]
    fn stats_round_trip() {
        let words: StatsWords = core::array::from_fn(|i| i as u64 + 1);
        let stats = SessionStats::from_words(words);
        assert_eq!(stats.to_words(), words);
        let both = stats.with(stats);
        assert_eq!((both.groups, both.slices, both.switch_cycles), (1, 4, 14));
    }
}
