//! An unmodified Linux finds the virtual PMU by the machine's model, and its perf counts, multiplexes,
//! computes metrics and samples on it, whose interrupts it takes as NMIs.

use std::time::Duration;

use xtask::{
    linux,
    machine::{Linux, Pmu},
};

use crate::artefacts;

/// Long enough for every one of twenty events to have its turns, of 4 ms each.
const WORK: &str = "gzip -c /tmp/work 2>&1 >/dev/null";

/// What is asked of perf, in one boot.
struct Asked {
    pmu: Pmu,
    /// By name: the first in ring 3, exact; the second from the vendor's list for the model.
    few: [&'static str; 2],
    many: &'static str,
    /// Events that Linux itself defines by encodings of its own.
    generic: &'static str,
    metrics: &'static str,
    /// A metric of these.
    metric: &'static str,
}

/// What was printed behind each of the markers.
fn boot(asked: &Asked) -> Vec<String> {
    let artefacts = artefacts();
    let guest = Linux {
        qemu: &artefacts.qemu,
        linux: artefacts.linux.as_ref().expect("`cargo xtask test` fetches it"),
        plugin: Some(&artefacts.plugin),
        vpmu: &[],
        pmu: asked.pmu,
        cpus: 1,
        verbose: false,
        time_limit: Duration::from_secs(200),
    };
    let record = "perf record -B -N --no-bpf-event -o /tmp/data -c 100000 -e instructions:u";
    let script = format!(
        "head -c 300000 /bin/busybox > /tmp/work\n\
         echo ----; perf stat -x, -e {few} {WORK}\n\
         echo ----; perf stat -x, -e {many} {WORK}\n\
         echo ----; perf stat -x, -e {generic} {WORK}\n\
         echo ----; perf stat -M {metrics} {WORK}\n\
         {record} {WORK} >/dev/null\n\
         echo ----; perf script -i /tmp/data -F comm,ip 2>/dev/null | grep -c gzip\n",
        few = asked.few.join(","),
        many = asked.many,
        generic = asked.generic,
        metrics = asked.metrics,
    );
    let mut said = vec![String::new()];
    let status = linux::run(&guest, &script, &mut |line| match line {
        "----" => said.push(String::new()),
        line => *said.last_mut().expect("there is one") += &format!("{line}\n"),
    });
    assert_eq!(status.unwrap_or_else(|failure| panic!("{failure}\n{said:#?}")), 0, "{said:#?}");
    said
}

/// The count and the share of time of each event that was counted.
fn counts(said: &str) -> Vec<(u64, f64)> {
    let lines = said.lines().map(|line| line.split(',').collect::<Vec<_>>());
    lines
        .filter_map(|cells| Some((cells.first()?.parse().ok()?, cells.get(4)?.parse().ok()?)))
        .collect()
}

fn check(asked: &Asked) {
    let said = boot(asked);
    let [_, few, many, generic, metrics, samples] = &said[..] else { panic!("{said:#?}") };
    let few = counts(few);
    assert!(
        few.len() == 2 && few.iter().all(|(count, share)| *count > 0 && *share == 100.0),
        "{said:#?}"
    );
    let many = counts(many);
    assert_eq!(many.len(), asked.many.split(',').count(), "{said:#?}");
    assert!(
        many.len() == 20 && many.iter().all(|(_, share)| (1.0..100.0).contains(share)),
        "{said:#?}"
    );
    let counted = counts(generic);
    assert_eq!(counted.len(), asked.generic.split(',').count(), "{generic}");
    assert!(counted.iter().all(|(count, _)| *count > 0), "{generic}");
    assert!(
        metrics.lines().any(|line| line.contains('%') && line.contains(asked.metric)),
        "{metrics}"
    );
    // One every 100,000 instructions of ring 3.
    let (samples, want) = (samples.trim().parse::<u64>().unwrap_or_default(), few[0].0 / 100_000);
    assert!(samples.abs_diff(want) <= 2 + want / 50, "{samples} samples, want {want}");
}

#[test]
fn perf_works_on_intel() {
    check(&Asked {
        pmu: Pmu::Intel,
        few: ["instructions:u", "mem_load_retired.l2_miss"],
        many: "instructions,cycles,branches,branch-misses,cache-references,cache-misses,\
               L1-dcache-loads,L1-dcache-load-misses,L1-dcache-stores,LLC-loads,LLC-load-misses,\
               dTLB-loads,dTLB-load-misses,iTLB-load-misses,br_inst_retired.cond,\
               br_inst_retired.near_call,br_inst_retired.near_return,mem_inst_retired.all_loads,\
               mem_inst_retired.all_stores,uops_retired.slots",
        generic: "bus-cycles,ref-cycles,L1-icache-load-misses,LLC-stores,dTLB-stores,\
                  dTLB-store-misses,iTLB-load-misses,branch-loads,branch-load-misses,node-loads",
        metrics: "TopdownL1",
        metric: "tma_retiring",
    });
}

#[test]
fn perf_works_on_amd() {
    check(&Asked {
        pmu: Pmu::Amd,
        few: ["instructions:u", "ex_ret_brn_misp"],
        many: "instructions,cycles,branches,branch-misses,cache-references,cache-misses,\
               ex_ret_brn,ex_ret_brn_misp,ex_ret_ops,ls_not_halted_cyc,rc4,rc5,rc6,rc8,rc9,rcc,\
               r1d1,r129,r229,r141",
        generic: "ref-cycles,stalled-cycles-frontend,L1-dcache-loads,L1-dcache-load-misses,\
                  dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses,branch-loads,\
                  branch-load-misses",
        metrics: "PipelineL1",
        metric: "retiring",
    });
}
