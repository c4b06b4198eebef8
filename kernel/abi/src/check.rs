//! The findings of the program `tally-check` about a machine's counters: a line of text for each,
//! such as `counter cpu=0 counter=general-2 alone=20003 …`, which people can read and the host
//! parses. The host turns the lines into the report of `cargo xtask run --check`.
//!
//! A line is a word that names its subject, then fields in a fixed order. Blanks in values are
//! escaped ([`crate::words`]); `-` is a value that is not known.

use alloc::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::words::{escape, unescape};

/// Version of the lines and of the report. It increases when a field changes its meaning or is
/// removed.
pub const VERSION: u32 = 1;
/// The program that prints the lines.
pub const PROGRAM: &str = "tally-check";

/// The value of a field.
trait Field: Sized {
    /// The field's text, without blanks.
    fn text(&self) -> String;
    /// Parses the text.
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Field for $type {
            fn text(&self) -> String {
                self.to_string()
            }

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}
numbers!(u8 u32 u64 bool);

impl Field for String {
    fn text(&self) -> String {
        escape(self).into_owned()
    }

    fn parse(text: &str) -> Option<Self> {
        Some(unescape(text).into_owned())
    }
}

impl<T: Field> Field for Option<T> {
    fn text(&self) -> String {
        self.as_ref().map_or("-".to_owned(), T::text)
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "-" { Some(None) } else { T::parse(text).map(Some) }
    }
}

impl<T: Field> Field for Vec<T> {
    fn text(&self) -> String {
        let texts: Vec<String> = self.iter().map(T::text).collect();
        if texts.is_empty() { "-".to_owned() } else { texts.join(",") }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "-" { Some(Vec::new()) } else { text.split(',').map(T::parse).collect() }
    }
}

/// Defines lines: structs, and an enum of them.
macro_rules! lines {
    ($($(#[$about:meta])* $word:literal $name:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
            pub struct $name {
                $($(#[$doc])* pub $field: $type,)*
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str($word)?;
                    $(write!(f, concat!(" ", stringify!($field), "={}"), self.$field.text())?;)*
                    Ok(())
                }
            }
        )*

        /// A line.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Line {
            $($(#[$about])* $name($name),)*
        }

        impl Line {
            /// Parses a line. `None` if this version defines no such line.
            pub fn parse(line: &str) -> Option<Line> {
                let mut words = line.split_ascii_whitespace();
                let kind = words.next()?;
                let mut fields = words.map(|word| word.split_once('='));
                let line = match kind {
                    $($word => Line::$name($name {
                        $($field: match fields.next()?? {
                            (stringify!($field), text) => Field::parse(text)?,
                            _ => return None,
                        },)*
                    }),)*
                    _ => return None,
                };
                fields.next().is_none().then_some(line)
            }
        }
    };
}

lines! {
    /// The machine, as a program sees it: the first line.
    "machine" Machine {
        /// [`VERSION`].
        version: u32,
        /// CPUID leaf 1, EAX.
        signature: u32,
        /// Whether CPUID says that a hypervisor is there.
        hypervisor: bool,
        /// CPUs that are online.
        cpus: u32,
    }

    /// Findings about a counter of a CPU.
    "counter" Counter {
        /// The CPU.
        cpu: u32,
        /// The counter: `general-N`, `instructions`, `cycles` or `reference`.
        counter: String,
        /// Lower bound of the events that the loop raises.
        least: u64,
        /// Upper bound of the events that the loop raises.
        most: u64,
        /// Count of the loop, read by RDPMC in ring 3, while no other general counter had an event.
        alone: u64,
        /// Count of the loop while all counters counted.
        together: u64,
        /// Count of the loop as a session of the kernel read it.
        session: Option<u64>,
        /// Events counted in the loop after the session was stopped.
        stopped: Option<u64>,
        /// Bits of the counter.
        width_bits: Option<u8>,
        /// Overflows that the check caused.
        raised: u64,
        /// Overflow interrupts that arrived before the loop ended.
        arrived: u64,
        /// Overflow interrupts while the loop ran.
        interrupts: u64,
        /// Events from an overflow to its interrupt: minimum, median, maximum.
        skid: Vec<u64>,
    }

    /// Cost of counting on a CPU, in core cycles, and of interrupts.
    "cost" Cost {
        /// The CPU.
        cpu: u32,
        /// Core cycles of an RDPMC in ring 3, in hundredths.
        rdpmc_centicycles: Option<u64>,
        /// Core cycles of an overflow interrupt that changes no event.
        interrupt_cycles: Option<u64>,
        /// Core cycles of an overflow interrupt that replaces the events of all general counters.
        switch_cycles: Option<u64>,
        /// Interrupts and exceptions while a loop ran in ring 3.
        interrupts: u64,
        /// Instructions counted in excess of the loop's own.
        overcount: u64,
        /// Slices whose interrupt never came.
        lost: u64,
    }

    /// An event of the catalogue on a loop that raises it.
    "event" Event {
        /// The event.
        event: String,
        /// The loop.
        work: String,
        /// Lower bound of the events that the loop raises.
        least: u64,
        /// Upper bound of the events that the loop raises.
        most: u64,
        /// Count of each general counter that can count the event.
        on: Vec<Span>,
    }

    /// An event of the catalogue that the machine refuses.
    "refused" Refused {
        /// The event.
        event: String,
        /// The reason.
        why: String,
    }

    /// The last line: everything was checked.
    "checked" Checked {
        /// Lines before this one.
        lines: u32,
    }
}

/// Range of a general counter's counts of a loop over all CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The counter's hardware index.
    pub counter: u8,
    /// Lowest count.
    pub least: u64,
    /// CPU with the lowest count.
    pub least_cpu: u32,
    /// Highest count.
    pub most: u64,
    /// CPU with the highest count.
    pub most_cpu: u32,
}

impl Span {
    /// A span of one count.
    pub fn of(counter: u8, cpu: u32, count: u64) -> Span {
        Span { counter, least: count, least_cpu: cpu, most: count, most_cpu: cpu }
    }

    /// Adds the count of another CPU.
    pub fn add(&mut self, cpu: u32, count: u64) {
        if count < self.least {
            (self.least, self.least_cpu) = (count, cpu);
        }
        if count > self.most {
            (self.most, self.most_cpu) = (count, cpu);
        }
    }
}

/// `COUNTER:COUNT@CPU`, and `..COUNT@CPU` if CPUs differ.
impl Field for Span {
    fn text(&self) -> String {
        let Span { counter, least, least_cpu, most, most_cpu } = self;
        if least == most {
            format!("{counter}:{least}@{least_cpu}")
        } else {
            format!("{counter}:{least}@{least_cpu}..{most}@{most_cpu}")
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (counter, counts) = text.split_once(':')?;
        let (low, high) = counts.split_once("..").unwrap_or((counts, counts));
        let of_cpu = |text: &str| {
            let (count, cpu) = text.split_once('@')?;
            Some((count.parse().ok()?, cpu.parse().ok()?))
        };
        let ((least, least_cpu), (most, most_cpu)) = (of_cpu(low)?, of_cpu(high)?);
        Some(Span { counter: counter.parse().ok()?, least, least_cpu, most, most_cpu })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let mut span = Span::of(3, 0, 10);
        let event = Event {
            event: "A.B".into(),
            work: "far loads".into(),
            least: 1,
            most: 20,
            on: vec![span],
        };
        assert_eq!(event.to_string(), "event event=A.B work=far\\sloads least=1 most=20 on=3:10@0");
        span.add(1, 12);
        span.add(2, 11);
        let event = Event { on: vec![span, Span::of(0, 5, 7)], ..event };
        assert!(event.to_string().ends_with("on=3:10@0..12@1,0:7@5"), "{event}");
        assert_eq!(Line::parse(&event.to_string()), Some(Line::Event(event)));
        let counter =
            Counter { counter: "cycles".into(), width_bits: Some(48), ..Counter::default() };
        assert!(counter.to_string().contains(" session=- "), "{counter}");
        assert_eq!(Line::parse(&counter.to_string()), Some(Line::Counter(counter)));
        for bad in ["", "event", "checked lines=x", "checked line=1", "checked lines=1 more=2"] {
            assert_eq!(Line::parse(bad), None, "{bad}");
        }
    }
}
