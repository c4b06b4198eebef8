//! Reads a trace file by its own head, which describes the record types, so that traces of other
//! versions can be read too.

use std::fmt;

use serde_json::Value;
use tally_abi::{
    record::{MAGIC, place},
    ring::Header,
    trace::Chunk,
};

/// The beginning of the head's line that describes the run: word and version.
const RUN: &str = "run 1: ";

/// The form of a field; see [`tally_abi::record::Form`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number, with its width in bits.
    Number(u32),
    /// An address.
    Address,
    /// A boolean.
    Flag,
    /// A choice of one of these names.
    Choice(Vec<String>),
    /// A system call.
    Syscall,
    /// Return value of a system call.
    Result,
    /// A signal.
    Signal,
}

impl Form {
    fn parse(word: &str) -> Option<Form> {
        Some(match word {
            "u8" => Form::Number(8),
            "u16" => Form::Number(16),
            "u32" => Form::Number(32),
            "u64" => Form::Number(64),
            "address" => Form::Address,
            "flag" => Form::Flag,
            "syscall" => Form::Syscall,
            "result" => Form::Result,
            "signal" => Form::Signal,
            names if names.contains('|') => {
                Form::Choice(names.split('|').map(str::to_owned).collect())
            }
            _ => return None,
        })
    }

    fn bits(&self) -> u32 {
        match self {
            Form::Number(bits) => *bits,
            Form::Address | Form::Syscall | Form::Result => 64,
            Form::Flag | Form::Choice(_) | Form::Signal => 8,
        }
    }
}

/// A field and its first bit, counted from the end of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Form of the field.
    pub form: Form,
    at: u32,
}

/// A type of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Number of the kind.
    pub kind: u8,
    /// Name of the type.
    pub name: String,
    /// Name of the time stamp.
    pub stamp: String,
    /// Fields of the type.
    pub fields: Vec<Field>,
    /// The name of the list after them, if there is one.
    pub list: Option<String>,
    words: usize,
}

/// A record in the form of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Kind of the record.
    pub kind: u8,
    /// The CPU on which it was written.
    pub cpu: u16,
    /// Time stamp.
    pub tsc: u64,
    /// The words after the header.
    pub words: Vec<u64>,
}

/// Reason why a file cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The file is not a trace.
    Foreign,
    /// Head not understood: this version does not understand the line with this number.
    Head(usize),
    /// The last chunk is missing.
    Truncated,
    /// No valid chunk or record at this byte.
    Garbled(usize),
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bad::Foreign => {
                write!(f, "not a trace file: a trace begins with '{}'", MAGIC.trim_end())
            }
            Bad::Head(line) => write!(
                f,
                "line {line} of the trace's head is not understood; this version of xtask is older or newer"
            ),
            Bad::Truncated => f.write_str(
                "trace incomplete: the machine was stopped, or its trace port was not read",
            ),
            Bad::Garbled(at) => write!(f, "trace corrupt at byte {at}"),
        }
    }
}

/// A trace's head, and an iterator over its records.
#[derive(Clone, Debug)]
pub struct Trace<'a> {
    /// The types of records.
    pub types: Vec<Type>,
    /// The head's description of the run ([`super::run`]), if there is one.
    pub run: Option<Value>,
    bytes: &'a [u8],
    at: usize,
    chunk: Chunk,
    /// Words left in the chunk.
    left: usize,
    over: bool,
}

impl<'a> Trace<'a> {
    /// Reads the head.
    ///
    /// # Errors
    /// The file is not a trace, or its head is not understood.
    pub fn open(bytes: &'a [u8]) -> Result<Trace<'a>, Bad> {
        if !bytes.starts_with(MAGIC.as_bytes()) {
            let short = MAGIC.as_bytes().starts_with(bytes) && !bytes.is_empty();
            return Err(if short { Bad::Truncated } else { Bad::Foreign });
        }
        let end = bytes.windows(2).position(|two| two == b"\n\n").ok_or(Bad::Truncated)?;
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| Bad::Foreign)?;
        let (mut types, mut run) = (Vec::new(), None);
        for (i, line) in head.lines().enumerate().skip(1) {
            let understood = match line.strip_prefix(RUN) {
                Some(json) => serde_json::from_str(json).ok().map(|json| run = Some(json)),
                None => describe(&mut types, line),
            };
            understood.ok_or(Bad::Head(i + 1))?;
        }
        Ok(Trace { types, run, bytes, at: end + 2, chunk: Chunk::END, left: 0, over: false })
    }

