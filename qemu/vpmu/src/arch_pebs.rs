//! Architectural PEBS: its registers, and the layout of its records (Linux,
//! arch/x86/include/asm/msr-index.h and perf_event.h, `union arch_pebs_index` and the structures
//! behind it; arch/x86/events/intel/core.c, `intel_pmu_enable_event_ext`).
//!
//! Linux's text does not tell, and the model decides: that a reload value is extended by its sign;
//! that a record of several counters has the groups of all; that the size of the buffer has four
//! bits; when a record has several fragments: here the branches and the values of counters are in
//! one of their own.

/// Bit of the first fixed counter.
pub(crate) const FIXED: u32 = 32;
/// Bits of counters: the general ones, and eight fixed ones.
pub(crate) const COUNTERS: usize = FIXED as usize + 8;

/// Configuration of a counter's records: the reload value, whether the counter's value may be in
/// records, groups, and whether it stores records.
pub(crate) const RELOAD: u64 = 0xffff_ffff;
pub(crate) const ALLOW: u64 = 1 << 35;
pub(crate) const GENERAL_VALUES: u64 = 1 << 36;
pub(crate) const FIXED_VALUES: u64 = 1 << 37;
const BRANCHES_SHIFT: u32 = 40;
pub(crate) const BRANCHES: u64 = 0b11 << BRANCHES_SHIFT;
pub(crate) const ACCESS: u64 = 1 << 62;
const ENABLE: u64 = 1 << 63;
/// The groups that are modelled; CPUID has no others.
pub(crate) const GROUPS: u64 = ALLOW | GENERAL_VALUES | FIXED_VALUES | BRANCHES | ACCESS;
/// Every bit of the configuration.
pub(crate) const CONFIG_VALID: u64 = RELOAD | GROUPS | ENABLE;

/// `IA32_PEBS_INDEX`: the end of the records and the threshold, in units of 16 bytes; a record had
/// no room; records are stored.
const WRITTEN: u64 = 0x7f_ffff << 4;
const FULL: u64 = 1 << 31;
const ON: u64 = 1 << 32;
const THRESHOLD: u64 = 0x7f_ffff << THRESHOLD_SHIFT;
/// The threshold's place, and that from which it is in bytes.
const THRESHOLD_SHIFT: u32 = 36;
pub(crate) const INDEX_VALID: u64 = WRITTEN | FULL | ON | THRESHOLD;
/// `IA32_PEBS_BASE`: the binary logarithm of the size in units of 4 KiB, and the address.
const SIZE: u64 = 0xf;
pub(crate) const BASE_VALID: u64 = SIZE | ((1 << 52) - 1) & !0xfff;

/// A fragment's header: 64-bit mode, another fragment follows, the basic group.
const MODE_64: u64 = 1 << 30;
const CONTINUES: u64 = 1 << 31;
const BASIC: u64 = 1 << 63;
/// The basic group: the retire latency is valid.
const RETIRE_VALID: u64 = 1 << 16;

/// The registers.
#[derive(Clone, Debug)]
pub(crate) struct BufferRegisters {
    pub(crate) base: u64,
    pub(crate) index: u64,
    /// Configurations by the counters' bits.
    pub(crate) configs: [u64; COUNTERS],
}

impl Default for BufferRegisters {
    fn default() -> BufferRegisters {
        BufferRegisters { base: 0, index: 0, configs: [0; COUNTERS] }
    }
}

impl BufferRegisters {
    /// The counters that store records.
    pub(crate) fn enabled(&self) -> u64 {
        let is_on = |bit: &usize| self.configs[*bit] & ENABLE != 0;
        (0..COUNTERS).filter(is_on).map(|bit| 1 << bit).sum()
    }

    /// The groups of a record of some counters.
    pub(crate) fn groups(&self, counters: u64) -> u64 {
        let of = |bit: usize| if counters >> bit & 1 != 0 { self.configs[bit] & GROUPS } else { 0 };
        (0..COUNTERS).fold(0, |groups, bit| groups | of(bit)) & !ALLOW
    }

    /// The counters whose values a record of these groups has.
    pub(crate) fn valued(&self, groups: u64) -> u64 {
        let is_allowed = |bit: &usize| self.configs[*bit] & ALLOW != 0;
        let allowed: u64 = (0..COUNTERS).filter(is_allowed).map(|bit| 1 << bit).sum();
        let general = if groups & GENERAL_VALUES != 0 { (1 << FIXED) - 1 } else { 0 };
        let fixed = if groups & FIXED_VALUES != 0 { !0 << FIXED } else { 0 };
        allowed & (general | fixed)
    }

    /// The place of a record of some bytes, and the index behind it; `None`, and full, if there is
    /// no room, and `None` if records are off.
    pub(crate) fn append(&mut self, bytes: u64) -> Option<u64> {
        let start = self.index & WRITTEN;
        let end = start + bytes;
        match self.index & ON {
            0 => None,
            _ if end > 4096 << (self.base & SIZE) => {
                self.index |= FULL;
                None
            }
            _ => {
                self.index = self.index & !WRITTEN | end & WRITTEN;
                Some((self.base & !0xfff) + start)
            }
        }
    }

    /// Returns whether the records reach the threshold.
    pub(crate) fn reaches_threshold(&self) -> bool {
        let threshold = (self.index & THRESHOLD) >> (THRESHOLD_SHIFT - 4);
        self.index & ON != 0 && self.index & WRITTEN >= threshold
    }
}

/// Number of branch records by the groups' field: 8, 16, or as many as the processor has.
pub(crate) fn branches(groups: u64, depth: usize) -> usize {
    match (groups & BRANCHES) >> BRANCHES_SHIFT {
        0 => 0,
        1 => 8,
        2 => 16,
        _ => depth,
    }
}

/// The basic group: address, counters, time stamp, retire latency, and two reserved words.
pub(crate) fn basic(ip: u64, counters: u64, tsc: u64, retire_cycles: u16) -> [u64; 6] {
    [ip, counters, tsc, RETIRE_VALID | u64::from(retire_cycles), 0, 0]
}

/// The group of a memory access, from that of other records.
pub(crate) fn access([address, info, latency, transactions]: [u64; 4]) -> [u64; 8] {
    [address, 0, 0, 0, 0, info, latency, transactions]
}

/// A record: its first fragment, with the basic group and the access, and, if there are `more`
/// words of other groups, a second one.
pub(crate) fn record(groups: u64, first: &[u64], more: &[u64]) -> Vec<u8> {
    // The index counts in two words.
    let fragment = |format: u64, words: &[u64]| {
        let padding = &[0][..words.len() % 2];
        let bytes = 8 * (2 + words.len() + padding.len()) as u64;
        [&[MODE_64 | format | bytes, 0], words, padding].concat()
    };
    let continues = if more.is_empty() { 0 } else { CONTINUES };
    let mut all = fragment(BASIC | groups & ACCESS | continues, first);
    if !more.is_empty() {
        all.extend(fragment(groups & !ACCESS, more));
    }
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}
