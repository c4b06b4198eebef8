//! Both drivers against the model of their registers: counts equal the events that happened, and
//! writes are necessary and allowed.

mod branches;
mod direct;
mod ibs;
mod metrics;
mod missing;
mod others;
mod pairs;
mod precise;
mod preload;
mod reserved;
mod self_check;
mod unused;
mod version_6;

use std::vec::Vec;

use tally_abi::{Mode, branches::BranchFilter};
use tally_engine::{CounterMask, Counts, Group, Pinned, Pmu, Selector, Setup};

use super::*;
use crate::{
    amd,
    init::{ControlValue, InitError, counters},
    intel,
    testing::{Model, Vendor},
};

const WIDTH: u64 = (1 << 48) - 1;
const SLICE: u64 = 10_000;
const INTEL: Vendor = Vendor::Intel { freeze: true };
const OLD_INTEL: Vendor = Vendor::Intel { freeze: false };
const ALL: [Vendor; 4] =
    [INTEL, OLD_INTEL, Vendor::Amd { global: true }, Vendor::Amd { global: false }];

fn try_driver(model: Model) -> Result<Driver<Model>, InitError> {
    try_driver_beside(model, 0)
}

/// Makes a driver that reserves the counters in the mask `reserved` for others.
fn try_driver_beside(model: Model, reserved: u16) -> Result<Driver<Model>, InitError> {
    let widths = Widths { pinned: WIDTH, general: WIDTH };
    let addresses = intel::Addresses::Legacy;
    match model.vendor {
        Vendor::Intel { freeze } => {
            let features = intel::Features {
                general: 0xf & !reserved,
                reserved,
                reference: true,
                metrics: false,
                records: intel::RecordSupport::None,
                branches: intel::BranchSupport::None,
                capabilities: freeze,
                extra: 7,
                widths,
                addresses,
            };
            Intel::new(model, features).map(Driver::Intel)
        }
        Vendor::Amd { global } => {
            let counters = 0x3f & !reserved;
            Amd::new(
                model,
                amd::Features {
                    counters,
                    reserved,
                    global,
                    branches: 0,
                    samples_ops: false,
                    freeze: global,
                },
            )
            .map(Driver::Amd)
        }
    }
}

fn is_intel(vendor: Vendor) -> bool {
    matches!(vendor, Vendor::Intel { .. })
}

fn new_model(vendor: Vendor) -> Model {
    Model::new(vendor, if is_intel(vendor) { 4 } else { 6 })
}

fn driver(vendor: Vendor) -> Driver<Model> {
    try_driver(new_model(vendor)).unwrap()
}

fn model(driver: &mut Driver<Model>) -> &mut Model {
    either!(driver, driver => driver.model())
}

/// Returns a group of four events, on counters that are available to groups.
fn group(vendor: Vendor, codes: [u8; 4], mode: Mode) -> Group {
    let first = if is_intel(vendor) { 0 } else { 2 };
    let mut group = Group::default();
    for (counter, code) in (first..).zip(codes) {
        let privilege = u64::from(mode.user()) << 16 | u64::from(mode.kernel()) << 17;
        group.selectors[counter] = Selector(1 << 22 | privilege | u64::from(code));
        group.used |= 1 << counter;
    }
    group
}

/// Lets events happen: a fixed number for each code, plus cycles, instructions and reference
/// cycles.
fn happen(driver: &mut Driver<Model>, kernel: bool, cycles: u64) {
    model(driver).run(kernel, |code, umask| match (code, umask) {
        (0, 2) | (0x76, 0) => cycles,
        (0, 1) | (0xc0, 0) => 2 * cycles,
        (0, 3) => cycles / 2,
        (code, _) => u64::from(code) * 10,
    });
}

fn counted(driver: &mut Driver<Model>, group: &Group, base: &Counts) -> Counts {
    let widths = driver.widths();
    since(&read(driver, group.used), base, group.used, widths)
}

