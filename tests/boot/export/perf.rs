//! `perf.data`, opened by perf itself.

use std::{collections::BTreeMap, process::Command, sync::OnceLock};

use xtask::{project::Project, setup};

use super::{assert_near, export, ns, rounds, trace};

/// Output of perf on the exported file, with the program's symbols or without.
fn perf(has_symbols: bool, words: &[&str]) -> String {
    static LINUX: OnceLock<setup::Linux> = OnceLock::new();
    let (boot, _, trace) = trace();
    let (data, file) = (boot.folder.file(&format!("perf-{has_symbols}.data")), rounds());
    if !data.exists() {
        let mut options = vec!["--to", "perf", "--out", data.to_str().unwrap()];
        if has_symbols {
            options.extend(["--symbols", file.to_str().unwrap()]);
        }
        let output = export(trace, &options);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
    let linux = LINUX.get_or_init(|| setup::linux(&Project::here()).unwrap());
    let mut perf: Command = linux.perf_on_host();
    // No user settings and no user cache.
    let home = boot.folder.file("home");
    perf.env("HOME", home).args(words).arg("-i").arg(data);
    let output = perf.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn perf_script_has_every_sample() {
    let (boot, run, _) = trace();
    for has_symbols in [true, false] {
        let text =
            perf(has_symbols, &["script", "--ns", "-F", "comm,tid,cpu,time,event,period,ip"]);
        let samples = &boot.transcript.samples;
        assert!(samples.len() > 50 && text.lines().count() == samples.len(), "{text}");
        let mut last = 0;
        for (line, sample) in text.lines().zip(samples) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [comm, tid, cpu, time, period, event, address] = words[..] else {
                panic!("{line}")
            };
            let session = run.sessions.iter().find(|of| of.session == sample.session).unwrap();
            assert_eq!((comm, event), ("rounds", "branches:"), "{line}");
            assert_eq!(tid, session.program.to_string(), "{line}");
            assert_eq!(cpu, format!("[{:03}]", sample.cpu), "{line}");
            assert_eq!(period, (sample.count - last).to_string(), "{line}");
            assert_eq!(address, format!("{:x}", sample.address), "{line}");
            let seconds: f64 = time.trim_end_matches(':').parse().unwrap();
            assert_near(seconds * 1e9, ns(boot, &run, sample.tsc), 1.0);
            last = sample.count;
        }
    }
}

#[test]
fn perf_report_has_every_event_by_function() {
    let (boot, _, _) = trace();
    let text = perf(true, &["report", "--stdio", "-q", "-t", "|", "-F", "period,sample,sym"]);
    let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let symbols =
        xtask::symbols::Symbols::loaded(&rounds(), &std::fs::read(rounds()).unwrap(), 0).unwrap();
    let mut last = 0;
    for sample in &boot.transcript.samples {
        // perf names the outer function, into which others were inlined.
        let place = symbols.places(sample.address).pop().filter(|_| sample.address != 0);
        // The names end where perf demangles otherwise.
        let name = place.map_or("0".into(), |place| beginning(&place.function));
        let (events, samples) = expected.entry(name).or_default();
        *events += sample.count - last;
        *samples += 1;
        last = sample.count;
    }
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let [period, samples, name] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let name = name.trim().trim_start_matches("[.] ");
        let name = if name.starts_with("0x") || name.starts_with("000") {
            "0".into()
        } else {
            beginning(name)
        };
        let (all_events, all_samples) = found.entry(name).or_default();
        *all_events += period.trim().parse::<u64>().unwrap();
        *all_samples += samples.trim().parse::<u64>().unwrap();
    }
    assert!(expected.len() > 2, "{expected:?}");
    assert_eq!(found, expected, "{text}");
}

/// Characters of a name that are common to all methods of demangling.
fn beginning(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn perf_knows_the_machine_and_the_program() {
    let (_, run, _) = trace();
    let header = perf(true, &["report", "--stdio", "--header-only"]);
    let processor = run.processor.as_ref().unwrap();
    let cpuid = format!("{},{},{},0", processor.vendor, processor.family, processor.model);
    for line in [
        "# arch : x86_64".to_owned(),
        "# nrcpus online : 1".to_owned(),
        format!("# cpuid : {cpuid}"),
        format!("# cpudesc : {}, {}", processor.catalogue, processor.pmu),
        format!("# cmdline : {}", run.command_line),
        // 00C4H, unit mask 0: branch instructions retired.
        "# event : name = branches, , id = { 1 }, type = 4 (cpu), size = 112, config = 0xc4".into(),
    ] {
        assert!(header.contains(&line), "no {line} in {header}");
    }
    let listed = perf(true, &["buildid-list"]);
    let (id, path) = listed.trim().split_once(' ').unwrap();
    assert!(id.len() == 40 && path.ends_with("/rounds"), "{listed}");
}

/// perf disassembles by objdump, which exists wherever programs can be linked.
#[test]
fn perf_annotate_finds_the_instructions() {
    let symbols = ["annotate", "--stdio", "-q", "miniz_oxide::deflate::core::compress_inner"];
    let text = perf(true, &symbols);
    let shares = text.lines().filter_map(|line| line.split_once(':')?.0.trim().parse::<f64>().ok());
    let total: f64 = shares.sum();
    assert!((90.0..110.0).contains(&total), "{total} % in {text}");
}
