//! Samples: their number follows the period, and each has the address of the interrupted
//! instruction.

use expect_test::expect;
use xtask::{
    machine::{Boot, Pmu, Request},
    report::Report,
};

use crate::{
    SharedBoot, assert_exact_counts_are_true, assert_success, boot, masked, output_of, run,
};

/// Mean number of events between two samples.
const PERIOD: u64 = 10_000;
/// Random periods around [`PERIOD`]; the upper bound includes the skid.
const PERIODS: std::ops::Range<u64> = 8_750..11_300;
/// Addresses where the linker places the guest program's text.
const TEXT: std::ops::Range<u64> = 0x20_0000..0x30_0000;

fn record(pmu: Pmu, event: &str) -> Request {
    let job = format!("tally record --budget 100 -e {event} -c {PERIOD} rounds 1 60000");
    Request { pmu, ..Request::new(format!("wire trace -- {job}")) }
}

/// Number of samples taken, and the number expected from the true count.
fn taken_and_expected(boot: &Boot) -> (u64, u64) {
    let report = Report::of(boot).first.expect("tally opens a session");
    let count = report.events[0].truth.expect("the model counts it");
    (boot.transcript.samples.len() as u64, count / PERIOD)
}

/// Defines a boot that samples an event, and a test for each behaviour.
macro_rules! samples {
    ($module:ident on $pmu:expr => $event:literal) => {
        mod $module {
            use super::*;

            pub(super) static BOOT: SharedBoot = SharedBoot::new(|| record($pmu, $event));

            #[test]
            fn there_is_one_sample_per_period() {
                let (taken, expected) = taken_and_expected(BOOT.get());
                assert!(taken.abs_diff(expected) <= 1 + expected / 50, "{taken}, {expected}");
            }

            #[test]
            fn periods_are_random_within_an_eighth() {
                for two in BOOT.get().transcript.samples.windows(2) {
                    assert!(PERIODS.contains(&(two[1].count - two[0].count)), "{two:?}");
                }
            }

            #[test]
            fn samples_have_addresses_in_the_programs_text() {
                for sample in &BOOT.get().transcript.samples[1..] {
                    assert!(sample.user && TEXT.contains(&sample.address), "{sample:?}");
                }
            }

            #[test]
            fn the_summary_has_the_number_of_samples() {
                let boot = BOOT.get();
                assert_success(boot);
                let line = format!(" {} samples of ", boot.transcript.samples.len());
                assert!(boot.transcript.text().replace(',', "").contains(&line));
            }

            #[test]
            fn exact_counts_stay_exact() {
                assert_exact_counts_are_true(&Report::of(BOOT.get()));
            }
        }
    };
}

samples! { on_icelake_server on Pmu::Intel => "branches" }
samples! { on_zen_4 on Pmu::Amd => "branches" }
samples! { on_zen_3 on Pmu::Zen3 => "instructions" }

