//! Lists of events: the default lists, and the splitting of a list into words. The catalogue
//! resolves the words.

use core::fmt;

#[cfg(feature = "alloc")]
use alloc::{string::String, vec::Vec};

/// The default job's events on the processor with this signature (CPUID leaf 1, EAX): events that
/// explain its cycles. On a processor without a table in the catalogue: events that every processor
/// can count.
pub fn default_list(signature: u32) -> &'static str {
    let model = signature >> 12 & 0xf0 | signature >> 4 & 0xf;
    match (signature & 0x0ff0_0f00, model) {
        // Ice Lake, Tiger Lake, Rocket Lake, Sapphire, Emerald and Granite Rapids.
        (0x600, 0x6a | 0x6c | 0x7d | 0x7e | 0x8c | 0x8d | 0xa7) => INTEL,
        (0x600, 0x8f | 0xcf | 0xad | 0xae) => INTEL,
        (0x600, 0x4e | 0x5e | 0x55 | 0x8e | 0x9e | 0xa5 | 0xa6) => SKYLAKE,
        (0x600, 0x3c | 0x3d | 0x3f | 0x45 | 0x46 | 0x47 | 0x4f | 0x56) => HASWELL,
        // Goldmont to Darkmont, in processors without performance cores.
        (0x600, 0x5c | 0x5f | 0x7a | 0x86 | 0x96 | 0x9c | 0xaf | 0xb6 | 0xbe | 0xdd) => ATOM,
        (0x80_0f00 | 0x90_0f00, _) => ZEN1,
        (0xa0_0f00, 0x10..=0x1f | 0x60..) => ZEN4,
        (0xa0_0f00, _) => ZEN3,
        (0xb0_0f00, _) => ZEN5,
        _ => DEFAULT_STAT,
    }
}

/// Sunny Cove, Golden Cove and Redwood Cove.
const INTEL: &str = "\
    INST_RETIRED.ANY CPU_CLK_UNHALTED.THREAD CPU_CLK_UNHALTED.REF_TSC \
    UOPS_RETIRED.SLOTS BR_INST_RETIRED.ALL_BRANCHES BR_INST_RETIRED.COND_TAKEN \
    BR_INST_RETIRED.NEAR_CALL BR_INST_RETIRED.NEAR_TAKEN BR_INST_RETIRED.INDIRECT \
    BR_MISP_RETIRED.ALL_BRANCHES BR_MISP_RETIRED.COND MEM_INST_RETIRED.ALL_LOADS \
    MEM_INST_RETIRED.ALL_STORES MEM_LOAD_RETIRED.L1_HIT MEM_LOAD_RETIRED.L1_MISS \
    MEM_LOAD_RETIRED.L2_HIT MEM_LOAD_RETIRED.L2_MISS L1D.REPLACEMENT L2_RQSTS.ALL_RFO \
    L2_LINES_IN.ALL DTLB_LOAD_MISSES.STLB_HIT CYCLE_ACTIVITY.STALLS_TOTAL \
    CYCLE_ACTIVITY.STALLS_L1D_MISS";

const SKYLAKE: &str = "\
    INST_RETIRED.ANY CPU_CLK_UNHALTED.THREAD CPU_CLK_UNHALTED.REF_TSC \
    UOPS_RETIRED.RETIRE_SLOTS BR_INST_RETIRED.ALL_BRANCHES BR_INST_RETIRED.CONDITIONAL \
    BR_INST_RETIRED.NEAR_CALL BR_INST_RETIRED.NEAR_TAKEN BR_MISP_RETIRED.ALL_BRANCHES \
    BR_MISP_RETIRED.CONDITIONAL MEM_INST_RETIRED.ALL_LOADS MEM_INST_RETIRED.ALL_STORES \
    MEM_LOAD_RETIRED.L1_HIT MEM_LOAD_RETIRED.L1_MISS MEM_LOAD_RETIRED.L2_HIT \
    MEM_LOAD_RETIRED.L2_MISS L1D.REPLACEMENT L2_RQSTS.ALL_RFO L2_LINES_IN.ALL \
    DTLB_LOAD_MISSES.STLB_HIT CYCLE_ACTIVITY.STALLS_TOTAL CYCLE_ACTIVITY.STALLS_L1D_MISS";

