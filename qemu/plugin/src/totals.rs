//! The counts of every event of the truth, from the model's signals, and the counts of a series.

use tally_abi::truth::Count;
use tally_model::{Counts, Geometry, Privilege, Signal};
use tally_vpmu::{Columns, Event, Profile};

/// Every event of the truth file: the fixed ones, the general ones and the off-core responses.
pub(crate) fn events(profile: &Profile) -> impl Iterator<Item = &'static Event> {
    let fixed = profile.fixed_events().iter();
    fixed.chain(profile.events()).chain(profile.offcore_events())
}

/// Every event's count since counting began, in the order of [`events`].
pub(crate) fn totals(profile: &Profile, counts: &[Counts; 2]) -> Vec<Count> {
    let geometry: &Geometry = &profile.geometry;
    events(profile)
        .map(|event| Count {
            user: event.in_ring(counts, Privilege::User, geometry),
            kernel: event.in_ring(counts, Privilege::Kernel, geometry),
        })
        .collect()
}

/// The columns of a series that have counts: name and description.
pub(crate) fn columns(profile: &Profile, columns: Columns) -> Vec<(String, &'static str)> {
    match columns {
        Columns::Events => events(profile).map(|event| (event.name.into(), event.about)).collect(),
        Columns::Signals => {
            let about = "The model's signal of this name (qemu/model/src/signal.rs).";
            Signal::ALL.iter().map(|signal| (format!("{signal:?}"), about)).collect()
        }
    }
}

/// The columns' counts since counting began, in the order of [`columns`].
pub(crate) fn column_totals(
    profile: &Profile,
    columns: Columns,
    counts: &[Counts; 2],
) -> Vec<Count> {
    let signal = |signal: &Signal| Count {
        user: counts[Privilege::User as usize][*signal],
        kernel: counts[Privilege::Kernel as usize][*signal],
    };
    match columns {
        Columns::Events => totals(profile, counts),
        Columns::Signals => Signal::ALL.iter().map(signal).collect(),
    }
}

/// Adds to each sum the difference of two totals.
pub(crate) fn add_differences(sums: &mut [Count], from: &[Count], to: &[Count]) {
    for ((sum, from), to) in sums.iter_mut().zip(from).zip(to) {
        sum.user += to.user - from.user;
        sum.kernel += to.kernel - from.kernel;
    }
}

/// Instructions retired in every ring.
pub(crate) fn instructions(counts: &[Counts; 2]) -> u64 {
    [Privilege::User, Privilege::Kernel]
        .map(|ring| counts[ring as usize][Signal::Instructions])
        .iter()
        .sum()
}
