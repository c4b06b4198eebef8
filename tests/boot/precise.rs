//! Precise samples: each has the address of an instruction that had the event. A decoder says which
//! instructions can have it, so no count or address of the virtual PMU judges itself.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess,
};
use object::{Object, ObjectSegment};
use tally_abi::trace::SampleRecord;
use xtask::{
    machine::{Boot, Pmu, Request},
    project::Project,
    report::Report,
    trace_file::{Records, Trace},
};

use crate::{SharedBoot, assert_exact_counts_are_true, assert_success, boot};

/// Returns whether an instruction can have an event.
type CanHave = fn(&Instruction) -> bool;

/// The instructions that can have each event.
const CAN_HAVE: [(&str, CanHave); 5] = [
    ("BR_INST_RETIRED.ALL_BRANCHES", |of| of.flow_control() != FlowControl::Next),
    ("BR_INST_RETIRED.COND", |of| of.flow_control() == FlowControl::ConditionalBranch),
    ("BR_INST_RETIRED.COND_TAKEN", |of| of.flow_control() == FlowControl::ConditionalBranch),
    ("MEM_INST_RETIRED.ALL_STORES", |of| accesses(of, |access| !matches!(access, OpAccess::Read))),
    ("MEM_INST_RETIRED.ALL_LOADS", |of| accesses(of, |access| !matches!(access, OpAccess::Write))),
];

fn accesses(of: &Instruction, is: impl Fn(OpAccess) -> bool) -> bool {
    let mut factory = InstructionInfoFactory::new();
    factory.info(of).used_memory().iter().any(|memory| is(memory.access()))
}

/// Samples of all events of [`CAN_HAVE`], with these modifiers, and of instructions and cycles.
fn record(pmu: Pmu, modifiers: &str, options: &str) -> Request {
    let events = CAN_HAVE.map(|(event, _)| format!("{event}:{modifiers}")).join(",");
    let events = format!("{events},instructions:ppp,cycles:pp");
    let job = format!("tally record --budget 100 {options} -e {events} -c 5003 rounds 1 30000");
    Request { pmu, ..Request::new(format!("wire trace -- {job}")) }
}

static ON_ICE_LAKE: SharedBoot = SharedBoot::new(|| record(Pmu::Intel, "pp", ""));
static ON_SAPPHIRE_RAPIDS: SharedBoot =
    SharedBoot::new(|| record(Pmu::SapphireRapids, "pp", "--slice 20000"));
static ON_LUNAR_LAKE: SharedBoot = SharedBoot::new(|| record(Pmu::LunarLake, "pp", ""));
static ON_PANTHER_LAKE: SharedBoot =
    SharedBoot::new(|| record(Pmu::PantherLake, "pp", "--slice 20000"));

/// The samples of an event, without the first: it may be taken as the session begins.
fn samples_of<'a>(boot: &'a Boot, event: &str) -> Vec<&'a SampleRecord> {
    let report = Report::of(boot).first.expect("tally opens a session");
    let index = report.events.iter().position(|of| of.name.starts_with(event)).unwrap();
    boot.transcript.samples.iter().filter(|of| usize::from(of.event) == index).collect()
}

/// Decodes the instructions of the program.
pub struct Program(Vec<(u64, Vec<u8>)>);

impl Program {
    pub fn read() -> Program {
        let path = Project::here().target.join("guest/x86_64-unknown-linux-gnu/stripped/rounds");
        let file = std::fs::read(path).unwrap();
        let file = object::File::parse(&*file).unwrap();
        let of = |segment: object::Segment<'_, '_>| {
            (segment.address(), segment.data().unwrap().to_vec())
        };
        Program(file.segments().map(of).collect())
    }

    fn at(&self, address: u64) -> Instruction {
        self.find(address).unwrap_or_else(|| panic!("{address:#x} is not in the program"))
    }

