//! Last branch records: registers, and the records of loops whose branches are known.

use core::{arch::global_asm, sync::atomic::Ordering::Relaxed};

use crate::{
    apic,
    kernel::{self, in_ring3, in_ring3_interrupted},
    machine::{PMI_VECTOR, cpuid, rdmsr, wrmsr},
    report::CheckReport,
    rule::{
        Rule::{Holds, RefusesWrite},
        check,
    },
    vendor::{EN, INT, USR, VendorPmu},
};

global_asm!(
    r#"
    .section .text
// RDI rounds of one branch of each type; the conditional one is taken in every other round, and so
// is the loop's but in the last.
lbr_round:
lbr_call:
    call lbr_leaf
lbr_jump:
    jmp 2f
    nop
2:  lea rax, [rip + 3f]
lbr_ind_jump:
    jmp rax
    nop
3:  lea rax, [rip + lbr_leaf]
lbr_ind_call:
    call rax
    test edi, 1
lbr_even:
    jz 4f
    nop
4:  dec rdi
lbr_loop:
    jnz lbr_round
    syscall
lbr_leaf:
    ret

// Calls three deep, two of which return before the next, and ends in the last.
lbr_deep:
    call 6f
5:  call 7f
    ud2
6:  call 8f
    ret
7:  jmp 9f
9:  call 8f
lbr_last:
    call lbr_end
8:  ret
lbr_end:
    syscall

// Offsets in `lbr_round` of each branch's address and target, in the order of a round.
lbr_offsets:
    .long lbr_call - lbr_round, lbr_leaf - lbr_round
    .long lbr_leaf - lbr_round, lbr_jump - lbr_round
    .long lbr_jump - lbr_round, 2b - lbr_round
    .long lbr_ind_jump - lbr_round, 3b - lbr_round
    .long lbr_ind_call - lbr_round, lbr_leaf - lbr_round
    .long lbr_leaf - lbr_round, lbr_ind_call + 2 - lbr_round
    .long lbr_even - lbr_round, 4b - lbr_round
    .long lbr_loop - lbr_round, 0
// Likewise of the calls that have not returned at the end of `lbr_deep`, the last first.
lbr_stack:
    .long lbr_last - lbr_round, lbr_end - lbr_round
    .long 5b - lbr_round, 7b - lbr_round
    "#
);

unsafe extern "C" {
    static lbr_round: u8;
    static lbr_deep: u8;
    static lbr_offsets: [[u32; 2]; BRANCHES];
    static lbr_stack: [[u32; 2]; 2];
}

/// Branches of a round, and those among them that are not always taken.
const BRANCHES: usize = 8;
const EVEN: usize = 6;
const LOOP: usize = 7;
/// Types, each with the bit of the older filters and that of the architectural one, and the
/// branches of a round.
const TYPES: [(u32, u32, &[usize]); 6] = [
    (2, 16, &[EVEN, LOOP]),
    (3, 19, &[0]),
    (4, 20, &[4]),
    (5, 21, &[1, 5]),
    (6, 18, &[3]),
    (7, 17, &[2]),
];
const ALL: &[usize] = &[0, 1, 2, 3, 4, 5, EVEN, LOOP];

const DEBUGCTL: u32 = 0x1d9;
const FREEZE: u64 = 1 << 11;
const FROZEN: u64 = 1 << 58;
/// An address that hides the one of the kernel.
const HIDDEN: u64 = 0xffff_ffff;

/// Kind of records of a processor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Older,
    Architectural,
    Amd,
}

/// A record: address, target, and information.
type Record = [u64; 3];

impl Kind {
    fn here() -> Option<Kind> {
        if !VendorPmu::here().is_intel() {
            let has = cpuid(0x8000_0000, 0)[0] >= 0x8000_0022 && cpuid(0x8000_0022, 0)[0] & 2 != 0;
            return has.then_some(Kind::Amd);
        }
        match (cpuid(7, 0)[3] >> 19 & 1, rdmsr(0x345) & 0x3f) {
            (1, _) => Some(Kind::Architectural),
            (_, 5) => Some(Kind::Older),
            _ => None,
        }
    }

    fn depth(self) -> usize {
        if self == Kind::Amd { 16 } else { 32 }
    }

    /// Starts recording of ring 3: types by the bits of the older filter and the architectural one.
    fn start(self, older: u64, architectural: u64) {
        self.clear();
        match self {
            Kind::Older => {
                wrmsr(0x1c8, older);
                wrmsr(DEBUGCTL, rdmsr(DEBUGCTL) | 1);
            }
            Kind::Architectural => wrmsr(0x14ce, architectural | 1 << 2 | 1),
            Kind::Amd => {
                wrmsr(0xc000_010e, older);
                wrmsr(0xc000_010f, 1 << 6);
            }
        }
    }

