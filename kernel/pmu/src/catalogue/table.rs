//! The format of a table.
//!
//! Lines that begin with `#` are comments. Each other line is an event:
//!
//! name, code, umask, cmask, inv, edge, counters, flag, msr, value
//!
//! separated by tabs; numbers are hexadecimal without prefix. `counters` is a mask of general
//! counters, or `fixedN` for fixed counter N, and then code and umask are the vendor's
//! pseudo-encoding. `flag` is `a` for an event that is counted alone, `t` for one that counts the
//! other thread of its core too, else `-`. `msr` is the address of an extra register that the event
//! needs, 0 if none, and `value` what it needs in there; where there are two registers, `code` and
//! `msr` are two numbers each, with a comma.

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
    /// Whether it is counted alone, or not by this thread alone.
    pub flag: Flag,
    /// The extra register that it needs.
    pub extra: Option<Register>,
}

/// What is special about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing.
    None,
    /// No other event can be on a general counter at the same time.
    Alone,
    /// It counts the other thread of the core too.
    Threads,
}

/// A value that an event needs in an extra register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The register's address.
    pub msr: u32,
    /// Another that will do, and the event's code with it.
    pub second: Option<(u32, u16)>,
    /// The value.
    pub value: u64,
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
        let (code, second_code) = pair(fields.next()?)?;
        let mut number = || fields.next().and_then(|text| u8::from_str_radix(text, 16).ok());
        let (umask, cmask) = (number()?, number()?);
        let (inv, edge) = (number()? != 0, number()? != 0);
        let counter = fields.next()?;
        let counter = match counter.strip_prefix("fixed") {
            Some(index) => Counter::Fixed(index.parse().ok()?),
            None => Counter::General(u8::from_str_radix(counter, 16).ok()?),
        };
        let flag = match fields.next()? {
            "a" => Flag::Alone,
            "t" => Flag::Threads,
            _ => Flag::None,
        };
        let (msr, second_msr) = pair(fields.next()?)?;
        let value = u64::from_str_radix(fields.next()?, 16).ok()?;
        let second = second_msr.zip(second_code.and_then(|code| code.try_into().ok()));
        let extra = (msr != 0).then_some(Register { msr, second, value });
        let code = code.try_into().ok()?;
        Some(Entry { name, code, umask, cmask, inv, edge, counter, flag, extra })
    }
}

/// One number, or two with a comma.
fn pair(text: &str) -> Option<(u32, Option<u32>)> {
    let number = |text| u32::from_str_radix(text, 16).ok();
    match text.split_once(',') {
        Some((first, second)) => Some((number(first)?, Some(number(second)?))),
        None => Some((number(text)?, None)),
    }
}