    /// The instruction at an address, if it is in the program.
    pub fn find(&self, address: u64) -> Option<Instruction> {
        let is_here = |(start, bytes): &&(u64, Vec<u8>)| {
            (*start..start + bytes.len() as u64).contains(&address)
        };
        let (start, bytes) = self.0.iter().find(is_here)?;
        let bytes = &bytes[(address - start) as usize..];
        Some(Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode())
    }
}

fn assert_every_sample_is_at_its_event(boot: &Boot) {
    assert_success(boot);
    let program = Program::read();
    for (event, can_have) in CAN_HAVE {
        let samples = samples_of(boot, event);
        assert!(samples.len() > 50, "{event}: {}", samples.len());
        for sample in samples {
            assert!(sample.precise && sample.user, "{event}: {sample:?}");
            let found = program.at(sample.address);
            assert!(can_have(&found), "{event} at {:#x}: {found}", sample.address);
        }
    }
}

#[test]
fn every_sample_is_at_an_instruction_that_can_have_its_event() {
    assert_every_sample_is_at_its_event(ON_ICE_LAKE.get());
    assert_every_sample_is_at_its_event(ON_SAPPHIRE_RAPIDS.get());
    assert_every_sample_is_at_its_event(ON_LUNAR_LAKE.get());
    assert_every_sample_is_at_its_event(ON_PANTHER_LAKE.get());
}

static ON_ZEN_3: SharedBoot = SharedBoot::new(|| sampled_ops(Pmu::Zen3));
static ON_ZEN_4: SharedBoot = SharedBoot::new(|| sampled_ops(Pmu::Amd));

/// Samples of ops and of cycles, which take turns with AMD's one op sampler.
fn sampled_ops(pmu: Pmu) -> Request {
    let job = "tally record --budget 100 -e ex_ret_ops:pp,cycles:pp -c 20011 rounds 1 200000";
    Request { pmu, ..Request::new(format!("wire trace -- {job}")) }
}

/// On AMD, a sampled op has an access if its instruction accesses memory, and none if not. A string
/// instruction has many ops.
#[test]
fn every_sampled_op_is_at_an_instruction_and_has_the_access_of_that() {
    let program = Program::read();
    for boot in [&ON_ZEN_3, &ON_ZEN_4].map(SharedBoot::get) {
        assert_success(boot);
        for event in ["ex_ret_ops", "cycles"] {
            let samples = samples_of(boot, event);
            assert!(samples.len() > 50, "{event}: {}", samples.len());
            let is_right = |of: &&SampleRecord| of.precise && of.user;
            assert!(samples.iter().all(is_right), "{event}: {samples:?}");
            let found = samples.iter().map(|of| program.at(of.address));
            assert!(found.into_iter().all(|of| !of.is_invalid()), "{event}");
        }
        let (records, _) = Records::read(Trace::open(&boot.transcript.trace).unwrap());
        let (mut with, mut without) = (0, 0);
        for sample in samples_of(boot, "ex_ret_ops") {
            let found = program.at(sample.address);
            if found.is_string_instruction() {
                continue;
            }
            let key = (sample.tsc, sample.event);
            let access = records.accesses.iter().find(|of| (of.tsc, of.event) == key);
            let [loads, stores] =
                [0, 1].map(|bit| access.is_some_and(|of| of.info >> bit & 1 == 1));
            assert_eq!(loads, reads(&found), "{:#x}: {found}", sample.address);
            assert_eq!(stores, writes(&found), "{:#x}: {found}", sample.address);
            *if access.is_some() { &mut with } else { &mut without } += 1;
        }
        assert!(with > 10 && without > 10, "{with} with an access, {without} without");
    }
}

/// With several CPUs the APIC can be in x2APIC mode, where the virtual PMU has AMD's extended local
/// vector table: the sampler's interrupt comes by its own entry, as on hardware.
#[test]
fn sampled_ops_come_by_the_extended_table() {
    let qemu_args = ["-cpu", "EPYC-Genoa,-rdrand,-rdseed,+x2apic"].map(str::to_owned).into();
    let boot = boot(&Request { cpus: 2, qemu_args, ..sampled_ops(Pmu::Amd) });
    assert_success(&boot);
    for event in ["ex_ret_ops", "cycles"] {
        let samples = samples_of(&boot, event);
        assert!(samples.len() > 50, "{event}: {}", samples.len());
        assert!(samples.iter().all(|of| of.precise && of.user), "{event}: {samples:?}");
    }
}

