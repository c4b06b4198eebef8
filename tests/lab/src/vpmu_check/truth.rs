//! Compares the check guest's counters with the truth files.

use std::collections::BTreeMap;

use tally_abi::truth::{Region, RegionKind, Truth};
use xtask::{Result, machine::Folder, project};

use super::checked::Checked;

/// Compares the counters with the truth, and adds a line per check to `checked`.
///
/// # Errors
/// The series cannot be read.
pub(super) fn check(
    checked: &mut Checked,
    log: &str,
    truth: &Truth,
    folder: &Folder,
) -> Result<()> {
    for line in log.lines().map(str::trim_end) {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["pmis", tag, count] = words[..] {
            let taken = region_of(truth, tag).map(|region| region.pmi.count);
            let what = format!("truth: overflow interrupts, region {tag}");
            checked.equal(&what, count.parse().ok(), taken);
        }
        if let ["truth", tag, event, count] = words[..] {
            let region = region_of(truth, tag);
            let count = count.parse().ok();
            let sum = region.and_then(|region| region.events.get(event));
            let what = format!("truth: counter of {event}, region {tag}");
            checked.equal(&what, count, sum.map(|sum| sum.user));
        }
    }
    let series = String::from_utf8_lossy(&project::read(&folder.series())?).into_owned();
    let sums = sums(&series);
    for tag in log.lines().filter_map(|line| line.trim_end().strip_prefix("empty ")) {
        let region = region_of(truth, tag);
        let counted = region.map(|region| region.events.values().any(|n| n.user + n.kernel != 0));
        checked.equal("truth: no count after the region's end", counted, Some(false));
        let rows = sums.keys().filter(|key| key.0 == (RegionKind::Marked, tag)).count();
        checked.equal("series: no row after the region's end", Some(rows), Some(0));
    }
    for region in &truth.regions {
        for (event, count) in &region.events {
            let sum = |ring| {
                let (tag, space) = (region.tag.to_string(), region.address_space.to_string());
                let key = ((region.kind, tag.as_str()), space.as_str(), ring, event.as_str());
                sums.get(&key).copied()
            };
            let both = [sum("user"), sum("kernel")].map(Option::unwrap_or_default);
            let what = format!("series: {event} of {:?} {} adds up", region.kind, region.tag);
            checked.equal(&what, Some(both), Some([count.user, count.kernel]));
        }
    }
    Ok(())
}

/// The marked region with that tag.
fn region_of<'a>(truth: &'a Truth, tag: &str) -> Option<&'a Region> {
    truth.region(RegionKind::Marked, tag.parse().ok()?)
}

/// A region by kind and tag, an address space, a ring and an event.
type Key<'a> = ((RegionKind, &'a str), &'a str, &'a str, &'a str);

/// The sums of a series.
fn sums(series: &str) -> BTreeMap<Key<'_>, u64> {
    let mut lines = series.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let first = names.iter().position(|name| *name == "ring").map_or(0, |ring| ring + 1);
    let mut sums = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let of = |name| names.iter().zip(&cells).find(|(n, _)| **n == name).map_or("", |(_, c)| *c);
        let (space, ring) = (of("address_space"), of("ring"));
        let marked = of("regions").split_ascii_whitespace().map(|tag| (RegionKind::Marked, tag));
        let sessions = of("sessions").split_ascii_whitespace();
        for region in marked.chain(sessions.map(|tag| (RegionKind::Session, tag))) {
            for (event, cell) in names.iter().zip(&cells).skip(first) {
                let count: u64 = cell.parse().unwrap_or_default();
                *sums.entry((region, space, ring, *event)).or_default() += count;
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_summed_by_region() {
        let series = "interval,vcpu,address_space,regions,sessions,ring,A,B\n\
                      0,0,4096,1 2,,user,3,4\n1,0,4096,2,2,user,5,6\n1,0,8192,2,,kernel,7,8\n";
        let sums = sums(series);
        let marked = |tag| (RegionKind::Marked, tag);
        assert_eq!(sums[&(marked("1"), "4096", "user", "A")], 3);
        assert_eq!(sums[&(marked("2"), "4096", "user", "B")], 10);
        assert_eq!(sums[&(marked("2"), "8192", "kernel", "A")], 7);
        assert_eq!(sums[&((RegionKind::Session, "2"), "4096", "user", "B")], 6);
        assert_eq!(sums.len(), 8);
    }
}
