//! The signals of episodes: how often cycles without retirement began, by cause and for the sets
//! of causes of which vendors have an event.

use super::Signal;

/// Defines the signals that are given, and behind them those of episodes and of CPI stacks.
macro_rules! with_episodes {
    ($($given:tt)*) => {
        with_stacks! {
            $($given)*
            /// Times at which cycles without retirement began: a cycle of the cause followed one of
            /// another cause, or one in which something retired. Here the cause is any.
            EpisodesAny,
            /// Likewise, a serializing or microcoded instruction.
            EpisodesSerialize,
            /// Likewise, the divider.
            EpisodesDivider,
            /// Likewise, a line of code.
            EpisodesL1i,
            /// Likewise, a translation of code.
            EpisodesItlb,
            /// Likewise, the way back from a misprediction.
            EpisodesMispredict,
            /// Likewise, fetch and dispatch, for no other cause.
            EpisodesFrontEnd,
            /// Likewise, a full structure.
            EpisodesResources,
            /// Likewise, data of the L1 data cache or the store queue.
            EpisodesL1Hit,
            /// Likewise, data of the L2.
            EpisodesL2Hit,
            /// Likewise, data of the last-level cache.
            EpisodesL3Hit,
            /// Likewise, data of memory.
            EpisodesMemory,
            /// Likewise, a data page walk.
            EpisodesDtlb,
            /// Likewise, a store.
            EpisodesStore,
            /// Likewise, a floating-point or vector unit.
            EpisodesFp,
            /// Likewise, an integer unit.
            EpisodesInteger,
            /// Likewise, data that the L1 lacked.
            EpisodesBeyondL1,
            /// Likewise, data that the L2 lacked.
            EpisodesBeyondL2,
            /// Likewise, data that the L1 lacked, or its translation.
            EpisodesMissing,
            /// Likewise, any load.
            EpisodesLoads,
            /// Likewise, any load or store.
            EpisodesInMemory,
            /// Likewise, any load, store or unit.
            EpisodesIncomplete,
            /// Likewise, an empty reorder buffer.
            EpisodesEmpty,
            /// Likewise, a serializing instruction or a full structure.
            EpisodesBlocked,
        }
    };
}

/// The causes, as [`Signal::STALLS`] has them.
pub const CAUSES: usize = Signal::STALLS.len();

/// The number of each cause, by its signal.
const NUMBERS: [u8; Signal::ALL.len()] = {
    let mut numbers = [0; Signal::ALL.len()];
    let mut number = 0;
    while number < CAUSES {
        numbers[Signal::STALLS[number] as usize] = number as u8;
        number += 1;
    }
    numbers
};

/// For the cause of a cycle and that of the one before it (or [`CAUSES`], if something retired in
/// that): a bit for each of [`Signal::EPISODES`] that begins.
static BEGUN: [[u32; CAUSES + 1]; CAUSES] = {
    let mut begun = [[0; CAUSES + 1]; CAUSES];
    let mut set = 0;
    while set < Signal::EPISODES.len() {
        let causes = Signal::EPISODES[set].1;
        let (mut now, mut before) = (0, 0);
        while now < CAUSES {
            let is_first = before == CAUSES || !has(causes, Signal::STALLS[before]);
            if has(causes, Signal::STALLS[now]) && is_first {
                begun[now][before] |= 1 << set;
            }
            before += 1;
            if before > CAUSES {
                (now, before) = (now + 1, 0);
            }
        }
        set += 1;
    }
    begun
};

const fn has(causes: &[Signal], cause: Signal) -> bool {
    let mut at = 0;
    while at < causes.len() && causes[at] as u8 != cause as u8 {
        at += 1;
    }
    at < causes.len()
}

