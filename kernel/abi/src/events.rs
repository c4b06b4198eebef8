//! How a list of events is taken apart into words. What a word means is the catalogue's to say.

/// The words of a list: split at commas and white space that stand outside of `cpu/…/`.
pub fn words(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    core::iter::from_fn(move || {
        rest = rest.trim_start_matches(separates);
        if rest.is_empty() {
            return None;
        }
        let terms = terms_end(rest).unwrap_or(0);
        let end = rest[terms..].find(separates).map_or(rest.len(), |end| terms + end);
        let (word, left) = rest.split_at(end);
        rest = left;
        Some(word)
    })
}

fn separates(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

/// Where the terms of `cpu/…/` end, if `text` begins with that.
pub fn terms_end(text: &str) -> Option<usize> {
    let begin = terms_begin(text)?;
    text[begin..].find('/').map(|end| begin + end + 1)
}

/// Where the terms of `cpu/…/` begin, if `text` begins with that.
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
    fn commas_inside_of_terms_separate_nothing() {
        let list = "a,b/u  cpu/event=1,umask=2/u,,c:k";
        let words: Vec<&str> = words(list).collect();
        assert_eq!(words, ["a", "b/u", "cpu/event=1,umask=2/u", "c:k"]);
    }
}
