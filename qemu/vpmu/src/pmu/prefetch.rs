//! The registers by which software turns hardware prefetchers off, each by a bit that is 1.
//!
//! Intel: `MSR_MISC_FEATURE_CONTROL`, 1A4H (SDM vol. 4; "Disclosure of Hardware Prefetcher Control
//! on Some Intel Processors", 2014). AMD: Prefetch Control, C000_0108H, from Zen 4 on (APM vol. 2,
//! appendix A; PPR for family 19H model 11H), which CPUID 8000_0021H, EAX bit 13, announces; Zen 3
//! has no documented register. Without the option `prefetch` neither register exists.

use tally_model::Prefetchers;

use crate::{
    pmu::{access::AccessResult, state::VirtualPmu},
    profile::{Profile, Vendor},
};

/// CPUID's leaf with AMD's bit, and the bit.
pub(super) const CPUID_LEAF: u32 = 0x8000_0021;
pub(super) const CPUID_EAX: u32 = 1 << 13;

/// A vendor's register: its address, its bits that can be set, and the bit of each prefetcher.
struct Control {
    msr: u32,
    valid: u64,
    stride: u64,
    next: u64,
    stream: u64,
    pair: u64,
}

const INTEL: Control =
    Control { msr: 0x1a4, valid: 0xf, stream: 1 << 0, pair: 1 << 1, next: 1 << 2, stride: 1 << 3 };
/// AMD's register. Bit 2 controls L1 Region, which is not modelled: it can be set, without effect.
const AMD: Control = Control {
    msr: 0xc000_0108,
    valid: 0b10_1111,
    next: 1 << 0,
    stride: 1 << 1,
    stream: 1 << 3,
    pair: 1 << 5,
};

impl Control {
    /// The register of a processor; `None` if its model has no prefetchers, or the processor no
    /// register.
    fn of(profile: &Profile) -> Option<&'static Control> {
        profile.geometry.prefetch?;
        match profile.vendor {
            Vendor::Intel => Some(&INTEL),
            Vendor::Amd => (profile.version >= 2).then_some(&AMD),
        }
    }

    /// The prefetchers that a register value leaves on.
    fn on(&self, value: u64) -> Prefetchers {
        let on = |bit: u64| value & bit == 0;
        Prefetchers {
            l1_stride: on(self.stride),
            l1_next: on(self.next),
            l2_stream: on(self.stream),
            l2_pair: on(self.pair),
        }
    }

    /// The register value after reset with these prefetchers on, as firmware sets it.
    fn value(&self, on: Prefetchers) -> u64 {
        let all = [
            (on.l1_stride, self.stride),
            (on.l1_next, self.next),
            (on.l2_stream, self.stream),
            (on.l2_pair, self.pair),
        ];
        all.iter().filter(|(is_on, _)| !is_on).map(|(_, bit)| bit).sum()
    }
}

/// The register's value after reset.
pub(super) fn initial(profile: &Profile) -> u64 {
    let on = profile.geometry.prefetch.unwrap_or_default();
    Control::of(profile).map_or(0, |control| control.value(on))
}

/// Returns whether CPUID announces AMD's register.
pub(super) fn is_announced(profile: &Profile) -> bool {
    profile.vendor == Vendor::Amd && Control::of(profile).is_some()
}

impl VirtualPmu {
    /// The prefetchers that the register leaves on; `None` without a register.
    pub fn prefetchers(&self) -> Option<Prefetchers> {
        Control::of(&self.profile).map(|control| control.on(self.prefetch_control))
    }

    /// RDMSR, if the address is the register's.
    pub(super) fn prefetch_rdmsr(&self, msr: u32) -> Option<AccessResult> {
        let control = Control::of(&self.profile)?;
        (msr == control.msr).then_some(AccessResult::Done(self.prefetch_control))
    }

    /// WRMSR, if the address is the register's.
    pub(super) fn prefetch_wrmsr(&mut self, msr: u32, value: u64) -> Option<AccessResult> {
        let control = Control::of(&self.profile).filter(|control| control.msr == msr)?;
        if value & !control.valid != 0 {
            return Some(AccessResult::Fault);
        }
        self.prefetch_control = value;
        Some(AccessResult::Done(0))
    }
}

#[cfg(test)]
mod tests {
    use tally_model::Counts;

    use super::*;

    const NOTHING: [Counts; 2] = [Counts::ZERO; 2];

    /// A PMU of a machine with these prefetchers on.
    fn pmu(name: &str, prefetch: Option<Prefetchers>) -> VirtualPmu {
        let mut profile = Profile::find(name).unwrap();
        profile.geometry.prefetch = prefetch;
        VirtualPmu::new(profile, 4)
    }

    #[test]
    fn each_bit_turns_one_prefetcher_off() {
        for (name, control) in
            [("icelake-server", &INTEL), ("sapphire-rapids", &INTEL), ("zen4", &AMD)]
        {
            let mut pmu = pmu(name, Some(Prefetchers::ALL));
            assert_eq!(pmu.rdmsr(control.msr, &NOTHING), AccessResult::Done(0));
            let mut seen = Vec::new();
            for bit in [control.stride, control.next, control.stream, control.pair] {
                assert_eq!(pmu.wrmsr(control.msr, bit, &NOTHING), AccessResult::Done(0));
                assert_eq!(pmu.rdmsr(control.msr, &NOTHING), AccessResult::Done(bit));
                let on = pmu.prefetchers().unwrap();
                assert!(on != Prefetchers::ALL && !seen.contains(&on), "{name}: {bit:#x}");
                seen.push(on);
            }
            pmu.wrmsr(control.msr, control.valid, &NOTHING);
            assert_eq!(pmu.prefetchers(), Some(Prefetchers::NONE));
            for bit in (0..64).map(|bit| 1 << bit).filter(|bit| control.valid & bit == 0) {
                assert_eq!(pmu.wrmsr(control.msr, bit, &NOTHING), AccessResult::Fault, "{bit:#x}");
            }
            assert_eq!(pmu.prefetchers(), Some(Prefetchers::NONE));
        }
    }

    #[test]
    fn what_is_off_at_first_is_off_in_the_register() {
        let on = Prefetchers { l2_stream: true, ..Prefetchers::NONE };
        let mut intel = pmu("icelake-server", Some(on));
        assert_eq!(intel.rdmsr(INTEL.msr, &NOTHING), AccessResult::Done(0b1110));
        assert_eq!(intel.prefetchers(), Some(on));
    }

    #[test]
    fn without_prefetchers_or_a_documented_register_there_is_none() {
        for (name, prefetch) in
            [("icelake-server", None), ("zen4", None), ("zen3", Some(Prefetchers::ALL))]
        {
            let mut pmu = pmu(name, prefetch);
            for msr in [INTEL.msr, AMD.msr] {
                assert_eq!(pmu.rdmsr(msr, &NOTHING), AccessResult::Foreign, "{name}");
                assert_eq!(pmu.wrmsr(msr, 1, &NOTHING), AccessResult::Foreign, "{name}");
            }
            assert_eq!(pmu.prefetchers(), None);
            assert_eq!(pmu.cpuid(CPUID_LEAF, 0, [0; 4])[0], 0, "{name}");
        }
        let zen4 = pmu("zen4", Some(Prefetchers::ALL));
        assert_eq!(zen4.cpuid(CPUID_LEAF, 0, [0; 4])[0], CPUID_EAX);
    }
}
