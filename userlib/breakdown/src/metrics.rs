//! Metrics that `tally stat` computes from counts: `-M METRICS`, `--topdown`, `--breakdown`.

use alloc::{format, string::String, vec::Vec};
use tally_abi::{
    command::{Command, StatOptions},
    events::DATA_RECORD,
    nearest::nearest,
};

use super::{
    count::{Counts, INDEPENDENT},
    cycles::{Breakdown, break_down},
    formulas::{Metric, TopDown, Whole},
    stacks::{self, Stack, events_of, parts_of},
    tree::share,
};

/// Prefixes of the names of levels, Intel's and AMD's; the level's number follows.
const LEVELS: [&str; 2] = ["TopdownL", "PipelineL"];
/// The event that stands for [`DATA_RECORD`] on AMD's processors, which sample loads and stores
/// among all ops.
const DATA_RECORD_AMD: &str = "ex_ret_ops:P";
/// Suffix that names the parts of a metric.
const GROUP: &str = "_group";

/// Returns whether a signature is AMD's: its families are numbered from 15H on, Intel's end before.
fn is_amds(signature: u32) -> bool {
    signature >> 8 & 0xf == 0xf && signature >> 20 & 0xff >= 6
}

/// Metrics of a command, on one processor.
pub struct Metrics {
    stack: &'static Stack,
    metrics: Vec<(&'static TopDown, &'static Metric)>,
    is_breakdown: bool,
}

/// Value of a metric by the vendor's formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricValue {
    /// Name in perf, or in a group of LIKWID's.
    pub metric: &'static str,
    /// Unit of the value; `%` of a share.
    pub unit: &'static str,
    /// Value, of a share 0 to 100 within the errors of its events; not a number if its divisor did
    /// not happen.
    pub value: f64,
    /// Half the width of the 95 % interval. The errors of the events are taken as independent.
    pub half_width_95: f64,
}

impl Metrics {
    /// Metrics requested by these options; `None` if they request none.
    fn of(options: &StatOptions<'_>, signature: u32) -> Result<Option<Metrics>, String> {
        let StatOptions { metrics, is_topdown, level, is_breakdown, .. } = options;
        if !options.computes() {
            return Ok(None);
        }
        let stack = stacks::of(signature).ok_or_else(stacks::missing)?;
        let mut all = Metrics { stack, metrics: Vec::new(), is_breakdown: *is_breakdown };
        for name in metrics.iter().flat_map(|list| list.split(',')) {
            all.add(name)?;
        }
        if *is_topdown {
            all.add_level(*level)?;
        }
        Ok(Some(all))
    }