fn since(now: &Counts, base: &Counts, general: u16, widths: Widths) -> Counts {
    let mut counted = Counts::default();
    { *base }.advance(now, general, widths, &mut counted);
    counted
}

fn read(driver: &mut Driver<Model>, general: u16) -> Counts {
    driver.read(CounterMask { general, reference: false })
}

fn general(counts: &Counts, group: &Group) -> Vec<u64> {
    let used = counts.general.iter().enumerate().filter(|(i, _)| group.used >> i & 1 == 1);
    used.map(|(_, count)| *count).collect()
}

/// Handles the overflow interrupt: switches from the group `before`, which is on the counters, to
/// `next`.
fn switch(pmu: &mut Driver<Model>, [before, next]: [&Group; 2], counts: &mut Counts) -> bool {
    pmu.switch(&Switch::new(before, next, before.used | next.used, SLICE), counts)
}

fn setup(mode: Mode) -> Setup {
    let ([pairs, metrics], precise, timer) = ([false; 2], None, Pinned::Cycles);
    let (kernel, branches) = (mode.kernel(), BranchFilter::default());
    Setup { mode, kernel, pairs, metrics, precise, branches, timer, max_slice: SLICE }
}

#[test]
fn slices_count_what_happened_and_interrupt_once() {
    for vendor in ALL {
        for mode in [Mode::User, Mode::Kernel, Mode::Full] {
            let mut pmu = driver(vendor);
            let (a, b) = (group(vendor, [1, 2, 3, 4], mode), group(vendor, [5, 2, 3, 6], mode));
            let mut base = read(&mut pmu, a.used | b.used);
            base[Pinned::Cycles] = SLICE.wrapping_neg() & WIDTH;
            pmu.program(&a, &setup(mode), SLICE);
            pmu.enable();
            happen(&mut pmu, mode == Mode::Kernel, SLICE - 1);
            assert_eq!(model(&mut pmu).interrupts, 0);
            let mut raw = Counts::default();
            assert!(!switch(&mut pmu, [&a, &b], &mut raw));
            happen(&mut pmu, mode == Mode::Kernel, 8);
            assert_eq!(model(&mut pmu).interrupts, 1, "{vendor:?} {mode:?}");
            assert!(switch(&mut pmu, [&a, &b], &mut raw));
            // The interrupt handler's own events belong to no group.
            happen(&mut pmu, true, 1000);
            let slice = since(&raw, &base, a.used, pmu.widths());
            assert_eq!(
                (slice[Pinned::Cycles], slice[Pinned::Instructions]),
                (SLICE + 7, 2 * SLICE + 14)
            );
            assert_eq!(general(&slice, &a), [20, 40, 60, 80], "{vendor:?} {mode:?}");
            let mut base = read(&mut pmu, b.used);
            base[Pinned::Cycles] = SLICE.wrapping_neg() & WIDTH;
            pmu.ack_and_resume();
            happen(&mut pmu, mode == Mode::Kernel, 100);
            let slice = counted(&mut pmu, &b, &base);
            assert_eq!(
                (slice[Pinned::Cycles], general(&slice, &b)),
                (100, [50, 20, 30, 60].to_vec())
            );
            assert!(!switch(&mut pmu, [&b, &a], &mut raw));
        }
    }
}

#[test]
fn nothing_counts_after_stop_and_a_late_interrupt_finds_nothing() {
    for vendor in ALL {
        let mut pmu = driver(vendor);
        let group = group(vendor, [1, 2, 3, 4], Mode::Full);
        pmu.program(&group, &setup(Mode::Full), SLICE);
        let before = read(&mut pmu, group.used);
        happen(&mut pmu, true, SLICE);
        assert!(!pmu.is_counting());
        assert_eq!(read(&mut pmu, group.used), before);
        pmu.enable();
        happen(&mut pmu, false, SLICE + 5);
        assert!(pmu.is_counting());
        pmu.stop();
        assert!(!pmu.is_counting());
        let before = read(&mut pmu, group.used);
        happen(&mut pmu, false, 500);
        happen(&mut pmu, true, 500);
        assert_eq!(read(&mut pmu, group.used), before);
        let status = match vendor {
            Vendor::Intel { .. } => 0x38e,
            Vendor::Amd { .. } => 0xc000_0300,
        };
        assert_eq!(model(&mut pmu).msrs.get(&status).copied().unwrap_or(0), 0);
    }
}

