//! The format of a table.
//!
//! Lines that begin with `#` are comments. Each other line is an event:
//!
//! name, code, umask, cmask, inv, edge, counters, msr
//!
//! separated by tabs; numbers are hexadecimal without prefix. `counters` is a mask of general
//! counters, or `fixedN` for fixed counter N, and then code and umask are the vendor's
//! pseudo-encoding. `msr` is the address of an extra register that the event needs, 0 if none.

/// One event of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The vendor's name.
    pub name: &'a str,
    /// Event code, 8 bits on Intel's, 12 on AMD's processors.
    pub code: u16,
    /// Unit mask.
    pub umask: u8,
    /// Counter mask.
    pub cmask: u8,
    /// Whether the comparison with the counter mask is inverted.
    pub inv: bool,
    /// Whether edges are counted.
    pub edge: bool,
    /// Where it can be counted.
    pub counter: Counter,
    /// The extra register that it needs.
    pub extra_msr: Option<u32>,
}

/// Where an event can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// On general counters, as a mask.
    General(u8),
    /// On the fixed counter of this index.
    Fixed(u8),
}

impl<'a> Entry<'a> {
    /// Reads a line; `None` for a comment or a line that is not of the format.
    pub fn parse(line: &'a str) -> Option<Entry<'a>> {
        if line.starts_with('#') {
            return None;
        }
        let mut fields = line.split('\t');
        let name = fields.next()?;
        let mut number = || fields.next().and_then(|text| u16::from_str_radix(text, 16).ok());
        let (code, umask, cmask) = (number()?, number()?, number()?);
        let (inv, edge) = (number()? != 0, number()? != 0);
        let counter = fields.next()?;
        let counter = match counter.strip_prefix("fixed") {
            Some(index) => Counter::Fixed(index.parse().ok()?),
            None => Counter::General(u8::from_str_radix(counter, 16).ok()?),
        };
        let msr = u32::from_str_radix(fields.next()?, 16).ok()?;
        Some(Entry {
            name,
            code,
            umask: umask.try_into().ok()?,
            cmask: cmask.try_into().ok()?,
            inv,
            edge,
            counter,
            extra_msr: (msr != 0).then_some(msr),
        })
    }
}
