//! Under an unmodified Linux on the virtual PMU, perf counts, multiplexes, computes metrics and
//! samples. Linux identifies the PMU by the processor's model and takes overflow interrupts as
//! NMIs.

use std::{path::PathBuf, sync::OnceLock, time::Duration};

use tally_lab::linux;
use xtask::machine::{LinuxGuest, Pmu};

use crate::{artefacts, linux_branches, linux_precise, machine_permit};

/// Workload long enough for each of twenty events to have turns of 4 ms.
const WORK: &str = "gzip -c /tmp/work 2>&1 >/dev/null";
/// Shorter workload, for events that need no turns.
const SHORT_WORK: &str = "gzip -c /tmp/short 2>&1 >/dev/null";
/// Workload on a file that no command has read since the model's caches were empty, so that loads
/// come from memory.
const COLD_WORK: &str = "gzip -c /tmp/cold 2>&1 >/dev/null";
/// Instructions of ring 3 between two samples.
const PERIOD: u64 = 100_000;
/// Line that the script prints between the output of two commands.
const SEPARATOR: &str = "----";

/// Commands of one boot.
struct Commands {
    pmu: Pmu,
    /// Two events: instructions in ring 3, and one from the vendor's list for the model.
    pinned: [&'static str; 2],
    /// Twenty events.
    multiplexed: &'static str,
    /// Events that Linux defines with encodings of its own choice.
    generic: &'static str,
    metrics: &'static str,
    /// Metric to print alone.
    metric: &'static str,
    /// Whether the PMU has precise records.
    is_precise: bool,
}

/// Output of perf.
struct Printed {
    pinned: String,
    multiplexed: String,
    generic: String,
    metrics: String,
    samples: String,
    precise: String,
    branches: String,
}

/// Boots Linux with these files, runs the script and returns its status and its output.
pub fn run(pmu: Pmu, files: &[PathBuf], script: &str) -> (u8, String) {
    run_with(pmu, &[], files, script)
}

/// Same as [`run`], with further options of the virtual PMU.
pub fn run_with(pmu: Pmu, vpmu: &[String], files: &[PathBuf], script: &str) -> (u8, String) {
    let artefacts = artefacts();
    let _permit = machine_permit();
    let guest = LinuxGuest {
        qemu: &artefacts.qemu,
        linux: artefacts.linux.as_ref().expect("`cargo xtask test` fetches it"),
        plugin: Some(&artefacts.plugin),
        vpmu,
        pmu,
        cpus: 1,
        files,
        verbose: false,
        time_limit: Duration::from_secs(200),
    };
    let mut output = String::new();
    let status = linux::run(&guest, script, &mut |line| output += &format!("{line}\n"));
    (status.unwrap_or_else(|failure| panic!("{failure}\n{output}")), output)
}

fn boot(commands: &Commands) -> Printed {
    let record =
        format!("perf record -B -N --no-bpf-event -o /tmp/data -c {PERIOD} -e instructions:u");
    let script = format!(
        "head -c 300000 /bin/busybox > /tmp/work\n\
         cp /tmp/work /tmp/cold\n\
         head -c 60000 /tmp/work > /tmp/short\n\
         echo {SEPARATOR}; perf stat -x, -e {pinned} {SHORT_WORK}\n\
         echo {SEPARATOR}; perf stat -x, -e {multiplexed} {WORK}\n\
         echo {SEPARATOR}; perf stat -x, -e {generic} {COLD_WORK}\n\
         echo {SEPARATOR}; perf stat -M {metrics} {WORK}\n\
         {record} {SHORT_WORK} >/dev/null\n\
         echo {SEPARATOR}; perf script -i /tmp/data -F comm,ip 2>/dev/null | grep -c gzip\n\
         echo {SEPARATOR}; {precise}\
         echo {SEPARATOR}; {branches}",
        pinned = commands.pinned.join(","),
        multiplexed = commands.multiplexed,
        generic = commands.generic,
        metrics = commands.metrics,
        precise = if commands.is_precise { linux_precise::script() } else { "true\n".to_owned() },
        branches = linux_branches::script(commands.is_precise),
    );
    let (status, output) = run(commands.pmu, &[], &script);
    assert_eq!(status, 0, "{output}");
    let outputs: Vec<String> = output.split(&format!("{SEPARATOR}\n")).map(String::from).collect();
    let Ok(outputs) = <[String; 8]>::try_from(outputs) else {
        panic!("the script prints seven separators:\n{output}");
    };
    let [_, pinned, multiplexed, generic, metrics, samples, precise, branches] = outputs;
    Printed { pinned, multiplexed, generic, metrics, samples, precise, branches }
}

/// Count and coverage in percent of each event that was counted.
pub fn counts(printed: &str) -> Vec<(u64, f64)> {
    let lines = printed.lines().map(|line| line.split(',').collect::<Vec<_>>());
    lines
        .filter_map(|cells| Some((cells.first()?.parse().ok()?, cells.get(4)?.parse().ok()?)))
        .collect()
}

/// Defines a boot with these commands, and a test for each behaviour.
macro_rules! perf {
    ($module:ident $(#[$attribute:meta])*: $commands:expr) => {
        mod $module {
            use super::*;

            const COMMANDS: Commands = $commands;

            /// Shared boot, remembered even if it fails, so that no other test boots again.
            pub fn printed() -> &'static Printed {
                static BOOT: OnceLock<Option<Printed>> = OnceLock::new();
                let boot = || std::panic::catch_unwind(|| boot(&COMMANDS)).ok();
                BOOT.get_or_init(boot).as_ref().expect("Linux boots and runs perf")
            }

            #[test]
            $(#[$attribute])*
            fn two_events_are_counted_all_the_time() {
                let counts = counts(&printed().pinned);
                let is_pinned = |(count, coverage): &(u64, f64)| *count > 0 && *coverage == 100.0;
                assert!(counts.len() == 2 && counts.iter().all(is_pinned), "{}", printed().pinned);
            }

            #[test]
            $(#[$attribute])*
            fn twenty_events_are_multiplexed() {
                let printed = &printed().multiplexed;
                let counts = counts(printed);
                assert_eq!((counts.len(), COMMANDS.multiplexed.split(',').count()), (20, 20));
                let is_multiplexed = |(_, coverage): &(u64, f64)| (1.0..100.0).contains(coverage);
                assert!(counts.iter().all(is_multiplexed), "{printed}");
            }

            #[test]
            $(#[$attribute])*
            fn events_that_linux_defines_are_counted() {
                let printed = &printed().generic;
                let counts = counts(printed);
                assert_eq!(counts.len(), COMMANDS.generic.split(',').count(), "{printed}");
                assert!(counts.iter().all(|(count, _)| *count > 0), "{printed}");
            }

            #[test]
            $(#[$attribute])*
            fn metrics_are_computed() {
                let printed = &printed().metrics;
                let is_it = |line: &str| line.contains('%') && line.contains(COMMANDS.metric);
                assert!(printed.lines().any(is_it), "{printed}");
            }

            #[test]
            $(#[$attribute])*
            fn there_is_one_sample_per_period() {
                let printed = printed();
                let samples: u64 = printed.samples.trim().parse().expect("a number of samples");
                let expected = counts(&printed.pinned)[0].0 / PERIOD;
                let is_near = samples.abs_diff(expected) <= 2 + expected / 50;
                assert!(is_near, "{samples} samples, expected {expected}");
            }
        }
    };
}

perf! { perf_on_intel: Commands {
    pmu: Pmu::Intel,
    pinned: ["instructions:u", "mem_load_retired.l2_miss"],
    multiplexed: "instructions,cycles,branches,branch-misses,cache-references,cache-misses,\
                  L1-dcache-loads,L1-dcache-load-misses,L1-dcache-stores,LLC-loads,\
                  LLC-load-misses,dTLB-loads,dTLB-load-misses,iTLB-load-misses,\
                  br_inst_retired.cond,br_inst_retired.near_call,br_inst_retired.near_return,\
                  mem_inst_retired.all_loads,mem_inst_retired.all_stores,uops_retired.slots",
    generic: "bus-cycles,ref-cycles,L1-icache-load-misses,LLC-stores,dTLB-stores,\
              dTLB-store-misses,iTLB-load-misses,branch-loads,branch-load-misses,node-loads",
    metrics: "TopdownL1",
    metric: "tma_retiring",
    is_precise: true,
} }

perf! { perf_on_amd #[ignore = "long"]: Commands {
    pmu: Pmu::Amd,
    pinned: ["instructions:u", "ex_ret_brn_misp"],
    multiplexed: "instructions,cycles,branches,branch-misses,cache-references,cache-misses,\
                  ex_ret_brn,ex_ret_brn_misp,ex_ret_ops,ls_not_halted_cyc,rc4,rc5,rc6,rc8,rc9,\
                  rcc,r1d1,r129,r229,r141",
    generic: "ref-cycles,stalled-cycles-frontend,L1-dcache-loads,L1-dcache-load-misses,\
              dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses,branch-loads,\
              branch-load-misses",
    metrics: "PipelineL1",
    metric: "retiring",
    is_precise: false,
} }

#[test]
fn branch_records_are_the_program_s_last_branches() {
    linux_branches::check(&perf_on_intel::printed().branches, 32, true);
}

#[test]
#[ignore = "long"]
fn branch_records_on_amd_are_the_program_s_last_branches() {
    linux_branches::check(&perf_on_amd::printed().branches, 16, false);
}

#[test]
fn architectural_branch_records_are_the_program_s_last_branches() {
    let (status, printed) = run(Pmu::SapphireRapids, &[], &linux_branches::script(true));
    assert_eq!(status, 0, "{printed}");
    linux_branches::check(&printed, 32, true);
}

#[test]
fn precise_samples_are_at_the_instruction() {
    linux_precise::check(&perf_on_intel::printed().precise);
}

/// A user's program is in the folder of the command and in PATH. Virtual time counts instructions:
/// the second boot prints the same numbers, including the kernel's cycles and the time since boot.
#[test]
#[ignore = "long"]
fn two_runs_of_a_user_s_file_print_the_same() {
    let program = artefacts().on_demand.into_iter().find(|path| path.ends_with("phases"));
    let files = [program.expect("`cargo xtask test` builds it")];
    let script = "./phases 3 && perf stat -x, -e instructions:u,instructions:k,cycles:k phases 9\n\
                  cat /proc/uptime; phases";
    let (status, first) = run(Pmu::Intel, &files, script);
    assert_eq!(status, 1, "{first}");
    assert!(first.ends_with("usage: phases COUNT\n"), "{first}");
    assert!(counts(&first).iter().filter(|(count, _)| *count > 0).count() == 3, "{first}");
    assert_eq!((status, first), run(Pmu::Intel, &files, script));
}
