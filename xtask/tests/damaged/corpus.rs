//! Undamaged files for the test, small, and made by the code that writes such files.

use serde_json::{Value, json};
use tally_abi::{
    Mode, Reading, SessionConfig, SessionStats, Value as Count,
    check::{Checked, Cost, Counter, Event, Machine, PROGRAM, VERSION},
    halt::{HaltTimer, Halts},
    record::describe,
    registers::{Frame, Registers},
    ring::Header,
    trace::{
        BRANCH_RECORD_WORDS, BranchesRecord, Chunk, Delivered, End, LostRecord, MAX_COUNTS,
        PhaseRecord, RegistersRecord, RingRecord, STACK_WORDS, SampleRecord, SignalRecord,
        SlicePlace, SliceRecord, StackRecord, SwitchRecord, SyscallRecord, TYPES, ThresholdRecord,
    },
    wire::{MAX_FRAME_BYTES, Message, PmuInfo},
};
use tally_breakdown::STACKS;
use xtask::{check::CheckReport, trace_file::Trace};

/// Samples of each event, more than a breakdown by function needs.
const ROUNDS: u64 = 32;
/// Addresses of instructions in the program `program`: in a loop, and after a call.
const ADDRESSES: [u64; 2] = [0x40_0155, 0x40_0172];
const STACK: u64 = 0x7fff_0000;
/// Bytes of a block of the trace that are sent at a time.
const PIECE: usize = 1_500;
/// Results that the report's page and `run --json` share.
const RESULTS: &str = include_str!("../../src/page/sample.json");

const PMU: PmuInfo<'_> = PmuInfo {
    vendor: "GenuineIntel",
    family: 6,
    model: 0x6a,
    name: "version 5",
    catalogue: "icelakex",
    general: 8,
    pinned: 3,
    width_bits: 48,
};

/// Names of the sampled events.
fn events() -> Vec<&'static str> {
    STACKS[2].of_cycles()
}

/// Records of a CPU, one after the other.
#[derive(Default)]
struct Records(Vec<u64>);

impl Records {
    fn add(&mut self, kind: u8, tsc: u64, head: &[u64], tail: &[u64]) {
        self.0.push(Header::new(kind, 1 + head.len() + tail.len(), tsc).0);
        self.0.extend(head);
        self.0.extend(tail);
    }
}

macro_rules! add {
    ($to:ident, $tsc:expr, $type:ident, $record:expr) => {
        $to.add($type::KIND, $tsc, &$record.head(), &[])
    };
    ($to:ident, $tsc:expr, $type:ident, $record:expr, list) => {
        $to.add($type::KIND, $tsc, &$record.head(), $record.tail())
    };
}

/// Trace with records of every kind, of a program that was sampled by every event of the cycle
/// breakdown, with its stacks.
pub fn trace() -> Vec<u8> {
    let mut records = Records::default();
    (0..ROUNDS).for_each(|round| of_slice(&mut records, round));
    others(&mut records, 1_000 * ROUNDS);
    let words = records.0.len() as u32;
    let chunk = Chunk { cpu: 1, words, near_tsc: 100 };
    let words = [&chunk.to_words()[..], &records.0, &Chunk::END.to_words()].concat();
    let mut head = String::new();
    describe(&TYPES, &mut head).unwrap();
    let words = words.into_iter().flat_map(u64::to_le_bytes);
    let bytes: Vec<u8> = head.into_bytes().into_iter().chain(words).collect();
    Trace::with_run(&bytes, &run())
}

/// Adds a slice, and a sample at its end, of each event in turn.
#[expect(clippy::too_many_lines, reason = "two kinds of records with all of their fields")]
fn of_slice(records: &mut Records, round: u64) {
    let (tsc, address) = (1_000 * round + 900, ADDRESSES[round as usize % 2]);
    let counts = [7, 5, 3, 2, 0, 0, 0, 0, 0, 0].map(|of: u64| of * (round + 1));
    let slice = SliceRecord {
        session: 1,
        group: 0,
        mode: Mode::User,
        end: End::Overflow,
        slice_multiplier: 1,
        cpu: 1,
        sequence: round,
        address_space: 0x1000,
        start_tsc: tsc - 900,
        end_tsc: tsc,
        cycles: 1_000,
        instructions: 900,
        events: 4,
        counts: [7, 5, 3, 2, 0, 0, 0, 0, 0, 0],
    };
    add!(records, tsc, SliceRecord, slice, list);
    let places = if round < 4 { events().len() } else { 1 };
    for event in 0..places as u16 {
        let sample = SampleRecord {
            session: 1,
            cpu: 1,
            event,
            address,
            address_space: 0x1000,
            count: 1_000 * (round + 1),
            late: 3,
            cycles: 1_000 * (round + 1),
            instructions: 900 * (round + 1),
            group: 0,
            period_multiplier: 1,
            user: true,
            precise: false,
            thread: 2,
            events: 4,
            counts,
            tsc,
        };
        add!(records, tsc, SampleRecord, sample, list);
    }
    if round < 4 {
        copied_stack(records, tsc, address);
        taken_branches(records, tsc, address);
    }
}

