//! Known ways of processors, firmware and hypervisors that the manuals do not promise. Each is off
//! unless an option turns it on.

use crate::profile::{Profile, Vendor};

/// The ways of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// A general counter of every CPU that counts nothing, though its registers keep what is
    /// written to them: as in a guest of KVM, where the host has no counter left for it.
    pub held: Option<u8>,
    /// A general counter of every CPU whose event select and counter ignore writes and read as 0:
    /// as under firmware or a hypervisor that keeps it for itself.
    pub locked: Option<u8>,
    /// Whether the counters of retired instructions count one more in ring 3 at each interrupt and
    /// exception there. Source: Weaver, Terpstra, Moore, "Non-Determinism and Overcount on Modern
    /// Hardware Performance Counter Implementations", ISPASS 2013, section 4.
    pub overcount: bool,
    /// The most instructions that retire between an overflow and its interrupt.
    pub late: u64,
    /// Every which overflow interrupt is lost: 1 for all.
    pub lost: Option<u64>,
    /// From which overflow interrupt of a CPU on the local vector table's entry stays masked,
    /// whatever software writes: 1 for all.
    pub masked: Option<u64>,
    /// What firmware has left in the registers.
    pub left: Option<Left>,
}

/// What firmware has left in the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// General counter 0 counts retired instructions.
    Running,
    /// An overflow has frozen all counters.
    Frozen,
}

/// What becomes of an overflow interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is delivered when this many more instructions have retired.
    After(u64),
    /// It is lost.
    Lost,
    /// The local vector table's entry is masked at its delivery.
    Masked,
}

/// The deliveries of the overflow interrupts of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deliveries {
    quirks: Quirks,
    raised: u64,
}

impl Quirks {
    /// The longest delay, in instructions. Measured skids are below it by far.
    const MAX_LATE: u64 = 1_000_000;

    /// Parses the options; `get` returns an option's value.
    pub(crate) fn parse<'a>(
        get: impl Fn(&str) -> Option<&'a str>,
        profile: &Profile,
        counters: u8,
    ) -> Result<Quirks, String> {
        let counter = |name| {
            let index = number(get(name), |index| index < counters.into()).ok_or_else(|| {
                let (text, last) = (get(name).unwrap_or_default(), counters - 1);
                format!("{name}={text} is no general counter: use 0 to {last}")
            })?;
            Ok::<_, String>(index.map(|index| index as u8))
        };
        let (held, locked) = (counter("held")?, counter("locked")?);
        let late = number(get("late"), |most| most <= Quirks::MAX_LATE).ok_or_else(|| {
            let (text, most) = (get("late").unwrap_or_default(), Quirks::MAX_LATE);
            format!("late={text} is no number of instructions: use 0 to {most}")
        })?;
        let lost = number(get("lost"), |every| every > 0).ok_or_else(|| {
            let text = get("lost").unwrap_or_default();
            format!("lost={text}: every which interrupt is lost? Use a number from 1 on")
        })?;
        let masked = number(get("masked"), |from| from > 0).ok_or_else(|| {
            let text = get("masked").unwrap_or_default();
            format!("masked={text}: from which interrupt on? Use a number from 1 on")
        })?;
        let overcount = match get("overcount") {
            None | Some("no") => false,
            Some("yes") => true,
            Some(text) => return Err(format!("overcount={text} is unknown: use yes or no")),
        };
        let left = match get("left") {
            None => None,
            Some("running") => Some(Left::Running),
            Some("frozen") if can_freeze(profile) => Some(Left::Frozen),
            Some("frozen") => return Err(format!("left=frozen: {} never freezes", profile.name)),
            Some(text) => return Err(format!("left={text} is unknown: use running or frozen")),
        };
        let late = late.unwrap_or_default();
        Ok(Quirks { held, locked, overcount, late, lost, masked, left })
    }
}

/// Returns whether a status bit freezes the counters: Intel's version 4 and later, AMD's
/// PerfMonV2.
fn can_freeze(profile: &Profile) -> bool {
    profile.version >= if profile.vendor == Vendor::Intel { 4 } else { 2 }
}

/// A number, if one is given; none if it is not `valid`.
fn number(text: Option<&str>, valid: impl Fn(u64) -> bool) -> Option<Option<u64>> {
    let Some(text) = text else { return Some(None) };
    text.parse().ok().filter(|number| valid(*number)).map(Some)
}

impl Deliveries {
    /// Those of a CPU with these ways.
    pub fn of(quirks: Quirks) -> Deliveries {
        Deliveries { quirks, raised: 0 }
    }

    /// What becomes of the next interrupt. Delays are spread over 0 to the most, the same in each
    /// run.
    pub fn of_next(&mut self) -> Delivery {
        self.raised += 1;
        if self.quirks.masked.is_some_and(|from| self.raised >= from) {
            return Delivery::Masked;
        }
        if self.quirks.lost.is_some_and(|every| self.raised.is_multiple_of(every)) {
            return Delivery::Lost;
        }
        // Knuth, "The Art of Computer Programming", volume 3, 6.4: multiplicative hashing.
        let hash = self.raised.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Delivery::After(hash % (self.quirks.late + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, value: &str, profile: &Profile) -> Result<Quirks, String> {
        Quirks::parse(|asked| (asked == name).then_some(value), profile, 4)
    }

    #[test]
    fn without_an_option_nothing_is_odd() {
        let quirks = parse("other", "1", &Profile::ALL[0]).unwrap();
        assert_eq!(quirks, Quirks::default());
        let mut deliveries = Deliveries::of(quirks);
        assert!((0..100).all(|_| deliveries.of_next() == Delivery::After(0)));
    }

    #[test]
    fn interrupts_are_late_by_all_delays_and_lost_at_the_rate() {
        let mut deliveries = Deliveries::of(Quirks { late: 9, lost: Some(5), ..Quirks::default() });
        let all: Vec<Delivery> = (0..1000).map(|_| deliveries.of_next()).collect();
        assert_eq!(all.iter().filter(|of| **of == Delivery::Lost).count(), 200);
        for delay in 0..10 {
            let found = all.iter().filter(|of| **of == Delivery::After(delay)).count();
            assert!((40..120).contains(&found), "{delay}: {found}");
        }
        assert!(!all.contains(&Delivery::After(10)));
    }

    #[test]
    fn an_entry_stays_masked_from_the_given_interrupt_on() {
        let mut deliveries = Deliveries::of(Quirks { masked: Some(3), ..Quirks::default() });
        let all: Vec<Delivery> = (0..5).map(|_| deliveries.of_next()).collect();
        assert_eq!(all[..2], [Delivery::After(0); 2]);
        assert_eq!(all[2..], [Delivery::Masked; 3]);
    }

    #[test]
    fn wrong_values_are_refused_with_the_right_ones() {
        let intel = &Profile::ALL[0];
        for (name, value, part) in [
            ("held", "4", "use 0 to 3"),
            ("late", "1000001", "use 0 to 1000000"),
            ("locked", "4", "use 0 to 3"),
            ("lost", "0", "from 1 on"),
            ("masked", "0", "from 1 on"),
            ("overcount", "1", "use yes or no"),
            ("left", "over", "use running or frozen"),
        ] {
            let error = parse(name, value, intel).expect_err(name);
            assert!(error.contains(part) && error.starts_with(name), "{error}");
        }
        let zen3 = Profile::find("zen3").unwrap();
        assert!(parse("left", "frozen", &zen3).is_err_and(|error| error.contains("never freezes")));
        assert_eq!(parse("left", "frozen", intel).map(|of| of.left), Ok(Some(Left::Frozen)));
    }
}