    /// The bytes of a trace with a line that describes the run, in place of an existing one. An
    /// incomplete head is not changed.
    pub fn with_run(bytes: &[u8], run: &Value) -> Vec<u8> {
        let Some(end) = bytes.windows(2).position(|two| two == b"\n\n") else {
            return bytes.to_vec();
        };
        let lines = bytes[..end].split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.starts_with(RUN.as_bytes()));
        let mut described: Vec<u8> = lines.flat_map(|line| [line, b"\n"].concat()).collect();
        described.extend(format!("{RUN}{run}\n").into_bytes());
        described.extend(&bytes[end + 1..]);
        described
    }

    /// The type of a record, if the head describes it.
    pub fn type_of(&self, record: &Raw) -> Option<&Type> {
        self.types.iter().find(|t| t.kind == record.kind && t.words <= record.words.len())
    }

    fn word(&mut self) -> Result<u64, Bad> {
        let word = self.bytes[self.at..].first_chunk::<8>().ok_or(Bad::Truncated)?;
        self.at += 8;
        Ok(u64::from_le_bytes(*word))
    }

    fn record(&mut self) -> Result<Option<Raw>, Bad> {
        while self.left == 0 {
            let from = self.at;
            let words = [self.word()?, self.word()?];
            self.chunk = Chunk::from_words(words).map_err(|_| Bad::Garbled(from))?;
            if self.chunk == Chunk::END {
                let more = self.at < self.bytes.len();
                return if more { Err(Bad::Garbled(self.at)) } else { Ok(None) };
            }
            self.left = self.chunk.words as usize;
        }
        let from = self.at;
        let header = Header(self.word()?);
        if header.words() == 0 || header.words() > self.left {
            return Err(Bad::Garbled(from));
        }
        self.left -= header.words();
        let words = (1..header.words()).map(|_| self.word()).collect::<Result<_, _>>()?;
        let (kind, cpu, tsc) = (header.kind(), self.chunk.cpu, header.tsc(self.chunk.near_tsc));
        self.chunk.near_tsc = tsc;
        Ok(Some(Raw { kind, cpu, tsc, words }))
    }
}

/// Yields the records in the order of the file, which is the order of time for each CPU.
impl Iterator for Trace<'_> {
    type Item = Result<Raw, Bad>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let record = self.record().transpose();
        self.over = !matches!(record, Some(Ok(_)));
        record
    }
}

impl Field {
    /// The field's bits in a record of its type.
    pub fn bits(&self, record: &Raw) -> u64 {
        let word = record.words.get((self.at / 64) as usize).copied().unwrap_or_default();
        let mask = u64::MAX >> (64 - self.form.bits());
        word >> (self.at % 64) & mask
    }
}

impl Type {
    /// The words of a record's list.
    pub fn list_of<'r>(&self, record: &'r Raw) -> &'r [u64] {
        record.words.get(self.words..).unwrap_or_default()
    }

    /// The bits of the field with this name.
    pub fn value(&self, record: &Raw, name: &str) -> Option<u64> {
        let field = self.fields.iter().find(|field| field.name == name);
        field.map(|field| field.bits(record))
    }
}