/// An interrupt that comes when the sampler was stopped finds no sample (erratum 420).
#[test]
fn late_interrupts_of_the_sampler_cost_no_count() {
    let vpmu = vec!["late=20000".to_owned()];
    let boot = boot(&Request { vpmu, ..sampled_ops(Pmu::Amd) });
    assert_success(&boot);
    assert_exact_counts_are_true(&Report::of(&boot));
    let samples = samples_of(&boot, "ex_ret_ops");
    assert!(samples.len() > 20, "{}", samples.len());
    assert!(samples.iter().all(|of| of.precise && of.user), "{samples:?}");
}

fn reads(of: &Instruction) -> bool {
    accesses(of, |access| !matches!(access, OpAccess::Write | OpAccess::NoMemAccess))
}

fn writes(of: &Instruction) -> bool {
    accesses(of, |access| !matches!(access, OpAccess::Read | OpAccess::NoMemAccess))
}

/// Samples without precision are late: the same check fails for most of them, so it can fail.
#[test]
fn samples_without_precision_are_mostly_elsewhere() {
    let job = "tally record --budget 100 -e MEM_INST_RETIRED.ALL_STORES -c 5003 rounds 1 30000";
    let boot = boot(&Request::new(format!("wire trace -- {job}")));
    let (program, samples) = (Program::read(), samples_of(&boot, "MEM_INST_RETIRED.ALL_STORES"));
    assert!(samples.iter().all(|of| !of.precise));
    let stores = |of: &&&SampleRecord| CAN_HAVE[3].1(&program.at(of.address));
    let at_stores = samples.iter().filter(|of| of.user).filter(stores).count();
    assert!(at_stores * 2 < samples.len(), "{at_stores} of {}", samples.len());
}

#[test]
fn exact_counts_stay_exact_beside_records() {
    for boot in [&ON_ICE_LAKE, &ON_LUNAR_LAKE, &ON_ZEN_3, &ON_ZEN_4] {
        assert_exact_counts_are_true(&Report::of(boot.get()));
    }
}

#[test]
fn samples_of_instructions_are_those_at_which_the_counter_overflowed() {
    for boot in [&ON_ICE_LAKE, &ON_SAPPHIRE_RAPIDS, &ON_LUNAR_LAKE, &ON_PANTHER_LAKE] {
        let samples = samples_of(boot.get(), "instructions");
        assert!(samples.len() > 100, "{}", samples.len());
        assert!(samples.iter().all(|of| of.precise && of.user), "{samples:?}");
    }
}

/// A program reads the samples of a loop whose addresses it knows.
#[test]
fn a_program_reads_its_own_samples_with_their_accesses_and_branches() {
    for (pmu, samples) in [
        (Pmu::Intel, "MEM_INST_RETIRED.ALL_LOADS:ppp 1009 branches"),
        (Pmu::PantherLake, "MEM_INST_RETIRED.ALL_LOADS:ppp 1009 branches"),
        (Pmu::Amd, "ex_ret_ops:pp 20011"),
    ] {
        let line = format!("wire trace=halt paranoid=0 -- precise {samples}");
        let boot = boot(&Request { pmu, ..Request::new(line) });
        assert_success(&boot);
        let text = boot.transcript.text();
        let said = text.lines().find_map(|line| line.strip_prefix("precise: ")).unwrap();
        let [read, accesses] = [0, 2]
            .map(|word| -> usize { said.split_whitespace().nth(word).unwrap().parse().unwrap() });
        assert!(accesses > 30, "{said}");
        assert_eq!(read, boot.transcript.samples.len(), "{samples}");
    }
}
