//! Branches of samples: a decoder follows the program from each branch's target to the next branch,
//! so no address of the virtual PMU judges itself; and perf prints them from the exported trace.

use std::{collections::BTreeMap, fs};

use iced_x86::FlowControl;
use tally_abi::branches::Branch;
use xtask::{
    machine::{Boot, Pmu, Request},
    project::Project,
    report::Report,
    setup,
    trace::run::Run,
    trace_file::{Records, Trace},
};

use crate::{
    SharedBoot, assert_exact_counts_are_true, assert_success, boot, export::xtask_task,
    precise::Program,
};

fn record(pmu: Pmu, options: &str) -> Request {
    let job = format!("tally record --budget 100 {options} -c 50021 rounds 1 60000");
    Request { pmu, ..Request::new(format!("wire trace -- {job}")) }
}

static ON_ICE_LAKE: SharedBoot =
    SharedBoot::new(|| record(Pmu::Intel, "-j any_call,any_ret -e branches"));
static ON_SAPPHIRE_RAPIDS: SharedBoot =
    SharedBoot::new(|| record(Pmu::SapphireRapids, "-b -e instructions:ppp"));
static ON_LUNAR_LAKE: SharedBoot =
    SharedBoot::new(|| record(Pmu::LunarLake, "-b -e instructions:ppp"));
static ON_ZEN_4: SharedBoot = SharedBoot::new(|| record(Pmu::Amd, "-b -e instructions"));

/// The branches before each sample, the last one first, by the sample's time.
fn branches(boot: &Boot) -> BTreeMap<u64, Vec<Branch>> {
    assert_success(boot);
    let (records, bad) = Records::read(Trace::open(&boot.transcript.trace).unwrap());
    assert!(bad.is_none() && records.unreadable == 0);
    let mut all: BTreeMap<u64, Vec<Branch>> = BTreeMap::new();
    for part in &records.branches {
        let of_sample = all.entry(part.sample_tsc).or_default();
        assert_eq!(of_sample.len(), usize::from(part.first));
        of_sample.extend(part.branches());
    }
    assert!(all.len() > 50 && all.len() <= records.samples.len(), "{}", all.len());
    all
}

/// Instructions between two branches, at most.
const MOST_BETWEEN: usize = 1_000;

/// Returns whether execution from `start` comes to `end` without a taken branch.
fn leads_to(program: &Program, start: u64, end: u64) -> bool {
    let mut at = start;
    for _ in 0..MOST_BETWEEN {
        if at == end {
            return true;
        }
        let Some(found) = program.find(at) else { return false };
        match found.flow_control() {
            FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::Call => {}
            _ => return false,
        }
        if found.flow_control() == FlowControl::Call {
            return false;
        }
        at = found.next_ip();
    }
    false
}

/// Checks that a branch is an instruction of the program that can lead to its target; `None` if it
/// comes from the kernel, such as the return from an interrupt.
fn is_branch(program: &Program, branch: &Branch) -> Option<FlowControl> {
    let found = program.find(branch.from)?;
    let flow = found.flow_control();
    match flow {
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call => {
            assert_eq!(found.near_branch_target(), branch.to, "{found} at {:#x}", branch.from);
        }
        FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return => {}
        _ => panic!("{:#x} has no branch: {found}", branch.from),
    }
    Some(flow)
}

/// Checks records of every type: each leads to the one after it. `depth` is their number.
fn assert_every_branch_follows(boot: &Boot, depth: usize) {
    let (program, all) = (Program::read(), branches(boot));
    let full = all.values().filter(|of_sample| of_sample.len() == depth).count();
    assert!(full * 10 > all.len() * 9, "{full} of {}", all.len());
    let (mut followed, mut from_kernel) = (0, 0);
    for of_sample in all.values() {
        for pair in of_sample.windows(2) {
            let [later, earlier] = pair else { continue };
            if is_branch(&program, later).is_none() {
                from_kernel += 1;
                continue;
            }
            followed += 1;
            let (start, end) = (earlier.to, later.from);
            assert!(leads_to(&program, start, end), "from {start:#x} to {end:#x}");
        }
    }
    assert!(followed > 100 * from_kernel, "{followed}, {from_kernel} from the kernel");
    let known = all.values().flatten().filter(|branch| branch.mispredicted() == Some(true));
    let wrong = known.count();
    assert!(wrong > 0 && wrong * 2 < followed, "{wrong} of {followed} are mispredicted");
}

#[test]
fn every_branch_leads_to_the_next_one() {
    assert_every_branch_follows(ON_SAPPHIRE_RAPIDS.get(), 32);
    assert_every_branch_follows(ON_LUNAR_LAKE.get(), 32);
    assert_every_branch_follows(ON_ZEN_4.get(), 16);
}

