//! pprof's profile, which `go tool pprof`, Speedscope, Grafana Pyroscope and others open.
//!
//! Source: github.com/google/pprof, proto/profile.proto. The file is not compressed, which readers
//! accept; compress it with gzip for those that do not. The messages are few and flat, so the wire
//! format (protobuf.dev, "Encoding") is written here instead of by generated code.
//!
//! A location is an address of a program, with a line for each function that was inlined there.
//! Each event has two values: the samples, and the events for which they stand.

use std::collections::BTreeMap;

use super::bytes::Bytes;
use crate::{
    Result,
    recording::{FileKey, LoadedFile, Recording, Symbolizer},
};

/// Types of fields on the wire: a varint, and bytes preceded by their length.
const VARINT: u32 = 0;
const LENGTH: u32 = 2;

/// A message of the format.
#[derive(Clone, Default)]
struct Message(Bytes);

impl Message {
    /// Adds a number; 0 is omitted, as a missing field means 0.
    fn number(self, field: u32, value: u64) -> Message {
        if value == 0 {
            return self;
        }
        Message(varint(varint(self.0, (field << 3 | VARINT).into()), value))
    }

    fn bytes(self, field: u32, bytes: &[u8]) -> Message {
        let head = varint(self.0, (field << 3 | LENGTH).into());
        Message(varint(head, bytes.len() as u64).raw(bytes))
    }

    fn message(self, field: u32, message: Message) -> Message {
        self.bytes(field, &message.0.0)
    }

    /// Adds consecutive numbers.
    fn packed(self, field: u32, values: &[u64]) -> Message {
        let all = values.iter().fold(Bytes::default(), |all, value| varint(all, *value));
        self.bytes(field, &all.0)
    }
}

/// Appends a number, seven bits a byte, the lowest first.
fn varint(mut to: Bytes, mut value: u64) -> Bytes {
    while value > 0x7f {
        to = to.u8(value as u8 | 0x80);
        value >>= 7;
    }
    to.u8(value as u8)
}

/// Texts, each once; the first is empty, as the format requires.
struct Texts(BTreeMap<String, u64>);

impl Texts {
    fn index(&mut self, text: &str) -> u64 {
        let next = self.0.len() as u64;
        *self.0.entry(text.to_owned()).or_insert(next)
    }

    fn sorted(self) -> Vec<String> {
        let mut all: Vec<(u64, String)> = self.0.into_iter().map(|(text, at)| (at, text)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, text)| text).collect()
    }
}

