//! The signals of episodes: how often cycles without retirement began, by cause and for the sets of
//! causes for which vendors have an event.

use super::Signal;

/// Defines the given signals, and after them those of episodes and of CPI stacks.
macro_rules! with_episodes {
    ($($given:tt)*) => {
        with_stacks! {
            $($given)*
            /// Beginnings of cycles without retirement: a cycle with the cause follows one with
            /// another cause, or one in which something retired. This signal: any cause.
            EpisodesAny,
            /// Beginnings of cycles without retirement: a serializing or microcoded instruction.
            EpisodesSerialize,
            /// Beginnings of cycles without retirement: the divider.
            EpisodesDivider,
            /// Beginnings of cycles without retirement: a line of code.
            EpisodesL1i,
            /// Beginnings of cycles without retirement: a translation of code.
            EpisodesItlb,
            /// Beginnings of cycles without retirement: the recovery from a misprediction.
            EpisodesMispredict,
            /// Beginnings of cycles without retirement: fetch and dispatch, for no other cause.
            EpisodesFrontEnd,
            /// Beginnings of cycles without retirement: a full structure.
            EpisodesResources,
            /// Beginnings of cycles without retirement: data of the L1 data cache or the store
            /// queue.
            EpisodesL1Hit,
            /// Beginnings of cycles without retirement: data of the L2.
            EpisodesL2Hit,
            /// Beginnings of cycles without retirement: data of the last-level cache.
            EpisodesL3Hit,
            /// Beginnings of cycles without retirement: data of memory.
            EpisodesMemory,
            /// Beginnings of cycles without retirement: a data page walk.
            EpisodesDtlb,
            /// Beginnings of cycles without retirement: a store.
            EpisodesStore,
            /// Beginnings of cycles without retirement: a floating-point or vector unit.
            EpisodesFp,
            /// Beginnings of cycles without retirement: an integer unit.
            EpisodesInteger,
            /// Beginnings of cycles without retirement: data that the L1 lacked.
            EpisodesBeyondL1,
            /// Beginnings of cycles without retirement: data that the L2 lacked.
            EpisodesBeyondL2,
            /// Beginnings of cycles without retirement: data that the L1 lacked, or its
            /// translation.
            EpisodesMissing,
            /// Beginnings of cycles without retirement: any load.
            EpisodesLoads,
            /// Beginnings of cycles without retirement: any load or store.
            EpisodesInMemory,
            /// Beginnings of cycles without retirement: any load, store or unit.
            EpisodesIncomplete,
            /// Beginnings of cycles without retirement: an empty reorder buffer.
            EpisodesEmpty,
            /// Beginnings of cycles without retirement: a serializing instruction or a full
            /// structure.
            EpisodesBlocked,
        }
    };
}

/// The number of causes: those of [`Signal::STALLS`].
pub const CAUSES: usize = Signal::STALLS.len();

/// The index of each cause, by its signal.
const NUMBERS: [u8; Signal::ALL.len()] = {
    let mut numbers = [0; Signal::ALL.len()];
    let mut number = 0;
    while number < CAUSES {
        numbers[Signal::STALLS[number] as usize] = number as u8;
        number += 1;
    }
    numbers
};

/// The episodes that begin in a cycle, one bit for each of [`Signal::EPISODES`]: by the cycle's
/// cause, and by that of the cycle before ([`CAUSES`] if something retired in it).
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
    /// The signals of episodes, each with its set of causes.
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

    /// The signals of [`Self::EPISODES`] that begin with a cycle of the cause `self` after one of
    /// the cause `before`, or after a retirement.
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
