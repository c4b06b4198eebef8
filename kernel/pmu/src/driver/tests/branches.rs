//! Branch records: what is written when they start and stop, and what is read.

use std::vec::Vec;

use tally_abi::branches::{Branch, BranchFilter, BranchType, MAX_BRANCHES};

use super::*;
use crate::testing::BRANCHES;

/// A kind of records: its processor, and registers besides those of [`BRANCHES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Architectural,
    Older,
    Amd,
}

const KINDS: [Kind; 3] = [Kind::Architectural, Kind::Older, Kind::Amd];
const USER: u64 = 0b1001;

fn driver_of(kind: Kind, format: u64) -> Driver<Model> {
    let amd = Vendor::Amd { global: true };
    let (vendor, rows, others): (_, &[usize], &[u32]) = match kind {
        Kind::Architectural => (INTEL, &[0, 1, 2, 3], &[0x14ce]),
        Kind::Older => (INTEL, &[4, 5, 6], &[0x1c8, 0x1c9]),
        Kind::Amd => (amd, &[7], &[0xc000_010e, 0xc000_010f]),
    };
    let mut model = new_model(vendor);
    let rows = rows.iter().flat_map(|row| BRANCHES[*row].clone());
    model.msrs.extend(rows.chain(others.iter().copied()).map(|msr| (msr, 0)));
    let mut driver = if vendor == amd {
        let features = super::ibs::FEATURES;
        let features = amd::Features { branches: 16, samples_ops: false, ..features };
        Driver::Amd(Amd::new(model, features).unwrap())
    } else {
        *model.msrs.get_mut(&0x345).unwrap() |= format;
        let branches = match kind {
            Kind::Architectural => intel::BranchSupport::Architectural { depth: 32 },
            _ => intel::BranchSupport::Older,
        };
        let features = intel::Features {
            general: 0xf,
            reserved: 0,
            reference: true,
            metrics: false,
            records: intel::RecordSupport::None,
            branches,
            capabilities: true,
            extra: 7,
            widths: Widths { pinned: WIDTH, general: WIDTH },
            addresses: intel::Addresses::Legacy,
        };
        Driver::Intel(Intel::new(model, features).unwrap())
    };
    driver.record_branches();
    driver
}

/// Starts a session in ring 3 with this filter; returns what was written.
fn start(pmu: &mut Driver<Model>, vendor: Vendor, filter: u64) -> Vec<(u32, u64)> {
    let branches = BranchFilter::from_bits(filter).unwrap();
    let group = group(vendor, [1, 2, 3, 4], Mode::User);
    pmu.program(&group, &Setup { branches, ..setup(Mode::User) }, SLICE);
    model(pmu).written.clear();
    pmu.enable();
    std::mem::take(&mut model(pmu).written)
}

fn vendor_of(kind: Kind) -> Vendor {
    if kind == Kind::Amd { Vendor::Amd { global: true } } else { INTEL }
}

#[test]
fn records_start_with_the_counters_and_stop_with_them() {
    for (kind, on, off) in [
        (Kind::Architectural, (0x14ce, 0x7f_0005), (0x14ce, 0)),
        (Kind::Older, (0x1d9, 1 << 11 | 1), (0x1d9, 0)),
        (Kind::Amd, (0xc000_010f, 1 << 6), (0xc000_010f, 0)),
    ] {
        let mut pmu = driver_of(kind, 5);
        assert!(!pmu.branch_filters().is_empty(), "{kind:?}");
        let written = start(&mut pmu, vendor_of(kind), USER);
        assert!(written.contains(&on), "{kind:?}: {written:x?}");
        assert_eq!(model(&mut pmu).msrs[&0x1d9] >> 11 & 1, 1, "{kind:?} freezes");
        pmu.stop();
        let written = &model(&mut pmu).written;
        assert!(written.contains(&off), "{kind:?}: {written:x?}");
        let is_thawed =
            |(msr, value): &(u32, u64)| [0x390, 0xc000_0302].contains(msr) && value >> 58 & 1 == 1;
        assert!(written.iter().any(is_thawed), "{kind:?}: {written:x?}");
        assert_eq!(model(&mut pmu).msrs[&0x1d9] >> 11 & 1, 0, "{kind:?}");
    }
}

