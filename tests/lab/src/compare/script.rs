//! Script of the Linux guest: runs a program under perf with the events in perf's form.

use std::process::Command;

use tally_pmu::Resolved;
use tally_vpmu::Vendor;
use xtask::{
    machine,
    perf::{COUNTS, name, select},
};

/// The file of perf's output in the guest.
const FILE: &str = "/tmp/counts";
/// The interval of the timer by which Linux rotates events, in µs
/// (`/sys/devices/cpu/perf_event_mux_interval_ms` of a kernel with 250 Hz).
const ROTATION_US: u64 = 4000;

/// Perf's event list for these events, each in ring 3 and with a name of ours, in the same groups.
fn list(events: &[Resolved], vendor: Vendor) -> String {
    let word = |(index, event): (usize, &Resolved)| {
        let (select, extra) = select(event, vendor);
        let extra = extra.map_or(String::new(), |value| format!("config1={value:#x},"));
        format!("cpu/config={select:#x},{extra}name={}/u", name(index))
    };
    let all: Vec<(usize, &Resolved)> = events.iter().enumerate().collect();
    let together = |(_, event): &(usize, &Resolved)| event.demand.together;
    let lists =
        all.chunk_by(|a, b| together(a).is_some() && together(a) == together(b)).map(|of| {
            let words = of.iter().map(|event| word(*event)).collect::<Vec<_>>().join(",");
            if together(&of[0]).is_some() { format!("{{{words}}}") } else { words }
        });
    lists.collect::<Vec<_>>().join(",")
}

/// The shell command that runs `program` with its arguments and counts these events. The start is
/// delayed by a part of a rotation that `seed` selects, because perf has no random order. No
/// process starts after the program, so that none gets its address space.
pub(super) fn of(events: &[Resolved], vendor: Vendor, program: &[String], seed: u64) -> String {
    let mut perf = Command::new("/bin/perf");
    perf.args(["stat", "-x,", "-o", FILE, "-e", &list(events, vendor), "--"]).args(program);
    let (perf, delay_us) = (machine::in_shell(&perf), delay_us(seed));
    format!(
        "usleep {delay_us}\n{perf}\nstatus=$?\necho\necho '{COUNTS}'\n\
         while read -r line; do echo \"$line\"; done < {FILE}\nexit $status"
    )
}

/// A delay of less than a rotation: `SplitMix64` of the seed (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
fn delay_us(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ x >> 31) % ROTATION_US
}

/// The part of the script's output that the program wrote.
pub(super) fn program_output(output: &str) -> &str {
    output.rsplit_once(COUNTS).map_or(output, |(program, _)| program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use tally_abi::SessionConfig;
    use xtask::{
        explain::{self, Asked},
        machine::Pmu,
    };

    fn list_of(pmu: Pmu, events: &str) -> String {
        let pmu = machine::virtual_pmu_of(pmu, &[]).unwrap();
        let config = SessionConfig::default();
        let asked = Asked { events: events.into(), config, paranoid: None };
        let (resolved, _) = explain::planned(&explain::detect(&pmu).unwrap(), &asked).unwrap();
        list(&resolved, pmu.profile().vendor).replace(",cpu", "\ncpu") + "\n"
    }

    #[test]
    fn perf_gets_the_braces_of_the_list() {
        let list = list_of(Pmu::Intel, "r02c4,{cycles,r04c4},{r08c4},r10c4").replace('\n', "");
        let braces = list.split(['{', '}']).map(|part| part.matches("cpu/").count());
        assert_eq!(braces.collect::<Vec<_>>(), [1, 2, 0, 1, 1], "{list}");
    }

    #[test]
    fn perf_gets_the_selects_of_the_catalogue() {
        let intel = "INST_RETIRED.ANY,cycles,CPU_CLK_UNHALTED.REF_TSC,MEM_LOAD_RETIRED.L1_MISS,\
                     CYCLE_ACTIVITY.STALLS_TOTAL,OCR.DEMAND_DATA_RD.L3_HIT";
        let amd = "instructions,cycles,LS_DISPATCH.LD_DISPATCH,CYCLES_NO_RETIRE.EMPTY";
        expect![[r#"
            cpu/config=0xc0,name=event0/u
            cpu/config=0x3c,name=event1/u
            cpu/config=0x300,name=event2/u
            cpu/config=0x8d1,name=event3/u
            cpu/config=0x40004a3,name=event4/u
            cpu/config=0x1b7,config1=0x3f803c0001,name=event5/u
            cpu/config=0xc0,name=event0/u
            cpu/config=0x76,name=event1/u
            cpu/config=0x129,name=event2/u
            cpu/config=0x1d6,name=event3/u
        "#]]
        .assert_eq(&(list_of(Pmu::Intel, intel) + &list_of(Pmu::Amd, amd)));
    }

    #[test]
    fn the_program_s_output_ends_before_perf_s() {
        let output = format!("1,,event0\n{COUNTS}\n12,,event1:u,69,25.00,,\n");
        assert_eq!(program_output(&output), "1,,event0\n");
    }

    #[test]
    fn seeds_delay_the_start_by_less_than_a_rotation() {
        let delays: Vec<u64> = (0..100).map(delay_us).collect();
        assert!(delays.iter().all(|delay| *delay < ROTATION_US));
        let quarters = delays.iter().map(|delay| delay * 4 / ROTATION_US);
        assert_eq!(quarters.collect::<std::collections::BTreeSet<_>>().len(), 4);
    }
}
