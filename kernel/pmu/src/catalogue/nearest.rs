//! The nearest names to a name that a table lacks.

use alloc::vec::Vec;

/// The three names most like `wanted`, the best first.
///
/// The measure is an edit distance in which a letter left out weighs little: so a name typed only
/// in part finds its whole family, and what is wrong in it weighs more.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> =
        names.map(|name| (distance(wanted.as_bytes(), name.as_bytes()), name)).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

const LEFT_OUT: usize = 1;
const WRONG: usize = 4;

fn distance(wanted: &[u8], name: &[u8]) -> usize {
    // One row of the edit-distance table at a time: row[j] is the cost of turning the letters of
    // `wanted` so far into the first j of `name`.
    let mut row: Vec<usize> = (0..=name.len()).map(|j| j * LEFT_OUT).collect();
    for letter in wanted {
        let mut diagonal = row[0];
        row[0] += WRONG;
        for (j, other) in name.iter().enumerate() {
            let change = if letter.eq_ignore_ascii_case(other) { 0 } else { WRONG };
            let best = (diagonal + change).min(row[j] + LEFT_OUT).min(row[j + 1] + WRONG);
            diagonal = core::mem::replace(&mut row[j + 1], best);
        }
    }
    row[name.len()]
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
    }
}
