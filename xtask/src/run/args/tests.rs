//! Tests of what runs count by default.

use tally_abi::events;

use super::*;

#[test]
fn a_program_of_the_user_s_is_counted_as_the_default_program() {
    let of = |words: &str| RunArgs::of(&format!("cargo xtask run{words}")).unwrap();
    let default = of("").sampled_job().events;
    for words in [" -- prog", " prog --events cycles", " --slice 9000 prog", " -q --json prog"] {
        let (args, job) = (of(words), of(words).sampled_job());
        assert_eq!(
            (job.events, job.default, args.stack().is_some()),
            (None, default.clone(), true)
        );
        let line = args.request().unwrap().command_line;
        assert!(line.contains(&format!(" default={}", default.as_deref().unwrap())), "{line}");
    }
    for words in
        [" deflate", " stat prog", " --events cycles prog", " -q prog", " --breakdown prog"]
    {
        let line = of(words).request().unwrap().command_line;
        assert!(!line.contains(" default="), "{words}: {line}");
    }
}

#[test]
fn a_default_run_has_the_first_level_of_where_its_cycles_go() {
    let of = |words: &str| RunArgs::of(&format!("cargo xtask run{words}")).unwrap();
    for words in ["", " --pmu amd", " --slice 20000 --seed 3", " --json", " --trace t"] {
        let args = of(words);
        let stack = args.stack().expect(words);
        let events = args.sampled_job().events.unwrap();
        assert!(events.starts_with(&stack.events().join(",")), "{words}: {events}");
        let own = events::default_list(args.pmu.signature());
        let has = |event| events.split(',').any(|other| other == event);
        assert!(events::words(own).all(has), "{words}: {events}");
    }
    for words in [
        " --pmu zen3",
        " --events cycles",
        " --program rounds",
        " --repeat 2",
        " --refine",
        " --unobserved",
        " --check",
        " --accel kvm",
        " -- stat deflate",
    ] {
        let args = of(words);
        assert!(args.stack().is_none(), "{words}");
        assert_eq!(args.sampled_job().events, args.work.job.events, "{words}");
    }
}

#[test]
fn an_interval_of_phases_below_a_round_of_slices_is_refused_before_the_boot() {
    let check = |words: &str| {
        let args = RunArgs::of(&format!("cargo xtask run{words} prog")).unwrap();
        args.check_interval(args.plan().unwrap().as_ref()).map_err(|why| why.message)
    };
    let said = check(" --phases=10").unwrap_err();
    assert!(said.contains("of 10 instructions is shorter than a round of "), "{said}");
    let least = said.split_once(": use ").unwrap().1.split(' ').next().unwrap();
    let least: u64 = least.parse().unwrap();
    assert!(check(&format!(" --phases={}", least - 1)).is_err());
    for words in [&*format!(" --phases={least}"), " --phases", ""] {
        assert_eq!(check(words), Ok(()), "{words}");
    }
}
