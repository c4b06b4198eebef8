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
}

impl CpuIdReader for Cpu {
    fn cpuid2(&self, eax: u32, _: u32) -> CpuIdResult {
        let word = |at: usize| u32::from_le_bytes(self.vendor[at..at + 4].try_into().unwrap());
        let [eax, ebx, ecx, edx] = match eax {
            0 => [0x20, word(0), word(8), word(4)],
            1 => [self.signature, 0, u32::from(self.hypervisor) << 31, 0],
            0x8000_0000 => [0x8000_0028, 0, 0, 0],
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
};

/// Zen 4: family 19h, model 11h.
const ZEN4: Cpu = Cpu {
    vendor: b"AuthenticAMD",
    signature: 0xa1_0f11,
    hypervisor: false,
    leaves: &[(0x8000_0001, [0, 0, 1 << 23, 0]), (0x8000_0022, [1, 6, 0, 0])],
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