/// Haswell and Broadwell.
const HASWELL: &str = "\
    INST_RETIRED.ANY CPU_CLK_UNHALTED.THREAD CPU_CLK_UNHALTED.REF_TSC \
    UOPS_RETIRED.RETIRE_SLOTS BR_INST_RETIRED.ALL_BRANCHES BR_INST_RETIRED.CONDITIONAL \
    BR_INST_RETIRED.NEAR_CALL BR_INST_RETIRED.NEAR_TAKEN BR_MISP_RETIRED.ALL_BRANCHES \
    BR_MISP_RETIRED.CONDITIONAL MEM_UOPS_RETIRED.ALL_LOADS MEM_UOPS_RETIRED.ALL_STORES \
    MEM_LOAD_UOPS_RETIRED.L1_HIT MEM_LOAD_UOPS_RETIRED.L1_MISS MEM_LOAD_UOPS_RETIRED.L2_HIT \
    MEM_LOAD_UOPS_RETIRED.L2_MISS L1D.REPLACEMENT L2_RQSTS.ALL_RFO L2_LINES_IN.ALL \
    DTLB_LOAD_MISSES.STLB_HIT CYCLE_ACTIVITY.CYCLES_NO_EXECUTE \
    CYCLE_ACTIVITY.STALLS_LDM_PENDING";

const ATOM: &str = "\
    INST_RETIRED.ANY CPU_CLK_UNHALTED.CORE CPU_CLK_UNHALTED.REF_TSC \
    BR_INST_RETIRED.ALL_BRANCHES BR_MISP_RETIRED.ALL_BRANCHES UOPS_ISSUED.ANY \
    MEM_UOPS_RETIRED.ALL_LOADS MEM_UOPS_RETIRED.ALL_STORES MEM_LOAD_UOPS_RETIRED.L1_HIT \
    MEM_LOAD_UOPS_RETIRED.L2_HIT ICACHE.ACCESSES ICACHE.MISSES \
    LONGEST_LAT_CACHE.REFERENCE LONGEST_LAT_CACHE.MISS LD_BLOCKS.STORE_FORWARD";

/// Zen 1 and Zen 2.
const ZEN1: &str = "\
    RETIRED_INSTRUCTIONS CYCLES_NOT_IN_HALT RETIRED_BRANCH_INSTRUCTIONS \
    RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_TAKEN_BRANCH_INSTRUCTIONS \
    RETIRED_TAKEN_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS \
    RETIRED_NEAR_RETURNS LS_DISPATCH.LD_DISPATCH LS_DISPATCH.STORE_DISPATCH \
    L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT REQUESTS_TO_L2_GROUP1.RD_BLK_L \
    REQUESTS_TO_L2_GROUP1.RD_BLK_X";

/// Events of Zen 4 and later, as a literal.
macro_rules! since_zen4 {
    () => {
        "\
        RETIRED_INSTRUCTIONS CYCLES_NOT_IN_HALT RETIRED_OPS RETIRED_BRANCH_INSTRUCTIONS \
        RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_TAKEN_BRANCH_INSTRUCTIONS \
        RETIRED_TAKEN_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS \
        RETIRED_UNCONDITIONAL_BRANCH_INSTRUCTIONS RETIRED_NEAR_RETURNS \
        RETIRED_INDIRECT_BRANCH_INSTRUCTIONS RETIRED_FUSED_INSTRUCTIONS LS_DISPATCH.LD_DISPATCH \
        LS_DISPATCH.STORE_DISPATCH ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2 \
        DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2 MAB_ALLOCATION_BY_TYPE.LS \
        L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT REQUESTS_TO_L2_GROUP1.RD_BLK_L \
        REQUESTS_TO_L2_GROUP1.RD_BLK_X CYCLES_NO_RETIRE.EMPTY"
    };
}

/// Zen 5 and Zen 6.
const ZEN5: &str = since_zen4!();

const ZEN4: &str = concat!(since_zen4!(), " CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD");