#[test]
fn slices_of_instructions_end_by_the_instruction_counter() {
    for vendor in ALL {
        let mut pmu = driver(vendor);
        let group = group(vendor, [1, 2, 3, 4], Mode::User);
        pmu.program(&group, &Setup { timer: Pinned::Instructions, ..setup(Mode::User) }, SLICE);
        pmu.enable();
        happen(&mut pmu, false, SLICE / 2);
        assert_eq!(model(&mut pmu).interrupts, 1);
        assert!(switch(&mut pmu, [&group; 2], &mut Counts::default()));
    }
}

/// Returns the accesses of a switch in which `changed` of four selectors change.
fn cost(vendor: Vendor, mode: Mode, changed: usize) -> u64 {
    let mut pmu = driver(vendor);
    let mut codes = [1, 2, 3, 4];
    let first = group(vendor, codes, mode);
    pmu.program(&first, &setup(mode), SLICE);
    pmu.enable();
    codes[..changed].fill(9);
    happen(&mut pmu, mode == Mode::Kernel, SLICE + 1);
    let before = pmu.msr_accesses();
    let next = group(vendor, codes, mode);
    assert!(switch(&mut pmu, [&first, &next], &mut Counts::default()));
    pmu.ack_and_resume();
    pmu.msr_accesses() - before
}

#[test]
fn switches_cost_no_more_accesses_than_they_must() {
    let check = |vendor, mode, changed, msr| {
        assert_eq!(cost(vendor, mode, changed), msr, "{vendor:?} {mode:?} {changed}");
    };
    for changed in 0..=4 {
        let n = changed as u64;
        for vendor in [INTEL, OLD_INTEL] {
            check(vendor, Mode::User, changed, n + 2);
            check(vendor, Mode::Kernel, changed, n + 4);
            check(vendor, Mode::Full, changed, n + 4);
        }
        let v2 = Vendor::Amd { global: true };
        check(v2, Mode::User, changed, if n == 0 { 2 } else { n + 4 });
        check(v2, Mode::Full, changed, n + 4);
        check(Vendor::Amd { global: false }, Mode::User, changed, 2 * n + 1);
    }
}

#[test]
fn intel_acknowledges_after_the_reload() {
    let mut pmu = driver(INTEL);
    let group = group(INTEL, [1, 2, 3, 4], Mode::User);
    pmu.program(&group, &setup(Mode::User), SLICE);
    pmu.enable();
    happen(&mut pmu, false, SLICE);
    model(&mut pmu).written.clear();
    assert!(switch(&mut pmu, [&group; 2], &mut Counts::default()));
    pmu.ack_and_resume();
    let timer = (0x30a, SLICE.wrapping_neg() & WIDTH);
    assert_eq!(model(&mut pmu).written, [timer, (0x390, 0x7_0000_000f)]);
}