#[test]
fn a_filter_leaves_calls_and_returns() {
    let (program, all) = (Program::read(), branches(ON_ICE_LAKE.get()));
    for branch in all.values().flatten() {
        let flow = is_branch(&program, branch).expect("an address of the program");
        let is_asked =
            matches!(flow, FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return);
        assert!(is_asked, "{flow:?}");
        assert!(branch.mispredicted().is_some());
    }
}

#[test]
fn exact_counts_stay_exact_beside_branch_records() {
    for boot in [&ON_ICE_LAKE, &ON_SAPPHIRE_RAPIDS, &ON_LUNAR_LAKE, &ON_ZEN_4] {
        assert_exact_counts_are_true(&Report::of(boot.get()));
    }
}

/// The words of each sample's stack, by the sample's time.
fn stacks(records: &Records) -> BTreeMap<u64, Vec<u64>> {
    let mut all: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for part in &records.stacks {
        let words = part.words.iter().take(part.valid.into());
        all.entry(part.sample_tsc).or_default().extend(words);
    }
    all
}

/// Words of a stack that `-g` copies.
const COPIED_WORDS: usize = 512;

/// Checks that each call that has not returned has its return address on the stack, the innermost
/// one first.
fn assert_calls_are_on_the_stack(pmu: Pmu) {
    let job = "tally record --budget 100 --call-graph lbr -g -c 20011 rounds 1 20000";
    let boot = boot(&Request { pmu, ..Request::new(format!("wire trace=halt -- {job}")) });
    let (program, all) = (Program::read(), branches(&boot));
    let (records, _) = Records::read(Trace::open(&boot.transcript.trace).unwrap());
    let stacks = stacks(&records);
    let (mut found, mut deep, mut returned) = (0, 0, 0);
    for (tsc, calls) in &all {
        deep += usize::from(calls.len() > 1);
        let (mut words, mut is_outer) = (stacks[tsc].as_slice(), false);
        for call in calls {
            assert!(call.is_open());
            let instruction = program.find(call.from).expect("an address of the program");
            let flow = instruction.flow_control();
            assert!(matches!(flow, FlowControl::Call | FlowControl::IndirectCall), "{instruction}");
            match words.iter().position(|word| *word == instruction.next_ip()) {
                Some(at) => (words, is_outer, found) = (&words[at + 1..], true, found + 1),
                // The stack is the interrupt's: the innermost calls can have returned by then.
                None if !is_outer => returned += 1,
                // The outermost calls can be beyond the copy. Then so are those around them.
                None => {
                    assert!(stacks[tsc].len() == COPIED_WORDS, "{instruction} is not on the stack");
                    words = &[];
                }
            }
        }
    }
    let calls = found + returned;
    assert!(calls >= all.len() && deep > 0, "{calls} of {}, {deep}", all.len());
    assert!(returned * 10 < calls, "{returned} of {calls} calls are not on the stack");
}

#[test]
fn calls_that_have_not_returned_are_on_the_stack() {
    assert_calls_are_on_the_stack(Pmu::Intel);
    assert_calls_are_on_the_stack(Pmu::SapphireRapids);
}

#[test]
fn perf_prints_the_branches_of_an_exported_trace() {
    let boot = ON_SAPPHIRE_RAPIDS.get();
    let all = branches(boot);
    let run = Run::of(boot, &Report::of(boot), "a test");
    let [trace, data] = ["branches.trace", "branches.data"].map(|name| boot.folder.file(name));
    fs::write(&trace, Trace::with_run(&boot.transcript.trace, &run.json())).unwrap();
    let words = ["--to", "perf", "--out", data.to_str().unwrap()];
    let output = xtask_task("export").arg(&trace).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let linux = setup::linux(&Project::here()).unwrap();
    let mut perf = linux.perf_on_host();
    perf.env("HOME", boot.folder.file("home")).args(["script", "-F", "brstack", "-i"]).arg(data);
    let printed = String::from_utf8(perf.output().unwrap().stdout).unwrap();
    let lines: Vec<_> = printed.lines().filter(|line| line.contains('/')).collect();
    assert_eq!(lines.len(), all.len());
    for (line, of_sample) in lines.into_iter().zip(all.values()) {
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words.len(), of_sample.len(), "{line}");
        for (word, branch) in words.into_iter().zip(of_sample) {
            let prediction = if branch.mispredicted() == Some(true) { "M" } else { "P" };
            let cycles = branch.cycles().unwrap_or_default();
            let expected =
                format!("{:#x}/{:#x}/{prediction}/-/-/{cycles}/", branch.from, branch.to);
            assert!(word.starts_with(&expected), "{word}, not {expected}");
        }
    }
}
