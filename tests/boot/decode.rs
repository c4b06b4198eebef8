//! The virtual PMU's cache of decoded micro-operations: code that it holds comes from it, and code
//! that it does not from the decoders.

use crate::{exact, targets::run};

/// 14,000 jumps, of which each begins an entry, are more than each cache has; 200 are fewer.
#[test]
fn micro_operations_come_from_the_cache_or_from_the_decoders() {
    let intel = ["IDQ.DSB_UOPS", "IDQ.MITE_UOPS", "IDQ.MS_UOPS", "UOPS_RETIRED.SLOTS"];
    let amd = [
        "OPS_SOURCE_DISPATCHED_FROM_DECODER.OPCACHE",
        "OPS_SOURCE_DISPATCHED_FROM_DECODER.DECODER",
        "OP_CACHE_HIT_MISS.OC_MISS",
        "RETIRED_OPS",
    ];
    for (pmu, pipeline, names) in
        [("intel", "ooo", intel), ("sapphire-rapids", "interval", intel), ("amd", "ooo", amd)]
    {
        let of = |words: &str| {
            let vpmu = format!("pipeline={pipeline},uop-cache=yes");
            let list = names.join(",");
            let session = run(&format!("--pmu {pmu} --vpmu {vpmu} --events {list}"), words);
            let [cached, decoded, other, all] = names.map(|name| exact(&session, name));
            if pmu != "amd" {
                assert_eq!(cached + decoded + other, all, "{pmu}, {words}");
            }
            (cached as f64 / all as f64, decoded as f64 / all as f64)
        };
        let (cached, decoded) = of("50");
        assert!(cached < 0.1 && decoded > 0.9, "{pmu}: {cached}, {decoded}");
        let (cached, decoded) = of("2000 fewer");
        assert!(cached > 0.9 && decoded < 0.1, "{pmu}: {cached}, {decoded}");
    }
}