/// Events of [`ZEN4`] that Zen 3 has too.
const ZEN3: &str = "\
    RETIRED_INSTRUCTIONS CYCLES_NOT_IN_HALT RETIRED_OPS RETIRED_BRANCH_INSTRUCTIONS \
    RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_TAKEN_BRANCH_INSTRUCTIONS \
    RETIRED_TAKEN_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS \
    RETIRED_NEAR_RETURNS RETIRED_INDIRECT_BRANCH_INSTRUCTIONS RETIRED_FUSED_INSTRUCTIONS \
    LS_DISPATCH.LD_DISPATCH LS_DISPATCH.STORE_DISPATCH \
    ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2 DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2 \
    MAB_ALLOCATION_BY_TYPE.LS L1_DTLB_MISS.TLB_RELOAD_4K_L2_HIT REQUESTS_TO_L2_GROUP1.RD_BLK_L \
    REQUESTS_TO_L2_GROUP1.RD_BLK_X";

/// The events that `tally stat` counts by default, as `perf stat` does.
pub const DEFAULT_STAT: &str =
    "cycles,instructions,branches,branch-misses,cache-references,cache-misses";

/// Events that `tally stat -d` adds: the events of `perf stat -d` that the core counts on every
/// processor of the catalogue.
pub const DETAILED_STAT: &str = "L1-dcache-loads,L1-dcache-load-misses";

/// The event that `tally record` samples by default: with precise samples where they can be had.
pub const DEFAULT_RECORD: &str = "cycles:P";

/// The events of `tally record -d`: loads of more than 30 cycles, as of `perf mem`, and stores.
pub const DATA_RECORD: &str = "cpu/mem-loads,ldlat=30/P,mem-stores:P";

/// The longest modifiers: `ukppp`.
const MOST_MODIFIERS: usize = 5;

/// The rings, 3 and 0, in which an event of this name counts, by its modifiers `u` and `k`; neither
/// where the session's own rings hold. Counts of different rings have no ratio.
pub fn rings(name: &str) -> [bool; 2] {
    let modifiers = name.rsplit_once([':', '/']).map_or("", |(_, modifiers)| modifiers);
    let is_modifiers = modifiers.chars().all(|letter| letter.is_ascii_lowercase());
    ['u', 'k']
        .map(|ring| is_modifiers && modifiers.len() <= MOST_MODIFIERS && modifiers.contains(ring))
}

/// Splits a list into words at commas, white space and braces, except inside `cpu/…/`.
pub fn words(list: &str) -> impl Iterator<Item = &str> {
    pieces(list).filter_map(|piece| match piece.kind {
        Kind::Word(word) => Some(word),
        Kind::Open | Kind::Close => None,
    })
}

/// An event of a list, and the number of its pair of braces, from 0. Events in the same braces are
/// counted in the same slices.
pub type Listed<'a> = (&'a str, Option<u16>);

/// Why an event list's braces are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadBraces<'a> {
    /// Braces inside braces.
    Nested,
    /// An opening brace without a closing one.
    Unclosed,
    /// A closing brace without an opening one.
    Unopened,
    /// No event between the braces.
    Empty,
    /// Comma missing between a brace and this: the text after a closing brace, or an opening brace.
    Touching(&'a str),
}

impl fmt::Display for BadBraces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadBraces::Nested => f.write_str("'{': braces inside braces: close the first before"),
            BadBraces::Unclosed => f.write_str("'{': the list ends before the braces: add '}'"),
            BadBraces::Unopened => f.write_str("'}': no braces are open: add '{' or remove it"),
            BadBraces::Empty => f.write_str("'{}': no event is between the braces: name some"),
            BadBraces::Touching(what) => write!(
                f,
                "'{what}': a comma goes between braces and what follows, but for modifiers, as in \
                 {{cycles,instructions}}:u"
            ),
        }
    }
}

