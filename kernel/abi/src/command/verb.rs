//! The commands of `tally`.

/// How `tally` measures a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Count events for the whole program.
    Stat,
    /// Sample the program: an address at every period of an event.
    Record,
}

impl Verb {
    /// Parses the verb's name.
    pub fn parse(word: &str) -> Option<Verb> {
        match word {
            "stat" => Some(Verb::Stat),
            "record" => Some(Verb::Record),
            _ => None,
        }
    }
}
