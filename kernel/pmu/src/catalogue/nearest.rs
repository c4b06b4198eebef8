//! The names nearest to one that a table lacks.

use alloc::vec::Vec;

/// The three names most like `wanted`, the best first.
///
/// The measure is the edit distance from `wanted` to the best-matching beginning of a name, with a
/// small charge for what the name has beyond it: so a name typed only in part finds its whole
/// family, and a letter wrong weighs more than a part left out.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> =
        names.map(|name| (distance(wanted.as_bytes(), name.as_bytes()), name)).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

const EDIT: usize = 8;
const LEFT_OUT: usize = 1;

fn distance(wanted: &[u8], name: &[u8]) -> usize {
    // One row of the edit-distance table at a time: row[j] is the cost of turning the letters of
    // `wanted` so far into the first j of `name`.
    let mut row: Vec<usize> = (0..=name.len()).map(|j| j * EDIT).collect();
    for letter in wanted {
        let mut diagonal = row[0];
        row[0] += EDIT;
        for (j, other) in name.iter().enumerate() {
            let change = if letter.eq_ignore_ascii_case(other) { 0 } else { EDIT };
            let best = (diagonal + change).min(row[j] + EDIT).min(row[j + 1] + EDIT);
            diagonal = core::mem::replace(&mut row[j + 1], best);
        }
    }
    let costs = row.iter().enumerate().map(|(j, cost)| cost + (name.len() - j) * LEFT_OUT);
    costs.min().unwrap_or(0)
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
        check("LONGEST_LAT_CAHCE", &["LONGEST_LAT_CACHE.MISS"]);
    }
}
