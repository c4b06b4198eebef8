//! Branches of a sample: the filter that selects them, in perf's words, and the words of one.

/// The most branches of a sample: the processors' deepest records.
pub const MAX_BRANCHES: usize = 32;
/// Words of a branch.
pub const BRANCH_WORDS: usize = 3;

/// A branch that was taken, as perf's `perf_branch_entry` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch; of an interrupt, the address that it interrupted.
    pub from: u64,
    /// Address at which execution continued.
    pub to: u64,
    /// Bit 0: mispredicted; bit 1: predicted rightly; neither if it is not known. Bits 19:4: core
    /// cycles since the record before, at most 65,535; 0 if they are not known. Bits 23:20: the
    /// type, by [`BranchType`]. Bit 63: a call that has not returned ([`BranchFilter::STACK`]).
    pub info: u64,
}

/// Bits of a branch's information.
const MISPREDICTED: u64 = 1;
const PREDICTED: u64 = 2;
const CYCLES_SHIFT: u32 = 4;
const TYPE_SHIFT: u32 = 20;
const OPEN: u64 = 1 << 63;

/// Type of a branch, by perf's number (`PERF_BR_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BranchType {
    /// The processor does not tell.
    Unknown = 0,
    /// Conditional.
    Conditional = 1,
    /// Direct jump.
    Jump = 2,
    /// Indirect jump.
    IndirectJump = 3,
    /// Direct call.
    Call = 4,
    /// Indirect call.
    IndirectCall = 5,
    /// Return.
    Return = 6,
}

impl Branch {
    /// Makes a branch. `mispredicted` is `None` if it is not known; 0 `cycles` are not known.
    pub const fn new(
        [from, to]: [u64; 2],
        kind: BranchType,
        mispredicted: Option<bool>,
        cycles: u16,
    ) -> Branch {
        let prediction = match mispredicted {
            Some(true) => MISPREDICTED,
            Some(false) => PREDICTED,
            None => 0,
        };
        let info = prediction | (cycles as u64) << CYCLES_SHIFT | (kind as u64) << TYPE_SHIFT;
        Branch { from, to, info }
    }

    /// Returns whether the branch was mispredicted; `None` if it is not known.
    pub const fn mispredicted(&self) -> Option<bool> {
        match self.info & (MISPREDICTED | PREDICTED) {
            0 => None,
            bits => Some(bits & MISPREDICTED != 0),
        }
    }

    /// Core cycles since the record before; `None` if they are not known.
    pub const fn cycles(&self) -> Option<u16> {
        match (self.info >> CYCLES_SHIFT) as u16 {
            0 => None,
            cycles => Some(cycles),
        }
    }

    /// The branch as a call that has not returned.
    #[must_use]
    pub const fn open(self) -> Branch {
        Branch { info: self.info | OPEN, ..self }
    }

    /// Returns whether it is a call of a stack of calls that have not returned.
    pub const fn is_open(&self) -> bool {
        self.info & OPEN != 0
    }

    /// The words of a record.
    pub const fn to_words(self) -> [u64; BRANCH_WORDS] {
        [self.from, self.to, self.info]
    }

    /// The branch of these words.
    pub const fn from_words([from, to, info]: [u64; BRANCH_WORDS]) -> Branch {
        Branch { from, to, info }
    }
}

/// Branches that are recorded with samples: by ring and type, in the bits of perf's
/// `branch_sample_type`. The default records none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchFilter(u16);

impl BranchFilter {
    /// Branches to ring 3.
    pub const USER: BranchFilter = BranchFilter(1 << 0);
    /// Branches to ring 0.
    pub const KERNEL: BranchFilter = BranchFilter(1 << 1);
    /// Branches of every type.
    pub const ANY: BranchFilter = BranchFilter(1 << 3);
    /// Near calls.
    pub const ANY_CALL: BranchFilter = BranchFilter(1 << 4);
    /// Near returns.
    pub const ANY_RETURN: BranchFilter = BranchFilter(1 << 5);
    /// Indirect calls.
    pub const INDIRECT_CALL: BranchFilter = BranchFilter(1 << 6);
    /// Conditional branches.
    pub const CONDITIONAL: BranchFilter = BranchFilter(1 << 10);
    /// Calls that have not returned, the innermost one first; no other type beside them.
    pub const STACK: BranchFilter = BranchFilter(1 << 11);
    /// Indirect jumps.
    pub const INDIRECT_JUMP: BranchFilter = BranchFilter(1 << 12);
    /// Direct calls.
    pub const CALL: BranchFilter = BranchFilter(1 << 13);

