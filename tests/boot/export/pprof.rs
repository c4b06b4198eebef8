//! A pprof profile, read by a second reader of protobuf's wire format, independent of Tally's.

use std::collections::BTreeMap;

use quick_protobuf::BytesReader;
use tally_abi::trace::SampleRecord;

use super::{exported, ns, rounds, trace};

/// Message: numbers and bytes by field.
#[derive(Default)]
struct Message {
    numbers: BTreeMap<u32, u64>,
    bytes: BTreeMap<u32, Vec<Vec<u8>>>,
}

impl Message {
    fn read(bytes: &[u8]) -> Message {
        let (mut reader, mut message) = (BytesReader::from_bytes(bytes), Message::default());
        while !reader.is_eof() {
            let tag = reader.next_tag(bytes).unwrap();
            match tag & 7 {
                0 => {
                    message.numbers.insert(tag >> 3, reader.read_uint64(bytes).unwrap());
                }
                2 => {
                    let of_field = message.bytes.entry(tag >> 3).or_default();
                    of_field.push(reader.read_bytes(bytes).unwrap().to_vec());
                }
                kind => panic!("wire type {kind}"),
            }
        }
        message
    }

    fn number(&self, field: u32) -> u64 {
        self.numbers.get(&field).copied().unwrap_or_default()
    }

    fn messages(&self, field: u32) -> Vec<Message> {
        self.bytes.get(&field).into_iter().flatten().map(|bytes| Message::read(bytes)).collect()
    }

    fn packed(&self, field: u32) -> Vec<u64> {
        let bytes = &self.bytes[&field][0];
        let mut reader = BytesReader::from_bytes(bytes);
        let mut numbers = Vec::new();
        while !reader.is_eof() {
            numbers.push(reader.read_uint64(bytes).unwrap());
        }
        numbers
    }

    /// Messages of a field by their ids.
    fn by_id(&self, field: u32) -> BTreeMap<u64, Message> {
        self.messages(field).into_iter().map(|message| (message.number(1), message)).collect()
    }
}

/// Samples and the events that they stand for, by address.
fn by_address(all: &[SampleRecord]) -> BTreeMap<u64, (u64, u64)> {
    let (mut found, mut last): (BTreeMap<u64, (u64, u64)>, u64) = (BTreeMap::new(), 0);
    for sample in all {
        let (samples, events) = found.entry(sample.address).or_default();
        *samples += 1;
        *events += sample.count - last;
        last = sample.count;
    }
    found
}

#[test]
fn a_pprof_profile_has_every_event_by_address() {
    let (boot, run, _) = trace();
    let file = rounds();
    let symbols = ["--to", "pprof", "--symbols", file.to_str().unwrap()];
    for words in [&symbols[..2], &symbols[..]] {
        let profile = Message::read(&exported(words));
        let texts: Vec<String> =
            profile.bytes[&6].iter().map(|text| String::from_utf8(text.clone()).unwrap()).collect();
        let text = |message: &Message, field| texts[message.number(field) as usize].as_str();
        assert_eq!(texts[0], "");
        let types = profile.messages(1);
        let types: Vec<_> = types.iter().map(|of| (text(of, 1), text(of, 2))).collect();
        assert_eq!(types, [("branches samples", "count"), ("branches", "count")]);
        let (locations, functions) = (profile.by_id(4), profile.by_id(5));
        let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut names = Vec::new();
        for sample in profile.messages(2) {
            let [location] = sample.packed(1)[..] else { panic!("no callers are known") };
            let location = &locations[&location];
            let [label] = &sample.messages(3)[..] else { panic!("the thread") };
            let thread = u64::from(boot.transcript.samples[0].thread);
            assert_eq!((text(label, 1), label.number(3)), ("thread", thread));
            let [samples, events] = sample.packed(2)[..] else { panic!("two values") };
            assert!(found.insert(location.number(3), (samples, events)).is_none());
            let lines = location.messages(4);
            names.extend(lines.iter().map(|line| text(&functions[&line.number(1)], 2)));
        }
        assert_eq!(found, by_address(&boot.transcript.samples));
        let is_function = |name: &&&str| name.contains("miniz_oxide::deflate");
        assert_eq!(names.iter().any(|name| is_function(&name)), words.len() > 2, "{names:?}");
        let mapping = &profile.messages(3)[0];
        assert!(text(mapping, 5).ends_with("rounds"));
        assert_eq!(text(mapping, 6).len(), if words.len() > 2 { 40 } else { 0 });
        let of_slices = boot.transcript.slices.iter().map(|slice| slice.end_tsc);
        let end = of_slices.chain(boot.transcript.samples.iter().map(|of| of.tsc)).max().unwrap();
        super::assert_near(profile.number(10) as f64, ns(boot, &run, end), 1.0);
    }
}