impl Signal {
    /// The signals of episodes, each with the causes that it has.
    pub const EPISODES: &[(Signal, &[Signal])] = {
        use Signal::*;
        &[
            (EpisodesAny, Signal::STALLS),
            (EpisodesSerialize, &[StallSerialize]),
            (EpisodesDivider, &[StallDivider]),
            (EpisodesL1i, &[StallL1i]),
            (EpisodesItlb, &[StallItlb]),
            (EpisodesMispredict, &[StallMispredict]),
            (EpisodesFrontEnd, &[StallFrontEnd]),
            (EpisodesResources, &[StallResources]),
            (EpisodesL1Hit, &[StallL1Hit]),
            (EpisodesL2Hit, &[StallL2Hit]),
            (EpisodesL3Hit, &[StallL3Hit]),
            (EpisodesMemory, &[StallMemory]),
            (EpisodesDtlb, &[StallDtlb]),
            (EpisodesStore, &[StallStore]),
            (EpisodesFp, &[StallFp]),
            (EpisodesInteger, &[StallInteger]),
            (EpisodesBeyondL1, &[StallL2Hit, StallL3Hit, StallMemory]),
            (EpisodesBeyondL2, &[StallL3Hit, StallMemory]),
            (EpisodesMissing, &[StallL2Hit, StallL3Hit, StallMemory, StallDtlb]),
            (EpisodesLoads, &[StallL1Hit, StallL2Hit, StallL3Hit, StallMemory, StallDtlb]),
            (EpisodesInMemory, &Signal::MEMORY_STALLS),
            (
                EpisodesIncomplete,
                &[
                    StallL1Hit,
                    StallL2Hit,
                    StallL3Hit,
                    StallMemory,
                    StallDtlb,
                    StallStore,
                    StallDivider,
                    StallFp,
                    StallInteger,
                ],
            ),
            (EpisodesEmpty, &[StallL1i, StallItlb, StallMispredict, StallFrontEnd]),
            (EpisodesBlocked, &[StallSerialize, StallResources]),
        ]
    };

    /// The signals of [`Self::EPISODES`] that begin with a cycle of the cause `self` behind one of
    /// the cause `before`, or behind a retirement.
    #[inline]
    pub(crate) fn begun(self, before: Option<Signal>) -> impl Iterator<Item = Signal> {
        let number = |signal: Signal| usize::from(NUMBERS[signal as usize]);
        let mut sets = BEGUN[number(self)][before.map_or(CAUSES, number)];
        std::iter::from_fn(move || {
            let set = sets.trailing_zeros() as usize;
            sets &= sets.wrapping_sub(1);
            Some(Signal::EPISODES.get(set)?.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_of_a_set_begins_where_none_of_its_causes_was_before() {
        let begun = |now: Signal, before| now.begun(before).collect::<Vec<_>>();
        let all = begun(Signal::StallMemory, None);
        assert_eq!(all.len(), 8, "{all:?}");
        assert!(all.contains(&Signal::EpisodesAny) && all.contains(&Signal::EpisodesMemory));
        assert_eq!(begun(Signal::StallMemory, Some(Signal::StallL3Hit)), [Signal::EpisodesMemory]);
        assert_eq!(
            begun(Signal::StallL3Hit, Some(Signal::StallL2Hit)),
            [Signal::EpisodesL3Hit, Signal::EpisodesBeyondL2]
        );
        for (cause, _) in NUMBERS.iter().zip(Signal::ALL) {
            let cause = Signal::STALLS[usize::from(*cause)];
            assert_eq!(begun(cause, Some(cause)), []);
        }
    }

    #[test]
    fn sets_differ_and_are_of_causes() {
        for (at, (signal, causes)) in Signal::EPISODES.iter().enumerate() {
            assert!(causes.iter().all(|cause| Signal::STALLS.contains(cause)), "{signal:?}");
            let is_same = |(_, other): &&(Signal, &[Signal])| {
                other.len() == causes.len() && other.iter().all(|cause| causes.contains(cause))
            };
            assert_eq!(Signal::EPISODES[..at].iter().find(is_same), None, "{signal:?}");
        }
    }
}
