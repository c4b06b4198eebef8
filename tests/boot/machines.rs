//! Machines other than the default: timers, firmware tables, many CPUs.

use tally_abi::ExitStatus;
use xtask::{
    machine::{Boot, Request, Tables},
    report::Report,
};

use crate::{
    assert_exact_counts_are_true, assert_success, boot, outcomes::assert_refused, session_of,
};

const LINE: &str = "wire -- events=instructions,branches status 0";

/// Machine without these devices, by QEMU's names.
fn without(devices: &str) -> Boot {
    let off: Vec<String> = devices.split(' ').map(|name| format!("{name}=off")).collect();
    let qemu_args = vec!["-machine".to_owned(), off.join(",")];
    boot(&Request { qemu_args, ..Request::new(LINE) })
}

/// With one CPU the time-stamp counter runs at 1 GHz.
fn assert_right_clock(boot: &Boot) {
    assert_success(boot);
    let hz = boot.transcript.booted.as_ref().expect("it boots").tsc_hz;
    assert!(hz.abs_diff(1_000_000_000) < 1_000_000, "{hz} Hz");
}

#[test]
fn the_timer_of_high_precision_gives_the_time_where_there_is_no_interval_timer() {
    assert_right_clock(&without("pit"));
}

/// The speed is that of the shortest of three waits of 10 ms.
#[test]
fn the_shortest_wait_gives_the_counters_speed() {
    for devices in ["hpet", "pit", "pit hpet"] {
        let qemu_args =
            devices.split(' ').flat_map(|name| ["-machine".into(), format!("{name}=off")]);
        let qemu_args = qemu_args.collect();
        let boot =
            boot(&Request { cpus: 2, qemu_args, ..Request::new(format!("log=debug {LINE}")) });
        assert_success(&boot);
        let log = std::fs::read_to_string(boot.folder.log()).unwrap();
        let ticks = |line: &str| line.split_once("clock: ")?.1.split(' ').next()?.parse().ok();
        let waits: Vec<u64> = log.lines().filter_map(ticks).collect();
        assert_eq!(waits.len(), 3, "{log}");
        let hz = boot.transcript.booted.as_ref().expect("it boots").tsc_hz;
        assert_eq!(Some(hz), waits.iter().min().map(|ticks| 100 * ticks), "{waits:?}");
    }
}

#[test]
fn acpis_timer_gives_the_time_where_there_is_no_other() {
    assert_right_clock(&without("pit hpet"));
}

#[test]
fn a_processor_that_tells_its_counters_speed_gives_the_time_where_there_is_no_clock() {
    let qemu_args = ["-machine", "pit=off,acpi=off"].map(str::to_owned).to_vec();
    let vpmu = vec!["tsc=1000000000".to_owned()];
    let boot = boot(&Request { qemu_args, vpmu, ..Request::new(LINE) });
    assert_right_clock(&boot);
}

/// A reported speed is exact, and a wait for another clock is not.
#[test]
fn the_counters_speed_is_the_one_that_the_processor_tells() {
    let vpmu = vec!["tsc=1234567890".to_owned()];
    let boot = boot(&Request { vpmu, ..Request::new(LINE) });
    assert_success(&boot);
    assert_eq!(boot.transcript.booted.map(|booted| booted.tsc_hz), Some(1_234_567_890));
}

#[test]
fn a_machine_without_a_clock_of_known_speed_is_refused_in_words() {
    let boot = without("pit acpi");
    assert_refused(&boot, ExitStatus::MachineFailed, "neither a PIT, an HPET, an ACPI PM timer");
}

/// The library that reads the tables would loop, or read past the end of memory.
#[test]
fn firmware_that_lies_in_its_tables_lengths_leaves_one_cpu() {
    for tables in Tables::ALL {
        let tables = Some(tables);
        let boot = boot(&Request { cpus: 2, tables, lacks: Some("pit"), ..Request::new(LINE) });
        let log = boot.folder.log_tail(40);
        if tables == Some(Tables::Right) {
            assert_success(&boot);
            assert_eq!(boot.transcript.booted.as_ref().map(|booted| booted.cpus), Some(2), "{log}");
        } else {
            // Without the tables there is no timer.
            assert_refused(&boot, ExitStatus::MachineFailed, "no timer of a known frequency");
            assert!(log.contains("ACPI's tables are not used: "), "{tables:?}: {log}");
        }
        let boot = crate::boot(&Request { cpus: 2, tables, ..Request::new(LINE) });
        assert_success(&boot);
        assert_exact_counts_are_true(&Report::of(&boot));
    }
}

#[test]
#[ignore = "long"]
fn sixty_four_cpus_start() {
    let programs = ["status 0"; 64].join(" -- ");
    let boot = boot(&Request { cpus: 64, ..Request::new(format!("wire -- {programs}")) });
    assert_success(&boot);
    assert_eq!(boot.transcript.booted.as_ref().map(|booted| booted.cpus), Some(64));
    assert_eq!(boot.transcript.exits.len(), 64);
}

/// On servers the management controller passes on the port of firmware's console, mostly COM2.
#[test]
fn the_log_is_on_the_serial_port_of_the_firmwares_console_too() {
    let path = std::env::temp_dir().join(format!("tally-console-{}", std::process::id()));
    let device = ["-chardev", &format!("file,id=console,path={}", path.display())];
    let port = ["-device", "isa-serial,chardev=console,iobase=0x3e8,irq=5"];
    let qemu_args = [device, port].as_flattened().iter().map(ToString::to_string).collect();
    let tables = Some(Tables::Console(0x3e8));
    let boot = boot(&Request { cpus: 2, qemu_args, tables, ..Request::new(LINE) });
    assert_success(&boot);
    let written = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(written.contains("firmware's console too, I/O port 0x3e8"), "{written}");
    // All that follows is on both.
    let log = std::fs::read_to_string(boot.folder.log()).unwrap();
    let from = |text: &str| text.split_once("firmware's console").map(|(_, rest)| rest.to_owned());
    assert_eq!(from(&written), from(&log));
}

/// Core cycles of the program's turns, in every ring, and cycles of the time-stamp counter's rate,
/// which is 1 GHz with one CPU.
#[test]
fn the_mean_frequency_of_the_cores_is_told() {
    let names = ["CPU_CLK_UNHALTED.THREAD", "CPU_CLK_UNHALTED.REF_TSC"];
    let session = session_of(&format!(
        "cargo xtask run --events {},{} -- deflate --level 1",
        names[0], names[1]
    ));
    let count = |name| session.events.iter().find(|it| it.name == name).and_then(|it| it.estimate);
    let [core, reference] = names.map(|name| count(name).expect("it is counted") as f64);
    let hz = session.mean_hz.expect("the processor counts its cycles") as f64;
    assert!((hz / 1e9 - core / reference).abs() < 1e-3, "{hz} Hz, {core} of {reference} cycles");
    let on_amd = session_of("cargo xtask run --pmu amd --events cycles -- deflate --level 1");
    assert!(on_amd.mean_hz > Some(0), "{on_amd:?}");
}