#[test]
fn extra_registers_are_written_before_selectors_and_only_when_they_change() {
    for vendor in [INTEL, OLD_INTEL] {
        let with = |codes, values: [u64; 3], used| {
            let mut group = group(vendor, codes, Mode::User);
            group.extra.used = used;
            group.extra.values[..3].copy_from_slice(&values);
            group
        };
        let a = with([1, 2, 3, 4], [0x1_0001, 0, 0x11], 5);
        let b = with([5, 2, 3, 4], [0x1_0001, 0x1_0002, 0], 3);
        let mut pmu = driver(vendor);
        model(&mut pmu).written.clear();
        pmu.program(&a, &setup(Mode::User), SLICE);
        pmu.enable();
        assert_eq!(model(&mut pmu).written[..2], [(0x1a6, 0x1_0001), (0x3f7, 0x11)]);
        let mut step = |from: &Group, to: &Group| {
            happen(&mut pmu, false, SLICE + 1);
            model(&mut pmu).written.clear();
            assert!(switch(&mut pmu, [from, to], &mut Counts::default()));
            pmu.ack_and_resume();
            core::mem::take(&mut model(&mut pmu).written)
        };
        let select = |code: u64| (0x186, 1 << 22 | 1 << 16 | code);
        assert_eq!(step(&a, &b)[..2], [(0x1a7, 0x1_0002), select(5)]);
        // The registers still hold all values of the group.
        assert_eq!(step(&b, &a)[0], select(1));
        assert_eq!(step(&a, &b)[0], select(5));
    }
}

#[test]
fn an_event_of_ring_0_in_a_session_of_ring_3_is_not_counted_in_the_handler() {
    for vendor in ALL {
        let mut pmu = driver(vendor);
        let events = group(vendor, [1, 2, 3, 4], Mode::Kernel);
        let setup = Setup { kernel: true, ..setup(Mode::User) };
        pmu.program(&events, &setup, SLICE);
        pmu.enable();
        let base = read(&mut pmu, events.used);
        happen(&mut pmu, true, 1);
        happen(&mut pmu, false, SLICE + 1);
        let mut raw = Counts::default();
        assert!(switch(&mut pmu, [&events; 2], &mut raw));
        happen(&mut pmu, true, 1);
        pmu.ack_and_resume();
        let counts = counted(&mut pmu, &events, &base);
        assert_eq!(general(&counts, &events), [10, 20, 30, 40], "{vendor:?}");
    }
}

#[test]
fn a_freeze_that_others_left_behind_is_undone() {
    for (vendor, status) in [(INTEL, 0x38e), (Vendor::Amd { global: true }, 0xc000_0300)] {
        let mut model = new_model(vendor);
        // Branches are recorded and stepped by, and the counters freeze.
        model.msrs.insert(0x1d9, 1 << 12 | 1 << 1 | 1);
        model.msrs.insert(status, 1 << 59);
        let mut pmu = try_driver(model).unwrap();
        let group = group(vendor, [1, 2, 3, 4], Mode::User);
        pmu.program(&group, &setup(Mode::User), SLICE);
        pmu.enable();
        for _ in 0..3 {
            let before = read(&mut pmu, group.used);
            happen(&mut pmu, false, SLICE + 1);
            assert!(switch(&mut pmu, [&group; 2], &mut Counts::default()), "{vendor:?}");
            pmu.ack_and_resume();
            assert_eq!(general(&counted(&mut pmu, &group, &before), &group), [10, 20, 30, 40]);
        }
        assert_eq!(self::model(&mut pmu).msrs[&0x1d9], 1 << 1);
    }
}

#[test]
fn counters_that_do_not_keep_what_is_written_are_named() {
    let stuck = |vendor, msr| {
        let mut model = new_model(vendor);
        model.stuck = Some(msr);
        try_driver(model).map(|_| ())
    };
    let kept = |register, index| Err(InitError::NotWritable { register, index });
    assert_eq!(stuck(INTEL, 0x30a), kept("IA32_FIXED_CTR", 1));
    assert_eq!(stuck(INTEL, 0x187), kept("IA32_PERFEVTSEL", 1));
    assert_eq!(stuck(Vendor::Amd { global: true }, 0xc001_0203), kept("PERF_CTR", 1));
    assert_eq!(stuck(Vendor::Amd { global: false }, 0xc001_0200), kept("PERF_CTL", 0));
}