fn taken_branches(records: &mut Records, sample_tsc: u64, from: u64) {
    let mut words = [0; BRANCH_RECORD_WORDS];
    words[..6].copy_from_slice(&[from, ADDRESSES[0], 1 | 7 << 4, ADDRESSES[1], from, 2]);
    let (tsc, first, valid) = (sample_tsc, 0, 6);
    let record = BranchesRecord { tsc, session: 1, cpu: 1, first, sample_tsc, valid, words };
    add!(records, tsc, BranchesRecord, record, list);
}

fn copied_stack(records: &mut Records, tsc: u64, rip: u64) {
    let frame = Frame { rip, rsp: STACK, rbp: STACK, ..Frame::default() };
    let registers = RegistersRecord::of_frame(1, 1, tsc, &frame);
    add!(records, tsc, RegistersRecord, registers);
    let mut words = [0; STACK_WORDS];
    words[..4].copy_from_slice(&[STACK + 16, ADDRESSES[1], 0, 0x40_0194]);
    let stack =
        StackRecord { tsc, session: 1, cpu: 1, sample_tsc: tsc, address: STACK, valid: 4, words };
    add!(records, tsc, StackRecord, stack, list);
}

/// Adds a record of each other kind.
#[expect(clippy::too_many_lines, reason = "a record of each kind with all of its fields")]
fn others(records: &mut Records, tsc: u64) {
    let (cpu, program, thread) = (1, 2, 2);
    let threshold = ThresholdRecord {
        session: 1,
        cpu,
        event: 2,
        threshold: 9,
        count: 11,
        address_space: 0,
        tsc,
    };
    add!(records, tsc, ThresholdRecord, threshold);
    let call = SyscallRecord {
        tsc,
        cpu,
        returned: true,
        program,
        thread,
        call: 1,
        rdi: 1,
        rsi: 2,
        rdx: 3,
        r10: 4,
        r8: 5,
        r9: 6,
        result: 7,
        start_tsc: tsc - 5,
    };
    add!(records, tsc, SyscallRecord, call);
    for (program, thread) in [(2, 2), (0, 0)] {
        let switch = SwitchRecord { tsc, cpu, from_program: 0, from_thread: 0, program, thread };
        add!(records, tsc, SwitchRecord, switch);
    }
    let action = Delivered::Handled;
    let signal =
        SignalRecord { tsc, cpu, signal: 14, action, program, thread, handler: 1, address: 2 };
    add!(records, tsc, SignalRecord, signal);
    let phase =
        PhaseRecord { tsc, session: 1, cpu, phase: 1, cycles: 100, ..PhaseRecord::default() };
    add!(records, tsc, PhaseRecord, phase);
    add!(records, tsc, LostRecord, LostRecord { records: 3, cpu, tsc });
    add!(records, tsc, RingRecord, RingRecord { written: 9, read: 6, lost: 3, cpu, tsc });
}

/// Description of the run in the trace's head.
fn run() -> Value {
    let results: Value = serde_json::from_str(RESULTS).unwrap();
    let place = |index: usize| match index {
        0 => json!("cycles"),
        1 => json!("instructions"),
        _ => json!({ "list": { "group": 0, "index": index - 2 } }),
    };
    let event = |(index, name): (usize, &'static str)| {
        let mut event = results["events"][index].clone();
        event["name"] = name.into();
        event["native"] = name.into();
        event["mode"] = "user".into();
        event["place"] = place(index);
        event
    };
    let events: Vec<Value> = events().into_iter().enumerate().map(event).collect();
    json!({
        "command_line": "seed=1 wire -- program", "seed": 1, "cpus": 2, "tsc_hz": 1_000_000_000,
        "processor": { "vendor": "AuthenticAMD", "family": 25, "model": 17, "pmu": "PerfMonV2",
                       "catalogue": "zen4" },
        "programs": [{ "program": 2, "name": "program" }],
        "sessions": [{ "session": 1, "program": 2, "name": "program", "address_space": 0x1000,
                       "events": events }],
    })
}

