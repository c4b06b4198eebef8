//! Processors as CPUID reports them, and the PMU that is detected for each.

use raw_cpuid::CpuIdResult;
use tally_abi::Mode;

use super::*;

/// A processor: vendor, signature, hypervisor bit, and other leaves.
#[derive(Clone)]
struct Cpu {
    vendor: &'static [u8; 12],
    signature: u32,
    hypervisor: bool,
    leaves: &'static [(u32, [u32; 4])],
    /// EAX and EBX of leaf 23H, sub-leaves 0 and 1.
    extended: Option<[[u32; 2]; 2]>,
}

impl CpuIdReader for Cpu {
    fn cpuid2(&self, eax: u32, sub_leaf: u32) -> CpuIdResult {
        let word = |at: usize| u32::from_le_bytes(self.vendor[at..at + 4].try_into().unwrap());
        let [eax, ebx, ecx, edx] = match eax {
            0 => [0x23, word(0), word(8), word(4)],
            1 => [self.signature, 0, u32::from(self.hypervisor) << 31, 0],
            0x8000_0000 => [0x8000_0028, 0, 0, 0],
            // Bit 8: leaf 23H exists.
            7 if sub_leaf == 1 => [u32::from(self.extended.is_some()) << 8, 0, 0, 0],
            0x23 => {
                let [eax, ebx] = self.extended.map_or([0; 2], |all| all[sub_leaf as usize]);
                [eax, ebx, 0, 0]
            }
            leaf => self.leaves.iter().find(|(l, _)| *l == leaf).map_or([0; 4], |(_, r)| *r),
        };
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

/// Ice Lake server: version 5, 8 general counters of 48 bits, 4 fixed ones.
const ICELAKE: Cpu = Cpu {
    vendor: b"GenuineIntel",
    signature: 0x606a6,
    hypervisor: false,
    leaves: &[(0xa, [0x0830_0805, 0, 0xf, 0x8604])],
    extended: None,
};

/// Zen 4: family 19h, model 11h.
const ZEN4: Cpu = Cpu {
    vendor: b"AuthenticAMD",
    signature: 0xa1_0f11,
    hypervisor: false,
    leaves: &[(0x8000_0001, [0, 0, 1 << 23, 0]), (0x8000_0022, [1, 6, 0, 0])],
    extended: None,
};

#[test]
fn cores_of_another_kind_are_told_apart() {
    const PERFORMANCE: Cpu = Cpu {
        leaves: &[(0xa, [0x0830_0805, 0, 0xf, 0x8604]), (0x1a, [0x4000_0001, 0, 0, 0])],
        ..ICELAKE
    };
    const EFFICIENT: Cpu = Cpu {
        leaves: &[(0xa, [0x0830_0805, 0, 0xf, 0x8604]), (0x1a, [0x2000_0001, 0, 0, 0])],
        ..ICELAKE
    };
    const LESS: Cpu = Cpu { leaves: &[(0xa, [0x0830_0605, 0, 0xf, 0x8604])], ..ICELAKE };
    let [plain, performance, efficient, less] =
        [ICELAKE, PERFORMANCE, EFFICIENT, LESS].map(|cpu| detect(cpu).unwrap());
    assert!(plain.is_like(&detect(ICELAKE).unwrap()));
    assert!(performance.is_like(&detect(PERFORMANCE).unwrap()));
    assert!(!performance.is_like(&efficient));
    // Arrow Lake-H: Crestmont beside Skymont, both efficient.
    const OTHER: Cpu = Cpu {
        leaves: &[(0xa, [0x0830_0805, 0, 0xf, 0x8604]), (0x1a, [0x2000_0002, 0, 0, 0])],
        ..ICELAKE
    };
    assert!(!efficient.is_like(&detect(OTHER).unwrap()));
    assert!(!plain.is_like(&less));
}

#[test]
fn real_processors_are_known() {
    let found = detect(ICELAKE).unwrap();
    assert_eq!(
        found.info(),
        PmuInfo {
            vendor: "GenuineIntel",
            family: 6,
            model: 0x6a,
            name: "Intel architectural performance monitoring, version 5",
            catalogue: "icelakex",
            general: 8,
            pinned: 3,
            width_bits: 48,
        }
    );
    assert_eq!(
        found.layout(),
        Layout { general: 0xff, reference: true, extra: 7, widths: Widths::of(48) }
    );
    let found = detect(ZEN4).unwrap();
    assert_eq!(
        found.info(),
        PmuInfo {
            vendor: "AuthenticAMD",
            family: 0x19,
            model: 0x11,
            name: "AMD PerfMonV2",
            catalogue: "zen4",
            general: 4,
            pinned: 2,
            width_bits: 48,
        }
    );
    assert_eq!(
        found.layout(),
        Layout { general: 0x3c, reference: false, extra: 0, widths: Widths::of(48) }
    );
}

#[test]
fn catalogues_are_chosen_by_family_model_and_stepping() {
    let zen3 = Cpu { signature: 0xa0_0f11, leaves: &ZEN4.leaves[..1], ..ZEN4 };
    let info = detect(zen3.clone()).unwrap().info();
    assert_eq!((info.catalogue, info.general), ("zen3", 4));
    assert_eq!(info.name, "AMD core performance counter extension");
    assert!(detect(zen3).unwrap().note.is_some_and(|note| note.contains("1292")));
    assert_eq!(detect(ZEN4).unwrap().note, None);
    let skylake = detect(Cpu { signature: 0x50654, ..ICELAKE }).unwrap();
    assert_eq!((skylake.info().catalogue, skylake.layout().extra), ("skylakex", 7));
    // Zen 4c, and the other models of Zen 4 (Linux: `bsp_init_amd`, arch/x86/kernel/cpu/amd.c).
    for signature in [0xaa_0f01, 0xa7_0f41, 0xa9_0f00] {
        assert_eq!(detect(Cpu { signature, ..ZEN4 }).unwrap().info().catalogue, "zen4");
    }
    let hygon = Cpu { vendor: b"HygonGenuine", signature: 0x90_0f02, ..ZEN4 };
    let found = detect(hygon).unwrap();
    assert_eq!(found.info().catalogue, "zen1");
    assert!(found.note.is_some_and(|note| note.contains("1023")));
    let zen2 = detect(Cpu { signature: 0x83_0f10, ..ZEN4 }).unwrap();
    assert_eq!((zen2.info().catalogue, zen2.note), ("zen2", None));
    // Cascade Lake differs by its stepping.
    let cascade = detect(Cpu { signature: 0x50657, ..ICELAKE }).unwrap();
    assert_eq!((cascade.info().catalogue, cascade.layout().extra), ("cascadelakex", 7));
    // An Atom core has no MSR_PEBS_FRONTEND, a processor without a table no known registers.
    let atom = detect(Cpu { signature: 0xa06f3, ..ICELAKE }).unwrap();
    assert_eq!((atom.info().catalogue, atom.layout().extra), ("sierraforest", 3));
    let unknown = detect(Cpu { signature: 0x006f0, ..ICELAKE }).unwrap();
    assert_eq!((unknown.info().catalogue, unknown.layout().extra), ("architectural", 0));
}

#[test]
fn what_is_missing_is_named() {
    let check = |cpu: Cpu, why: NoPmu| assert_eq!(detect(cpu).unwrap_err(), why);
    check(Cpu { vendor: b"CentaurHauls", ..ICELAKE }, NoPmu::Vendor(*b"CentaurHauls"));
    check(Cpu { leaves: &[], ..ICELAKE }, NoPmu::Missing { hypervisor: false });
    check(Cpu { leaves: &[], hypervisor: true, ..ZEN4 }, NoPmu::Missing { hypervisor: true });
    check(Cpu { leaves: &[(0xa, [0x0830_0401, 0, 0, 0])], ..ICELAKE }, NoPmu::TooOld);
    check(Cpu { leaves: &[(0xa, [0x0830_0402, 0, 0, 0x601])], ..ICELAKE }, NoPmu::TooFewCounters);
    let two = &[(0x8000_0001, [0, 0, 1 << 23, 0]), (0x8000_0022, [1, 2, 0, 0])];
    check(Cpu { leaves: two, ..ZEN4 }, NoPmu::TooFewCounters);
}

#[test]
fn two_fixed_counters_are_enough() {
    let found = detect(Cpu { leaves: &[(0xa, [0x0730_0402, 0, 0, 0x602])], ..ICELAKE }).unwrap();
    assert_eq!(
        found.layout(),
        Layout { general: 0xf, reference: false, extra: 7, widths: Widths::of(48) }
    );
    assert_eq!(found.info().pinned, 2);
}

/// CPUID leaf 7's EDX: bit 13, MSR_TSX_FORCE_ABORT exists; bit 11, all transactions are aborted
/// anyway.
#[test]
fn microcode_keeps_counter_3_for_transactions() {
    let general = |leaves| {
        let found = detect(Cpu { signature: 0x50654, leaves, ..ICELAKE }).unwrap();
        (found.layout().general, found.info().general, found.note.is_some())
    };
    const LEAF_A: (u32, [u32; 4]) = (0xa, [0x0730_0404, 0, 0, 0x603]);
    assert_eq!(general(&[LEAF_A]), (0xf, 4, false));
    assert_eq!(general(&[LEAF_A, (7, [0, 0, 0, 1 << 13])]), (0x7, 3, true));
    assert_eq!(general(&[LEAF_A, (7, [0, 0, 0, 1 << 13 | 1 << 11])]), (0xf, 4, false));
}

/// CPUID leaf 0AH: EBX has a bit for each architectural event that does not exist, EAX[31:24] is
/// the number of valid bits.
#[test]
fn architectural_events_that_are_not_there_are_refused() {
    let why = |eax, ebx, word: &str| {
        let cpu = |leaf: u32, _: u32| match leaf {
            0xa => CpuIdResult { eax, ebx, ecx: 0xf, edx: 0x8604 },
            leaf => ICELAKE.cpuid1(leaf),
        };
        let catalogue = detect(cpu).unwrap().catalogue();
        catalogue.resolve(word, Mode::User).err().map(|why| (why.error, why.detail))
    };
    const EIGHT: u32 = 0x0830_0805;
    let absent = |eax, ebx, word| {
        let (error, detail) = why(eax, ebx, word).unwrap_or_else(|| panic!("{word}"));
        assert_eq!(error, Error::EventNotSupported);
        assert!(detail.contains("CPUID leaf 0AH"), "{detail}");
    };
    for word in ["branch-misses", "BR_MISP_RETIRED.ALL_BRANCHES", "rc5", "cpu/event=0xc5,cmask=1/"]
    {
        assert_eq!(why(EIGHT, 0, word), None);
        assert_eq!(why(EIGHT, 1 << 5, word), None);
        absent(EIGHT, 1 << 6, word);
        absent(0x0630_0805, 0, word);
    }
    absent(EIGHT, 1 << 7, "slots");
    absent(EIGHT, 1 << 2, "r013c");
    // A fixed counter counts the event nevertheless, but not at other privileges.
    assert_eq!(why(EIGHT, 1 << 1, "instructions,INST_RETIRED.ANY_P"), None);
    absent(EIGHT, 1 << 1, "instructions:k");
    // Bits beyond the length have no meaning, and models keep the events that they had before these
    // became architectural.
    assert_eq!(why(EIGHT, 1 << 11, "UOPS_RETIRED.SLOTS,IDQ_UOPS_NOT_DELIVERED.CORE"), None);
    absent(0x0c30_0805, 1 << 11, "UOPS_RETIRED.SLOTS");
}

/// Arrow Lake's P-core: version 6. Leaf 0AH has the counters that all cores have, leaf 23H ten
/// general and four fixed ones, second unit masks (bit 0) and the equal flag (bit 1).
const LION_COVE: Cpu = Cpu {
    signature: 0xc_0662,
    leaves: &[(0xa, [0x0830_0806, 0, 7, 0x8603]), (0x1a, [0x4000_0003, 0, 0, 0])],
    extended: Some([[0b11, 0b11], [0x3ff, 0xf]]),
    ..ICELAKE
};

#[test]
fn leaf_23h_wins_over_leaf_0ah() {
    let found = detect(LION_COVE).unwrap();
    let general = |found: &DetectedPmu| (found.layout().general, found.info().general);
    assert_eq!(general(&found), (0x3ff, 10));
    assert_eq!(found.info().name, "Intel architectural performance monitoring, version 6 or later");
    assert_eq!((found.info().catalogue, found.note), ("arrowlake_lioncove", None));
    // Skymont, whose fixed counters have a gap.
    let leaves = &[(0xa, [0x0830_0806, 0, 7, 0x8603]), (0x1a, [0x2000_0003, 0, 0, 0])];
    let skymont = Cpu { leaves, extended: Some([[0b11, 0b11], [0xff, 0x77]]), ..LION_COVE };
    let found = detect(skymont.clone()).unwrap();
    assert_eq!((general(&found), found.layout().reference), ((0xff, 8), true));
    // A gap in the general counters: counter 3 is another's, and leaf 0AH has it.
    let gap = detect(Cpu { extended: Some([[0b11, 3], [0x3f7, 0xf]]), ..LION_COVE }).unwrap();
    assert_eq!(general(&gap), (0x3f7, 9));
    assert!(gap.note.is_some_and(|note| note.contains("leaf 23H")));
    assert_eq!(gap.with_halt_timer().unwrap().layout().general, 0x1f7);
    // Without the sub-leaf of counters leaf 0AH holds.
    let bare = detect(Cpu { extended: Some([[0b01, 0b11], [0x3ff, 0xf]]), ..LION_COVE }).unwrap();
    assert_eq!((general(&bare), bare.note), ((0xff, 8), None));
    let none = |masks| detect(Cpu { extended: Some([[0b11, 0], masks]), ..LION_COVE }).unwrap_err();
    assert_eq!([none([0, 0xf]), none([0x3ff, 0x2])], [NoPmu::TooFewCounters; 2]);
}

#[test]
fn fields_of_selects_are_those_of_leaf_23h() {
    let resolve = |cpu: Cpu, word: &str| {
        let resolved = detect(cpu).unwrap().catalogue().resolve(word, Mode::User);
        resolved.map(|all| all[0].demand.selector.0).map_err(|why| why.detail)
    };
    const USER: u64 = 1 << 22 | 1 << 16;
    let with = |ebx| Cpu { extended: Some([[0b11, ebx], [0x3ff, 0xf]]), ..LION_COVE };
    let select = |word| resolve(LION_COVE, word);
    assert_eq!(select("cpu/event=0xc4,umask=0x1234/"), Ok(USER | 0x12 << 40 | 0x34c4));
    assert_eq!(select("cpu/event=0xc4,umask=1,cmask=2,eq/"), Ok(USER | 1 << 36 | 0x0200_01c4));
    assert_eq!(select("r1200000034c4"), Ok(USER | 0x12 << 40 | 0x34c4));
    assert_eq!(select("r10020001c4"), Ok(USER | 1 << 36 | 0x0200_01c4));
    let why = |ebx, word| resolve(with(ebx), word).unwrap_err();
    assert!(why(0b10, "cpu/event=0xc4,umask=0x1234/").contains("no second unit mask"));
    assert!(why(0b01, "cpu/event=0xc4,umask=1,cmask=2,eq/").contains("no equal flag"));
    assert!(resolve(ICELAKE, "cpu/event=0xc4,eq/").unwrap_err().contains("no equal flag"));
    assert!(resolve(ZEN4, "cpu/event=0xc4,eq/").is_err());
}

/// Cougar Cove as Linux reads it (`update_pmu_cap`): sub-leaves 4 and 5 of leaf 23H.
#[test]
fn records_in_a_buffer_are_those_of_leaf_23h() {
    let cpu = |groups: u32, counters: [u32; 4]| {
        move |leaf: u32, sub_leaf: u32| {
            let [eax, ebx, ecx, edx] = match (leaf, sub_leaf) {
                (1, _) => [0xc_06c1, 0, 1 << 15, 0],
                (7, 1) => [1 << 8, 0, 0, 0],
                (0xa, _) => [0x0830_0806, 0, 7, 0x8603],
                (0x1a, _) => [0x4000_0004, 0, 0, 0],
                (0x23, 0) => [0b11_0011, 0b11, 8, 0],
                (0x23, 1) => [0x3ff, 0xf, 0, 0],
                (0x23, 4) => [0, groups, 0, 0],
                (0x23, 5) => counters,
                (leaf, _) => {
                    let CpuIdResult { eax, ebx, ecx, edx } = LION_COVE.cpuid1(leaf);
                    [eax, ebx, ecx, edx]
                }
            };
            CpuIdResult { eax, ebx, ecx, edx }
        }
    };
    let found = detect(cpu(1 << 30, [0x3ff, 1, 0xf, 1])).unwrap();
    assert_eq!(found.info().catalogue, "pantherlake_cougarcove");
    let first = |word| {
        let resolved = found.catalogue().resolve(word, Mode::User).unwrap();
        (resolved[0].demand.selector.0, resolved[0].demand.counters)
    };
    // No bit of adaptive records.
    assert_eq!(first("MEM_LOAD_RETIRED.L2_MISS:pp"), (0x41_10d1, 0xf));
    assert_eq!(first("MEM_LOAD_RETIRED.L2_MISS:ppp"), (0x41_10d1, 1));
    let Kind::Intel { features, .. } = found.kind else { panic!("Intel's") };
    let exact = PebsEnable::FIXED0 | PebsEnable::GENERAL0;
    assert_eq!(features.records, intel::RecordSupport::Buffer { exact });
    // Without accesses, or with a counter that stores none, there is no debug store instead.
    for cpu in [cpu(1 << 29, [0x3ff, 1, 0xf, 1]), cpu(1 << 30, [0xff, 1, 0xf, 1])] {
        let found = detect(cpu).unwrap();
        let Kind::Intel { features, .. } = found.kind else { panic!("Intel's") };
        assert_eq!(features.records, intel::RecordSupport::None);
    }
}
