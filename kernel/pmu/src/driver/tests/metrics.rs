//! PERF_METRICS beside the groups.

use tally_engine::Metrics;

use super::*;
use crate::registers::{
    Register,
    intel::{FixedCtr, PerfMetrics},
};

/// Retiring, bad speculation, front end, back end, in 255ths.
const FRACTIONS: u64 = 0x6600_3366;

fn driver_with_metrics() -> Driver<Model> {
    let features = intel::Features {
        general: 0xf,
        reserved: 0,
        reference: true,
        metrics: true,
        records: intel::RecordSupport::None,
        branches: intel::BranchSupport::None,
        capabilities: true,
        extra: 7,
        widths: Widths { pinned: WIDTH, general: WIDTH },
        addresses: intel::Addresses::Legacy,
    };
    Intel::new(new_model(INTEL), features).map(Driver::Intel).unwrap()
}

/// Lets slots pass in ring 3 or 0, of which the register has [`FRACTIONS`].
fn pass(pmu: &mut Driver<Model>, kernel: bool, slots: u64) {
    let counted = model(pmu).peek::<FixedCtr>(3).raw();
    model(pmu).run(kernel, |code, umask| if (code, umask) == (0, 4) { slots } else { 0 });
    if model(pmu).peek::<FixedCtr>(3).raw() != counted {
        model(pmu).msrs.insert(PerfMetrics::FIRST, FRACTIONS);
    }
}

#[test]
fn metrics_are_of_the_slots_at_the_session_s_privileges_since_they_were_taken() {
    for (mode, counted) in [(Mode::User, 300), (Mode::Kernel, 50), (Mode::Full, 350)] {
        let mut pmu = driver_with_metrics();
        let group = group(INTEL, [1, 2, 3, 4], mode);
        model(&mut pmu).msrs.extend([(0x30c, 77), (PerfMetrics::FIRST, 5)]);
        pmu.program(&group, &Setup { metrics: true, ..setup(mode) }, SLICE);
        pmu.enable();
        for _ in 0..2 {
            pass(&mut pmu, false, 300);
            pass(&mut pmu, true, 50);
            assert_eq!(pmu.take_metrics(), Metrics::new(counted, FRACTIONS), "{mode:?}");
            assert_eq!(pmu.take_metrics(), Metrics::default(), "both are 0 after they were taken");
        }
    }
}

#[test]
fn sessions_without_metrics_count_no_slots_and_programs_see_none_of_others() {
    let mut pmu = driver_with_metrics();
    let group = group(INTEL, [1, 2, 3, 4], Mode::User);
    pmu.program(&group, &Setup { metrics: true, ..setup(Mode::User) }, SLICE);
    pmu.enable();
    pass(&mut pmu, false, 300);
    pmu.stop();
    pmu.scrub();
    assert_eq!(pmu.take_metrics(), Metrics::default());
    pmu.program(&group, &setup(Mode::User), SLICE);
    pmu.enable();
    pass(&mut pmu, false, 300);
    assert_eq!(pmu.take_metrics(), Metrics::default());
}
