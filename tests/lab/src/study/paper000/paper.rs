//! The paper's tables (000, Tables 2 and 3), and the substitutes for its events and causes.

use tally_model::Signal;
use tally_vpmu::Vendor;

/// An event of Table 2.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaperEvent {
    /// Name of the event here.
    pub(super) name: &'static str,
    /// Intel's event.
    intel: &'static str,
    /// AMD's event.
    amd: &'static str,
    /// The paper's distances; `None` for N/A, 0 for less than 0.01.
    pub(super) paper: [Option<f64>; 8],
}

impl PaperEvent {
    /// The vendor's event.
    pub(super) fn of(&self, vendor: Vendor) -> &'static str {
        match vendor {
            Vendor::Intel => self.intel,
            Vendor::Amd => self.amd,
        }
    }
}

/// The programs of Table 2, and those of Table 3.
pub(super) const PROGRAMS: [&str; 8] =
    ["gzip", "gcc", "perlbmk", "crafty", "applu", "mgrid", "art", "mesa"];

/// A cell with N/A.
const NA: f64 = f64::NAN;

const fn cells(of: [f64; 8]) -> [Option<f64>; 8] {
    let mut cells = [None; 8];
    let mut index = 0;
    while index < cells.len() {
        if !of[index].is_nan() {
            cells[index] = Some(of[index]);
        }
        index += 1;
    }
    cells
}

const fn event(name: &'static str, [intel, amd]: [&'static str; 2], paper: [f64; 8]) -> PaperEvent {
    PaperEvent { name, intel, amd, paper: cells(paper) }
}

/// Table 2. ERAT, the first-level table of translations, is the first-level data TLB here.
pub(super) const TABLE_2: [PaperEvent; 9] = [
    event(
        "Instructions",
        ["INST_RETIRED.ANY", "RETIRED_INSTRUCTIONS"],
        [0.01, 0.06, 0.0, 0.0, 0.0, 0.05, 0.0, 0.12],
    ),
    event(
        "L1D loads",
        ["MEM_INST_RETIRED.ALL_LOADS", "LS_DISPATCH.LD_DISPATCH"],
        [0.09, 0.04, 0.0, 0.0, 0.02, 0.07, 0.03, 0.22],
    ),
    event(
        "L1D stores",
        ["MEM_INST_RETIRED.ALL_STORES", "LS_DISPATCH.STORE_DISPATCH"],
        [0.13, 0.08, 0.0, 0.0, 0.0, 0.03, 0.0, 0.10],
    ),
    event(
        "L1D misses",
        ["MEM_LOAD_RETIRED.L1_MISS", "MAB_ALLOCATION_BY_TYPE.LS"],
        [1.21, 0.05, 0.0, 0.0, 0.02, 0.07, 0.07, 0.05],
    ),
    event(
        "L1I misses",
        ["ICACHE_64B.IFTAG_MISS", "IC_TAG_HIT_MISS.IC_MISS"],
        [NA, 0.12, 0.02, 0.09, 0.02, NA, 0.03, NA],
    ),
    event(
        "TLB misses",
        ["DTLB_LOAD_MISSES.WALK_COMPLETED", "L1_DTLB_MISS.TLB_RELOAD_4K_L2_MISS"],
        [NA, 0.11, NA, NA, 0.01, 0.15, NA, NA],
    ),
    event(
        "ERAT misses",
        ["DTLB_LOAD_MISSES.STLB_HIT", "L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT"],
        [0.79, 0.13, 0.01, 0.02, 0.07, 0.71, 0.42, 0.21],
    ),
    event(
        "L2 data misses",
        ["MEM_LOAD_RETIRED.L2_MISS", "CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_C"],
        [0.24, 0.01, 0.07, 0.02, 0.02, 0.06, NA, 0.17],
    ),
    event(
        "Mispredictions",
        ["BR_MISP_RETIRED.ALL_BRANCHES", "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED"],
        [0.36, 0.05, 0.01, 0.0, 0.02, 0.18, 0.0, 0.13],
    ),
];

/// A cause of Table 3.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaperCause {
    /// Name of the cause.
    pub(super) name: &'static str,
    /// The model's causes that it consists of.
    signals: &'static [Signal],
    /// The paper's distances of single mode and of inorder mode; `None` for N/A.
    pub(super) single: [Option<f64>; 8],
    /// See [`Self::single`].
    pub(super) inorder: [Option<f64>; 8],
}

impl PaperCause {
    /// The columns of a series of signals that the cause consists of.
    pub(super) fn columns(&self, charging: Charging) -> impl Iterator<Item = String> {
        self.signals.iter().map(move |signal| format!("{:?}", charging.signal(*signal)))
    }
}

