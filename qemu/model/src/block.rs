//! A translated block: a description of its instructions, computed once.

use crate::{
    counts::Lanes,
    operation::Operation,
    signal::{STATIC_SIGNALS, Signal},
    strings::StringKind,
};

/// The longest block that QEMU translates.
pub const MAX_INSNS: usize = 512;

/// Entries of the tables in which the interval pipeline keeps its knowledge of blocks, a power of
/// two.
pub(crate) const PLACES: usize = 1 << 14;

/// The privilege that a count belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Privilege {
    /// Ring 3.
    User = 0,
    /// Rings 0 to 2.
    Kernel = 1,
}

impl Privilege {
    /// Name of the ring in output files.
    pub fn name(self) -> &'static str {
        match self {
            Privilege::User => "user",
            Privilege::Kernel => "kernel",
        }
    }
}

/// Kind of the branch that ends a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BranchKind {
    /// No branch: execution continues in the next block, or the last instruction is not predicted.
    #[default]
    None,
    /// Direct jump.
    Jump,
    /// Conditional jump.
    Cond,
    /// Direct near call.
    Call,
    /// Indirect near jump.
    IndirectJump,
    /// Indirect near call.
    IndirectCall,
    /// Near return.
    Return,
}

impl BranchKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [BranchKind; 7] = [
        BranchKind::None,
        BranchKind::Jump,
        BranchKind::Cond,
        BranchKind::Call,
        BranchKind::IndirectJump,
        BranchKind::IndirectCall,
        BranchKind::Return,
    ];
}

/// The branch at a block's end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Branch {
    /// Kind of the branch.
    pub kind: BranchKind,
    /// Address of the branch.
    pub pc: u64,
    /// Address of the instruction after the branch.
    pub fall_through: u64,
}

/// An instruction, and its contribution to the static signals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Insn {
    /// Address at translation. The instruction may run under another mapping of its page, so only
    /// the low 12 bits are the same at every execution.
    pub pc: u64,
    /// Bit `i` is one count of static signal `i`.
    pub adds: u32,
    /// Length in bytes.
    pub length: u8,
    /// Micro-operations in the fused domain.
    pub uops: u8,
    /// Cycles for which the instruction has the pipeline to itself.
    pub serialize_cycles: u16,
    /// Cycles for which the instruction occupies the divider.
    pub divider_cycles: u8,
    /// Kind of a repeated string instruction: it retires at its end, not at each iteration.
    pub string: Option<StringKind>,
    /// A load or store that is wider than QEMU's accesses, which are parts of it.
    pub wide: bool,
    /// Two calculations for each element: a multiplication and an addition.
    pub fused: bool,
    /// The floating-point operations, and their signal.
    pub flops: Option<(Signal, u8)>,
    /// A software interrupt: it retires although it ends in an exception.
    pub traps: bool,
    /// IRET: the end of a handler.
    pub returns_from_interrupt: bool,
    /// The bit of the condition code, for a conditional branch.
    pub condition: u16,
    /// Condition codes with which a directly following conditional branch fuses with this
    /// instruction.
    pub fuses_with: u16,
    /// Execution unit and registers.
    pub operation: Operation,
}

impl Insn {
    /// Adds one count of the static signal `signal`.
    pub fn add(&mut self, signal: Signal) {
        debug_assert!((signal as usize) < STATIC_SIGNALS.min(u32::BITS as usize));
        self.adds |= 1 << signal as u32;
    }
}

/// Counts that a sequence of instructions adds to the static signals.
pub(crate) type StaticCounts = [u32; STATIC_SIGNALS];