/// Moves modifiers that follow braces to each event between the braces, as perf applies them:
/// `{a,b}:u` becomes `{a:u,b:u}`.
#[cfg(feature = "alloc")]
pub fn with_modifiers_inside(list: &str) -> String {
    let all: Vec<Piece<'_>> = pieces(list).collect();
    // Words are slices of the list, so their addresses give their positions.
    let start = |word: &str| word.as_ptr().addr() - list.as_ptr().addr();
    let (mut text, mut copied, mut open) = (String::new(), 0, None);
    for (index, piece) in all.iter().enumerate() {
        if piece.kind == Kind::Open {
            open = Some(index);
        }
        let Some(begin) = open.filter(|_| piece.kind == Kind::Close) else { continue };
        open = None;
        let Some(Piece { kind: Kind::Word(behind), touches: true }) = all.get(index + 1) else {
            continue;
        };
        let Some(modifiers) = behind.strip_prefix(':') else { continue };
        for between in &all[begin..index] {
            let Kind::Word(word) = between.kind else { continue };
            let at = start(word) + word.find('@').unwrap_or(word.len());
            text += &list[copied..at];
            // `cpu/…/` takes modifiers without a colon.
            text += if word.contains('/') { "" } else { ":" };
            text += modifiers;
            copied = at;
        }
        text += &list[copied..start(behind)];
        copied = start(behind) + behind.len();
    }
    text + &list[copied..]
}

/// The events of a list, as [`words`] splits it, each with its braces: `{a,b},c`.
///
/// The iterator should not be used after its first error.
pub fn listed(list: &str) -> impl Iterator<Item = Result<Listed<'_>, BadBraces<'_>>> {
    let mut pieces = pieces(list);
    let (mut open, mut next, mut is_empty) = (None, 0, false);
    let mut last = None;
    core::iter::from_fn(move || {
        loop {
            let Some(Piece { kind, touches }) = pieces.next() else {
                return open.take().map(|_: u16| Err(BadBraces::Unclosed));
            };
            let behind_brace = touches && last == Some(Kind::Close);
            let behind_word = touches && matches!(last, Some(Kind::Word(_)));
            last = Some(kind);
            match kind {
                Kind::Word(word) if behind_brace => return Some(Err(BadBraces::Touching(word))),
                Kind::Word(word) => {
                    is_empty = false;
                    return Some(Ok((word, open)));
                }
                Kind::Open if open.is_some() => return Some(Err(BadBraces::Nested)),
                Kind::Open if behind_word || behind_brace => {
                    return Some(Err(BadBraces::Touching("{")));
                }
                Kind::Open => {
                    (open, is_empty) = (Some(next), true);
                    next += 1;
                }
                Kind::Close if open.is_none() => return Some(Err(BadBraces::Unopened)),
                Kind::Close if is_empty => return Some(Err(BadBraces::Empty)),
                Kind::Close => open = None,
            }
        }
    })
}

/// A part of a list; `touches` says that nothing separates it from the part before.
struct Piece<'a> {
    kind: Kind<'a>,
    touches: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind<'a> {
    Word(&'a str),
    Open,
    Close,
}

fn pieces(list: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = list;
    core::iter::from_fn(move || {
        let left = rest.trim_start_matches(separates);
        let touches = left.len() == rest.len();
        let terms = terms_end(left).unwrap_or(0);
        let ends = |c: char| separates(c) || c == '{' || c == '}';
        let (kind, length) = match left.as_bytes().first()? {
            b'{' => (Kind::Open, 1),
            b'}' => (Kind::Close, 1),
            _ => {
                let end = left[terms..].find(ends).map_or(left.len(), |end| terms + end);
                (Kind::Word(&left[..end]), end)
            }
        };
        rest = &left[length..];
        Some(Piece { kind, touches })
    })
}

