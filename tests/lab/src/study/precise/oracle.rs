//! The virtual PMU's time of each instruction: the file of `--vpmu instructions=FILE`.

use std::{collections::BTreeMap, path::Path};

use statrs::function::gamma::ln_gamma;
use tally_abi::ExitStatus;
use tally_model::Rule;
use xtask::{Failure, Result, project};

/// Time by address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    times: BTreeMap<u64, f64>,
    /// Number of entries that the profile was made of.
    pub samples: u64,
}

impl FromIterator<(u64, f64)> for Profile {
    fn from_iter<T: IntoIterator<Item = (u64, f64)>>(all: T) -> Profile {
        let mut profile = Profile::default();
        for (address, time) in all {
            *profile.times.entry(address).or_default() += time;
            profile.samples += 1;
        }
        profile
    }
}

impl Profile {
    /// The time at all addresses.
    pub fn total(&self) -> f64 {
        self.times.values().sum::<f64>().max(f64::MIN_POSITIVE)
    }

    /// The share of time that is at other instructions than in `truth`: 0 to 1.
    pub fn error(&self, truth: &Profile) -> f64 {
        let (own, other) = (self.total(), truth.total());
        let common = |(address, time): (&u64, &f64)| {
            self.times.get(address).map_or(0.0, |it| (it / own).min(time / other))
        };
        1.0 - truth.times.iter().map(common).sum::<f64>()
    }

    /// The mean error of `samples` random cycles, each of the instruction that the profile says:
    /// what a profiler without bias has.
    pub(super) fn sampling_error(&self, samples: u64) -> f64 {
        let total = self.total();
        self.times.values().map(|time| deviation(time / total, samples as f64)).sum::<f64>() / 2.0
    }
}

/// The mean absolute deviation of the share of `n` draws from the probability `p` (De Moivre;
/// Diaconis and Zabell, "Closed form summation for classical distributions", 1991, equation 1.1).
fn deviation(p: f64, n: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 || n < 1.0 {
        return 0.0;
    }
    let above = (n * p).floor() + 1.0;
    let ways = ln_gamma(n + 1.0) - ln_gamma(above + 1.0) - ln_gamma(n - above + 1.0);
    let ln = ways + above * p.ln() + (n - above + 1.0) * (-p).ln_1p();
    2.0 * above * ln.exp() / n
}

/// The oracle's profile, and those of samplers of every cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Oracle([Profile; Rule::ALL.len()]);

impl Oracle {
    /// Reads the times of an address space's ring 3.
    ///
    /// # Errors
    /// The file cannot be read, or is no such file.
    pub fn read(path: &Path, space: u64) -> Result<Oracle> {
        let bytes = project::read(path)?;
        Oracle::parse(&String::from_utf8_lossy(&bytes), space).ok_or_else(|| {
            let why = format!(
                "{} has no times of instructions in address space {space:#x}",
                path.display()
            );
            Failure::new(ExitStatus::CheckFailed, why)
        })
    }

    fn parse(text: &str, space: u64) -> Option<Oracle> {
        let mut lines = text.lines();
        lines.next()?.strip_prefix("address_space,ring,address,events,executions,exposed,")?;
        let mut rows = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split(',').collect();
            let [in_space, ring, address, _, _, times @ ..] = &words[..] else { return None };
            if in_space.parse() == Ok(space) && *ring == "user" {
                let times: Option<Vec<f64>> = times.iter().map(|it| it.parse().ok()).collect();
                rows.push((address.parse::<u64>().ok()?, times?));
            }
        }
        let of = |rule: Rule| rows.iter().map(|(at, times)| (*at, times[rule as usize])).collect();
        (!rows.is_empty()).then(|| Oracle(Rule::ALL.map(of)))
    }

    /// The true profile.
    pub fn exposed(&self) -> &Profile {
        self.of(Rule::Exposed)
    }

    /// The profile by a rule.
    pub(super) fn of(&self, rule: Rule) -> &Profile {
        &self.0[rule as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_the_time_at_other_instructions() {
        let truth = Profile::from_iter([(1, 30.0), (2, 10.0)]);
        assert!(truth.error(&truth).abs() < 1e-9);
        assert!((Profile::from_iter([(1, 1.0), (2, 1.0)]).error(&truth) - 0.25).abs() < 1e-9);
        assert!((Profile::from_iter([(3, 1.0)]).error(&truth) - 1.0).abs() < 1e-9);
    }

    /// Two draws of two equal instructions: 0, 1 or 2 at the first, with an error of 1/2, 0, 1/2.
    #[test]
    fn the_error_of_sampling_is_exact() {
        let even = Profile::from_iter([(1, 1.0), (2, 1.0)]);
        assert!((even.sampling_error(2) - 0.25).abs() < 1e-9);
        assert!(even.sampling_error(1_000_000) < 0.001);
    }

    #[test]
    fn rows_of_other_spaces_and_rings_are_left_out() {
        let text = "address_space,ring,address,events,executions,exposed,next_to_retire,\
                    last_retired,dispatched\n4096,user,7,l1d,2,3.5,1,0,0\n4096,user,7,,1,0.5,1,0,0\n\
                    4096,kernel,8,,1,9,9,9,9\n8192,user,9,,1,9,9,9,9\n";
        let oracle = Oracle::parse(text, 4096).unwrap();
        assert_eq!(oracle.exposed().times, BTreeMap::from([(7, 4.0)]));
        assert_eq!(oracle.of(Rule::NextToRetire).times, BTreeMap::from([(7, 2.0)]));
        assert!(Oracle::parse(text, 1).is_none() && Oracle::parse("", 4096).is_none());
    }
}
