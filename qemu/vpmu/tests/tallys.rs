//! Test that Tally's own events are selected by their numbers, on every profile that has them.

use tally_model::{Geometry, Pipeline, PipelineMode};
use tally_vpmu::{Profile, VirtualPmu};

/// A PMU of each profile with this pipeline, and with CPI stacks or without.
fn pmus(pipeline: Pipeline, stacks: bool) -> impl Iterator<Item = VirtualPmu> {
    Profile::ALL.iter().map(move |profile| {
        let mut profile = *profile;
        profile.geometry = Geometry { pipeline, stacks, ..profile.geometry };
        VirtualPmu::new(profile, 4)
    })
}

fn modelled(pmu: &VirtualPmu) -> Vec<u64> {
    (0..0x100).filter(|number| pmu.models(number << 8 | 0xfd, 0)).collect()
}

#[test]
fn a_unit_mask_is_a_number_and_not_a_set_of_bits() {
    let numbers = |ranges: &[(u64, u64)]| -> Vec<u64> {
        ranges.iter().flat_map(|(first, last)| *first..=*last).collect()
    };
    let ooo = Pipeline::OutOfOrder(PipelineMode::Real);
    let resumed = [(0x00, 0x01), (0x03, 0x11), (0x13, 0x1f)];
    let executed = [(0x70, 0x79)];
    let stacks = [(0x20, 0x26), (0x30, 0x36), (0x40, 0x47), (0x50, 0x58), (0x60, 0x67)];
    for (pipeline, has_stacks, want) in [
        (Pipeline::Interval, false, numbers(&[(0x00, 0x01), (0x03, 0x0f)])),
        (ooo, false, [numbers(&resumed), numbers(&executed)].concat()),
        (ooo, true, [numbers(&resumed), numbers(&stacks), numbers(&executed)].concat()),
    ] {
        for pmu in pmus(pipeline, has_stacks) {
            assert_eq!(modelled(&pmu), want, "{} {pipeline:?}", pmu.profile().name);
        }
    }
}
