//! The processors of machines, from the virtual PMU's list of profiles (`qemu/vpmu/src/profiles`).

use clap::{ValueEnum, builder::PossibleValue};
use tally_model::is_equal;
use tally_vpmu::{Profile as Known, QemuMachine};

/// The number of profiles.
const COUNT: usize = Known::ALL.len();

/// Other names that people give the machines: the processors', as vendors and perf write them.
const ALIASES: [(&str, &[&str]); 5] = [
    ("intel", &["icelake", "icelakex", "icx", "ice-lake"]),
    ("sapphire-rapids", &["sapphirerapids", "spr"]),
    ("lunar-lake", &["lunarlake", "lnl"]),
    ("panther-lake", &["pantherlake", "ptl"]),
    ("amd", &["zen4", "amdzen4"]),
];

/// A profile of the virtual PMU, by the profile's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileName(usize);

/// The processor of a machine, by the machine's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pmu(usize);

#[expect(
    non_upper_case_globals,
    reason = "named like an enum's variants, as callers match on them"
)]
impl Pmu {
    /// Ice Lake server, the default.
    pub const Intel: Pmu = Pmu::named("intel");
    /// Zen 4.
    pub const Amd: Pmu = Pmu::named("amd");
    /// Sapphire Rapids server.
    pub const SapphireRapids: Pmu = Pmu::named("sapphire-rapids");
    /// Lunar Lake's P-cores, of Perfmon version 6.
    pub const LunarLake: Pmu = Pmu::named("lunar-lake");
    /// Panther Lake's P-cores, with architectural PEBS.
    pub const PantherLake: Pmu = Pmu::named("panther-lake");
    /// Zen 3.
    pub const Zen3: Pmu = Pmu::named("zen3");
}

impl Pmu {
    /// The PMU of every machine.
    const ALL: [Pmu; COUNT] = {
        let mut all = [Pmu(0); COUNT];
        let mut index = 0;
        while index < COUNT {
            all[index] = Pmu(index);
            index += 1;
        }
        all
    };

    /// The PMU of the machine with this name, which must exist.
    const fn named(name: &str) -> Pmu {
        let mut index = 0;
        while !is_equal(Known::ALL[index].machine.name, name) {
            index += 1;
        }
        Pmu(index)
    }

    /// The machine.
    pub(super) fn machine(self) -> &'static QemuMachine {
        &Known::ALL[self.0].machine
    }

    /// The machine's name, as `--pmu` has it.
    pub fn name(self) -> &'static str {
        self.machine().name
    }

    /// QEMU's name of the processor, with flags.
    pub fn qemu_cpu(self) -> &'static str {
        self.machine().cpu
    }

    /// The processor's signature: CPUID leaf 1, EAX.
    pub fn signature(self) -> u32 {
        Known::ALL[self.0].signature
    }

    /// The machine's profile.
    pub fn profile(self) -> &'static Known {
        &Known::ALL[self.0]
    }
}

impl ProfileName {
    /// All profiles.
    pub const ALL: [ProfileName; COUNT] = {
        let mut all = [ProfileName(0); COUNT];
        let mut index = 0;
        while index < COUNT {
            all[index] = ProfileName(index);
            index += 1;
        }
        all
    };

    /// The name as in the plugin's options.
    pub fn name(self) -> &'static str {
        Known::ALL[self.0].name
    }

    /// The sets of further plugin options with which the profile is checked.
    pub fn variants(self) -> &'static [&'static str] {
        Known::ALL[self.0].machine.checks
    }

    /// The vendor in CPUID.
    pub fn vendor(self) -> &'static str {
        Known::ALL[self.0].vendor.cpuid()
    }
}

impl ValueEnum for Pmu {
    fn value_variants<'a>() -> &'a [Pmu] {
        &Pmu::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let name = self.machine().name;
        let others = ALIASES.iter().filter(|(machine, _)| *machine == name);
        let others = others.flat_map(|(_, others)| others.iter().copied());
        Some(PossibleValue::new(name).aliases(others).help(self.profile().about))
    }
}

impl ValueEnum for ProfileName {
    fn value_variants<'a>() -> &'a [ProfileName] {
        &ProfileName::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(Known::ALL[self.0].about))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_and_profiles_have_different_names_and_the_first_is_the_default() {
        let names = Pmu::ALL.map(|pmu| pmu.machine().name);
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name}");
        }
        assert_eq!(Pmu::default(), Pmu::Intel);
    }
}
