//! Hardware quirks: known behaviour of processors, firmware and hypervisors that the manuals do not
//! promise. Each quirk is off unless an option turns it on.

use std::ops::RangeInclusive;

use crate::{
    event::Event,
    profile::{Profile, Vendor},
};

/// The quirks of a machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quirks {
    /// A general counter of every CPU that counts nothing, though its registers keep written
    /// values: as in a guest of KVM, where the host has no counter left for it.
    pub held: Option<Held>,
    /// A general counter of every CPU whose event select and counter ignore writes and read as 0:
    /// as under firmware or a hypervisor that reserves it.
    pub locked: Option<u8>,
    /// An event of the vendor's table that this stepping lacks: its event select counts nothing. If
    /// it is an architectural event, CPUID reports it as missing (SDM vol. 2, leaf 0AH, EBX).
    pub missing: Option<&'static Event>,
    /// Whether counters of retired instructions in ring 3 count one more at each interrupt and
    /// exception there. Source: Weaver, Terpstra, Moore, "Non-Determinism and Overcount on Modern
    /// Hardware Performance Counter Implementations", ISPASS 2013, section 4.
    pub overcount: bool,
    /// Maximum instructions that retire between an overflow and its interrupt.
    pub late: u64,
    /// Drops every N-th overflow interrupt: 1 for all.
    pub lost: Option<u64>,
    /// Distance of system-management interrupts, in instructions of a CPU.
    pub smi: Option<u64>,
    /// The overflow interrupt of a CPU, counted from 1, from which on the local vector table's
    /// entry stays masked, whatever software writes.
    pub masked: Option<u64>,
    /// State that firmware leaves in the registers.
    pub left: Option<Left>,
    /// Registers whose accesses fault though CPUID reports them, as under a hypervisor that hides
    /// itself; 0 for none.
    pub absent: [u32; MAX_ABSENT],
}

/// Maximum number of absent registers.
const MAX_ABSENT: usize = 8;

/// A counter that counts nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Index of the counter.
    pub index: u8,
    /// Start of the effect, in instructions that the CPU has retired since the plugin counts.
    pub from_instructions: u64,
}

/// State that firmware leaves in the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Running: general counter 0 counts retired instructions.
    Running,
    /// Owned: as running, and the handler of each system-management interrupt writes the event
    /// select again.
    Owned,
    /// Frozen: an overflow has frozen all counters.
    Frozen,
}

/// Fate of an overflow interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Delivery when this many more instructions have retired.
    After(u64),
    /// Loss of the interrupt.
    Lost,
    /// Masking of the local vector table's entry at the delivery.
    Masked,
}

/// The deliveries of the overflow interrupts of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deliveries {
    quirks: Quirks,
    raised: u64,
}

impl Quirks {
    /// The longest delay, in instructions. Measured skids are far below it.
    const MAX_LATE: u64 = 1_000_000;
    /// Smallest distance of system-management interrupts, in instructions. At a distance below a
    /// handler's own instructions, programs would get no time.
    const MIN_SMI: u64 = 10_000;

    /// Parses the options; `get` returns an option's value.
    pub(crate) fn parse<'a>(
        get: impl Fn(&str) -> Option<&'a str>,
        profile: &Profile,
        counters: u8,
    ) -> Result<Quirks, String> {
        let last = u64::from(counters) - 1;
        let of = |name, valid, wrong: &str| number(name, get(name), valid, wrong);
        let no_counter = format!("is no general counter: use 0 to {last}");
        let (most, least) = (Quirks::MAX_LATE, Quirks::MIN_SMI);
        let no_delay = format!("is no number of instructions: use 0 to {most}");
        let no_distance = format!("is no number of instructions: use {least} or more");
        let no_interrupt = "is no number of an interrupt: use a number from 1 on";
        Ok(Quirks {
            held: get("held").map(|text| held(text, last, &no_counter)).transpose()?,
            locked: of("locked", 0..=last, &no_counter)?.map(|index| index as u8),
            missing: get("missing").map(|name| missing(name, profile)).transpose()?,
            overcount: overcount(get("overcount"))?,
            late: of("late", 0..=most, &no_delay)?.unwrap_or_default(),
            lost: of("lost", 1..=u64::MAX, no_interrupt)?,
            smi: of("smi", least..=u64::MAX, &no_distance)?,
            masked: of("masked", 1..=u64::MAX, no_interrupt)?,
            absent: absent(get("absent"))?,
            left: get("left").map(|text| left(text, profile, get("smi"))).transpose()?,
        })
    }
}

fn held(text: &str, last: u64, no_counter: &str) -> Result<Held, String> {
    let (index, from) = match text.split_once('@') {
        Some((index, from)) => (index, Some(from)),
        None => (text, None),
    };
    let Some(index) = parsed(index, &(0..=last)) else {
        return Err(format!("held={text} {no_counter}"));
    };
    let from_instructions = from.map_or(Some(0), |from| parsed(from, &(0..=u64::MAX)));
    let from_instructions = from_instructions.ok_or_else(|| {
        format!("held={text} has no number of instructions: use COUNTER@INSTRUCTIONS")
    })?;
    Ok(Held { index: index as u8, from_instructions })
}

