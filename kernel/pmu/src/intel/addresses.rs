//! Addresses of the counters' registers: the legacy ones, which reach eight general counters, or
//! those of version 6, which Linux uses from that version on (arch/x86/events/intel/core.c,
//! `intel_pmu_init`). Both are the same registers; those of version 6 take a counter's full width.

use tally_engine::MAX_GENERAL;

use crate::registers::{
    Register,
    intel::{FixedCtr, FullPmc, PerfEvtSel, Pmc, PmcFxCtr, PmcGpCfgA, PmcGpCtr},
};

/// Registers of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addresses {
    /// IA32_PERFEVTSELx, IA32_PMCx, IA32_A_PMCx, IA32_FIXED_CTRx.
    Legacy,
    /// IA32_PMC_GPx_CFG_A, IA32_PMC_GPx_CTR, IA32_PMC_FXx_CTR.
    Version6,
}

impl Addresses {
    /// Returns the addresses for a version of the architecture.
    pub(crate) fn of_version(version: u8) -> Addresses {
        if version >= 6 { Addresses::Version6 } else { Addresses::Legacy }
    }

    /// Returns the address of a general counter's select.
    pub(crate) fn select(self, index: u8) -> u32 {
        match self {
            Addresses::Legacy => PerfEvtSel::address(index),
            Addresses::Version6 => PmcGpCfgA::address(index),
        }
    }

    /// Returns the addresses of all selects, for the overflow path.
    pub(super) fn selects(self) -> [u32; MAX_GENERAL] {
        core::array::from_fn(|index| self.select(index as u8))
    }

    /// Returns the address of a general counter. A write sign-extends 32 bits, or takes the full
    /// width.
    pub(crate) fn counter(self, index: u8) -> u32 {
        match self {
            Addresses::Legacy => Pmc::address(index),
            Addresses::Version6 => PmcGpCtr::address(index),
        }
    }

    /// Returns the address at which a general counter takes its full width.
    pub(super) fn full_counter(self, index: u8) -> u32 {
        match self {
            Addresses::Legacy => FullPmc::address(index),
            Addresses::Version6 => PmcGpCtr::address(index),
        }
    }

    /// Returns the address of a fixed counter.
    pub(super) fn fixed(self, index: u8) -> u32 {
        match self {
            Addresses::Legacy => FixedCtr::address(index),
            Addresses::Version6 => PmcFxCtr::address(index),
        }
    }

    /// Returns the name of the row of selects.
    pub(super) fn select_name(self) -> &'static str {
        match self {
            Addresses::Legacy => PerfEvtSel::NAME,
            Addresses::Version6 => PmcGpCfgA::NAME,
        }
    }
}
