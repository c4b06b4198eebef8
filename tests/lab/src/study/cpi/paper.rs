//! Paper 001's statements on each architecture, from its sections 2, 3 and 5. Its figures are
//! pictures, and the numbers in its text are lost in our copy: only the statements can be compared.

/// A method, and the paper's statement of it.
const STATEMENTS: [(&str, &str); 5] = [
    ("naive", "highly inaccurate, without meaning for many programs: base can be negative"),
    ("naive non-spec", "more accurate than naive, and inaccurate beside the simulation"),
    ("POWER5", "clearly better than both; too little for I-cache misses and mispredictions"),
    ("FMT", "follows the simulation closely, with errors of some percent at most"),
    ("sFMT", "little more error than FMT, for a fraction of its bits"),
];

/// The paper's statement of a method.
pub(super) fn statement_of(method: &str) -> &'static str {
    let found = STATEMENTS.iter().find(|(name, _)| *name == method);
    found.map_or("(not in the paper)", |(_, statement)| statement)
}