#[test]
fn record_prints_the_addresses_with_the_most_samples() {
    expect![[r#"

        # samples of 'branches' in 'rounds # 60000'
        requested: one per # events, taken: one per #

        # % # #
        # at # other addresses
    "#]]
    .assert_eq(&masked(&output_of(on_icelake_server::BOOT.get(), 0, 2)));
}

/// The bank's first page, in which a program stops its counters, is writable only by the program
/// that opened the session. The program runs once alone and once sampled by another.
#[test]
fn a_sampled_program_cannot_write_to_its_bank() {
    let boot = run("", "writable -- tally record -e branches -c 1000 writable");
    assert_success(&boot);
    let text = boot.transcript.text();
    assert_eq!(text.matches("writable 1\n").count(), 2, "{text}");
}

/// Upper bound of samples of ring 0. The engine takes at most one every 20,000 instructions, so
/// that the program makes progress between two; loading and measuring a program takes the kernel
/// more than 250,000.
const RING_0_SAMPLES: usize = 12;

/// Numbers of samples of ring 0, in the kernel's code and in all, for a delivery of overflow
/// interrupts. The kernel runs with interrupts off. Samples of ring 0 are at least 20,000
/// instructions apart ([`RING_0_SAMPLES`]).
fn samples_of_ring_0(pmu: Pmu, overflows: &str) -> (usize, usize) {
    let program = "tally stat -e branches rounds 1 100";
    let job = format!("tally record --budget 100 --kernel -e instructions:k -c 2000 {program}");
    let line = format!("wire trace paranoid=1 overflows={overflows} -- {job}");
    let boot = boot(&Request { pmu, ..Request::new(line) });
    assert_success(&boot);
    let samples = &boot.transcript.samples;
    let inside = samples.iter().filter(|sample| !sample.user && sample.address != 0).count();
    (inside, samples.len())
}

#[test]
fn fixed_interrupts_wait_until_the_kernel_returns() {
    let (inside, all) = samples_of_ring_0(Pmu::Intel, "fixed");
    assert!(inside == 0 && all > 0, "{inside} of {all}");
}

#[test]
fn nmis_interrupt_the_kernel_on_intel() {
    let (inside, all) = samples_of_ring_0(Pmu::Intel, "nmi");
    assert!(inside > RING_0_SAMPLES, "{inside} of {all}");
}

#[test]
fn nmis_interrupt_the_kernel_on_amd() {
    let (inside, all) = samples_of_ring_0(Pmu::Amd, "nmi");
    assert!(inside > RING_0_SAMPLES, "{inside} of {all}");
}

/// Where ring 0 is counted, a counter can overflow before the interrupt controller is unmasked
/// after an overflow interrupt. Counters that freeze on an overflow would then stay frozen.
fn check_that_samples_of_ring_0_lose_no_counts(pmu: Pmu) {
    let job = "tally record --budget 100 --slice 200000 --kernel -e instructions:uk -c 20000";
    let line = format!("wire trace paranoid=1 overflows=nmi -- {job} deflate --level 1");
    let boot = boot(&Request { pmu, ..Request::new(line) });
    assert_success(&boot);
    let event = &Report::of(&boot).first.expect("tally opens a session").events[0];
    assert_eq!(event.is_within(), Some(true), "{event:?}");
    assert!(event.relative_half_width().is_some_and(|width| width < 0.02), "{event:?}");
}

#[test]
fn samples_of_ring_0_lose_no_counts_on_intel() {
    check_that_samples_of_ring_0_lose_no_counts(Pmu::Intel);
}

#[test]
fn samples_of_ring_0_lose_no_counts_on_amd() {
    check_that_samples_of_ring_0_lose_no_counts(Pmu::Amd);
}

/// Regression: the budget of samples counted TSC ticks, of which a program that waits for memory
/// has few: it got a quarter of its samples, though an interrupt took 3 % of the cycles between
/// two.
#[test]
fn a_program_that_waits_for_memory_gets_its_samples() {
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let job = "tally record --budget 20 -e cycles -c 60000 bottleneck chase 300000";
        let boot = boot(&Request { pmu, ..Request::new(format!("wire trace -- {job}")) });
        assert_success(&boot);
        let event = &Report::of(&boot).first.expect("tally opens a session").events[0];
        let asked = event.truth.expect("the model counts it") / 60_000;
        let taken = boot.transcript.samples.len() as u64;
        assert!(taken <= asked + 1 && taken * 2 >= asked, "{pmu:?}: {taken} of {asked}");
    }
}

/// Machine that samples every instruction, as far as the budget allows.
fn sample_every_instruction(pmu: Pmu, budget_percent: u32) -> Request {
    let job = format!("tally record --budget {budget_percent} -e instructions -c 1 rounds 1 60000");
    Request { pmu, ..Request::new(format!("wire trace -- {job}")) }
}

static EVERY_ON_INTEL: SharedBoot = SharedBoot::new(|| sample_every_instruction(Pmu::Intel, 2));
static EVERY_ON_AMD: SharedBoot = SharedBoot::new(|| sample_every_instruction(Pmu::Amd, 20));

#[test]
fn a_period_of_1_leaves_the_program_most_of_the_time() {
    for (boot, most) in [(&EVERY_ON_INTEL, 0.25), (&EVERY_ON_AMD, 0.5)] {
        let boot = boot.get();
        assert_success(boot);
        let report = Report::of(boot).first.expect("tally opens a session");
        assert!(report.engine_share.is_some_and(|share| share < most), "{report:?}");
    }
}

#[test]
fn the_budget_lengthens_a_period_of_1() {
    for boot in [&EVERY_ON_INTEL, &EVERY_ON_AMD] {
        let samples = &boot.get().transcript.samples;
        assert!(samples.len() > 100);
        assert!(samples.last().is_some_and(|sample| sample.period_multiplier > 100), "{samples:?}");
    }
}

#[test]
fn a_period_of_1_leaves_exact_counts() {
    for boot in [&EVERY_ON_INTEL, &EVERY_ON_AMD] {
        let report = Report::of(boot.get()).first.expect("tally opens a session");
        assert_eq!(report.events[0].estimate, report.events[0].truth);
    }
}

#[test]
fn the_summary_has_the_requested_period_and_the_one_taken() {
    for boot in [&EVERY_ON_INTEL, &EVERY_ON_AMD] {
        let boot = boot.get();
        let report = Report::of(boot).first.expect("tally opens a session");
        let count = report.events[0].truth.expect("the model counts it");
        let each = count / boot.transcript.samples.len() as u64;
        let line = format!("requested: one per 1 events taken: one per {each}\n");
        assert!(boot.transcript.text().replace(',', "").contains(&line), "no '{line}'");
    }
}

/// Events in two groups or more, on both vendors.
const MULTIPLEXED: &str = "branches,branch-misses,cache-references,cache-misses,L1-dcache-loads,\
                           L1-dcache-load-misses,dTLB-loads,dTLB-load-misses";
/// Accesses to MSRs that an overflow interrupt is far below, as it reads and writes the counters of
/// one group.
const MOST_ACCESSES: f64 = 40.0;

/// An overflow of a counter that was preloaded for a sample takes it, also where the event shares
/// its counter: the share of its group changes while the group is counted, and with it the scale of
/// the count.
#[test]
fn an_overflow_for_a_sample_of_a_multiplexed_event_takes_it() {
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let job = format!("tally record --budget 100 -e {MULTIPLEXED} -c 10000 rounds 1 60000");
        let boot = boot(&Request { pmu, ..Request::new(format!("wire trace -- {job}")) });
        assert_success(&boot);
        let report = Report::of(&boot).first.expect("tally opens a session");
        let (switches, samples) = (report.pmis.unwrap(), boot.transcript.samples.len());
        assert!(samples > 100, "{samples} samples, {switches} switches");
        let accesses = report.msr_accesses_per_switch.unwrap() * switches as f64;
        let most = MOST_ACCESSES * (switches as f64 + samples as f64);
        assert!(accesses < most, "{accesses} for {samples} samples, {switches} switches");
    }
}

/// While another session of the program has the counters no interrupt takes a sample.
#[test]
fn samples_are_of_the_sessions_own_turns() {
    let lists = "instructions,branches,L1-dcache-loads,dTLB-loads instructions,branches";
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let job = format!("tally record --budget 100 -e cycles -c {PERIOD} beside {lists}");
        let boot = boot(&Request { pmu, ..Request::new(format!("wire trace -- {job}")) });
        assert_success(&boot);
        let samples = &boot.transcript.samples;
        let unknown = samples.iter().filter(|sample| sample.address == 0).count();
        assert!(
            samples.len() > 100 && unknown * 20 < samples.len(),
            "{unknown}, {}",
            samples.len()
        );
    }
}
