//! The results of a machine on its screen, as photographs give them back.

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tally_abi::ExitStatus;
use xtask::{
    Result, import,
    machine::{self, Boot, Folder, Observer, ProgramOutput, Request, Transcript},
    report::Report,
};

use crate::{artefacts, assert_success, machine_permit};

/// Time between two pictures of a screen.
const INTERVAL: Duration = Duration::from_millis(100);

/// QEMU's monitor (QEMU documentation, "QMP").
struct Monitor(BufReader<UnixStream>);

impl Monitor {
    fn connect(socket: &Path) -> Monitor {
        let stream = UnixStream::connect(socket).expect("QEMU listens before the machine starts");
        let mut monitor = Monitor(BufReader::new(stream));
        monitor.0.read_line(&mut String::new()).expect("QEMU greets");
        monitor.execute("qmp_capabilities", serde_json::json!({}));
        monitor
    }

    fn execute(&mut self, command: &str, arguments: serde_json::Value) {
        let call = serde_json::json!({"execute": command, "arguments": arguments});
        writeln!(self.0.get_mut(), "{call}").expect("QEMU reads");
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("QEMU answers");
            assert!(!line.contains("\"error\""), "{command}: {line}");
            // Between the call and its answer there may be events.
            if line.contains("\"return\"") {
                return;
            }
        }
    }
}

/// Takes pictures of the screen until the codes on them are complete, then stops the machine.
struct Camera {
    socket: PathBuf,
    monitor: Option<Monitor>,
    last: Instant,
    seen: BTreeSet<u64>,
    pictures: Vec<PathBuf>,
    messages: Vec<u8>,
}

impl Camera {
    fn new(name: &str) -> Camera {
        let socket = format!("tally-{name}-{}", std::process::id());
        Camera {
            socket: std::env::temp_dir().join(socket),
            monitor: None,
            last: Instant::now(),
            seen: BTreeSet::new(),
            pictures: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Takes a picture. Returns whether it is one of codes, on white, that was not seen before.
    fn take(&mut self, picture: &Path) -> bool {
        let monitor = self.monitor.get_or_insert_with(|| Monitor::connect(&self.socket));
        monitor.execute("screendump", serde_json::json!({"filename": picture}));
        let bytes = fs::read(picture).expect("QEMU has written the picture");
        let white = bytes.iter().filter(|byte| **byte == u8::MAX).count();
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        2 * white > bytes.len() && self.seen.insert(hasher.finish())
    }
}

impl Observer for Camera {
    fn output(&mut self, _: &ProgramOutput) {}

    fn poll(&mut self, _: &Transcript, folder: &Folder) -> Result<bool> {
        if self.last.elapsed() < INTERVAL || !self.socket.exists() {
            return Ok(true);
        }
        let picture = folder.file(&format!("screen-{}.ppm", self.pictures.len()));
        if self.take(&picture) {
            self.pictures.push(picture);
            match import::messages(&self.pictures) {
                Ok(messages) => {
                    self.messages = messages;
                    return Ok(false);
                }
                // A page may be there in part.
                Err(why)
                    if matches!(why.status, ExitStatus::CodesMissing | ExitStatus::NoCodes) => {}
                Err(why) => panic!("{why}"),
            }
        }
        self.last = Instant::now();
        Ok(true)
    }
}

/// Boots a machine with a screen. Returns it and the messages that pictures of its screen give.
pub(crate) fn photographed(name: &str, request: Request) -> (Boot, Vec<u8>) {
    let mut camera = Camera::new(name);
    let mut request = Request { from_disk: true, ..request };
    let socket = format!("unix:{},server=on,wait=off", camera.socket.display());
    request.qemu_args.extend(["-device", "VGA", "-qmp", &socket].map(str::to_owned));
    let _permit = machine_permit();
    let boot = machine::observe(&artefacts(), &request, &mut camera);
    let boot = boot.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(!camera.messages.is_empty(), "{}: {} pictures", boot.outcome, camera.pictures.len());
    (boot, camera.messages)
}

/// What photographs give.
pub(crate) fn imported(messages: &[u8]) -> Boot {
    machine::of_messages(messages, &mut |_| {}).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn a_machine_without_serial_ports_shows_its_results() {
    let request = Request { serial_ports: false, ..Request::new("") };
    let (boot, messages) = photographed("without", request);
    let imported = imported(&messages);
    assert_success(&imported);
    assert!(boot.transcript.booted.is_none() && !boot.folder.log().exists(), "there is no port");
    assert_eq!(imported.transcript.booted.as_ref().map(|booted| booted.seed), Some(1));
    let report = Report::of(&imported);
    let events: Vec<_> = report.sessions().flat_map(|session| &session.events).collect();
    assert!(events.len() > 20 && events.iter().all(|event| event.estimate.is_some()), "{report:?}");
}

#[test]
fn photographs_give_the_bytes_that_the_serial_port_gives() {
    let wire = std::env::temp_dir().join(format!("tally-wire-{}", std::process::id()));
    // The second port's file is the test's own, because a machine is stopped some seconds after
    // the last message in the usual one.
    let mut request = Request { serial_ports: false, ..Request::new("") };
    let port = format!("file:{}", wire.display());
    let line =
        "name=opt/tally/cmdline,string=wire codes=100 -- events=cycles,,instructions rounds 1 1";
    let args = ["-serial", "null", "-serial", &port, "-fw_cfg", line];
    request.qemu_args = args.map(str::to_owned).to_vec();
    let (_, messages) = photographed("beside", request);
    let sent = fs::read(&wire).unwrap();
    fs::remove_file(wire).unwrap();
    assert!(sent.ends_with(&messages), "{} and {} bytes", sent.len(), messages.len());
    let json = |messages| serde_json::to_string(&Report::of(&imported(messages))).unwrap();
    assert_eq!(json(&messages), json(&sent));
}