    /// The words of `record -j`.
    pub const WORDS: [(&'static str, BranchFilter); 10] = [
        ("any", BranchFilter::ANY),
        ("any_call", BranchFilter::ANY_CALL),
        ("any_ret", BranchFilter::ANY_RETURN),
        ("cond", BranchFilter::CONDITIONAL),
        ("ind_call", BranchFilter::INDIRECT_CALL),
        ("ind_jmp", BranchFilter::INDIRECT_JUMP),
        ("call", BranchFilter::CALL),
        ("stack", BranchFilter::STACK),
        ("u", BranchFilter::USER),
        ("k", BranchFilter::KERNEL),
    ];

    /// Bits of the rings, and of everything.
    const RINGS: u16 = 0b11;
    const ALL: u16 = 0b0011_1100_0111_1011;

    /// The filter with these bits, if they are bits of one: a stack has no other type beside it.
    pub const fn from_bits(bits: u64) -> Option<BranchFilter> {
        const STACK: u64 = BranchFilter::STACK.0 as u64;
        let is_mixed = bits & STACK != 0 && bits & !(STACK | Self::RINGS as u64) != 0;
        if bits & !(Self::ALL as u64) == 0 && !is_mixed {
            Some(BranchFilter(bits as u16))
        } else {
            None
        }
    }

    /// The bits.
    pub const fn bits(self) -> u64 {
        self.0 as u64
    }

    /// The filter of words between commas; the first unknown word if there is one. Without a type
    /// it is every type.
    ///
    /// # Errors
    /// The first word that is unknown.
    pub fn parse(text: &str) -> Result<BranchFilter, &str> {
        let mut all = BranchFilter(0);
        for word in text.split(',') {
            let known = BranchFilter::WORDS.iter().find(|(name, _)| *name == word);
            all.0 |= known.ok_or(word)?.1.0;
        }
        let all = if all.0 & !Self::RINGS == 0 { BranchFilter(all.0 | Self::ANY.0) } else { all };
        BranchFilter::from_bits(all.bits()).ok_or("another type beside stack")
    }

    /// Every filter, or every one but for [`Self::STACK`].
    pub const fn every(with_stack: bool) -> BranchFilter {
        BranchFilter(if with_stack { Self::ALL } else { Self::ALL & !Self::STACK.0 })
    }

    /// Returns whether it has nothing beyond `all`.
    pub const fn is_within(self, all: BranchFilter) -> bool {
        self.0 & !all.0 == 0
    }

    /// Returns whether no branches are recorded.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether it has a part of `other`.
    pub const fn has(self, other: BranchFilter) -> bool {
        self.0 & other.0 != 0
    }

    /// The filter, with these rings if it names none.
    pub const fn in_rings(self, user: bool, kernel: bool) -> BranchFilter {
        if self.0 & Self::RINGS != 0 || self.is_empty() {
            return self;
        }
        BranchFilter(self.0 | user as u16 | (kernel as u16) << 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_perf_s_words() {
        let parse = |text| BranchFilter::parse(text).map(BranchFilter::bits);
        assert_eq!(parse("any,u"), Ok(0b1001));
        assert_eq!(parse("u"), Ok(0b1001), "every type");
        assert_eq!(parse("ind_call,cond"), Ok(1 << 6 | 1 << 10));
        assert_eq!(parse("any,save_type"), Err("save_type"));
        assert_eq!(parse(""), Err(""));
        assert_eq!(parse("stack,u"), Ok(1 << 11 | 1));
        assert!(parse("stack,cond").is_err() && BranchFilter::from_bits(0x808).is_none());
        let words = BranchFilter::WORDS.iter().fold(0, |all, (_, part)| all | part.bits());
        assert_eq!(BranchFilter::every(true).bits(), words);
        assert_eq!(BranchFilter::from_bits(words & !(1 << 11)), Some(BranchFilter::every(false)));
        assert_eq!(BranchFilter::from_bits(1 << 2), None);
        let any = BranchFilter::ANY.in_rings(true, false);
        assert_eq!(any.bits(), 0b1001);
        assert_eq!(BranchFilter::default().in_rings(true, true), BranchFilter::default());
    }

    #[test]
    fn a_branch_has_what_it_was_made_of() {
        let branch = Branch::new([1, 2], BranchType::Return, Some(true), 0xffff);
        assert_eq!(branch.info, 1 | 0xffff << 4 | 6 << 20);
        assert_eq!((branch.mispredicted(), branch.cycles()), (Some(true), Some(0xffff)));
        assert_eq!(Branch::from_words(branch.to_words()), branch);
        let plain = Branch::new([1, 2], BranchType::Unknown, None, 0);
        assert_eq!((plain.mispredicted(), plain.cycles()), (None, None));
    }
}
