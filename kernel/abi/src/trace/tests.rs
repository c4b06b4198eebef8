//! Tests of the trace records' encoding.

extern crate std;
use super::*;
use crate::registers::Frame;
use std::{string::String, vec::Vec};

#[test]
fn slices_are_as_long_as_their_group_needs() {
    let record = SliceRecord {
        session: 3,
        cpu: 2,
        group: 0xfffe,
        mode: Mode::Full,
        end: End::SwitchedOut,
        events: 4,
        slice_multiplier: 3,
        sequence: 99,
        address_space: 0x1000,
        start_tsc: 5,
        end_tsc: 6,
        cycles: 7,
        instructions: 8,
        counts: [1, 2, 3, 4, 0, 0, 0, 0, 0, 0],
    };
    let mut words: Vec<u64> = record.head().into();
    words.extend(record.tail());
    assert_eq!(words.len(), SliceRecord::HEAD + 4);
    assert_eq!(Record::decode(SliceRecord::KIND, 6, &words), Ok(Record::Slice(record)));
    let long = [words.clone(), [0; MAX_COUNTS - 3].to_vec()].concat();
    assert_eq!(SliceRecord::decode(6, &long), Err(Malformed));
    assert_eq!(SliceRecord::decode(6, &words[..SliceRecord::HEAD - 1]), Err(Malformed));
    assert_eq!(Record::decode(0, 6, &words), Err(Malformed));
    for bad in [9 << 48, 11 << 56] {
        let mut words = words.clone();
        words[0] = bad;
        assert_eq!(SliceRecord::decode(6, &words), Err(Malformed));
    }
}

#[test]
fn thresholds_and_samples_round_trip() {
    let record = ThresholdRecord {
        session: 3,
        cpu: 2,
        event: 1023,
        threshold: 1 << 40,
        count: u64::MAX,
        address_space: 0x1000,
        tsc: 5,
    };
    assert_eq!(Record::decode(2, 5, &record.head()), Ok(Record::Threshold(record)));
    let record = SampleRecord {
        session: 3,
        cpu: 2,
        event: 1023,
        address: 0xffff_8000_0000_1234,
        user: true,
        precise: false,
        thread: 0xffff_fff0,
        address_space: 0x1000,
        tsc: 5,
        count: 6,
        late: 60_000,
        cycles: 7,
        instructions: 8,
        group: 0xfffe,
        events: 1,
        period_multiplier: 0xfedc,
        counts: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    };
    let words = [&record.head()[..], record.tail()].concat();
    assert_eq!(Record::decode(3, 5, &words), Ok(Record::Sample(record)));
}

#[test]
fn calls_switches_and_signals_round_trip() {
    let record = SyscallRecord {
        tsc: 9,
        cpu: 3,
        returned: true,
        program: 7,
        thread: 8,
        call: 1,
        rdi: 1,
        rsi: 0x1000,
        rdx: 5,
        r10: 0,
        r8: 0,
        r9: 0,
        result: -14_i64 as u64,
        start_tsc: 8,
    };
    assert_eq!(Record::decode(6, 9, &record.head()), Ok(Record::Syscall(record)));
    let record =
        SwitchRecord { tsc: 9, cpu: 3, from_program: 0, from_thread: 0, program: 7, thread: 8 };
    assert_eq!(Record::decode(7, 9, &record.head()), Ok(Record::Switch(record)));
    let record = SignalRecord {
        tsc: 9,
        cpu: 3,
        signal: 14,
        action: Delivered::Ended,
        program: 7,
        thread: 8,
        handler: 0,
        address: 0x40_1000,
    };
    assert_eq!(Record::decode(8, 9, &record.head()), Ok(Record::Signal(record)));
}

#[test]
fn a_trace_is_described_by_text() {
    let mut text = String::new();
    crate::record::describe(&TYPES, &mut text).unwrap();
    assert!(text.starts_with("tally trace 1\nrecord 1 slice: A slice ended.\nstamp end_tsc u64: "));
    assert!(text.contains("\nfield mode user|kernel|full: The privilege that was counted.\n"));
    assert!(text.contains(
        "\nlist counts u64: Counts of the group's events, in the group's order.\nrecord 2"
    ));
    assert!(text.ends_with(".\n\n") && text.matches("\n\n").count() == 1);
    let kinds: Vec<u8> = TYPES.iter().map(|t| t.kind).collect();
    assert_eq!(kinds, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
}

#[test]
fn a_chunk_s_mark_is_checked() {
    let chunk = Chunk { cpu: 15, words: 510, near_tsc: u64::MAX };
    assert_eq!(Chunk::from_words(chunk.to_words()), Ok(chunk));
    assert_eq!(Chunk::from_words([0, 0]), Err(Malformed));
}

#[test]
fn registers_and_stacks_round_trip() {
    let frame = Frame { rip: 1, rsp: 2, rax: 3, rbp: 4, r15: 5, ..Frame::default() };
    let registers = RegistersRecord { tsc: 9, ..RegistersRecord::of_frame(6, 7, 8, &frame) };
    assert_eq!(registers.frame(), frame);
    let decoded = Record::decode(RegistersRecord::KIND, 9, &registers.head());
    assert_eq!(decoded, Ok(Record::Registers(registers)));
    let mut words = [0; STACK_WORDS];
    words[..2].copy_from_slice(&[10, 11]);
    let (session, cpu, sample_tsc, address) = (6, 7, 8, 2);
    let stack = StackRecord { tsc: 9, session, cpu, sample_tsc, address, valid: 2, words };
    let encoded = [&stack.head()[..], stack.tail()].concat();
    assert_eq!(Record::decode(StackRecord::KIND, 9, &encoded), Ok(Record::Stack(stack)));
    let longer = [&stack.head()[..], &[0; STACK_WORDS + 1]].concat();
    assert!(Record::decode(StackRecord::KIND, 9, &longer).is_err());
}