/// A translated block. The fields that every execution reads come first and fill two cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Block {
    /// The branch at the block's end.
    pub branch: Branch,
    /// Address of the first instruction at translation.
    pub pc: u64,
    /// Physical addresses of the first and last cache line, in lines.
    pub lines: (u64, u64),
    /// The privilege in which the block runs.
    pub ring: Privilege,
    /// Whether the last instruction is a repeated string instruction.
    pub ends_in_repeat: bool,
    /// Whether the last instruction is IRET.
    pub ends_in_iret: bool,
    /// Whether `lanes` contains everything that the block adds to the static signals.
    is_small: bool,
    /// The number of cache lines that the block touches.
    line_count: u32,
    /// The condition code of the first instruction if it is a conditional branch (it may fuse with
    /// the instruction before the block), and the codes that the last instruction fuses with.
    begins_with: u16,
    ends_with: u16,
    /// The block's index in the tables of the interval pipeline.
    place: u16,
    lanes: Lanes,
    insns: Box<[Insn]>,
    width: u16,
    counts: StaticCounts,
    /// The target, if a direct branch ends the block.
    target: Option<u64>,
}

const _: () = assert!(std::mem::offset_of!(Block, insns) <= 128);

impl Block {
    /// Makes a block of these instructions for a pipeline of `width` slots.
    pub fn new(
        ring: Privilege,
        width: u16,
        lines: (u64, u64),
        branch: Branch,
        insns: &[Insn],
    ) -> Block {
        let last = insns.last().copied().unwrap_or_default();
        let mut insns: Box<[Insn]> = insns.into();
        fuse(&mut insns);
        let mut block = Block {
            branch,
            pc: insns.first().map_or(0, |insn| insn.pc),
            lines,
            ring,
            ends_in_repeat: last.string.is_some(),
            ends_in_iret: last.returns_from_interrupt,
            is_small: false,
            line_count: 1,
            begins_with: insns.first().map_or(0, |insn| insn.condition),
            ends_with: last.fuses_with,
            place: place(insns.first().map_or(0, |insn| insn.pc)),
            lanes: Lanes::ZERO,
            insns,
            width,
            counts: [0; STATIC_SIGNALS],
            target: None,
        };
        block.line_count = block.lines_through(block.insns.len().saturating_sub(1));
        block.counts = block.partial_counts(0..block.insns.len());
        block.is_small = Lanes::of(&block.counts).map(|lanes| block.lanes = lanes).is_some();
        block
    }

    /// Returns the block with a direct branch to `target` at its end.
    pub fn with_target(self, target: u64) -> Block {
        Block { target: Some(target), ..self }
    }

    /// The target, if a direct branch ends the block.
    pub(crate) fn target(&self) -> Option<u64> {
        self.target
    }

    /// Returns whether execution can continue at `pc` after the block.
    pub fn may_continue_at(&self, pc: u64) -> bool {
        let repeats = self.ends_in_repeat && self.insns.last().is_some_and(|last| last.pc == pc);
        let far = 1 << Signal::BranchFar as u32;
        match (self.branch.kind, self.target) {
            (BranchKind::None, _) => {
                repeats || self.insns.last().is_some_and(|last| last.adds & far != 0)
            }
            (_, Some(target)) => target == pc || self.branch.fall_through == pc,
            _ => true,
        }
    }

    /// The condition code of the first instruction, if that is a conditional branch.
    #[inline]
    pub(crate) fn begins_with(&self) -> u16 {
        self.begins_with
    }

    /// The condition codes that the last instruction fuses with.
    #[inline]
    pub(crate) fn ends_with(&self) -> u16 {
        self.ends_with
    }

