//! The event catalogue: names to event selects, per processor.
//!
//! Each table is a text of tab-separated columns that a command makes from the vendor's own files
//! (`tally-catalogue`, in `xtask/catalogue`); it holds facts only. It is searched line by line: a
//! session is opened rarely, and a table has some hundred lines.

mod nearest;
mod resolve;
mod table;
#[cfg(test)]
mod tests;

pub use resolve::{ResolveError, Resolved};
pub use table::{Counter, Entry};

/// The events of one processor.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue {
    name: &'static str,
    vendor: Vendor,
    table: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vendor {
    Intel,
    Amd,
}

impl Catalogue {
    /// Of an Intel processor, by display family and model.
    pub fn intel(family: u16, model: u8) -> Catalogue {
        let (name, table) = match (family, model) {
            (6, 0x6a | 0x6c) => ("icelake-server", include_str!("icelake-server.tsv")),
            (6, 0x8f) => ("sapphire-rapids", include_str!("sapphire-rapids.tsv")),
            _ => ("architectural", include_str!("architectural-intel.tsv")),
        };
        Catalogue { name, vendor: Vendor::Intel, table }
    }

    /// Of an AMD processor, by display family and model.
    pub fn amd(family: u16, model: u8) -> Catalogue {
        let (name, table) = match (family, model) {
            (0x19, 0x00..=0x0f | 0x20..=0x5f) => ("zen3", include_str!("zen3.tsv")),
            (0x19, 0x10..=0x1f | 0x60..=0x7f) => ("zen4", include_str!("zen4.tsv")),
            _ => ("architectural", include_str!("architectural-amd.tsv")),
        };
        Catalogue { name, vendor: Vendor::Amd, table }
    }

    /// Its name, such as `icelake-server`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// All entries, in the order of the table.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'static>> + use<> {
        self.table.lines().filter_map(Entry::parse)
    }

    /// The entry of this name, in whatever case.
    pub fn find(&self, name: &str) -> Option<Entry<'static>> {
        let is_named = |line: &&str| {
            line.split('\t').next().is_some_and(|first| first.eq_ignore_ascii_case(name))
        };
        self.table.lines().filter(is_named).find_map(Entry::parse)
    }
}