#[test]
fn filters_name_rings_and_types() {
    // Indirect calls and returns in both rings.
    let filter = 0b11 | 1 << 6 | 1 << 5;
    let written = start(&mut driver_of(Kind::Architectural, 0), INTEL, filter);
    assert!(written.contains(&(0x14ce, 0b111 | 1 << 20 | 1 << 21)), "{written:x?}");
    for (kind, select) in [(Kind::Older, 0x1c8), (Kind::Amd, 0xc000_010e)] {
        let written = start(&mut driver_of(kind, 5), vendor_of(kind), filter);
        assert!(written.contains(&(select, 0x1fc & !(1 << 4 | 1 << 5))), "{kind:?}: {written:x?}");
    }
}

#[test]
fn a_stack_of_calls_has_calls_and_returns_alone() {
    // The stack in ring 3.
    let filter = 1 | 1 << 11;
    let written = start(&mut driver_of(Kind::Architectural, 0), INTEL, filter);
    let control = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 19 | 1 << 20 | 1 << 21;
    assert!(written.contains(&(0x14ce, control)), "{written:x?}");
    let written = start(&mut driver_of(Kind::Older, 5), INTEL, filter);
    // Linux, `LBR_CALL_STACK`: conditional branches, indirect and direct jumps, far branches are
    // left out, and ring 0.
    let select = 1 << 9 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 0;
    assert!(written.contains(&(0x1c8, select)), "{written:x?}");
    let amd = driver_of(Kind::Amd, 5).branch_filters();
    assert!(!amd.has(BranchFilter::STACK) && amd.has(BranchFilter::ANY));
}

#[test]
fn a_session_without_branches_accesses_none_of_their_registers() {
    for kind in KINDS {
        let mut pmu = driver_of(kind, 5);
        let mut written = start(&mut pmu, vendor_of(kind), 0);
        pmu.stop();
        written.extend(&model(&mut pmu).written);
        let of_records = [0x14ce, 0x1c8, 0x1d9, 0xc000_010e, 0xc000_010f];
        assert!(written.iter().all(|(msr, _)| !of_records.contains(msr)), "{written:x?}");
        assert!(written.iter().all(|(_, value)| value >> 58 & 1 == 0), "{written:x?}");
    }
}

#[test]
fn unknown_formats_are_no_records() {
    for format in [0, 3, 4, 6, 0x3f] {
        assert!(driver_of(Kind::Older, format).branch_filters().is_empty(), "{format}");
    }
    assert!(!driver_of(Kind::Older, 7).branch_filters().is_empty());
}

/// Reads three records, the second of which was mispredicted.
fn read(kind: Kind, values: &[(u32, u64)]) -> Vec<Branch> {
    let mut pmu = driver_of(kind, 5);
    model(&mut pmu).msrs.extend(values.iter().copied());
    let mut all = [Branch::default(); MAX_BRANCHES];
    let known = pmu.branches(&mut all);
    pmu.clear_branches();
    let mut none = [Branch::default(); MAX_BRANCHES];
    // The model has no depth that clears.
    assert!(kind == Kind::Architectural || pmu.branches(&mut none) == 0, "{kind:?}");
    all[..known].to_vec()
}

#[test]
fn records_are_read_the_last_first() {
    let wrong = 1 << 63;
    let older = read(
        Kind::Older,
        &[
            (0x1c9, 0),
            (0x680, 5),
            (0x6c0, 6),
            (0xdc0, 7),
            (0x69f, 8),
            (0x6df, 9),
            (0xddf, wrong | 3),
        ],
    );
    let unknown = BranchType::Unknown;
    let expected =
        [Branch::new([5, 6], unknown, Some(false), 7), Branch::new([8, 9], unknown, Some(true), 3)];
    assert_eq!(older, expected);
    let architectural = read(
        Kind::Architectural,
        &[
            (0x1500, 5),
            (0x1600, 6),
            (0x1200, 1 << 60 | 5 << 56 | 7),
            (0x1501, 8),
            (0x1601, 9),
            (0x1201, wrong | 3),
        ],
    );
    let expected = [
        Branch::new([5, 6], BranchType::Return, Some(false), 7),
        Branch::new([8, 9], BranchType::Conditional, Some(true), 0),
    ];
    assert_eq!(architectural, expected);
}

#[test]
fn amd_s_addresses_have_their_sign() {
    let (wrong, unknown) = (1 << 63, BranchType::Unknown);
    let high = 0xffff_8000_0000_1000_u64;
    let amd = read(
        Kind::Amd,
        &[
            (0xc001_0300, 5),
            (0xc001_0301, wrong | 6),
            (0xc001_0302, high | wrong),
            (0xc001_0303, high & !(0b11 << 61) | 1 << 62),
        ],
    );
    let expected = [
        Branch::new([5, 6], unknown, Some(false), 0),
        Branch::new([high, high], unknown, Some(true), 0),
    ];
    assert_eq!(amd, expected);
}
