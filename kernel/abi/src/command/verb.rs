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
        [Verb::Stat, Verb::Record].into_iter().find(|verb| verb.name() == word)
    }

    /// The verb's name.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Stat => "stat",
            Verb::Record => "record",
        }
    }
}
