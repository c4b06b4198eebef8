//! Intel's metrics of micro-operations executed per cycle: the use of ports in core-bound cycles.
//!
//! The metrics need many events, so they are counted on request.

use super::formulas::{
    self, CYCLES, CountOf, DIVIDER, Metric, ON_LOADS, ONE, TWO, TopDown, Whole, icx_few, ratio,
    spr_retiring,
};

const TWO_OR_THREE: &str = "EXE_ACTIVITY.2_3_PORTS_UTIL";
const FROM_THREE: &str = "UOPS_EXECUTED.CYCLES_GE_3";
const NONE: &str = "EXE_ACTIVITY.EXE_BOUND_0_PORTS";
/// Event of cycles without execution on Ice Lake, which has no name there: perf's
/// `EXE_ACTIVITY.3_PORTS_UTIL,umask=0x80`.
const ICX_NONE: &str = "r80a6";
const STALLS: &str = "CYCLE_ACTIVITY.STALLS_TOTAL";
const STALLS_IN_MEMORY: &str = "CYCLE_ACTIVITY.STALLS_MEM_ANY";
const SERIALIZING: &str = "RESOURCE_STALLS.SCOREBOARD";
const EMPTY: &str = "RS.EMPTY_RESOURCE";

const fn cycles(
    level: u8,
    name: &'static str,
    metric: &'static str,
    formula: fn(CountOf<'_>) -> f64,
) -> Metric {
    Metric { name, metric, level, whole: Whole::Cycles, formula }
}

fn one(n: CountOf<'_>) -> f64 {
    ratio(n(ONE), n(CYCLES))
}
fn two(n: CountOf<'_>) -> f64 {
    ratio(n(TWO), n(CYCLES))
}
fn from_three(n: CountOf<'_>) -> f64 {
    ratio(n(FROM_THREE), n(CYCLES))
}

fn icx_none(n: CountOf<'_>) -> f64 {
    let serializing = ratio(n(SERIALIZING), n(CYCLES));
    let others = serializing * (n(STALLS) - n(STALLS_IN_MEMORY));
    ratio(n(ICX_NONE) + others, n(CYCLES))
}
fn icx_ports(n: CountOf<'_>) -> f64 {
    let few = ratio(icx_few(n), n(CYCLES));
    let divides = n(DIVIDER) >= n(STALLS) - n(STALLS_IN_MEMORY);
    if divides { few } else { icx_none(n) + few }
}

/// Metrics of Ice Lake servers.
pub(super) static ICE_LAKE: TopDown = TopDown {
    events: &[
        CYCLES,
        formulas::RETIRED,
        DIVIDER,
        ONE,
        TWO,
        FROM_THREE,
        ICX_NONE,
        STALLS,
        STALLS_IN_MEMORY,
        SERIALIZING,
    ],
    metrics: &[
        cycles(3, "ports", "tma_ports_utilization", icx_ports),
        cycles(4, "no port", "tma_ports_utilized_0", icx_none),
        cycles(4, "one port", "tma_ports_utilized_1", one),
        cycles(4, "two ports", "tma_ports_utilized_2", two),
        cycles(4, "three or more", "tma_ports_utilized_3m", from_three),
    ],
    missing: "",
};

fn spr_none(n: CountOf<'_>) -> f64 {
    let empty = (n(EMPTY) - n(SERIALIZING)).max(0.0);
    ratio(n(NONE) + empty, n(CYCLES)) * ratio(n(STALLS) - n(ON_LOADS), n(CYCLES))
}
fn spr_ports(n: CountOf<'_>) -> f64 {
    let few = ratio(n(ONE) + spr_retiring(n) * n(TWO_OR_THREE), n(CYCLES));
    let divides = n(DIVIDER) >= n(STALLS) - n(ON_LOADS);
    if divides { few } else { spr_none(n) + few }
}

/// Metrics of Sapphire Rapids.
pub(super) static SAPPHIRE_RAPIDS: TopDown = TopDown {
    events: &[
        CYCLES,
        formulas::RETIRED,
        formulas::UNDELIVERED,
        formulas::STALLED,
        formulas::WRONG,
        DIVIDER,
        ONE,
        TWO,
        TWO_OR_THREE,
        FROM_THREE,
        NONE,
        EMPTY,
        STALLS,
        ON_LOADS,
        SERIALIZING,
    ],
    metrics: &[
        cycles(3, "ports", "tma_ports_utilization", spr_ports),
        cycles(4, "no port", "tma_ports_utilized_0", spr_none),
        cycles(4, "one port", "tma_ports_utilized_1", one),
        cycles(4, "two ports", "tma_ports_utilized_2", two),
        cycles(4, "three or more", "tma_ports_utilized_3m", from_three),
    ],
    missing: "",
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares metrics with `perf stat -M` on the same counts, computed by hand from the
    /// expressions in Linux's files.
    fn assert_metrics(method: &TopDown, counts: &[(&str, f64)], want: &[(&str, f64)]) {
        let count = |name: &str| counts.iter().find(|(event, _)| *event == name).map(|it| it.1);
        for (name, expected) in want {
            let metric = method.metrics.iter().find(|metric| metric.metric == *name);
            let got = (metric.expect(name).formula)(&|event| count(event).expect(event));
            assert!((got - expected).abs() < 1e-12, "{name}: {got}, not {expected}");
        }
        assert_eq!(method.metrics.len(), want.len());
    }

    #[test]
    fn ice_lake_s_are_those_of_perf() {
        let counts = [
            (CYCLES, 1_000.0),
            (formulas::RETIRED, 2_000.0),
            (DIVIDER, 40.0),
            (ONE, 100.0),
            (TWO, 250.0),
            (FROM_THREE, 300.0),
            (ICX_NONE, 60.0),
            (STALLS, 400.0),
            (STALLS_IN_MEMORY, 300.0),
            (SERIALIZING, 20.0),
        ];
        // Retiring 0.4, few 200.
        let want = [
            ("tma_ports_utilization", 0.062 + 0.2),
            ("tma_ports_utilized_0", 0.06 + 0.02 * 0.1),
            ("tma_ports_utilized_1", 0.1),
            ("tma_ports_utilized_2", 0.25),
            ("tma_ports_utilized_3m", 0.3),
        ];
        assert_metrics(&ICE_LAKE, &counts, &want);
        let divides = |(name, count)| (name, if name == DIVIDER { 100.0 } else { count });
        let few = want.map(|(name, share)| match name {
            "tma_ports_utilization" => (name, 0.2),
            _ => (name, share),
        });
        assert_metrics(&ICE_LAKE, &counts.map(divides), &few);
    }

    #[test]
    fn sapphire_rapids_are_those_of_perf() {
        let counts = [
            (CYCLES, 1_000.0),
            (formulas::RETIRED, 2_400.0),
            (formulas::UNDELIVERED, 1_200.0),
            (formulas::STALLED, 1_800.0),
            (formulas::WRONG, 600.0),
            (DIVIDER, 40.0),
            (ONE, 100.0),
            (TWO, 150.0),
            (TWO_OR_THREE, 250.0),
            (FROM_THREE, 300.0),
            (NONE, 60.0),
            (EMPTY, 60.0),
            (STALLS, 400.0),
            (ON_LOADS, 300.0),
            (SERIALIZING, 20.0),
        ];
        let want = [
            ("tma_ports_utilization", 0.01 + 0.2),
            ("tma_ports_utilized_0", (0.06 + 0.04) * 0.1),
            ("tma_ports_utilized_1", 0.1),
            ("tma_ports_utilized_2", 0.15),
            ("tma_ports_utilized_3m", 0.3),
        ];
        assert_metrics(&SAPPHIRE_RAPIDS, &counts, &want);
    }
}