/// Makes the profile.
struct Writer<'a> {
    of: &'a Recording,
    symbolizer: &'a Symbolizer,
    texts: Texts,
    /// Numbers from 1 on: of functions by name and file, of mappings by program, and of locations
    /// by program and address.
    functions: BTreeMap<(String, String), u64>,
    mappings: BTreeMap<(u32, Option<FileKey<'a>>), u64>,
    locations: BTreeMap<(u32, u64, Option<FileKey<'a>>), u64>,
    profile: Message,
}

/// The profile's bytes.
///
/// # Errors
/// The trace has no samples.
pub(super) fn write(of: &Recording, symbolizer: &Symbolizer) -> Result<Vec<u8>> {
    of.has_samples()?;
    let mut writer = Writer {
        of,
        symbolizer,
        texts: Texts(BTreeMap::from([(String::new(), 0)])),
        functions: BTreeMap::new(),
        mappings: BTreeMap::new(),
        locations: BTreeMap::new(),
        profile: Message::default(),
    };
    writer.samples();
    Ok(writer.end())
}

impl<'a> Writer<'a> {
    /// Adds the values' types, and a sample with its values for each stack of each thread.
    fn samples(&mut self) {
        let events: Vec<String> = self.of.sampled_events().into_iter().collect();
        for event in &events {
            for (name, unit) in [(format!("{event} samples"), "count"), (event.clone(), "count")] {
                let (name, unit) = (self.texts.index(&name), self.texts.index(unit));
                let kind = Message::default().number(1, name).number(2, unit);
                self.add(|profile| profile.message(1, kind));
            }
        }
        let mut values: BTreeMap<(Vec<u64>, u32), Vec<u64>> = BTreeMap::new();
        for (sample, weight) in self.of.weighted_samples() {
            let event = self.of.event_name(sample.session, sample.event);
            let Some(index) = events.iter().position(|of| *of == event) else { continue };
            // The innermost function comes first.
            let levels = self.symbolizer.stack(self.of, sample).into_iter().rev();
            let locations = levels.map(|level| self.location(sample, level.at.in_instruction()));
            let locations: Vec<u64> = locations.collect();
            let key = (locations, sample.thread);
            let values = values.entry(key).or_insert_with(|| vec![0; 2 * events.len()]);
            values[2 * index] += 1;
            values[2 * index + 1] += weight;
        }
        for ((locations, thread), values) in values {
            let label = Message::default().number(1, self.texts.index("thread"));
            let label = label.number(3, thread.into());
            let sample = Message::default().packed(1, &locations).packed(2, &values);
            let sample = sample.message(3, label);
            self.add(|profile| profile.message(2, sample));
        }
        if let Some(last) = events.last() {
            let default = self.texts.index(last);
            self.add(|profile| profile.number(14, default));
        }
    }

    fn add(&mut self, field: impl FnOnce(Message) -> Message) {
        self.profile = field(std::mem::take(&mut self.profile));
    }

    /// The number of the location of an address in a sample's stack. Adds it if it is new.
    fn location(&mut self, sample: &tally_abi::trace::SampleRecord, address: u64) -> u64 {
        let (program, name) = self.of.program_of(sample.session);
        let file = self.symbolizer.file(self.of, sample, address);
        let key = (program, address, file.map(LoadedFile::key));
        if let Some(known) = self.locations.get(&key) {
            return *known;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(key, id);
        let mapping = if sample.user { self.mapping(program, name, file) } else { 0 };
        let mut location = Message::default().number(1, id).number(2, mapping).number(3, address);
        let places = file.map(|file| file.places(address)).unwrap_or_default();
        for place in &places {
            let file = place.file.as_deref().unwrap_or_default();
            let function = self.function(&place.function, file);
            let line = u64::from(place.line.unwrap_or_default());
            location = location.message(4, Message::default().number(1, function).number(2, line));
        }
        if places.is_empty() {
            let name = if address == sample.address {
                self.symbolizer.function(self.of, sample)
            } else {
                format!("{address:#x}")
            };
            let function = self.function(&name, "");
            location = location.message(4, Message::default().number(1, function));
        }
        self.add(|profile| profile.message(4, location));
        id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let next = self.functions.len() as u64 + 1;
        let key = (name.to_owned(), file.to_owned());
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        self.functions.insert(key, next);
        let (name, file) = (self.texts.index(name), self.texts.index(file));
        let function = Message::default().number(1, next).number(2, name).number(3, name);
        self.add(|profile| profile.message(5, function.number(4, file)));
        next
    }

    /// The number of the mapping of a file into a program, or of the program without files.
    fn mapping(&mut self, program: u32, name: &str, file: Option<&'a LoadedFile>) -> u64 {
        let next = self.mappings.len() as u64 + 1;
        let key = (program, file.map(LoadedFile::key));
        if let Some(known) = self.mappings.get(&key) {
            return *known;
        }
        self.mappings.insert(key, next);
        let mut mapping = Message::default().number(1, next);
        let mut path = name.to_owned();
        if let Some(file) = file {
            path = file.path.display().to_string();
            if let Some(code) = file.code.first() {
                let end = code.start.saturating_add(code.bytes);
                mapping = mapping.number(2, code.start).number(3, end).number(4, code.file_offset);
            }
            let id: String = file.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            mapping = mapping.number(6, self.texts.index(&id));
            // Functions, files, lines and inlined functions are resolved.
            mapping = mapping.number(7, 1).number(8, 1).number(9, 1).number(10, 1);
        }
        let path = self.texts.index(&path);
        self.add(|profile| profile.message(3, mapping.number(5, path)));
        next
    }

    /// Completes the profile with its texts, its duration and how it was made.
    fn end(mut self) -> Vec<u8> {
        let comment = self.texts.index(&format!("Tally: {}", self.of.run.command_line));
        let duration_ns = self.of.ns(self.of.end_tsc());
        let texts = self.texts.sorted();
        let profile = self.profile.number(10, duration_ns).packed(13, &[comment]);
        texts.iter().fold(profile, |all, text| all.bytes(6, text.as_bytes())).0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of protobuf.dev, "Encoding".
    #[test]
    fn numbers_and_messages_are_encoded_as_protobuf_says() {
        let test1 = Message::default().number(1, 150);
        assert_eq!(test1.0.0, [0x08, 0x96, 0x01]);
        let test3 = Message::default().message(3, test1);
        assert_eq!(test3.0.0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let test5 = Message::default().packed(6, &[3, 270, 86942]);
        assert_eq!(test5.0.0, [0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]);
        let text = Message::default().bytes(2, b"testing");
        assert_eq!(text.0.0, [&[0x12, 0x07][..], b"testing"].concat());
        assert_eq!(Message::default().number(1, 0).0.len(), 0);
    }
}
