//! The vendors' metrics of decoders and of the cache of decoded micro-operations: Intel's legacy
//! decode pipeline (MITE) and decoded stream buffer (DSB), AMD's op cache.
//!
//! The virtual PMU implements most of these events only with its option `uop-cache`, so they are
//! counted on request. Source: as for [`super::formulas`], AMD's from `amdzen4/recommended.json`.
//! Where a core has two threads, perf divides `tma_mite` and `tma_dsb` by
//! CPU_CLK_UNHALTED.DISTRIBUTED, which the virtual PMU does not count; Tally always divides by the
//! thread's cycles.

use super::formulas::{CYCLES, CountOf, Metric, TopDown, Whole, cycles, ratio};

const DECODED: &str = "IDQ.MITE_CYCLES_ANY";
const DECODED_FULL: &str = "IDQ.MITE_CYCLES_OK";
const CACHED: &str = "IDQ.DSB_CYCLES_ANY";
const CACHED_FULL: &str = "IDQ.DSB_CYCLES_OK";
const SWITCHING: &str = "DSB2MITE_SWITCHES.PENALTY_CYCLES";

/// Part of the fetch latency, on both of Intel's processors.
pub(super) static LATENCY: TopDown = TopDown {
    events: &[CYCLES, SWITCHING],
    metrics: &[cycles("switches to the decoders", "tma_dsb_switches", |n| {
        ratio(n(SWITCHING), n(CYCLES))
    })],
    missing: "",
};

/// Intel's estimate of the slots lost to a source of micro-operations: half of the cycles in which
/// it delivered some, but fewer than dispatch accepts.
fn partly(n: CountOf<'_>, any: &str, full: &str) -> f64 {
    ratio(n(any) - n(full), n(CYCLES)) / 2.0
}

/// Parts of the fetch bandwidth, on both of Intel's processors.
pub(super) static BANDWIDTH: TopDown = TopDown {
    events: &[CYCLES, DECODED, DECODED_FULL, CACHED, CACHED_FULL],
    metrics: &[
        cycles("decoders", "tma_mite", |n| partly(n, DECODED, DECODED_FULL)),
        cycles("cache of micro-operations", "tma_dsb", |n| partly(n, CACHED, CACHED_FULL)),
    ],
    missing: "",
};

const OP_CACHE: &str = "OP_CACHE_HIT_MISS.ALL_OC_ACCESS";
const OP_CACHE_MISSES: &str = "OP_CACHE_HIT_MISS.OC_MISS";
const CODE: &str = "IC_TAG_HIT_MISS.ALL_IC_ACCESS";
const CODE_MISSES: &str = "IC_TAG_HIT_MISS.IC_MISS";

const fn events(
    name: &'static str,
    metric: &'static str,
    formula: fn(CountOf<'_>) -> f64,
) -> Metric {
    Metric { name, metric, level: 0, whole: Whole::Events, formula }
}

/// Metrics of Zen 4, which are shares of fetches, and not parts of its slots.
pub(super) static ZEN_4: TopDown = TopDown {
    events: &[OP_CACHE, OP_CACHE_MISSES, CODE, CODE_MISSES],
    metrics: &[
        events("op cache misses", "op_cache_fetch_miss_ratio", |n| {
            ratio(n(OP_CACHE_MISSES), n(OP_CACHE))
        }),
        events("instruction cache misses", "ic_fetch_miss_ratio", |n| {
            ratio(n(CODE_MISSES), n(CODE))
        }),
    ],
    missing: "",
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are those of `perf stat -M` for the same counts, computed by hand from the
    /// expressions in Linux's files.
    #[test]
    fn metrics_are_those_of_perf() {
        let counts = [
            (CYCLES, 1_000.0),
            (DECODED, 300.0),
            (DECODED_FULL, 100.0),
            (CACHED, 600.0),
            (CACHED_FULL, 560.0),
            (SWITCHING, 30.0),
            (OP_CACHE, 200.0),
            (OP_CACHE_MISSES, 50.0),
            (CODE, 400.0),
            (CODE_MISSES, 10.0),
        ];
        let want = [
            ("tma_dsb_switches", 0.03),
            ("tma_mite", 0.1),
            ("tma_dsb", 0.02),
            ("op_cache_fetch_miss_ratio", 0.25),
            ("ic_fetch_miss_ratio", 0.025),
        ];
        let metrics = [&LATENCY, &BANDWIDTH, &ZEN_4].into_iter().flat_map(|it| it.metrics);
        for (metric, (name, expected)) in metrics.zip(want) {
            let count = |name: &str| counts.iter().find(|(event, _)| *event == name).unwrap().1;
            let got = (metric.formula)(&count);
            assert!((got - expected).abs() < 1e-12, "{name}: {got}, not {expected}");
            assert_eq!(metric.metric, name);
            // A program that did not run gives 0, as perf's `d_ratio` does.
            assert_eq!((metric.formula)(&|_| 0.0), 0.0, "{name}");
        }
    }
}
