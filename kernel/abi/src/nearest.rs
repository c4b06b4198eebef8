//! Suggestions for a name that a table lacks.

use alloc::vec::Vec;

/// The three names most like `wanted`, the best first; fewer if others share little more with it
/// than single letters.
///
/// The measure is an edit distance in which a letter left out weighs little: a name typed only in
/// part finds its whole family, and a wrong letter weighs more. Letters of `wanted` after the first
/// [`MAX_LETTERS`] are ignored: the kernel ranks with interrupts off.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = &wanted.as_bytes()[..wanted.len().min(MAX_LETTERS)];
    let half = &wanted[..wanted.len().div_ceil(2)];
    let begins = |name: &str| {
        let begin = name.as_bytes().get(..half.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(half))
    };
    // Each letter that a shorter name lacks is a wrong one: most such names need no ranking.
    let can_be_near = |name: &&str| {
        let lacking = wanted.len().saturating_sub(name.len());
        usize::from(WRONG) * lacking < wanted.len() || begins(name)
    };
    let is_near = |(cost, name): &(u16, &str)| {
        let left_out = name.len().saturating_sub(wanted.len());
        usize::from(*cost) < left_out + wanted.len() || begins(name)
    };
    let ranked = names.filter(can_be_near).map(|name| (distance(wanted, name.as_bytes()), name));
    let mut ranked: Vec<(u16, &str)> = ranked.filter(is_near).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Limit of the letters that are compared. Ranking takes some nanoseconds for each of them and each
/// letter of all names.
const MAX_LETTERS: usize = 28;
const LEFT_OUT: u16 = 1;
const WRONG: u16 = 4;
/// The bit that distinguishes ASCII's capital letters from small ones.
const CASE: u8 = 0x20;

fn distance(wanted: &[u8], name: &[u8]) -> u16 {
    // One row of the edit-distance table at a time: row[j] is the cost of turning the letters of
    // `wanted` so far into the first j of `name`.
    let mut row: Vec<u16> = (0..=name.len() as u16).map(|j| j * LEFT_OUT).collect();
    for letter in wanted {
        let Some((first, rest)) = row.split_first_mut() else { break };
        let mut diagonal = *first;
        *first += WRONG;
        let mut left = *first;
        for (cost, other) in rest.iter_mut().zip(name) {
            let change = if (letter ^ other) & !CASE == 0 { 0 } else { WRONG };
            left = (diagonal + change).min(left + LEFT_OUT).min(*cost + WRONG);
            diagonal = core::mem::replace(cost, left);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "BR_INST_RETIRED.ALL_BRANCHES",
        "BR_INST_RETIRED.COND",
        "BR_MISP_RETIRED.ALL_BRANCHES",
        "MEM_INST_RETIRED.ALL_LOADS",
        "LONGEST_LAT_CACHE.MISS",
    ];

    fn check(wanted: &str, expected: &[&str]) {
        let found = nearest(wanted, NAMES.into_iter());
        assert_eq!(&found[..expected.len()], expected);
    }

    #[test]
    fn slips_and_beginnings_find_their_names() {
        check("br_inst_retired.all_branchs", &["BR_INST_RETIRED.ALL_BRANCHES"]);
        check("BR_INST", &["BR_INST_RETIRED.COND", "BR_INST_RETIRED.ALL_BRANCHES"]);
        check("MEM_INSTR_RETIRED.ALL_LOADS", &["MEM_INST_RETIRED.ALL_LOADS"]);
        check("MEM.ALL_LOADS", &["MEM_INST_RETIRED.ALL_LOADS"]);
        check("LONGEST_LAT_CAHCE", &["LONGEST_LAT_CACHE.MISS"]);
        for other in ["ex_ret_instr", "nonsense", "L3_FOO"] {
            assert!(nearest(other, NAMES.into_iter()).is_empty(), "{other}");
        }
    }
}