/// Method of charging a stall's cycles to causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Charging {
    /// All cycles are charged to the last cause, when retirement resumes: the paper's method
    /// (section 5.1).
    Resumption,
    /// Cycles are charged to the successive steps of the oldest instruction.
    Steps,
}

impl Charging {
    /// The signal of a cause with this method of charging.
    fn signal(self, stall: Signal) -> Signal {
        match self {
            Charging::Steps => stall,
            Charging::Resumption => stall.resumed(),
        }
    }
}

const fn cause(
    name: &'static str,
    signals: &'static [Signal],
    single: [f64; 8],
    inorder: [f64; 8],
) -> PaperCause {
    PaperCause { name, signals, single: cells(single), inorder: cells(inorder) }
}

/// Table 3, and the divider, which serves both integer and floating-point divisions, and which the
/// model does not divide between them. Loads that hit the first level, serializing instructions,
/// and a front end that delivers nothing for other causes belong to none of the paper's causes.
pub(super) const TABLE_3: [PaperCause; 8] = [
    cause(
        "L1I miss",
        &[Signal::StallL1i],
        [0.01, 0.05, 0.0, 0.01, 0.06, NA, 0.28, 0.15],
        [0.01, 0.05, 0.0, 0.01, 0.06, NA, 0.19, 0.15],
    ),
    cause(
        "L1D miss",
        &[Signal::StallL2Hit, Signal::StallL3Hit, Signal::StallMemory],
        [0.02, 0.05, 0.03, 0.0, 0.08, 0.12, 0.03, 0.03],
        [0.02, 0.06, 0.05, 0.01, 0.08, 0.42, 0.03, 0.05],
    ),
    cause(
        "Translation",
        &[Signal::StallDtlb, Signal::StallItlb],
        [0.36, 0.28, NA, 0.03, 0.13, NA, NA, NA],
        [0.36, 0.30, NA, 0.13, 0.13, NA, NA, NA],
    ),
    cause(
        "FPU latency",
        &[Signal::StallFp],
        [NA, NA, 0.01, 0.13, 0.0, 0.25, 0.0, 0.01],
        [NA, NA, 0.02, 0.13, 0.0, 0.25, 0.0, 0.02],
    ),
    cause(
        "Integer latency",
        &[Signal::StallInteger],
        [0.10, 0.15, 0.0, 0.0, NA, NA, 0.05, 0.06],
        [0.10, 0.14, 0.0, 0.0, NA, NA, 0.05, 0.06],
    ),
    cause(
        "Misprediction",
        &[Signal::StallMispredict],
        [0.02, 0.06, 0.0, 0.01, 0.06, 1.68, 0.28, 0.15],
        [0.02, 0.06, 0.01, 0.01, 0.06, 1.68, 0.28, 0.15],
    ),
    cause(
        "Rejection",
        &[Signal::StallResources, Signal::StallStore],
        [0.47, 0.17, 0.13, 0.03, 0.15, 0.40, 0.02, 0.50],
        [0.22, 0.21, 0.14, 0.03, 0.15, 1.47, 0.02, 0.50],
    ),
    cause("Divider", &[Signal::StallDivider], [NA; 8], [NA; 8]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::paper000::grid::{ACCEPTABLE, share_within};

    fn within<'a>(rows: impl Iterator<Item = &'a [Option<f64>; 8]>) -> (usize, usize) {
        share_within(rows.flatten().copied(), ACCEPTABLE)
    }

    #[test]
    fn the_paper_s_tables_have_the_cells_that_it_has() {
        assert_eq!(within(TABLE_2.iter().map(|event| &event.paper)), (55, 63));
        assert_eq!(within(TABLE_3.iter().map(|cause| &cause.single)), (38, 47));
        assert_eq!(within(TABLE_3.iter().map(|cause| &cause.inorder)), (37, 47));
    }

    #[test]
    fn every_cause_can_be_charged_either_way() {
        for cause in &TABLE_3 {
            let of = |charging| cause.columns(charging).collect::<Vec<_>>();
            assert!(of(Charging::Steps).iter().all(|name| name.starts_with("Stall")));
            assert!(of(Charging::Resumption).iter().all(|name| name.starts_with("Resumed")));
        }
    }

    #[test]
    fn causes_are_disjoint() {
        let all: Vec<Signal> = TABLE_3.iter().flat_map(|cause| cause.signals).copied().collect();
        for (index, signal) in all.iter().enumerate() {
            assert!(
                Signal::STALLS.contains(signal) && !all[..index].contains(signal),
                "{signal:?}"
            );
        }
    }
}
