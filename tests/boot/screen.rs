//! Results of a machine on its screen, read back from photographs.

use std::{fs, path::PathBuf, process::Output, time::Duration};

use tally_lab::camera::{self, Shown};
use tally_photo::shot::{Shot, photograph};
use xtask::{
    machine::{self, Boot, Request},
    report::{Kind, Report},
    trace_file::{Records, Trace},
};

use crate::{
    artefacts, assert_success, boot,
    command::{tally, text},
    machine_permit,
};

/// Boots a machine with a screen from its disk. Returns the machine, with the pictures of its
/// screen and the messages read from them.
pub(crate) fn photographed(name: &str, request: Request) -> (Boot, Shown) {
    let request = Request { from_disk: true, ..request };
    let _permit = machine_permit();
    let (boot, shown) = camera::photographed(&artefacts(), &request, name)
        .unwrap_or_else(|failure| panic!("{failure}"));
    let shown = shown.unwrap_or_else(|| panic!("{}", boot.outcome));
    (boot, shown)
}

/// Boot as imported from messages.
pub(crate) fn imported(messages: &[u8]) -> Boot {
    machine::of_messages(messages, &mut |_| {}).unwrap_or_else(|failure| panic!("{failure}"))
}

/// The whole default job by photographs; `photographs_give_the_bytes…` has a short one.
#[test]
#[ignore = "long"]
fn a_machine_without_serial_ports_shows_its_results() {
    let request = Request { serial_ports: false, ..Request::new("") };
    let (boot, shown) = photographed("without", request);
    let imported = imported(&shown.messages);
    assert_success(&imported);
    assert!(boot.transcript.booted.is_none() && !boot.folder.log().exists(), "there is no port");
    assert_eq!(imported.transcript.booted.as_ref().map(|booted| booted.seed), Some(1));
    let report = Report::of(&imported);
    let events: Vec<_> = report.sessions().flat_map(|session| &session.events).collect();
    assert!(events.len() > 20 && events.iter().all(|event| event.estimate.is_some()), "{report:?}");
    let report = Report::of(&Boot { truth: boot.truth, ..imported });
    let exact = report.sessions().flat_map(|session| &session.events);
    let exact: Vec<_> = exact.filter(|event| event.kind == Kind::Exact).collect();
    assert!(!exact.is_empty() && exact.iter().all(|event| event.estimate == event.truth));
}

/// Boots a machine with this command line behind `wire codes=30`: a page stays for 30 ms of the
/// machine's time, that is, 30 million instructions. Returns the machine, with the bytes sent by
/// its second serial port and the messages read from photographs of its screen.
fn sent_and_photographed(name: &str, line: &str) -> (Boot, Vec<u8>, Shown) {
    let wire = std::env::temp_dir().join(format!("tally-wire-{name}-{}", std::process::id()));
    // The test gives the second port a file of its own, because with the usual file a machine is
    // stopped some seconds after the last message, and reading many codes takes longer.
    let time_limit = Duration::from_secs(500);
    let mut request = Request { serial_ports: false, time_limit, ..Request::new("") };
    let port = format!("file:{}", wire.display());
    let line = line.replace(',', ",,");
    let line = format!("name=opt/tally/cmdline,string=wire codes=30 log=error {line}");
    let args = ["-serial", "null", "-serial", &port, "-fw_cfg", &line];
    request.qemu_args = args.map(str::to_owned).to_vec();
    let (boot, shown) = photographed(name, request);
    let sent = fs::read(&wire).unwrap();
    fs::remove_file(wire).unwrap();
    (boot, sent, shown)
}

#[test]
fn photographs_give_the_bytes_that_the_serial_port_gives() {
    let (_, sent, Shown { messages, .. }) =
        sent_and_photographed("beside", "-- events=cycles,instructions rounds 1 1");
    assert!(sent.ends_with(&messages), "{} and {} bytes", sent.len(), messages.len());
    let json = |messages| serde_json::to_string(&Report::of(&imported(messages))).unwrap();
    assert_eq!(json(&messages), json(&sent));
}