fn separates(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

/// The name that a spelling `cpu/…,name=NAME/` gives its event; otherwise the spelling.
pub fn label(event: &str) -> &str {
    let terms = terms_begin(event).zip(terms_end(event));
    let terms = terms.and_then(|(begin, end)| event.get(begin..end - 1)).unwrap_or_default();
    terms.split(',').find_map(|term| term.strip_prefix("name=")).unwrap_or(event)
}

/// Position of the end of the terms of `cpu/…/`, if `text` begins with such terms.
pub fn terms_end(text: &str) -> Option<usize> {
    let begin = terms_begin(text)?;
    text[begin..].find('/').map(|end| begin + end + 1)
}

/// Position of the start of the terms of `cpu/…/`, if `text` begins with such terms.
pub fn terms_begin(text: &str) -> Option<usize> {
    let pmu = text.get(..4)?;
    pmu.eq_ignore_ascii_case("cpu/").then_some(4)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_processor_with_a_table_has_a_list_of_its_own() {
        for (signature, list) in [
            (0x606a6, INTEL),
            (0x806f8, INTEL),
            (0xa0_0f11, ZEN3),
            (0xa1_0f11, ZEN4),
            (0xa6_0f12, ZEN4),
            // Zen 4c.
            (0xaa_0f01, ZEN4),
            (0x50654, SKYLAKE),
            (0x306c3, HASWELL),
            (0xa06f3, ATOM),
            (0x80_0f11, ZEN1),
            (0x87_0f10, ZEN1),
            (0xb4_0f40, ZEN5),
            // Hybrid: the kinds of core share few events.
            (0x90672, DEFAULT_STAT),
            (0x00600, DEFAULT_STAT),
        ] {
            assert_eq!(default_list(signature), list, "{signature:#x}");
        }
    }

    #[test]
    fn commas_inside_of_terms_separate_nothing() {
        let list = "a,b/u  cpu/event=1,umask=2/u,,c:k";
        let words: Vec<&str> = words(list).collect();
        assert_eq!(words, ["a", "b/u", "cpu/event=1,umask=2/u", "c:k"]);
    }

    fn all(list: &str) -> Result<Vec<Listed<'_>>, BadBraces<'_>> {
        listed(list).collect()
    }

    #[test]
    fn braces_number_the_events_between_them() {
        let list = "{a,cpu/event=1,umask=2/},b, { c d },{e}";
        let events = all(list).unwrap();
        let (first, second) = (Some(0), Some(1));
        let of = [("a", first), ("cpu/event=1,umask=2/", first), ("b", None)];
        assert_eq!(events[..3], of);
        assert_eq!(events[3..], [("c", second), ("d", second), ("e", Some(2))]);
        assert!(words(list).eq(events.iter().map(|(word, _)| *word)));
        assert_eq!(all("a,b").unwrap(), [("a", None), ("b", None)]);
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn modifiers_behind_braces_are_those_of_each_event() {
        for (list, inside) in [
            ("{a,b}:u", "{a:u,b:u}"),
            ("c,{a:c=2@3,cpu/event=1/}:k, {d} e", "c,{a:c=2:k@3,cpu/event=1/k}, {d} e"),
            ("{a}:u,{b,c}:k", "{a:u},{b:k,c:k}"),
            ("{a,b}", "{a,b}"),
            ("{a}b", "{a}b"),
            ("{a} :u", "{a} :u"),
            ("a,b}:u{", "a,b}:u{"),
            ("", ""),
        ] {
            assert_eq!(with_modifiers_inside(list), inside);
        }
    }

    #[test]
    fn modifiers_name_rings() {
        assert_eq!(rings("cycles:ku"), rings("cpu/cpu-cycles/uk"));
        assert_eq!((rings("cycles:u"), rings("cycles:k")), ([true, false], [false, true]));
        assert_eq!([rings("cycles"), rings("MEM_LOAD_RETIRED:L1_MISS")], [[false; 2]; 2]);
        assert_eq!(rings("cpu/event=0xc0,name=ku/"), [false; 2]);
        assert_eq!(label("cpu/event=1,name=foo/u"), "foo");
        assert_eq!((label("cpu/event=1/"), label("a:name=b")), ("cpu/event=1/", "a:name=b"));
    }

    #[test]
    fn braces_that_mean_nothing_are_named() {
        for (list, bad) in [
            ("{a,{b}}", BadBraces::Nested),
            ("a,{b", BadBraces::Unclosed),
            ("{", BadBraces::Unclosed),
            ("a,b}", BadBraces::Unopened),
            ("{a}}", BadBraces::Unopened),
            ("a,{ , }", BadBraces::Empty),
            ("{a,b}:u", BadBraces::Touching(":u")),
            ("{a}{b}", BadBraces::Touching("{")),
            ("a{b}", BadBraces::Touching("{")),
        ] {
            assert_eq!(all(list), Err(bad), "{list}");
        }
    }
}