fn missing(name: &str, profile: &Profile) -> Result<&'static Event, String> {
    profile.events().find(|event| event.name == name).ok_or_else(|| {
        format!("missing={name} is no event of {}: see cargo xtask events", profile.name)
    })
}

fn overcount(text: Option<&str>) -> Result<bool, String> {
    match text {
        None | Some("no") => Ok(false),
        Some("yes") => Ok(true),
        Some(text) => Err(format!("overcount={text} is unknown: use yes or no")),
    }
}

/// Parses registers: hexadecimal addresses, joined by `+`.
fn absent(text: Option<&str>) -> Result<[u32; MAX_ABSENT], String> {
    let all: Vec<&str> = text.into_iter().flat_map(|text| text.split('+')).collect();
    let mut registers = [0; MAX_ABSENT];
    if all.len() > MAX_ABSENT {
        return Err(format!("absent=... has too many registers: use at most {MAX_ABSENT}"));
    }
    for (register, text) in registers.iter_mut().zip(all) {
        let address = text.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok());
        *register = address.filter(|address| *address != 0).ok_or_else(|| {
            format!("absent={text} is no register: use addresses as 0x1a6, joined by +")
        })?;
    }
    Ok(registers)
}

fn left(text: &str, profile: &Profile, smi: Option<&str>) -> Result<Left, String> {
    match text {
        "running" => Ok(Left::Running),
        "owned" if smi.is_some() => Ok(Left::Owned),
        "owned" => Err("left=owned writes in system-management interrupts: add smi=...".to_owned()),
        "frozen" if can_freeze(profile) => Ok(Left::Frozen),
        "frozen" => Err(format!("left=frozen: {} never freezes", profile.name)),
        _ => Err(format!("left={text} is unknown: use running, owned or frozen")),
    }
}

/// Returns whether a status bit freezes the counters: Intel's version 4 and later, AMD's
/// PerfMonV2.
fn can_freeze(profile: &Profile) -> bool {
    profile.version >= if profile.vendor == Vendor::Intel { 4 } else { 2 }
}

/// Parses a numeric option, if given. If it is not `valid`, the error text contains `wrong`.
fn number(
    name: &str,
    text: Option<&str>,
    valid: RangeInclusive<u64>,
    wrong: &str,
) -> Result<Option<u64>, String> {
    let Some(text) = text else { return Ok(None) };
    parsed(text, &valid).map(Some).ok_or_else(|| format!("{name}={text} {wrong}"))
}

fn parsed(text: &str, valid: &RangeInclusive<u64>) -> Option<u64> {
    text.parse().ok().filter(|number| valid.contains(number))
}

impl Deliveries {
    /// Makes the deliveries of a CPU with these quirks.
    pub fn of(quirks: Quirks) -> Deliveries {
        Deliveries { quirks, raised: 0 }
    }

    /// The fate of the next interrupt. Delays are spread over 0 to the maximum, equally in each
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
        assert!(quirks.held.is_none() && quirks.missing.is_none() && quirks.left.is_none());
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
            ("absent", "1a6", "use addresses as 0x1a6"),
            ("absent", "0x1+0x1+0x1+0x1+0x1+0x1+0x1+0x1+0x1", "at most 8"),
            ("held", "4", "use 0 to 3"),
            ("held", "4@100", "use 0 to 3"),
            ("held", "2@soon", "use COUNTER@INSTRUCTIONS"),
            ("late", "1000001", "use 0 to 1000000"),
            ("locked", "4", "use 0 to 3"),
            ("lost", "0", "from 1 on"),
            ("masked", "0", "from 1 on"),
            ("missing", "NO.SUCH", "is no event of icelake-server"),
            ("smi", "9999", "use 10000 or more"),
            ("overcount", "1", "use yes or no"),
            ("left", "over", "use running, owned or frozen"),
            ("left", "owned", "add smi=..."),
        ] {
            let error = parse(name, value, intel).expect_err(name);
            assert!(error.contains(part) && error.starts_with(name), "{error}");
        }
        let zen3 = Profile::find("zen3").unwrap();
        assert!(parse("left", "frozen", &zen3).is_err_and(|error| error.contains("never freezes")));
        assert_eq!(parse("left", "frozen", intel).map(|of| of.left), Ok(Some(Left::Frozen)));
        let held = |index, from_instructions| Ok(Some(Held { index, from_instructions }));
        assert_eq!(parse("held", "3", intel).map(|of| of.held), held(3, 0));
        assert_eq!(parse("held", "2@900", intel).map(|of| of.held), held(2, 900));
    }
}
