//! The event catalogue: names to event selects, per processor.
//!
//! The command `tally-catalogue` (`xtask/catalogue`) makes the tables from the vendors' own files:
//! `events.tsv`, where an event that several processors have alike is one line, and
//! `processors.tsv`. They hold facts only. The build script (`build.rs`) packs them, and the table
//! of a processor is made when it is asked for: the kernel makes its own.

mod aliases;
mod bounds;
mod costs;
mod demand;
mod extra;
mod pack;
mod perf_names;
mod precise;
mod processors;
mod resolve;
mod resolved;
mod responses;
mod spelling;
mod table;
#[cfg(test)]
mod tests;
mod unit;
mod unknown;

use core::iter;

use tally_engine::MAX_EXTRA;

use crate::{
    intel::{RecordSupport, extra_address},
    registers::intel::PebsEnable,
};

pub use aliases::Derived;
pub use costs::CostTable;
pub use resolved::{ResolveError, Resolved};
pub use table::{Counter, Entry, ExtraRegister, Flag, Second};

use processors::{Processor, Vendor, tallys};
use table::Table;

/// The events of one processor.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue {
    processor: &'static Processor,
    table: &'static Table,
    /// Mask of the architectural events that do not exist, by their bits in CPUID leaf 0AH's EBX.
    absent: u32,
    /// Whether event selects have a second unit mask.
    has_second_umask: bool,
    /// Whether event selects have the equal flag.
    has_equal: bool,
    /// Number of fractions in PERF_METRICS; 0 without the register.
    metrics: u8,
    /// Whether precise samples can be taken.
    is_precise: bool,
    /// Whether selects of precise events have the bit of adaptive records.
    is_adaptive: bool,
    /// Whether precise samples of general counter 0 are those of the overflowing instruction.
    first_is_exact: bool,
    /// Whether Tally's own events, those of the virtual PMU, exist.
    has_tallys: bool,
}

impl Catalogue {
    fn of(processor: &'static Processor) -> Catalogue {
        let table = processor.table();
        // Both fields came with version 6.
        let [has_second_umask, has_equal] = [table.has_second_umask; 2];
        let metrics = processor.core.metrics();
        Catalogue {
            processor,
            table,
            absent: 0,
            has_second_umask,
            has_equal,
            metrics,
            is_precise: processor.core.is_precise(),
            is_adaptive: true,
            first_is_exact: processor.core.first_is_exact(),
            has_tallys: false,
        }
    }

    /// Returns the catalogue of an Intel processor, by display family, model and stepping, after
    /// Intel's own list of tables (perfmon, mapfile.csv). `kind` is EAX of CPUID leaf 1AH, which
    /// tells the core types of a hybrid processor apart; 0 if there is no such leaf.
    pub fn intel(family: u16, model: u8, stepping: u8, kind: u32) -> Catalogue {
        Catalogue::of(Processor::of(Vendor::Intel, (family, model, stepping), kind))
    }

    /// Returns the catalogue of an AMD processor, by display family and model.
    pub fn amd(family: u16, model: u8) -> Catalogue {
        Catalogue::of(Processor::of(Vendor::Amd, (family, model, 0), 0))
    }

    /// Returns the catalogue with this name, such as `icelakex`; also by libpfm4's name of the PMU,
    /// such as `icx`.
    pub fn named(name: &str) -> Option<Catalogue> {
        Processor::named(name).map(Catalogue::of)
    }

    /// Returns the catalogues of all processors that have a table of their own.
    pub fn all() -> impl Iterator<Item = Catalogue> {
        Processor::all().iter().map(Catalogue::of)
    }

    /// Removes architectural events, given by their bits in CPUID leaf 0AH's EBX.
    pub(crate) fn without(self, absent: u32) -> Catalogue {
        Catalogue { absent, ..self }
    }

    /// Sets the fields that event selects have: a second unit mask, and the equal flag.
    pub(crate) fn with_fields(self, has_second_umask: bool, has_equal: bool) -> Catalogue {
        Catalogue { has_second_umask, has_equal, ..self }
    }

    /// Removes the metrics if the processor does not have them.
    #[must_use]
    pub fn with_metrics(self, has_metrics: bool) -> Catalogue {
        Catalogue { metrics: if has_metrics { self.metrics } else { 0 }, ..self }
    }

    /// Returns the counters whose precise samples are those of the overflowing instruction.
    pub(crate) fn exact(&self) -> PebsEnable {
        let first = if self.first_is_exact { PebsEnable::GENERAL0 } else { PebsEnable::empty() };
        PebsEnable::FIXED0 | first
    }

    /// Takes the records that CPUID reports: those in a buffer need no bit in event selects.
    pub(crate) fn with_records(self, records: RecordSupport) -> Catalogue {
        let RecordSupport::Buffer { exact } = records else { return self };
        let first_is_exact = exact.contains(PebsEnable::GENERAL0);
        Catalogue { is_precise: true, is_adaptive: false, first_is_exact, ..self }
    }

    /// Removes precise samples if the processor cannot take them.
    #[must_use]
    pub fn with_precise(self, can_sample_precisely: bool) -> Catalogue {
        Catalogue { is_precise: self.is_precise && can_sample_precisely, ..self }
    }

    /// Returns the number of fractions in PERF_METRICS; 0 without the register.
    pub(crate) fn metrics(&self) -> u8 {
        self.metrics
    }

    /// Returns the mask of the extra registers that the processor is known to have, by the driver's
    /// numbers.
    pub(crate) fn extra_registers(&self) -> u8 {
        let has = |number: &u8| self.processor.core.extra_bits(extra_address(*number)) != 0;
        (0..MAX_EXTRA as u8).filter(has).fold(0, |mask, number| mask | 1 << number)
    }

    /// Returns the catalogue's name, such as `icelakex`.
    pub fn name(&self) -> &'static str {
        self.processor.name
    }

    /// Returns EAX of CPUID leaves 1 and 1AH of a processor with this catalogue; the second is 0
    /// for a processor without core types.
    pub fn cpuid(&self) -> [u32; 2] {
        self.processor.cpuid()
    }

    /// Returns whether the processor is Intel's.
    pub fn is_intels(&self) -> bool {
        self.processor.vendor == Vendor::Intel
    }

    /// Returns libpfm4's names of the PMU.
    pub fn pfm_names(&self) -> &'static [&'static str] {
        self.processor.pfm
    }

    /// Adds the events that only Tally's virtual PMU has.
    #[must_use]
    pub fn with_tallys(self) -> Catalogue {
        Catalogue { has_tallys: true, ..self }
    }

    /// Returns the tables: the vendor's, and that of Tally's own events if they exist.
    fn tables(&self) -> impl Iterator<Item = &'static Table> + use<> {
        iter::once(self.table).chain(self.has_tallys.then(tallys))
    }

    /// Returns all of the vendor's entries, in the order of their names.
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
        tallys().find(name).is_some()
    }

    /// Returns the entries with an event code in all tables.
    fn with_code(&self, code: u16) -> impl Iterator<Item = &'static Entry<'static>> + use<> {
        self.tables().flat_map(move |table| table.with_code(code))
    }
}