/// Parses one line of a head, in the form that [`tally_abi::record::describe`] writes.
fn describe(types: &mut Vec<Type>, line: &str) -> Option<()> {
    let (words, _) = line.split_once(": ")?;
    let words: Vec<&str> = words.split(' ').collect();
    // A kind has 8 bits, and one description.
    if words[0] == "record" && types.len() > usize::from(u8::MAX) {
        return None;
    }
    match (words.as_slice(), types.last_mut()) {
        (["record", kind, name], _) => types.push(Type {
            kind: kind.parse().ok()?,
            name: (*name).into(),
            stamp: String::new(),
            fields: Vec::new(),
            list: None,
            words: 0,
        }),
        (["stamp", name, _], Some(t)) => t.stamp = (*name).into(),
        (["field", name, form], Some(t)) => {
            let form = Form::parse(form)?;
            let end = t.fields.last().map_or(0, |field| field.at + field.form.bits());
            let at = place(end, form.bits());
            t.words = (at + form.bits()).div_ceil(64) as usize;
            t.fields.push(Field { name: (*name).into(), form, at });
        }
        (["list", name, "u64"], Some(t)) => t.list = Some((*name).into()),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tally_abi::{
        record,
        trace::{LostRecord, TYPES, ThresholdRecord},
    };

    /// A trace of two records.
    pub(crate) fn sample() -> Vec<u8> {
        let mut text = String::new();
        record::describe(&TYPES, &mut text).unwrap();
        let mut words = Vec::new();
        let threshold = ThresholdRecord {
            session: 7,
            cpu: 1,
            event: 2,
            threshold: 1000,
            count: 1003,
            address_space: 0xabc000,
            tsc: 5_000,
        };
        words.push(Header::new(ThresholdRecord::KIND, 1 + ThresholdRecord::HEAD, 5_000).0);
        words.extend(threshold.head());
        let lost = LostRecord { records: 9, cpu: 1, tsc: 6_000 };
        words.push(Header::new(LostRecord::KIND, 1 + LostRecord::HEAD, 6_000).0);
        words.extend(lost.head());
        let chunk = Chunk { cpu: 1, words: words.len() as u32, near_tsc: 5_000 };
        let words = [&chunk.to_words()[..], &words, &Chunk::END.to_words()].concat();
        let mut bytes = text.into_bytes();
        bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
        bytes
    }

    /// The trace with one more chunk at the end, of CPU 0, whose record has this time stamp.
    pub(crate) fn with_earlier_chunk(trace: &[u8], tsc: u64) -> Vec<u8> {
        let lost = LostRecord { records: 1, cpu: 0, tsc };
        let head = lost.head();
        let header = Header::new(LostRecord::KIND, 1 + LostRecord::HEAD, tsc).0;
        let chunk = Chunk { cpu: 0, words: 1 + head.len() as u32, near_tsc: tsc };
        let words = [&chunk.to_words()[..], &[header], &head, &Chunk::END.to_words()].concat();
        let end = trace.len() - size_of_val(&Chunk::END.to_words());
        [&trace[..end], &words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>()].concat()
    }

    #[test]
    fn records_are_read_by_the_head() {
        let bytes = sample();
        let trace = Trace::open(&bytes).unwrap();
        let records: Vec<Raw> = trace.clone().map(Result::unwrap).collect();
        let [threshold, lost] = &records[..] else { panic!("{records:?}") };
        let t = trace.type_of(threshold).unwrap();
        assert_eq!((t.name.as_str(), threshold.cpu, threshold.tsc), ("threshold", 1, 5_000));
        let value = |name| t.value(threshold, name);
        assert_eq!(
            (value("session"), value("event"), value("count")),
            (Some(7), Some(2), Some(1003))
        );
        assert_eq!((value("address_space"), value("nothing")), (Some(0xabc000), None));
        assert_eq!(trace.type_of(lost).unwrap().value(lost, "records"), Some(9));
    }

    #[test]
    fn a_run_is_described_once_and_records_stay() {
        let bytes = sample();
        let trace = Trace::open(&bytes).unwrap();
        assert_eq!(trace.run, None, "a file of an older version");
        let [first, second] = [1, 2].map(|seed| serde_json::json!({ "seed": seed }));
        let described = Trace::with_run(&Trace::with_run(&bytes, &first), &second);
        let again = Trace::open(&described).unwrap();
        assert_eq!((again.run.as_ref(), &again.types), (Some(&second), &trace.types));
        assert!(again.eq(trace));
        let newer = String::from_utf8_lossy(&described).replace("run 1: ", "run 2: ");
        assert!(matches!(Trace::open(newer.as_bytes()), Err(Bad::Head(_))));
        let short = &bytes[..MAGIC.len()];
        assert_eq!(Trace::with_run(short, &first), short);
    }

    #[test]
    fn foreign_truncated_and_corrupt_files_are_recognized() {
        let whole = sample();
        let fate = |bytes: &[u8]| match Trace::open(bytes) {
            Err(bad) => Some(bad),
            Ok(trace) => trace.filter_map(Result::err).next(),
        };
        assert_eq!(fate(&whole), None);
        assert_eq!(fate(b""), Some(Bad::Foreign));
        assert_eq!(fate(b"{\"session\": 1}"), Some(Bad::Foreign));
        for length in MAGIC.len()..whole.len() {
            assert_eq!(fate(&whole[..length]), Some(Bad::Truncated), "{length}");
        }
        let mut garbled = whole.clone();
        let last = whole.len() - 16;
        garbled[last] ^= 1;
        assert_eq!(fate(&garbled), Some(Bad::Garbled(last)));
        let more = [&whole[..], b"x"].concat();
        assert_eq!(fate(&more), Some(Bad::Garbled(whole.len())));
        let text =
            String::from_utf8_lossy(&whole).replace("field session u32", "field session u33");
        assert!(matches!(fate(text.as_bytes()), Some(Bad::Head(_))));
    }
}