    /// Names of all groups and metrics on the processor with this signature.
    ///
    /// # Errors
    /// The processor has no metrics.
    pub fn listed(signature: u32) -> Result<Vec<&'static str>, String> {
        let stack = stacks::of(signature).ok_or_else(stacks::missing)?;
        Ok(Metrics { stack, metrics: Vec::new(), is_breakdown: false }.names())
    }

    /// Metrics requested by a command of `tally stat` or `record`, on the processor with this
    /// signature (CPUID leaf 1, EAX); `None` if it requests none. Adds the events of the metrics to
    /// the command's list, and gives `record -d` the processor's.
    ///
    /// # Errors
    /// The processor has no metrics, or lacks the requested ones.
    pub fn counted_by(command: &mut Command<'_>, signature: u32) -> Result<Option<Self>, String> {
        if command.samples_breakdown {
            let stack = stacks::of(signature).ok_or_else(stacks::missing)?;
            command.sample(stack.of_cycles().join(","));
        }
        if is_amds(signature) {
            command.sample(command.events().replace(DATA_RECORD, DATA_RECORD_AMD));
        }
        let metrics = Metrics::of(&command.stat, signature)?;
        if let Some(metrics) = &metrics {
            command.count_too(&metrics.events())?;
        }
        Ok(metrics)
    }

    /// Events from which the metrics are computed.
    fn events(&self) -> Vec<&'static str> {
        let of_metrics = self.metrics.iter().flat_map(|(method, metric)| events_of(method, metric));
        let of_stack = self.is_breakdown.then(|| self.stack.events()).into_iter().flatten();
        let mut events = Vec::new();
        for event in of_metrics.chain(of_stack) {
            if !events.contains(&event) {
                events.push(event);
            }
        }
        events
    }

    /// Values of the metrics whose events were all measured.
    pub fn values(&self, counts: Counts<'_>) -> Vec<MetricValue> {
        let is_measured = |(method, metric): &&(&'static TopDown, &'static Metric)| {
            events_of(method, metric).into_iter().all(|event| counts(event).is_some())
        };
        let value = |(method, metric): &(&'static TopDown, &'static Metric)| {
            let of = share(counts, INDEPENDENT, method, metric);
            let (unit, scale) = match metric.whole {
                Whole::Unit(unit) => (unit, 1.0),
                Whole::Slots | Whole::Cycles | Whole::Events => ("%", 100.0),
            };
            let [value, half_width_95] = [of.formula, of.half_width_95].map(|it| scale * it);
            MetricValue { metric: metric.metric, unit, value, half_width_95 }
        };
        self.metrics.iter().filter(is_measured).map(value).collect()
    }

    /// Breakdown, if requested.
    ///
    /// # Errors
    /// Names of the events that were not measured.
    pub fn breakdown(&self, counts: Counts<'_>) -> Option<Result<Breakdown, Vec<&'static str>>> {
        self.is_breakdown.then(|| break_down(counts, INDEPENDENT, self.stack))
    }

    /// Adds a metric, or by perf's names the metrics of a level or the parts of a metric, or by
    /// LIKWID's names those of a group.
    fn add(&mut self, name: &str) -> Result<(), String> {
        let method = self.stack.named.iter().find(|group| group.name == name);
        if let Some(method) = method.map(|group| &group.method) {
            if method.metrics.is_empty() {
                return Err(format!("-M: this processor has no {name}: {}", method.missing));
            }
            method.metrics.iter().for_each(|metric| self.push((method, metric)));
            return Ok(());
        }
        let level = LEVELS.iter().find_map(|before| name.strip_prefix(before)?.parse().ok());
        if let Some(level) = level {
            return self.add_level(level);
        }
        let all = self.all();
        let parts = name.strip_suffix(GROUP).and_then(|parent| parts_of(&all, parent));
        if let Some(parts) = parts.filter(|parts| !parts.is_empty()) {
            let level = all[parts.start - 1].1.level + 1;
            let parts = all[parts].iter().filter(|(_, metric)| metric.level == level);
            parts.for_each(|metric| self.push(*metric));
            return Ok(());
        }
        let Some(metric) = all.iter().find(|(_, metric)| metric.metric == name) else {
            return Err(self.unknown(name));
        };
        self.push(*metric);
        Ok(())
    }

    /// Returns the error of an unknown metric, with the names that are near. Without any, the
    /// groups: each prints its metrics by their names.
    fn unknown(&self, name: &str) -> String {
        let near = nearest(name, self.names().into_iter());
        if !near.is_empty() {
            return format!(
                "-M: this processor has no metric {name}; nearest: {}",
                near.join(", ")
            );
        }
        let groups = self.stack.named.iter().filter(|group| !group.method.metrics.is_empty());
        let groups: Vec<&str> = groups.map(|group| group.name).collect();
        format!(
            "-M: this processor has no metric {name}; groups, which print their metrics' names: \
             {}1, {}",
            LEVELS[0],
            groups.join(", ")
        )
    }

    /// Names of all groups and metrics.
    fn names(&self) -> Vec<&'static str> {
        let groups = self.stack.named.iter().filter(|group| !group.method.metrics.is_empty());
        let metrics = self.all().into_iter().map(|(_, metric)| metric.metric);
        let mut names: Vec<&str> = Vec::new();
        for name in groups.map(|group| group.name).chain(metrics) {
            // Several groups have the same metric.
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Metrics of the processor, including those that are counted only on request.
    fn all(&self) -> Vec<(&'static TopDown, &'static Metric)> {
        let named = self.stack.named.iter().map(|group| &group.method);
        let named = named.flat_map(|method| method.metrics.iter().map(move |it| (method, it)));
        self.stack.tree(|_| true).into_iter().chain(named).collect()
    }

    fn add_level(&mut self, level: u8) -> Result<(), String> {
        let all = self.all();
        let most = all.iter().map(|(_, metric)| metric.level).max().unwrap_or_default();
        let usual = self.stack.method.metrics.iter().map(|metric| metric.level).max();
        if !(1..=most).contains(&level) {
            return Err(format!("the levels of this processor's metrics are 1 to {most}"));
        }
        // A level with other metrics leaves out those that are counted only on request.
        let is_usual = |method| core::ptr::eq(method, self.stack.method) || usual < Some(level);
        let of_level = |(method, metric): &(&'static TopDown, &'static Metric)| {
            metric.level == level && is_usual(*method)
        };
        let of_level: Vec<_> = all.into_iter().filter(of_level).collect();
        of_level.into_iter().for_each(|metric| self.push(metric));
        Ok(())
    }

    fn push(&mut self, (method, metric): (&'static TopDown, &'static Metric)) {
        if self.metrics.iter().all(|(_, other)| other.metric != metric.metric) {
            self.metrics.push((method, metric));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Count;

    const ICE_LAKE: u32 = 0x606a6;
    const SAPPHIRE_RAPIDS: u32 = 0x806f8;
    const ZEN_3: u32 = 0xa0_0f10;
    const ZEN_4: u32 = 0xa1_0f11;

    fn of(words: &str) -> Result<Option<Metrics>, String> {
        on(ICE_LAKE, words)
    }

    fn on(signature: u32, words: &str) -> Result<Option<Metrics>, String> {
        let words: Vec<&str> = words.split(' ').collect();
        let command = tally_abi::command::Command::parse(&words).unwrap();
        Metrics::of(&command.stat, signature)
    }

    fn names(signature: u32, words: &str) -> Vec<&'static str> {
        let metrics = on(signature, words).unwrap().unwrap();
        metrics.metrics.iter().map(|(_, metric)| metric.metric).collect()
    }

    #[test]
    fn a_metric_needs_its_own_events() {
        let metrics = of("stat -M tma_icache_misses,tma_divider prog").unwrap().unwrap();
        let events = ["CPU_CLK_UNHALTED.THREAD", "ICACHE_DATA.STALLS", "ARITH.DIVIDER_ACTIVE"];
        let mut found = metrics.events();
        found.sort_by_key(|event| events.iter().position(|other| other == event));
        assert_eq!(found, events);
        let counts = |name: &str| {
            let estimate = match name {
                "CPU_CLK_UNHALTED.THREAD" => 1_000.0,
                "ICACHE_DATA.STALLS" => 50.0,
                _ => return None,
            };
            let half_width_95 = if estimate < 100.0 { 10.0 } else { 0.0 };
            Some(Count { estimate, half_width_95, truth: None })
        };
        let [of] = metrics.values(&counts)[..] else { panic!("the divider was not measured") };
        assert_eq!((of.metric, of.unit, of.value), ("tma_icache_misses", "%", 5.0));
        assert!((of.half_width_95 - 1.0).abs() < 1e-9, "{of:?}");
        assert!(metrics.breakdown(&counts).is_none());
    }

    #[test]
    fn levels_are_perfs_groups() {
        let names = |words: &str| names(ICE_LAKE, words);
        let first =
            ["tma_retiring", "tma_frontend_bound", "tma_bad_speculation", "tma_backend_bound"];
        assert_eq!(names("stat --topdown prog"), first);
        assert_eq!(names("stat -M TopdownL1 -M tma_retiring prog"), first);
        assert_eq!(names("stat --topdown --td-level 2 prog")[0], "tma_fetch_latency");
        let ports = names("stat -M TopdownL4 prog");
        assert!(ports.len() == 4 && ports[3] == "tma_ports_utilized_3m", "{ports:?}");
        assert_eq!(names("stat -M TopdownL3 prog").len(), 8);
        assert_eq!(names("stat -M tma_ports_utilization prog"), ["tma_ports_utilization"]);
        assert!(of("stat prog").unwrap().is_none());
        let all = of("stat --breakdown prog").unwrap().unwrap().events();
        assert_eq!(all, stacks::of(ICE_LAKE).unwrap().events());
    }

    #[test]
    fn a_metrics_parts_are_perfs_group_of_them() {
        let latency = ["tma_icache_misses", "tma_itlb_misses", "tma_dsb_switches"];
        for signature in [ICE_LAKE, SAPPHIRE_RAPIDS] {
            let names = |words: &str| names(signature, words);
            assert_eq!(names("stat -M tma_fetch_latency_group prog"), latency);
            assert_eq!(names("stat -M tma_fetch_bandwidth_group prog"), ["tma_mite", "tma_dsb"]);
            let third = names("stat -M TopdownL3 prog");
            let on_request = ["tma_mite", "tma_dsb", "tma_dsb_switches", "tma_ports_utilization"];
            assert!(on_request.iter().all(|name| !third.contains(name)), "{third:?}");
        }
        assert_eq!(
            names(ICE_LAKE, "stat -M tma_backend_bound_group prog"),
            ["tma_memory_bound", "tma_core_bound"]
        );
        let parts = ["frontend_bound_latency", "frontend_bound_bandwidth"];
        assert_eq!(names(ZEN_4, "stat -M frontend_bound_group prog"), parts);
        let miss = ["op_cache_fetch_miss_ratio"];
        assert_eq!(names(ZEN_4, "stat -M op_cache_fetch_miss_ratio prog"), miss);
        let why = of("stat -M tma_divider_group prog").err().unwrap();
        assert!(why.contains("tma_divider_group; nearest: tma_divider"), "{why}");
    }

    #[test]
    fn likwid_s_groups_have_their_metrics() {
        for signature in [ICE_LAKE, SAPPHIRE_RAPIDS] {
            let names = |words: &str| names(signature, words);
            let flops = names("stat -M FLOPS_DP prog");
            assert_eq!((flops.len(), flops[4]), (7, "flops_dp"));
            assert_eq!(names("stat -M FLOPS_DP,MEM_DP prog").len(), 9, "two are in both groups");
            assert_eq!(names("stat -M l3_load_volume prog"), ["l3_load_volume"]);
        }
        assert_eq!(names(ZEN_4, "stat -M DIVIDE prog"), ["divisions", "division_duration"]);
        let why = on(ZEN_4, "stat -M FLOPS_DP prog").err().unwrap();
        assert!(why.starts_with("-M: this processor has no FLOPS_DP: AMD counts"), "{why}");
        assert_eq!(names(ZEN_4, "stat -M FLOPS prog"), ["flops", "flops_rate"]);
        let all = Metrics::listed(ICE_LAKE).unwrap();
        assert_eq!(all[..5], ["FLOPS_DP", "FLOPS_SP", "L2", "L3", "MEM"]);
        let counts = |name: &str| {
            let estimate = match name {
                "CPU_CLK_UNHALTED.THREAD" => 1_000.0,
                "L1D.REPLACEMENT" => 50.0,
                _ => return None,
            };
            let half_width_95 = if estimate < 100.0 { 10.0 } else { 0.0 };
            Some(Count { estimate, half_width_95, truth: None })
        };
        let values = of("stat -M L2 prog").unwrap().unwrap().values(&counts);
        let values: Vec<_> =
            values.iter().map(|of| (of.unit, of.value, of.half_width_95.round())).collect();
        assert_eq!(values, [("bytes", 3_200.0, 640.0), ("bytes/cycle", 3.2, 1.0)]);
    }

    #[test]
    fn a_divisor_that_may_be_0_leaves_nothing_known() {
        let counts = |name: &str| {
            let (estimate, half_width_95) = match name {
                "LONGEST_LAT_CACHE.MISS" => (400.0, 2_000.0),
                "FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE" => (1_000.0, 0.0),
                _ => (0.0, 0.0),
            };
            Some(Count { estimate, half_width_95, truth: None })
        };
        let metrics = of("stat -M intensity_dp prog").unwrap().unwrap();
        let [of] = metrics.values(&counts)[..] else { panic!("all events were measured") };
        assert!((of.value - 0.15625).abs() < 1e-9 && of.half_width_95 > of.value, "{of:?}");
    }

    #[test]
    fn what_the_processor_lacks_is_refused() {
        let why = |words: &str| of(words).err().unwrap();
        assert!(why("stat -M tma_retirng prog").contains("tma_retirng; nearest: tma_retiring"));
        assert!(why("stat --topdown --td-level 5 prog").contains("1 to 4"));
        let options = StatOptions { is_topdown: true, ..StatOptions::default() };
        assert!(Metrics::of(&options, ZEN_3).err().unwrap().contains("Zen 4"));
    }
}
