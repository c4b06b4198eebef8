//! The answer of `uname`. A program uses it to find out whether the kernel is Tally, without one of
//! Tally's own calls, whose numbers another kernel may refuse in any way.

/// Six texts, each ended by a zero byte.
pub type Names = [[u8; 65]; 6];

/// The index of the kernel's version in [`Names`].
pub const VERSION_INDEX: usize = 3;

/// Beginning of Tally's version text.
pub const TALLY: &str = "Tally ";

/// The answer's texts: Linux as the system whose calls the kernel implements, then the machine's
/// name, the release, the version, the processor's architecture.
pub const TEXTS: [&str; 5] =
    ["Linux", "tally", "6.1.0-tally", concat!("Tally ", env!("CARGO_PKG_VERSION")), "x86_64"];

/// Returns whether `names` is the answer of Tally's kernel.
pub fn is_tally(names: &Names) -> bool {
    names[VERSION_INDEX].starts_with(TALLY.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tally_is_recognized_by_its_version_alone() {
        let names = |version: &str| {
            let mut names: Names = [[0; 65]; 6];
            for (index, text) in TEXTS.iter().enumerate() {
                let text = if index == VERSION_INDEX { version } else { *text };
                names[index][..text.len()].copy_from_slice(text.as_bytes());
            }
            names
        };
        assert!(is_tally(&names(TEXTS[VERSION_INDEX])));
        assert!(!is_tally(&names("#1 SMP Tally 6.1")) && !is_tally(&names("")));
    }
}
