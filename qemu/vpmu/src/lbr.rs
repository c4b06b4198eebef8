//! Last branch records: the ring of the last taken branches, its filters and call-stack mode
//! (SDM vol. 3, "Last Branch Records" for the architectural ones, "Last Branch, Interrupt, and
//! Exception Recording" for the older ones; APM vol. 2, "Last Branch Stack Registers").
//!
//! An operation that changes the privilege is recorded if the one that it leads to is selected.
//! Where the architectural records do not select the one that it comes from, they hide the address.

use tally_model::{BranchKind, Privilege};

use crate::profile::LbrKind;

/// Entries of Intel's rings, and of AMD's.
pub(crate) const ENTRIES: usize = 32;
const ENTRIES_AMD: usize = 16;

/// Filter of the older records and of AMD's: a set bit suppresses. Ring 0, ring 3, then the types.
const NOT_RING_0: u64 = 1 << 0;
const NOT_RING_3: u64 = 1 << 1;
/// Call-stack mode of the older records, and the valid bits with it, and AMD's.
const STACK: u64 = 1 << 9;
const SELECT_VALID: u64 = 0x3ff;
const SELECT_VALID_AMD: u64 = 0x1ff;

/// Control of the architectural records: on, ring 0, ring 3, call-stack mode, and types, of which a
/// set bit selects.
const CTL_ON: u64 = 1 << 0;
const CTL_RING_0: u64 = 1 << 1;
const CTL_RING_3: u64 = 1 << 2;
const CTL_STACK: u64 = 1 << 3;
const CTL_VALID: u64 = 0x7f_000f;

/// Information of an entry: mispredicted, and the architectural ones' valid count of cycles and
/// type. The count is in bits 15:0 and saturates.
const INFO_WRONG: u64 = 1 << 63;
const INFO_CYCLES_VALID: u64 = 1 << 60;
const INFO_TYPE_SHIFT: u32 = 56;
const INFO_MOST_CYCLES: u64 = 0xffff;

/// The address of a branch from a privilege that the architectural filter does not select.
const HIDDEN: u64 = 0xffff_ffff;

/// AMD's entry: mispredicted in the first register; valid and not speculative in the second.
const AMD_WRONG: u64 = 1 << 63;
const AMD_VALID: u64 = 1 << 63;
const AMD_ADDRESS: u64 = (1 << 58) - 1;
const AMD_SIGN: u64 = 0x1f << 58;

/// Type of a taken branch: a near branch, or a far one, an interrupt or an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenKind {
    /// Near branch, of a kind other than none.
    Near(BranchKind),
    /// Far branch, interrupt or exception.
    Far,
}

/// A branch that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBranch {
    /// Address of the branch, or of the instruction that an interrupt or exception precedes.
    pub from: u64,
    /// Address at which execution continues.
    pub to: u64,
    /// Type of the branch.
    pub kind: TakenKind,
    /// Privileges in which it is and to which it leads.
    pub rings: [Privilege; 2],
    /// Whether the model predicted it wrongly.
    pub is_wrong: bool,
    /// Length in bytes; 0 for interrupts and exceptions.
    pub length: u8,
}

/// An entry of the ring, as registers have it: where from, where to, and information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) info: u64,
}

/// The records and their registers.
#[derive(Clone, Debug)]
pub(crate) struct Lbr {
    pub(crate) kind: LbrKind,
    /// `IA32_LBR_CTL`, `MSR_LBR_SELECT` or AMD's `LBR_SELECT`.
    pub(crate) control: u64,
    /// AMD's `DBG_EXTN_CFG`.
    pub(crate) extension: u64,
    /// The register of the last entry; 0 where entries move.
    pub(crate) top: usize,
    /// Number of entries.
    pub(crate) depth: usize,
    entries: [Entry; ENTRIES],
    /// Cycles up to the last record.
    last_cycles: u64,
}

impl Lbr {
    pub(crate) fn new(kind: LbrKind) -> Lbr {
        let depth = if kind == LbrKind::Amd { ENTRIES_AMD } else { ENTRIES };
        let entries = [Entry::default(); ENTRIES];
        Lbr { kind, control: 0, extension: 0, top: 0, depth, entries, last_cycles: 0 }
    }

    /// The valid bits of the filter's register.
    pub(crate) fn control_valid(&self) -> u64 {
        match self.kind {
            LbrKind::Architectural => CTL_VALID,
            LbrKind::Legacy => SELECT_VALID,
            LbrKind::Amd => SELECT_VALID_AMD,
        }
    }

    /// Returns whether recording is on by the register of the kind; the older records' is that of
    /// debug control.
    pub(crate) fn is_on(&self, debugctl: u64) -> bool {
        match self.kind {
            LbrKind::Architectural => self.control & CTL_ON != 0,
            LbrKind::Legacy => debugctl & 1 != 0,
            LbrKind::Amd => self.extension & 1 << 6 != 0,
        }
    }

    /// The entry of a register, by its number; `None` beyond the depth.
    pub(crate) fn entry(&mut self, register: usize) -> Option<&mut Entry> {
        self.entries[..self.depth].get_mut(register)
    }