    fn stop(self) {
        match self {
            Kind::Older => wrmsr(DEBUGCTL, rdmsr(DEBUGCTL) & !1),
            Kind::Architectural => wrmsr(0x14ce, 0),
            Kind::Amd => wrmsr(0xc000_010f, 0),
        }
    }

    fn clear(self) {
        match self {
            Kind::Architectural => wrmsr(0x14cf, 32),
            Kind::Older => (0..32).for_each(|at| wrmsr(0x680 + at, 0)),
            Kind::Amd => (0..32).for_each(|at| wrmsr(0xc001_0300 + at, 0)),
        }
    }

    /// The record of an age, the last of 0.
    fn read(self, age: usize) -> Record {
        let age = age as u32;
        match self {
            Kind::Older => {
                let at = (rdmsr(0x1c9) as u32 + 32 - age) % 32;
                [0x680, 0x6c0, 0xdc0].map(|first| rdmsr(first + at))
            }
            Kind::Architectural => [0x1500, 0x1600, 0x1200].map(|first| rdmsr(first + age)),
            Kind::Amd => {
                let [from, to] = [0, 1].map(|part| rdmsr(0xc001_0300 + 2 * age + part));
                [from & !(1 << 63), to & !(1 << 63), from & 1 << 63]
            }
        }
    }
}

fn round() -> u64 {
    &raw const lbr_round as u64
}

/// A branch's address and target by its offsets.
fn place(offsets: [u32; 2]) -> [u64; 2] {
    offsets.map(|offset| round() + u64::from(offset))
}

/// The taken branches of `rounds` rounds, the last first.
fn expected(rounds: u64, of: &'static [usize]) -> impl Iterator<Item = [u64; 2]> {
    // SAFETY: the table is read-only.
    let table = unsafe { lbr_offsets };
    (1..=rounds).flat_map(move |left| {
        let is_taken = move |branch: &&usize| match **branch {
            EVEN => left.is_multiple_of(2),
            LOOP => left > 1,
            _ => true,
        };
        of.iter().rev().filter(is_taken).map(move |branch| place(table[*branch]))
    })
}

/// Returns the number of records that are not as expected.
fn wrong(kind: Kind, expected: impl Iterator<Item = [u64; 2]>) -> u64 {
    let is_wrong = |(age, [from, to]): &(usize, [u64; 2])| kind.read(*age)[..2] != [*from, *to];
    (0..kind.depth()).zip(expected).filter(is_wrong).count() as u64
}

/// Runs every check of this module.
pub fn run_all(report: &mut CheckReport) {
    let Some(kind) = Kind::here() else { return };
    registers(report, kind);
    all_types(report, kind);
    each_type(report, kind);
    from_the_kernel(report, kind);
    call_stack(report, kind);
    frozen(report, kind);
}

fn registers(report: &mut CheckReport, kind: Kind) {
    let rules = match kind {
        Kind::Older => {
            [Holds(0x1c8, 0x3ff, 0x3ff), RefusesWrite(0x1c8, 1 << 10), Holds(0x1c9, 31, 31)]
        }
        Kind::Architectural => [
            Holds(0x14ce, 0x7f_000e, 0x7f_000e),
            RefusesWrite(0x14ce, 1 << 4),
            RefusesWrite(0x14cf, 24),
        ],
        Kind::Amd => [
            Holds(0xc000_010e, 0x1ff, 0x1ff),
            RefusesWrite(0xc000_010e, 1 << 9),
            RefusesWrite(0xc000_010f, 1 << 1),
        ],
    };
    rules.into_iter().for_each(|rule| check(report, rule));
    if kind == Kind::Architectural {
        let [eax, ebx, ecx, _] = cpuid(0x1c, 0);
        report.equal("leaf 1CH: depth of 32", (eax >> 3 & 1).into(), 1);
        report.equal("leaf 1CH: filters and call stacks", ebx.into(), 7);
        report.equal("leaf 1CH: what entries have", ecx.into(), 7);
    }
}