/// Runs `cargo xtask import` with these words. Returns its output and the file of `--trace`.
fn import_trace(words: &[&str]) -> (Output, Vec<u8>) {
    let file = std::env::temp_dir().join(format!("tally-trace-{}", std::process::id()));
    let words = [&["--trace", file.to_str().unwrap()], words].concat();
    let output = tally("import", &words);
    let trace = fs::read(&file).unwrap_or_default();
    let _ = fs::remove_file(file);
    (output, trace)
}

/// Crooked and blurred photographs and messages of a serial port give the same trace.
#[test]
#[ignore = "long"]
fn a_trace_comes_back_by_codes() {
    let line = "trace trace-events=switches -- events=r01c4,r02c4,r08c4,r10c4,r20c4 slice=20000 \
                rounds 1 3500";
    let (boot, sent, shown) = sent_and_photographed("trace", line);
    let wire = boot.folder.file("sent");
    fs::write(&wire, &sent).unwrap();
    let shot = Shot { turned: 12.0, slanted: 0.08, scale: 1.5, blur: 0.6 };
    let photograph = |(index, picture): (usize, &PathBuf)| {
        let file = boot.folder.file(&format!("shot-{index}.png"));
        let screen = image::open(picture).unwrap().to_luma8();
        photograph(&screen, shot).save(&file).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let photos: Vec<String> = shown.pictures.iter().enumerate().map(photograph).collect();
    let (output, by_codes) = import_trace(&photos.iter().map(String::as_str).collect::<Vec<_>>());
    let notes = text(&output.stderr);
    assert!(output.status.success() && notes.contains("rounds: "), "{notes}");
    assert!(!notes.contains("lost"), "{notes}");
    let (_, by_wire) = import_trace(&["--messages", wire.to_str().unwrap()]);
    assert_eq!(by_codes, by_wire);
    let (came, records) = imported(&shown.messages).transcript.records();
    assert!(came == records && came > 10, "{came} of {records}");
    assert_eq!(Records::read(Trace::open(&by_codes).unwrap()).1, None, "the trace is complete");
}

/// The run has more records than fit into the codes. Identical lines take most of the room, so that
/// there are few codes, since drawing and reading a code takes time.
#[test]
#[ignore = "long"]
fn what_the_codes_have_no_room_for_is_counted() {
    let line = "trace -- writes 1500 --- events=r01c4,r02c4,r08c4,r10c4,r20c4,r40c4 slice=2000 \
                budget=1000000 rounds 1 20000";
    let (boot, sent, shown) = sent_and_photographed("room", line);
    let file = boot.folder.file("kept");
    fs::write(&file, &shown.messages).unwrap();
    let (output, trace) = import_trace(&["--messages", file.to_str().unwrap()]);
    let notes = text(&output.stderr);
    let by_codes = imported(&shown.messages);
    let (came, records) = by_codes.transcript.records();
    assert!(came < records, "{came} of {records}; {} bytes", sent.len());
    assert!(
        notes.contains(&format!("{} of {records} records are lost", records - came)),
        "{notes}"
    );
    assert!(notes.contains("messages had no room"), "{notes}");
    assert_eq!(Trace::open(&trace).map(|_| ()), Ok(()));
    // The reports are equal: only the trace is incomplete.
    let json = |boot: &Boot| serde_json::to_string(&Report::of(boot)).unwrap();
    assert_eq!(json(&by_codes), json(&imported(&sent)));
}

/// Each page of the framebuffer has the type of memory for it.
#[test]
fn writes_to_the_screen_combine() {
    let line = "name=opt/tally/cmdline,string=wire log=debug -- status 0";
    let qemu_args = ["-device", "VGA", "-fw_cfg", line].map(str::to_owned).to_vec();
    let request =
        Request { cpus: 2, from_disk: true, qemu_args, ..Request::new("wire -- status 0") };
    let boot = boot(&request);
    assert_success(&boot);
    let log = fs::read_to_string(boot.folder.log()).unwrap();
    let pages = log.split_once("screen: writes to ").and_then(|(_, rest)| rest.split(' ').next());
    let pages: u64 = pages.and_then(|pages| pages.parse().ok()).unwrap_or_else(|| panic!("{log}"));
    // A mode of the firmware has at least 640 times 480 pixels.
    assert!(pages * 4096 >= 4 * 640 * 480, "{pages}");
}
