//! Commands of `cargo xtask` that the laboratory has: the launcher starts another program for them,
//! and the tool refuses them.

/// The first words of the laboratory's commands, in the order of its help.
pub const LABORATORY: [&str; 6] = ["study", "compare", "linux", "vpmu-check", "fuzz", "bench"];

/// The laboratory's command in the words that started a program, the program's own name first;
/// `None` if the command is another. `help` before a command belongs to the same program.
pub fn laboratory_word(words: impl IntoIterator<Item: AsRef<str>>) -> Option<&'static str> {
    let first = words.into_iter().skip(1).find(|word| word.as_ref() != "help")?;
    LABORATORY.into_iter().find(|word| *word == first.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_the_laboratory_are_found_behind_help() {
        let of = |words: &str| laboratory_word(words.split(' '));
        assert_eq!(of("xtask study paper000 --long"), Some("study"));
        assert_eq!(of("xtask help vpmu-check"), Some("vpmu-check"));
        for words in ["xtask", "xtask run study", "xtask --help", "xtask help", "xtask studying"] {
            assert_eq!(of(words), None, "{words}");
        }
    }
}