/// Checks that the ring has the last branches of a loop, of every type.
fn all_types(report: &mut CheckReport, kind: Kind) {
    for rounds in [1, 2, 40] {
        kind.start(1, 0x3f << 16);
        in_ring3(round(), rounds, 0);
        kind.stop();
        let what = format_args!("LBR, {rounds} rounds: wrong records");
        report.equal(what, wrong(kind, expected(rounds, ALL)), 0);
    }
    if kind != Kind::Amd {
        let infos = || (0..kind.depth()).map(|age| kind.read(age)[2]);
        report.equal(
            "LBR: mispredicted in the end",
            infos().filter(|info| info >> 63 == 1).count() as u64,
            0,
        );
        let cycles: u64 = infos().map(|info| info & 0xffff).sum();
        report.within("LBR: cycles of the last branches", cycles, 8, 400);
    }
}

fn each_type(report: &mut CheckReport, kind: Kind) {
    for (older, architectural, of) in TYPES {
        kind.start(0x1fd & !(1 << older), 1 << architectural);
        in_ring3(round(), 40, 0);
        kind.stop();
        let what = format_args!("LBR, type {older}: wrong records");
        report.equal(what, wrong(kind, expected(40, of)), 0);
    }
}

/// Checks that entry to ring 3 is a branch, which hides its address from ring 3 alone.
fn from_the_kernel(report: &mut CheckReport, kind: Kind) {
    kind.start(0xfd, 1 << 22);
    in_ring3(round(), 1, 0);
    kind.stop();
    let [from, to, _] = kind.read(0);
    report.equal("LBR, ring 3 entered: the target", to, round());
    if kind == Kind::Architectural {
        report.equal("LBR, ring 3 entered: the address", from, HIDDEN);
    }
    report.equal("LBR, ring 3 left: no record", kind.read(1)[0], 0);
}

fn call_stack(report: &mut CheckReport, kind: Kind) {
    if kind == Kind::Amd {
        return;
    }
    kind.start(0x3ff & !(2 | 0b111 << 3), 1 << 3 | 0b111 << 19);
    in_ring3(&raw const lbr_deep as u64, 0, 0);
    kind.stop();
    // SAFETY: the table is read-only.
    let stack = unsafe { lbr_stack };
    report.equal("LBR, call stack: wrong records", wrong(kind, stack.into_iter().map(place)), 0);
    report.equal("LBR, call stack: no more", kind.read(stack.len())[0], 0);
}

/// Checks that an overflow interrupt freezes the records until its status bit is reset.
fn frozen(report: &mut CheckReport, kind: Kind) {
    let vendor = VendorPmu::here();
    let (status, reset) =
        if vendor.is_intel() { (0x38e, 0x390) } else { (0xc000_0300, 0xc000_0302) };
    let before = kernel::TAKEN[PMI_VECTOR as usize].load(Relaxed);
    apic::apic_write(apic::LVT_PERFORMANCE, PMI_VECTOR.into());
    wrmsr(DEBUGCTL, FREEZE);
    kind.start(1, 0x3f << 16);
    vendor.program(0, 500_u64.wrapping_neg() & vendor.counter_mask(), 0xc0 | INT | USR | EN);
    vendor.enable(1);
    in_ring3_interrupted(round(), 100, 0);
    vendor.enable(0);
    report.equal(
        "LBR, frozen: interrupts",
        kernel::TAKEN[PMI_VECTOR as usize].load(Relaxed) - before,
        1,
    );
    report.equal("LBR, frozen: the status", rdmsr(status) & FROZEN, FROZEN);
    let last = kind.read(0);
    in_ring3(round(), 3, 0);
    report.equal("LBR, frozen: nothing is recorded", u64::from(kind.read(0) == last), 1);
    // Some 35 rounds of 14 or 15 instructions: not the end of the loop, after which 16 of the last
    // branches are known.
    let is_end = wrong(kind, expected(100, ALL)) == 0;
    report.equal("LBR, frozen: before the end", u64::from(is_end), 0);
    wrmsr(reset, rdmsr(status));
    in_ring3(round(), 40, 0);
    kind.stop();
    report.equal("LBR, thawed: wrong records", wrong(kind, expected(40, ALL)), 0);
    wrmsr(DEBUGCTL, 0);
    apic::apic_write(apic::LVT_PERFORMANCE, apic::LVT_MASKED);
}

/// The format of the records in PERF_CAPABILITIES.
pub fn capabilities() -> u64 {
    let is_architectural = cpuid(7, 0)[3] >> 19 & 1 == 1;
    match (cpuid(1, 0)[0] >> 4, cpuid(0xa, 0)[0] & 0xff) {
        _ if !VendorPmu::here().is_intel() => 0,
        _ if is_architectural => 0x3f,
        (0x606a, 5) => 5,
        _ => 0,
    }
}
