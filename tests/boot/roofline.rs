//! `run --roofline`: the machine's roofs beside what its processor's manual promises, and a program
//! of known arithmetic.

use std::fs;

use tally_abi::ExitStatus;

use crate::command::{guest, run, text};

/// The first number of the line that contains `name`.
fn number(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.contains(name));
    let line = line.unwrap_or_else(|| panic!("no line with {name}: {text}"));
    let mut words = line.split_whitespace().filter_map(|word| word.parse().ok());
    words.next().unwrap_or_else(|| panic!("no number: {line}"))
}

/// Intel, *Optimization Reference Manual*, tables of Ice Lake's ports: two units of FMA with 256
/// bits, and two loads of 32 bytes a cycle; AMD's Zen 4: two such units, three loads of 32 bytes.
#[test]
fn the_machine_s_roofs_are_those_of_its_processor() {
    for (pmu, loads) in [("intel", 64.0), ("amd", 96.0)] {
        let output = run(&["-q", "--pmu", pmu, "--vpmu", "pipeline=ooo", "--", "roofs"]);
        let output = text(&output.stdout);
        for (name, roof) in [("flops 256", 16.0), ("bytes L1", loads)] {
            let words: Vec<&str> = output.lines().filter_map(|it| it.strip_prefix(name)).collect();
            let value: f64 = words[0].trim().parse().unwrap();
            assert!(value <= roof && value > 0.97 * roof, "{pmu}, {name}: {output}");
        }
        let of = |level: &str| number(&output.replace("flops ", "").replace("bytes ", ""), level);
        assert!(of("memory") < of("L3") && of("L3") < of("L1"), "{output}");
    }
}

/// Checks the rate and the picture of a program of known arithmetic.
fn assert_rate(pmu: &str, cycles: &str) {
    let name = format!("tally-roofline-{pmu}-{}.svg", std::process::id());
    let path = std::env::temp_dir().join(name);
    let flops = guest("flops");
    let shown = path.to_str().unwrap();
    let output =
        run(&["--pmu", pmu, "--roofline", shown, "--file", &flops, "--", "flops", "3000000"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    // 11 operations in a round. The bytes come from start-up alone.
    let line = said.lines().find(|line| line.contains("flops a byte from memory")).expect(&said);
    let rate = line.split(", ").nth(1).unwrap().split(' ').next().unwrap();
    let cycles = said.lines().find_map(|line| line.strip_prefix(cycles));
    let cycles = cycles.unwrap().split_whitespace().next().unwrap().replace(',', "");
    let expected = 11.0 * 3e6 / cycles.parse::<f64>().unwrap();
    let rate: f64 = rate.parse().unwrap();
    assert!((rate / expected - 1.0).abs() < 0.1, "{rate}, {expected}: {said}");
    assert!(line.contains("% of the roof, vectors of 256 bits"), "{line}");
    let picture = fs::read_to_string(&path).unwrap();
    assert!(picture.contains("Roofs of the machine, and flops"), "{picture}");
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_program_of_known_arithmetic_has_its_rate_and_a_picture() {
    assert_rate("intel", "CPU_CLK_UNHALTED.THREAD");
}

#[test]
fn a_program_of_known_arithmetic_has_its_rate_and_a_picture_on_zen_4() {
    assert_rate("amd", "CYCLES_NOT_IN_HALT");
}

#[test]
fn a_program_without_arithmetic_has_no_roofline() {
    let path = std::env::temp_dir().join(format!("tally-no-roofline-{}.svg", std::process::id()));
    let jumps = guest("jumps");
    let shown = path.to_str().unwrap();
    let output = run(&["--roofline", shown, "--file", &jumps, "--", "jumps", "5"]);
    let said = text(&output.stderr);
    assert!(said.lines().last().unwrap().contains("no floating-point operation"), "{said}");
    assert!(!said.contains("NaN") && !path.exists(), "{said}");
    assert_eq!(output.status.code(), Some(u8::from(ExitStatus::TooShort).into()));
}

#[test]
fn what_has_no_roofline_is_refused_before_the_boot() {
    for (words, why, status) in [
        (["--pmu", "zen3", "--roofline", "x.svg"], "no formulas", ExitStatus::NoBreakdown),
        (["--pmu", "intel", "--roofline", "x.png"], "ends in .svg", ExitStatus::Usage),
    ] {
        let output = run(&words);
        let said = text(&output.stderr);
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
        assert_eq!(output.status.code(), Some(u8::from(status).into()));
    }
}
