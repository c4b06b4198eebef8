//! Tests of the breakdown by code with made-up samples whose truth is known.

use tally_abi::{
    Mode, Reading, Value,
    trace::{End, SampleRecord, SlicePlace, SliceRecord},
};

use super::*;
use crate::{
    recording::{SampledBranches, Stacks},
    report::EventReport,
    trace::run::{Run, TracedEvent},
    trace_file::Records,
};

/// Cycles of a slice, and its numbers of the events of Zen 4's tree after cycles and instructions:
/// in the function that waits for fetch and in the one that waits for loads. The events are in two
/// groups.
const CYCLES: u64 = 10_000;
const GROUP: usize = 5;
const RATES: [[u64; 2 * GROUP]; 2] = [
    [36_000, 6_000, 18_000, 17_500, 1_000, 500, 5_000, 0, 10, 0],
    [600, 47_400, 12_000, 12_000, 8_000, 7_000, 50, 0, 1, 0],
];
/// Slots of a slice.
const SLOTS: f64 = 6.0 * CYCLES as f64;

/// Addresses: no code, the function that waits for fetch, the other function.
const ADDRESSES: [u64; 3] = [0, 0x1000, 0x2000];

/// The function that a slice is in: two of five slices are in the first.
fn function(slice: u64) -> usize {
    usize::from(slice % 5 >= 2)
}

/// The samples of `slices` slices, one of each event of the slice's group in each slice, and the
/// slices' records. The groups alternate, so totals are twice the counts. Every hundred-and-first
/// slice ends in the kernel, where samples have no address.
#[expect(clippy::too_many_lines, reason = "two kinds of records with all of their fields")]
pub(crate) fn recording(slices: u64) -> Recording {
    let stack = STACKS[2];
    let names = stack.of_cycles();
    assert_eq!(names.len(), 2 + 2 * GROUP);
    let mut counted = [[0; tally_abi::trace::MAX_COUNTS]; 2];
    let (mut samples, mut records) = (Vec::new(), Vec::new());
    for slice in 0..slices {
        let (at, tsc, group) = (function(slice), 1_000 * slice, (slice / 5 % 2) as usize);
        let rates = &RATES[at][GROUP * group..][..GROUP];
        counted[group].iter_mut().zip(rates).for_each(|(sum, events)| *sum += events);
        let counts = counted[group];
        let address = if slice % 101 == 100 { ADDRESSES[0] } else { ADDRESSES[1 + at] };
        let of_group = 2 + GROUP * group..2 + GROUP * (group + 1);
        for event in (0..2).chain(of_group) {
            let count = if event == 1 { CYCLES / 2 } else { CYCLES } * (slice + 1);
            samples.push(SampleRecord {
                session: 1,
                cpu: 0,
                event: event as u16,
                address,
                address_space: 0,
                count,
                late: event as u32 + 3,
                cycles: CYCLES * (slice + 1),
                instructions: 0,
                group: group as u16,
                period_multiplier: 1,
                thread: 2,
                user: true,
                precise: false,
                events: GROUP as u8,
                counts,
                tsc: tsc + 100 + event as u64,
            });
        }
        records.push(SliceRecord {
            session: 1,
            group: group as u16,
            mode: Mode::User,
            end: End::Overflow,
            slice_multiplier: 1,
            cpu: 0,
            sequence: slice,
            address_space: 0,
            start_tsc: tsc,
            end_tsc: tsc + 900,
            cycles: CYCLES,
            instructions: CYCLES / 2,
            events: GROUP as u8,
            counts,
        });
    }
    let total = |index: usize| match index {
        0 => Value::Exact { count: CYCLES * slices },
        1 => Value::Exact { count: CYCLES / 2 * slices },
        _ => {
            let estimate = 2 * counted[(index - 2) / GROUP][(index - 2) % GROUP];
            Value::Estimated { estimate, stderr: 50.0, half_width_95: 98.0 }
        }
    };
    let event = |(index, name): (usize, &&str)| {
        let value = total(index);
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 2, slices };
        let place = match index {
            0 => SlicePlace::Cycles,
            1 => SlicePlace::Instructions,
            _ => {
                let (group, index) = ((index - 2) / GROUP, (index - 2) % GROUP);
                SlicePlace::List { group: group as u16, index: index as u8 }
            }
        };
        let report = EventReport::of(name, &reading, None);
        TracedEvent { native: None, mode: Mode::User, place, report }
    };
    let events = names.iter().enumerate().map(event).collect();
    let session =
        TracedSession { session: 1, program: 1, name: "p".into(), address_space: 0, events };
    let run = Run { sessions: vec![session], ..Run::default() };
    let records = Records { samples, slices: records, ..Records::default() };
    let stacks = Stacks::of(&records);
    Recording {
        run,
        records,
        stacks,
        branches: SampledBranches::default(),
        start_tsc: 0,
        tsc_hz: 1_000_000_000,
    }
}

