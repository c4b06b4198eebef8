//! The event catalogue: names to event selects, per processor.
//!
//! Each table is a text of tab-separated columns that the command `tally-catalogue`
//! (`xtask/catalogue`) makes from the vendor's own files; it holds facts only. The build script
//! (`build.rs`) turns the texts into arrays with indices by name and by code, because a table has
//! hundreds of events and a list has up to a thousand.

mod aliases;
mod bounds;
mod costs;
mod demand;
mod resolve;
mod resolved;
mod spelling;
mod table;
#[cfg(test)]
mod tests;
mod unit;

/// Generated event tables.
mod tables {
    use super::table::{Counter, Entry, ExtraRegister, Flag, Table};

    include!(concat!(env!("OUT_DIR"), "/tables.rs"));
}

use core::iter;

use crate::registers::intel::OffcoreRsp;

pub use aliases::Derived;
pub use costs::CostTable;
pub use resolved::{ResolveError, Resolved};
pub use table::{Counter, Entry, ExtraRegister, Flag};

use table::Table;

/// The events of one processor.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue {
    name: &'static str,
    processor: Processor,
    vendor: Vendor,
    table: &'static Table,
    /// Names of this PMU in libpfm4.
    pfm: &'static [&'static str],
    /// Mask of the architectural events that do not exist, by their bits in CPUID leaf 0AH's EBX.
    absent: u32,
    /// Whether Tally's own events, those of the virtual PMU, exist.
    has_tallys: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vendor {
    Intel,
    Amd,
}

/// A processor with its own table, or any other one of a vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Processor {
    SkylakeServer,
    IceLakeServer,
    SapphireRapids,
    Intel,
    Zen3,
    Zen4,
    Amd,
}

impl Processor {
    /// Returns the valid bits of an extra register, 0 if it does not exist (Linux's
    /// `intel_skl_extra_regs`, `intel_icl_extra_regs`, `intel_glc_extra_regs`).
    fn extra_bits(self, msr: u32) -> u64 {
        match (self, msr) {
            (Processor::SkylakeServer, 0x1a6 | 0x1a7) => 0x3f_ffff_8fff,
            (Processor::IceLakeServer, 0x1a6 | 0x1a7) => 0x3f_ffff_bfff,
            (Processor::SapphireRapids, 0x1a6 | 0x1a7) => 0x3f_ffff_ffff,
            (Processor::SkylakeServer | Processor::IceLakeServer, 0x3f7) => 0x7f_ff17,
            (Processor::SapphireRapids, 0x3f7) => 0x7f_ff1f,
            _ => 0,
        }
    }
}

macro_rules! catalogue {
    ($processor:ident, $vendor:ident, $name:literal, $table:ident, $pfm:expr) => {
        Catalogue {
            name: $name,
            processor: Processor::$processor,
            vendor: Vendor::$vendor,
            table: &tables::$table,
            pfm: &$pfm,
            absent: 0,
            has_tallys: false,
        }
    };
}

impl Catalogue {
    /// Returns the catalogue of an Intel processor, by display family, model and stepping, after
    /// Intel's own list of tables (perfmon, mapfile.csv). Cascade Lake has Skylake's model number
    /// and its own table.
    pub fn intel(family: u16, model: u8, stepping: u8) -> Catalogue {
        match (family, model, stepping) {
            (6, 0x55, 0..=4) => {
                catalogue!(SkylakeServer, Intel, "skylake-server", SKYLAKE_SERVER, ["skx"])
            }
            (6, 0x6a | 0x6c, _) => {
                catalogue!(IceLakeServer, Intel, "icelake-server", ICELAKE_SERVER, ["icx"])
            }
            (6, 0x8f, _) => {
                catalogue!(SapphireRapids, Intel, "sapphire-rapids", SAPPHIRE_RAPIDS, ["spr"])
            }
            _ => catalogue!(Intel, Intel, "architectural", ARCHITECTURAL_INTEL, ["ix86arch"]),
        }
    }

    /// Returns the catalogue of an AMD processor, by display family and model.
    pub fn amd(family: u16, model: u8) -> Catalogue {
        match (family, model) {
            (0x19, 0x00..=0x0f | 0x20..=0x5f) => {
                catalogue!(Zen3, Amd, "zen3", ZEN3, ["amd64_fam19h_zen3"])
            }
            (0x19, 0x10..=0x1f | 0x60..=0xaf) => {
                catalogue!(Zen4, Amd, "zen4", ZEN4, ["amd64_fam19h_zen4"])
            }
            _ => catalogue!(Amd, Amd, "architectural", ARCHITECTURAL_AMD, []),
        }
    }

    /// Removes architectural events, given by their bits in CPUID leaf 0AH's EBX.
    pub(crate) fn without(self, absent: u32) -> Catalogue {
        Catalogue { absent, ..self }
    }

    /// Returns whether the processor is known to have the extra registers of its table.
    pub(crate) fn has_extra_registers(&self) -> bool {
        self.processor.extra_bits(<OffcoreRsp as crate::registers::Register>::FIRST) != 0
    }

    /// Returns the catalogue's name, such as `icelake-server`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Adds the events that only Tally's virtual PMU has.
    #[must_use]
    pub fn with_tallys(self) -> Catalogue {
        Catalogue { has_tallys: true, ..self }
    }

    /// Returns the tables: the vendor's, and that of Tally's own events if they exist.
    fn tables(&self) -> impl Iterator<Item = &'static Table> + use<> {
        iter::once(self.table).chain(self.has_tallys.then_some(&tables::TALLY))
    }

    /// Returns all of the vendor's entries, in the order of the table.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'static>> + use<> {
        self.table.entries.iter().copied()
    }

    /// Returns the entry with this name, ignoring case.
    pub fn find(&self, name: &str) -> Option<Entry<'static>> {
        self.tables().find_map(|table| table.find(name)).copied()
    }

    /// Returns whether `name`, ignoring case, is one of Tally's own events, whether or not it
    /// exists here.
    fn is_tallys(name: &str) -> bool {
        tables::TALLY.find(name).is_some()
    }

    /// Returns the entries with an event code in all tables.
    fn with_code(&self, code: u16) -> impl Iterator<Item = &'static Entry<'static>> + use<> {
        self.tables().flat_map(move |table| table.with_code(code))
    }
}