/// Messages of a run with a trace, whose kernel panics.
#[expect(clippy::too_many_lines, reason = "a message of each kind")]
pub fn messages(trace: &[u8]) -> Vec<u8> {
    let value = Count::Estimated { estimate: 9, stderr: 1.0, half_width_95: 2.0 };
    let reading = Reading { value, counted: 4, counted_cycles: 5, total_cycles: 9, slices: 3 };
    let config = SessionConfig::default();
    let (session, pid, program) = (1, 2, "program");
    let (mode, stats) = (Mode::User, SessionStats::default());
    let place = SlicePlace::List { group: 0, index: 1 };
    let block = lz4_flex::compress_prepend_size(trace);
    let registers = Registers::default();
    let (halts, timer) =
        (Halts { length_cycles: 1, period_cycles: 2, footprint_bytes: 3 }, HaltTimer::Running);
    let mut all = encoded(&[
        Message::Booted {
            cpus: 2,
            memory_bytes: 1 << 28,
            seed: 1,
            tsc_hz: 1 << 30,
            pmu: Some(PMU),
        },
        Message::Ready { boot_ns: 7 },
        Message::Output { pid, fd: 1, bytes: b"what a program writes\n" },
        Message::Session { session, pid, program, address_space: 0x1000, config, thread: None },
        Message::Reading {
            session,
            event: "branches",
            native: Some("BR"),
            mode,
            place,
            reading,
            unit: Some(8),
        },
        Message::Stats { session, stats },
    ]);
    let mut pieces = block.chunks(PIECE).peekable();
    while let Some(bytes) = pieces.next() {
        all.extend(encoded(&[Message::Trace { bytes, last: pieces.peek().is_none() }]));
    }
    all.extend(encoded(&[
        Message::Ring { cpu: 0, written: 9, read: 6, lost: 3, waits: 0 },
        Message::Exited { pid, program, status: 3 },
        Message::Faulted { pid, program, fault: "page fault", address: Some(8), instruction: 9 },
        Message::Refused { program, status: 68, why: "not there" },
        Message::RefusedCalls { program, calls: "ptrace" },
        Message::NotFound { program, path: "/lib/x" },
        Message::FolderBegins { name: "", is_new: false },
        Message::File { name: "out", number: 7, is_link: false, bytes: 3 },
        Message::FolderEnds,
        Message::Halted { halts, timer, count: 1, cycles: 2 },
        Message::Stack { address: STACK, bytes: &[1; 64] },
        Message::Panicked { message: "no frame is free", registers },
    ]));
    all
}

/// Results of a run, with two of its events.
pub fn results() -> Vec<u8> {
    let mut results: Value = serde_json::from_str(RESULTS).unwrap();
    for (name, most) in [("events", 2), ("intervals", 1), ("groups", 1)] {
        results[name].as_array_mut().unwrap().truncate(most);
    }
    results.to_string().into_bytes()
}

/// Report of a check.
pub fn check_report() -> Vec<u8> {
    let report = CheckReport {
        tally_check: VERSION,
        counters: vec![Counter::default()],
        costs: vec![Cost::default()],
        events: vec![Event::default()],
        not_checked: vec!["NONE".to_owned()],
        ..CheckReport::default()
    };
    serde_json::to_vec(&report).unwrap()
}

/// Messages of a check.
pub fn check_messages() -> Vec<u8> {
    let lines = [
        Machine { version: VERSION, ..Machine::default() }.to_string(),
        Counter::default().to_string(),
        Cost::default().to_string(),
        Event::default().to_string(),
        Checked { lines: 4 }.to_string(),
    ];
    let text = lines.join("\n") + "\n";
    encoded(&[
        Message::Booted {
            cpus: 1,
            memory_bytes: 1 << 28,
            seed: 1,
            tsc_hz: 1 << 30,
            pmu: Some(PMU),
        },
        Message::Output { pid: 1, fd: 1, bytes: text.as_bytes() },
        Message::Exited { pid: 1, program: PROGRAM, status: 0 },
        Message::Done { status: 0 },
    ])
}

fn encoded(messages: &[Message<'_>]) -> Vec<u8> {
    let mut buffer = [0; MAX_FRAME_BYTES];
    let encoded = messages.iter().map(|of| of.encode(&mut buffer).unwrap().to_vec());
    encoded.collect::<Vec<_>>().concat()
}

/// Table of perf after a program's output.
pub fn counts() -> Vec<u8> {
    let rows = [
        "1000,,event0:u,900000,100.00,,",
        "<not counted>,,event1:u,0,0.00,,",
        "77,,event2:u,450000,50.00,,",
        "<not supported>,,event3:u,0,100.00,,",
    ];
    format!("said\n---- tally: counts ----\n{}\n", rows.join("\n")).into_bytes()
}

/// Counts of the virtual PMU for two blocks of code.
pub fn blocks() -> Vec<u8> {
    let events = events();
    let head = format!("address_space,ring,address,{}", events.join(","));
    let numbers = |from: u64| {
        (0..events.len() as u64).map(|n| (from + n).to_string()).collect::<Vec<_>>().join(",")
    };
    let [first, second] = [(ADDRESSES[0], 100), (ADDRESSES[1], 50)]
        .map(|(at, from)| format!("4096,user,{at},{}", numbers(from)));
    format!("{head}\n{first}\n{second}\n").into_bytes()
}

/// Picture in each format of photographs.
pub fn pictures() -> Vec<Vec<u8>> {
    let picture = image::GrayImage::from_fn(24, 16, |x, y| image::Luma([(x * y) as u8]));
    let write = |format| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    use image::ImageFormat::{Jpeg, Png, Pnm};
    [Png, Jpeg, Pnm].map(write).to_vec()
}

const _: () = assert!(MAX_COUNTS == 10);