    /// The block's index in the tables of the interval pipeline.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        usize::from(self.place)
    }

    /// The condition codes that instruction `index` fuses with.
    pub(crate) fn fuses_after(&self, index: usize) -> u16 {
        self.insns[index].fuses_with
    }

    /// The number of cache lines that the block touches.
    #[inline]
    pub(crate) fn line_count(&self) -> u32 {
        self.line_count
    }

    /// The number of the block's lines up to the end of instruction `index`.
    pub(crate) fn lines_through(&self, index: usize) -> u32 {
        let Some(insn) = self.insns.get(index) else { return self.line_count };
        let last_byte = insn.pc.wrapping_add(u64::from(insn.length.max(1)) - 1);
        // A block can cross the end of the address space.
        ((last_byte >> 6).wrapping_sub(self.pc >> 6) & (u64::MAX >> 6)) as u32 + 1
    }

    /// The index of the first instruction that reaches into line `ordinal`.
    pub(crate) fn first_in_line(&self, ordinal: u32) -> usize {
        let mut all = 0..self.insns.len();
        all.find(|index| self.lines_through(*index) > ordinal).unwrap_or_default()
    }

    /// The virtual page and the physical line number of the block's line `ordinal`. If the block
    /// crosses into a second page, that page can have any physical address.
    pub(crate) fn line(&self, ordinal: u32) -> (u64, u64) {
        let (first, last) = self.lines;
        let virtual_line = ((self.pc >> 6) + u64::from(ordinal)) & (u64::MAX >> 6);
        let line = if virtual_line >> 6 == self.pc >> 12 {
            first + u64::from(ordinal)
        } else {
            last.wrapping_sub(u64::from(self.line_count - 1 - ordinal))
        };
        (virtual_line >> 6, line)
    }

    /// The block's instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// The index of the instruction at `pc`, under any mapping of its page.
    pub fn index_of(&self, pc: u64) -> Option<usize> {
        self.insns.iter().position(|insn| (insn.pc ^ pc) & 0xfff == 0)
    }

    /// The whole block's counts of static signals, if they fit into lanes.
    #[inline]
    pub(crate) fn lanes(&self) -> Option<&Lanes> {
        self.is_small.then_some(&self.lanes)
    }

    /// The whole block's counts of static signals.
    pub(crate) fn counts(&self) -> &StaticCounts {
        &self.counts
    }

    /// The counts of static signals of the instructions in `range`.
    pub(crate) fn partial_counts(&self, range: std::ops::Range<usize>) -> StaticCounts {
        sum(&self.insns[range], self.width)
    }
}

/// The table index of a block at `pc`: neighbours are near each other, as they run together.
fn place(pc: u64) -> u16 {
    ((pc >> 3 ^ pc >> 17) as usize & (PLACES - 1)) as u16
}

/// Returns whether a branch fuses with the instruction directly before it, so that both retire as
/// one micro-operation.
#[inline]
pub(crate) fn fuses(head_fuses_with: u16, branch_condition: u16) -> bool {
    head_fuses_with & branch_condition != 0
}

/// Fuses the pairs inside a block. The core handles pairs that a block boundary separates.
fn fuse(insns: &mut [Insn]) {
    for at in 1..insns.len() {
        if fuses(insns[at - 1].fuses_with, insns[at].condition) {
            insns[at].uops = 0;
            insns[at].add(Signal::Fused);
        }
    }
}

/// Signals of floating-point arithmetic, a bit for each.
const ARITHMETIC: u32 = 1 << Signal::FpScalarDouble as u32
    | 1 << Signal::FpScalarSingle as u32
    | 1 << Signal::FpPackedDouble as u32
    | 1 << Signal::FpPackedSingle as u32
    | 1 << Signal::FpWideDouble as u32
    | 1 << Signal::FpWideSingle as u32;

fn sum(insns: &[Insn], width: u16) -> StaticCounts {
    let mut counts = [0u32; STATIC_SIGNALS];
    let width = u32::from(width);
    for insn in insns {
        let mut adds = insn.adds;
        while adds != 0 {
            let signal = adds.trailing_zeros() as usize;
            counts[signal] += if insn.fused && ARITHMETIC >> signal & 1 == 1 { 2 } else { 1 };
            adds &= adds - 1;
        }
        if let Some((signal, operations)) = insn.flops {
            counts[signal as usize] += u32::from(operations);
        }
        let (uops, serialize) = (u32::from(insn.uops), u32::from(insn.serialize_cycles));
        let microcoded = insn.adds >> Signal::Microcoded as u32 & 1 == 1;
        let slots = uops + serialize * width;
        for (signal, amount) in [
            (Signal::Instructions, 1),
            (Signal::Uops, uops),
            (Signal::UopsMicrocode, if microcoded { uops } else { 0 }),
            (Signal::StallSerialize, serialize),
            (Signal::DividerActive, u32::from(insn.divider_cycles)),
            (Signal::Slots, slots),
        ] {
            counts[signal as usize] += amount;
        }
    }
    counts
}