/// A breakdown of two functions, one with this name.
pub(crate) fn two_functions(other: &str) -> ByCode {
    let named = |sample: &SampleRecord| {
        let name = name(sample);
        if name == "loads" { other.to_owned() } else { name }
    };
    ByCode::of(&recording(700), &named, None).unwrap()
}

fn name(sample: &SampleRecord) -> String {
    match sample.address {
        0x1000 => "fetches".into(),
        0x2000 => "loads".into(),
        _ => "elsewhere".into(),
    }
}

#[test]
fn each_function_has_its_cycles_and_what_they_are_lost_to() {
    let by = ByCode::of(&recording(700), &name, None).unwrap();
    let of: Vec<(&str, Option<&str>)> =
        by.code.iter().map(|code| (&*code.name, code.largest_loss.as_deref())).collect();
    assert_eq!(of, [("loads", Some("memory")), ("fetches", Some("instruction fetch"))]);
    for (code, (truth, rates)) in by.code.iter().zip([(0.6, RATES[1]), (0.4, RATES[0])]) {
        assert!((code.share - truth).abs() <= code.half_width_95, "{code:?}");
        assert!(code.half_width_95 < 0.06, "{code:?}");
        let sum: f64 = code.parts.iter().map(|part| part.cycles).sum();
        assert!((sum / by.cycles - code.share).abs() < 1e-9, "{code:?}");
        let of_slots = |slots: f64| truth * slots / SLOTS * by.cycles;
        let [no_ops, stalls, dispatched, ops, waiting, missing, at_all, _, wrong, _] =
            rates.map(|events| events as f64);
        for (part, truth) in [
            ("retiring", ops),
            ("instruction fetch", 6.0 * (at_all - 13.0 * wrong)),
            ("fetch bandwidth", no_ops - 6.0 * at_all),
            ("mispredicted branches", dispatched - ops),
            ("memory", stalls * missing / waiting),
            ("core", stalls * (1.0 - missing / waiting)),
        ] {
            let (found, truth) =
                (code.parts.iter().find(|of| of.name == part).unwrap(), of_slots(truth));
            assert!((found.cycles - truth).abs() <= found.half_width_95, "{truth}: {found:?}");
        }
    }
    assert_eq!(by.skid, Some(Skid { instructions: [4, 4], cycles: [3, 3] }));
    let text = by.to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("* memory"), "{text}");
}

#[test]
fn long_names_are_shortened_as_in_the_report() {
    let long = "std::vector<geo::Point, std::allocator<geo::Point> >::push_back(geo::Point const&)";
    let mut by = two_functions(long);
    let text = by.to_string();
    assert!(text.contains("std::vector<…>::push_back  "), "{text}");
    by.is_by_line = true;
    let text = by.to_string();
    assert!(text.contains("std::vector<geo::Point, std::allocator<geo::P…  "), "{text}");
}

#[test]
fn a_part_that_is_a_difference_in_the_same_slices_has_a_narrower_bar() {
    let by = ByCode::of(&recording(700), &name, None).unwrap();
    let part = |name: &str| by.code[1].parts.iter().find(|part| part.name == name).unwrap();
    // 36,000 less 6 times 5,000 in the slices of the function, and 18,000 less 17,500.
    let [all, difference] = ["instruction fetch", "mispredicted branches"].map(part);
    assert!(difference.half_width_95 < all.half_width_95, "{all:?} {difference:?}");
}

#[test]
fn too_few_samples_are_refused_with_what_can_be_had() {
    let why = ByCode::of(&recording(20), &name, None).unwrap_err().message;
    assert!(why.contains("20 samples of cycles, and 30 are needed"), "{why}");
    assert!(why.contains("-c 1000") && why.contains("run --breakdown"), "{why}");
    let empty = Recording { run: Run::default(), ..recording(1) };
    let why = ByCode::of(&empty, &name, None).unwrap_err().message;
    assert!(why.contains("record --breakdown PROGRAM"), "{why}");
}

/// The address of a sample alone says little about its event's place, as samples are late by some
/// instructions.
#[test]
fn code_without_symbols_is_one_piece() {
    let recording = recording(700);
    let symbolizer = Symbolizer::default();
    let by = ByCode::functions(&recording, &symbolizer, false, None).unwrap();
    let names: Vec<&str> = by.code.iter().map(|code| &*code.name).collect();
    assert_eq!(names, [NO_SYMBOLS]);
    assert!(by.code[0].share > 0.9, "{by:?}");
    let why = ByCode::lines(&recording, &symbolizer, None).unwrap_err().message;
    assert!(why.contains("link the program without -s"), "{why}");
}
