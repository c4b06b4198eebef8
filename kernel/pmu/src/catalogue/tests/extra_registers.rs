//! Events that select by an extra register.

use super::*;

fn extra(catalogue: Catalogue, word: &str) -> (u64, u8, u64, u64, bool) {
    let demand = one(catalogue, word).unwrap().demand;
    let extra = demand.extra.unwrap();
    (demand.selector.0, extra.registers, extra.second.0, extra.value, demand.alone)
}

#[test]
fn events_of_extra_registers_are_refused_where_those_are_not_known() {
    let unknown = Catalogue::intel(6, 0x0f, 2, 0);
    for word in ["r01b7", "r012a", "r03c6", "cpu/event=0xcd,umask=1/"] {
        let (_, error, why) = refused(unknown, word);
        assert_eq!(error, Error::EventNotSupported, "{word}: {why}");
        assert!(why.contains("extra register"), "{why}");
    }
    // Those that need one on recent processors alone: Skylake has others of these codes.
    let skylake = Catalogue::intel(6, 0x55, 4, 0);
    for raw in ["r02c6", "r40ad", "r04c2", "r02b7", "r05d0", "r0127", "r0227", "r022a", "r082a"] {
        assert_eq!(one(unknown, raw).unwrap_err().error, Error::EventNotSupported, "{raw}");
    }
    assert!(one(skylake, "r04c2").is_ok());
}

#[test]
fn extra_registers_are_asked_for() {
    let any = (0x41_01b7, 3, 0x41_01bb, 0x1_0001, false);
    assert_eq!(extra(icelake(), "OCR.DEMAND_DATA_RD.ANY_RESPONSE"), any);
    assert_eq!(extra(icelake(), "cpu/event=0xb7,umask=1,offcore_rsp=0x10001/"), any);
    // The planner chooses which of the two registers holds the value.
    assert_eq!(extra(icelake(), "cpu/config=0x1bb,config1=0x10001/"), any);
    assert_eq!(
        extra(icelake(), "FRONTEND_RETIRED.DSB_MISS"),
        (0x41_01c6, 4, 0x41_01c6, 0x11, true)
    );
    let frontend = "cpu/event=0xc6,umask=0x1,frontend=0x500206/";
    assert_eq!(extra(icelake(), frontend).3, 0x50_0206);
    let spr = Catalogue::intel(6, 0x8f, 8, 0);
    let llc = (0x41_012a, 3, 0x41_012b, 0x3f_bfc0_0001, false);
    assert_eq!(extra(spr, "LLC-load-misses"), llc);
    assert_eq!(extra(icelake(), "LLC-load-misses").3, 0x3f_bfc0_0001);
    let named = one(icelake(), "cpu/event=0xb7,umask=1,offcore_rsp=0x10001/").unwrap();
    assert_eq!(named.native, Some("OCR.DEMAND_DATA_RD.ANY_RESPONSE"));
}

#[test]
fn values_of_tables_fit_their_registers() {
    let mut unfit = Vec::new();
    for catalogue in catalogues() {
        for entry in catalogue.entries() {
            let Some(register) = entry.extra.filter(|register| register.msr != 0x3f6) else {
                continue;
            };
            let valid = catalogue.processor.core.extra_bits(register.msr);
            let fits = valid != 0 && register.value & !valid == 0;
            // MSR_OFFMODULE_RSP_0 to 3 are not driven.
            let is_driven = intel::extra_register(register.msr).is_some();
            if !fits && is_driven {
                let (_, _, why) = refused(catalogue, entry.name);
                assert!(why.contains("has no bits"), "{}: {why}", entry.name);
                unfit.push((catalogue.name(), entry.name));
            }
        }
    }
    // Linux's masks of these cores' registers lack bits that the vendor's values have.
    let known = ["alderlake_gracemont", "knightslanding"];
    assert!(unfit.iter().all(|(name, _)| known.contains(name)), "{unfit:?}");
    assert_eq!(unfit.iter().filter(|(name, _)| *name == known[0]).count(), 2);
}
