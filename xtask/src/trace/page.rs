//! The page on trace records, docs/trace.md, made from their descriptions.

use std::fmt::Write as _;

use tally_abi::{
    record::{MAGIC, Sentence},
    trace::TYPES,
};

const BEGIN: &str = "\
# Trace records

Made by `cargo xtask trace --describe` from `kernel/abi/src/trace.rs`; a test sees that it is up to date.

A trace is a text that describes its records, then chunks of records. The text begins with the line
`";

const HEAD: &str = "` and ends with an empty line; what it says of each type is below, and
`cargo xtask trace` reads a trace by it. A chunk is two words and whole records, all of one CPU and in
the order of time: the first word is 7A11H, in the bits from 16 on the CPU, in those from 32 on the number
of words that follow both; the second is a time stamp near that of the first record. The last chunk has CPU
65,535 and no words. All words are 64-bit and little-endian.

A record begins with a header: bits 0 to 7 its length in words, 8 to 15 its kind, 16 to 63 the low
48 bits of its time stamp, which is within 2⁴⁷ ticks of the one before, or the chunk's. Then come its fields, packed from the lowest bit
up; one that would cross a word's end begins in the next word. A flag and a choice take 8 bits, an
address 64. A list takes the rest.

Per CPU records are in order, and written = read + lost. Time that no slice covers was not measured. In the
rings records lie the same way; `kernel/abi/src/ring.rs` has their layout. With
`trace=last` (`run --trace-last`) nothing is sent while programs run and the oldest records give way to new ones;
what is left at the end is the trace.

A program that `paranoid=0` permits it can map the ring of any CPU, read-only, and follow it as it is written
(`tally::trace::TraceReader`); there is one per CPU, with the records of every program that ran there. Without
that right it has its own counts in its bank, its thresholds by upcalls, and its samples by a call.
";

/// The whole page.
pub(super) fn page() -> String {
    let mut text = BEGIN.to_owned() + MAGIC.trim_end() + HEAD;
    for t in TYPES {
        // Writing to a string does not fail.
        let _ = write!(text, "\n## Kind {}: `{}`\n\n{}\n\n", t.kind, t.name, Sentence(t.about));
        text += "| Field | Form | |\n|---|---|---|\n";
        let _ = writeln!(text, "| `{}` | time stamp | {} |", t.stamp.name, Sentence(t.stamp.about));
        for field in t.fields.iter().chain(&t.list) {
            let form = field.form.to_string().replace('|', " \\| ");
            let list = if t.list.as_ref() == Some(field) { "list of " } else { "" };
            let _ =
                writeln!(text, "| `{}` | {list}{form} | {} |", field.name, Sentence(field.about));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Project;

    #[test]
    fn the_page_is_up_to_date() {
        let path = Project::here().root.join("docs/trace.md");
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        // Not `assert_eq!`: it would print both.
        assert!(there == page(), "`cargo xtask trace --describe > docs/trace.md` makes it anew");
    }
}