    /// The entries, the last branch first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = Entry> {
        let register = |age| match self.kind {
            LbrKind::Legacy => (self.top + self.depth - age) % self.depth,
            LbrKind::Architectural | LbrKind::Amd => age,
        };
        (0..self.depth).map(move |age| self.entries[register(age)])
    }

    /// Clears all entries.
    pub(crate) fn clear(&mut self) {
        self.entries = [Entry::default(); ENTRIES];
    }

    /// Returns whether the filter selects a privilege.
    fn selects_ring(&self, ring: Privilege) -> bool {
        match (self.kind, ring) {
            (LbrKind::Architectural, Privilege::Kernel) => self.control & CTL_RING_0 != 0,
            (LbrKind::Architectural, Privilege::User) => self.control & CTL_RING_3 != 0,
            (_, Privilege::Kernel) => self.control & NOT_RING_0 == 0,
            (_, Privilege::User) => self.control & NOT_RING_3 == 0,
        }
    }

    /// Returns whether the filter selects a type.
    fn selects_kind(&self, kind: TakenKind) -> bool {
        match self.kind {
            LbrKind::Architectural => self.control >> control_bit(kind) & 1 != 0,
            _ => self.control >> select_bit(kind) & 1 == 0,
        }
    }

    fn is_stack(&self) -> bool {
        match self.kind {
            LbrKind::Architectural => self.control & CTL_STACK != 0,
            LbrKind::Legacy => self.control & STACK != 0,
            LbrKind::Amd => false,
        }
    }

    /// Records a branch that was taken after this number of cycles, if the filter selects it. In
    /// call-stack mode a return drops the last entry, and a call of the next instruction is none.
    pub(crate) fn record(&mut self, branch: &TakenBranch, cycles: u64) {
        let [from_ring, to_ring] = branch.rings;
        if !self.selects_ring(to_ring) || !self.selects_kind(branch.kind) {
            return;
        }
        if self.is_stack() {
            match branch.kind {
                TakenKind::Near(BranchKind::Return) => return self.pop(),
                _ if branch.to == branch.from.wrapping_add(branch.length.into()) => return,
                _ => {}
            }
        }
        let is_hidden = self.kind == LbrKind::Architectural && !self.selects_ring(from_ring);
        let from = if is_hidden { HIDDEN } else { branch.from };
        let passed = cycles.saturating_sub(self.last_cycles);
        self.last_cycles = cycles;
        let entry = self.format(from, branch, passed);
        self.push(entry);
    }

    /// The entry of a branch in the kind's format.
    fn format(&self, from: u64, branch: &TakenBranch, cycles: u64) -> Entry {
        let cycles = cycles.min(INFO_MOST_CYCLES);
        let wrong = if branch.is_wrong { INFO_WRONG } else { 0 };
        match self.kind {
            LbrKind::Legacy => Entry { from, to: branch.to, info: wrong | cycles },
            LbrKind::Architectural => {
                let number = info_type(branch.kind) << INFO_TYPE_SHIFT;
                let info = wrong | INFO_CYCLES_VALID | number | cycles;
                Entry { from, to: branch.to, info }
            }
            LbrKind::Amd => {
                let sign = |address: u64| address & (AMD_ADDRESS | AMD_SIGN);
                let from = sign(from) | if branch.is_wrong { AMD_WRONG } else { 0 };
                // Bits 62 and 61 of the second are "speculative" and reserved.
                let to = branch.to & (AMD_ADDRESS | 0x7 << 58) | AMD_VALID;
                Entry { from, to, info: 0 }
            }
        }
    }

    fn push(&mut self, entry: Entry) {
        if self.kind == LbrKind::Legacy {
            self.top = (self.top + 1) % self.depth;
        } else {
            self.entries[..self.depth].rotate_right(1);
        }
        self.entries[self.top] = entry;
    }

    fn pop(&mut self) {
        self.entries[self.top] = Entry::default();
        if self.kind == LbrKind::Legacy {
            self.top = (self.top + self.depth - 1) % self.depth;
        } else {
            self.entries[..self.depth].rotate_left(1);
        }
    }
}

/// Bit of `IA32_LBR_CTL` for a type.
fn control_bit(kind: TakenKind) -> u32 {
    match kind {
        TakenKind::Near(BranchKind::Cond) => 16,
        TakenKind::Near(BranchKind::Jump) => 17,
        TakenKind::Near(BranchKind::IndirectJump) => 18,
        TakenKind::Near(BranchKind::Call) => 19,
        TakenKind::Near(BranchKind::IndirectCall) => 20,
        TakenKind::Near(BranchKind::Return) => 21,
        TakenKind::Near(BranchKind::None) | TakenKind::Far => 22,
    }
}

/// Bit of `MSR_LBR_SELECT`, and of AMD's register, for a type.
fn select_bit(kind: TakenKind) -> u32 {
    match kind {
        TakenKind::Near(BranchKind::Cond) => 2,
        TakenKind::Near(BranchKind::Call) => 3,
        TakenKind::Near(BranchKind::IndirectCall) => 4,
        TakenKind::Near(BranchKind::Return) => 5,
        TakenKind::Near(BranchKind::IndirectJump) => 6,
        TakenKind::Near(BranchKind::Jump) => 7,
        TakenKind::Near(BranchKind::None) | TakenKind::Far => 8,
    }
}

/// Type in an architectural entry's information.
fn info_type(kind: TakenKind) -> u64 {
    match kind {
        TakenKind::Near(BranchKind::Cond) => 0,
        TakenKind::Near(BranchKind::IndirectJump) => 1,
        TakenKind::Near(BranchKind::Jump) => 2,
        TakenKind::Near(BranchKind::IndirectCall) => 3,
        TakenKind::Near(BranchKind::Call) => 4,
        TakenKind::Near(BranchKind::Return) => 5,
        TakenKind::Near(BranchKind::None) | TakenKind::Far => 8,
    }
}
