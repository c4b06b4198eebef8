//! Micro-operations executed in each cycle: the events' estimates, and their sum over all cycles,
//! compared with the truth.

use xtask::report::EventReport;

use crate::session_of;

const PROGRAM: &str = "rounds 1 100000";

/// Machine, events, and the number of leading events that divide the cycles.
const LISTS: [(&str, &str, usize); 3] = [
    (
        "intel",
        "UOPS_EXECUTED.STALL_CYCLES,EXE_ACTIVITY.1_PORTS_UTIL,EXE_ACTIVITY.2_PORTS_UTIL,\
         EXE_ACTIVITY.3_PORTS_UTIL,UOPS_EXECUTED.CYCLES_GE_4,EXE_ACTIVITY.4_PORTS_UTIL,\
         UOPS_DISPATCHED.PORT_2_3,tally.port.contention",
        5,
    ),
    (
        "sapphire-rapids",
        "UOPS_EXECUTED.STALL_CYCLES,EXE_ACTIVITY.1_PORTS_UTIL,EXE_ACTIVITY.2_3_PORTS_UTIL,\
         UOPS_EXECUTED.CYCLES_GE_4,EXE_ACTIVITY.EXE_BOUND_0_PORTS,RS_EMPTY.CYCLES",
        4,
    ),
    (
        "amd",
        "tally.idle.empty,tally.idle.loads,tally.idle.stores,tally.idle.units,tally.executed.1,\
         tally.executed.2,tally.executed.3,tally.executed.4,tally.executed.5,tally.port.contention",
        9,
    ),
];

#[test]
fn events_of_ports_divide_all_cycles() {
    for (pmu, list, parts) in LISTS {
        let command = format!(
            "cargo xtask run --pmu {pmu} --vpmu pipeline=ooo --slice 5000 --budget 100 \
             --events cycles,{list} -- {PROGRAM}"
        );
        let session = session_of(&command);
        let [cycles, events @ ..] = &session.events[..] else { panic!("{command}: no events") };
        let sum: u64 = events[..parts].iter().map(truth).sum();
        // Cycles follow dispatch: operations in flight at either end are charged late.
        assert!(sum.abs_diff(truth(cycles)) < 5_000, "{pmu}: {sum} of {cycles:?}");
        for event in events {
            let estimate = event.estimate.expect("it is counted");
            let far = estimate.abs_diff(truth(event)) * 20 > truth(event).max(truth(cycles) / 50);
            assert!(!far, "{pmu}: {event:?}");
        }
        let contention = events.iter().find(|event| event.name == "tally.port.contention");
        assert!(contention.is_none_or(|event| truth(event) > 0), "{contention:?}");
    }
}

fn truth(event: &EventReport) -> u64 {
    event.truth.expect("there is the virtual PMU")
}
