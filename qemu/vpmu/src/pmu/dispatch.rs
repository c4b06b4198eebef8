//! Dispatch of a guest's register accesses by vendor.

use tally_model::Counts;

use crate::{
    pmu::{
        access::{AccessResult, CpuidKind},
        cycles, ibs,
        intel::{CORE_LEAF, FEATURE_LEAF, TSC_LEAF},
        lbr, prefetch,
        state::VirtualPmu,
        version_6,
    },
    profile::Vendor,
};

impl VirtualPmu {
    /// RDMSR.
    pub fn rdmsr(&mut self, msr: u32, counts: &[Counts; 2]) -> AccessResult {
        self.sync(counts);
        if self.absent.contains(&msr) {
            return AccessResult::Fault;
        }
        if let Some(value) = self.cycles.read(msr, counts, self.geometry()) {
            return AccessResult::Done(value);
        }
        if let Some(access) = self.unit_rdmsr(msr, counts).or_else(|| self.prefetch_rdmsr(msr)) {
            return access;
        }
        match self.profile.vendor {
            Vendor::Intel => self.intel_rdmsr(msr, counts),
            Vendor::Amd => self.amd_rdmsr(msr, counts),
        }
    }

    /// WRMSR.
    pub fn wrmsr(&mut self, msr: u32, value: u64, counts: &[Counts; 2]) -> AccessResult {
        self.sync(counts);
        if self.absent.contains(&msr) {
            return AccessResult::Fault;
        }
        if self.cycles.write(msr, value, counts, &self.profile.geometry) {
            return AccessResult::Done(0);
        }
        if let Some(access) = self.unit_wrmsr(msr, value, counts) {
            return access;
        }
        if let Some(access) = self.prefetch_wrmsr(msr, value) {
            return access;
        }
        let access = match self.profile.vendor {
            Vendor::Intel => self.intel_wrmsr(msr, value, counts),
            Vendor::Amd => self.amd_wrmsr(msr, value, counts),
        };
        self.sync(counts);
        access
    }

    /// RDPMC. The caller checks that the ring may execute it.
    pub fn rdpmc(&mut self, index: u32, counts: &[Counts; 2]) -> AccessResult {
        self.sync(counts);
        if let Some(access) = self.unit_rdpmc(index, counts) {
            return access;
        }
        match self.profile.vendor {
            Vendor::Intel => self.intel_rdpmc(index, counts),
            Vendor::Amd => self.amd_rdpmc(index, counts),
        }
    }

    /// CPUID: changes the processor's `[EAX, EBX, ECX, EDX]` for the PMU.
    pub fn cpuid(&self, leaf: u32, subleaf: u32, registers: [u32; 4]) -> [u32; 4] {
        if leaf == cycles::CPUID_LEAF {
            let [eax, ebx, ecx, edx] = registers;
            return [eax, ebx, ecx | cycles::CPUID_ECX, edx];
        }
        if leaf == prefetch::CPUID_LEAF && prefetch::is_announced(&self.profile) {
            let [eax, ebx, ecx, edx] = registers;
            return [eax | prefetch::CPUID_EAX, ebx, ecx, edx];
        }
        match self.profile.vendor {
            Vendor::Intel => self.intel_cpuid(leaf, subleaf, registers),
            Vendor::Amd => self.amd_cpuid(leaf, subleaf, registers),
        }
    }

    /// The PMU's part of the answer to a CPUID leaf.
    pub fn cpuid_kind(&self, leaf: u32) -> CpuidKind {
        match (self.profile.vendor, leaf) {
            (Vendor::Intel, 0xa) => CpuidKind::Whole,
            (Vendor::Intel, TSC_LEAF) if self.profile.tsc_hz.is_some() => CpuidKind::Whole,
            (Vendor::Intel, CORE_LEAF) if self.profile.kind != 0 => CpuidKind::Whole,
            (Vendor::Intel, version_6::LEAF) if self.profile.version >= 6 => CpuidKind::Whole,
            (Vendor::Intel, FEATURE_LEAF) if self.profile.version >= 6 => CpuidKind::Patched,
            (Vendor::Intel, FEATURE_LEAF) if self.has_architectural_lbr() => CpuidKind::Patched,
            (Vendor::Intel, lbr::LEAF) if self.has_architectural_lbr() => CpuidKind::Whole,
            (Vendor::Amd, 0x8000_0022) if self.profile.version >= 2 => CpuidKind::Whole,
            (Vendor::Amd, ibs::LEAF) => CpuidKind::Whole,
            (_, cycles::CPUID_LEAF) => CpuidKind::Patched,
            (_, prefetch::CPUID_LEAF) if prefetch::is_announced(&self.profile) => {
                CpuidKind::Patched
            }
            (Vendor::Intel, 0 | 1) | (Vendor::Amd, 1 | 0x8000_0000 | 0x8000_0001) => {
                CpuidKind::Patched
            }
            _ => CpuidKind::Foreign,
        }
    }
}
