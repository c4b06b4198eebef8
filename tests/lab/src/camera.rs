//! Pictures of a machine's screen, taken by QEMU until the codes on them are complete.

use std::{
    collections::HashSet,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    import::Photographs,
    machine::{self, Artefacts, Boot, Folder, Observer, ProgramOutput, Request, Transcript},
    project,
};

/// Time between two pictures of a screen.
const INTERVAL: Duration = Duration::from_millis(100);

/// Result of the pictures of a screen.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The pictures with codes, in the machine's folder.
    pub pictures: Vec<PathBuf>,
    /// The messages in the codes.
    pub messages: Vec<u8>,
}

/// Boots a machine with a screen, and ends QEMU when the codes on the screen are complete. Returns
/// the run, and the result of the pictures if the codes were complete.
///
/// # Errors
/// As [`machine::boot`]; also if QEMU takes no picture, or codes are of several runs.
pub fn photographed(
    artefacts: &Artefacts,
    request: &Request,
    name: &str,
) -> Result<(Boot, Option<Shown>)> {
    let socket = std::env::temp_dir().join(format!("tally-{name}-{}", std::process::id()));
    let mut camera = Camera::new(socket);
    let mut request = request.clone();
    let socket = format!("unix:{},server=on,wait=off", camera.socket.display());
    request.qemu_args.extend(["-device", "VGA", "-qmp", &socket].map(str::to_owned));
    let boot = machine::observe(artefacts, &request, &mut camera)?;
    let (pictures, messages) = (std::mem::take(&mut camera.pictures), camera.messages.take());
    Ok((boot, messages.map(|messages| Shown { pictures, messages })))
}

/// QEMU's monitor (QEMU documentation, "QMP").
struct Monitor(BufReader<UnixStream>);

impl Monitor {
    fn connect(socket: &Path) -> io::Result<Monitor> {
        let mut monitor = Monitor(BufReader::new(UnixStream::connect(socket)?));
        monitor.0.read_line(&mut String::new())?;
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    fn execute(&mut self, command: &str, arguments: Value) -> io::Result<()> {
        let call = json!({"execute": command, "arguments": arguments});
        writeln!(self.0.get_mut(), "{call}")?;
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 || line.contains("\"error\"") {
                return Err(io::Error::other(format!("QEMU, {command}: {line}")));
            }
            // Events can come between the call and its answer.
            if line.contains("\"return\"") {
                return Ok(());
            }
        }
    }
}

/// Takes pictures of the screen until the codes on them are complete, then makes QEMU exit by
/// itself: a QEMU that is killed leaves no truth.
struct Camera {
    socket: PathBuf,
    monitor: Option<Monitor>,
    taken: Instant,
    /// Pictures with codes, by hash.
    seen: HashSet<u64>,
    /// The hash of the last picture.
    last: u64,
    pictures: Vec<PathBuf>,
    /// The codes of the first `read` pictures.
    photographs: Photographs,
    read: usize,
    messages: Option<Vec<u8>>,
}

impl Camera {
    fn new(socket: PathBuf) -> Camera {
        let (seen, taken) = (HashSet::new(), Instant::now());
        let (pictures, photographs, messages) = (Vec::new(), Photographs::default(), None);
        Camera {
            socket,
            monitor: None,
            taken,
            seen,
            last: 0,
            pictures,
            photographs,
            read: 0,
            messages,
        }
    }

    /// Takes a picture. Returns whether the codes have begun again.
    fn take(&mut self, picture: PathBuf) -> Result<bool> {
        let failed = |error: io::Error| Failure::io("take the picture", &picture, &error);
        let monitor = match &mut self.monitor {
            Some(monitor) => monitor,
            none => match Monitor::connect(&self.socket) {
                Ok(monitor) => none.insert(monitor),
                // The socket's file exists before QEMU listens on it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(false),
                Err(error) => return Err(failed(error)),
            },
        };
        monitor.execute("screendump", json!({"filename": picture})).map_err(failed)?;
        let bytes = project::read(&picture)?;
        // Codes are on white.
        let white = bytes.iter().filter(|byte| **byte == u8::MAX).count();
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let before = std::mem::replace(&mut self.last, hasher.finish());
        if 2 * white <= bytes.len() || before == self.last {
            return Ok(false);
        }
        if self.seen.insert(self.last) {
            self.pictures.push(picture);
            return Ok(false);
        }
        Ok(true)
    }

    fn end_machine(&mut self) -> Result<()> {
        let Some(monitor) = &mut self.monitor else { return Ok(()) };
        let failed = |error: io::Error| Failure::io("end QEMU by", &self.socket, &error);
        monitor.execute("quit", json!({})).map_err(failed)
    }

    /// Reads the codes, if there are pictures that were not read. Returns whether they are
    /// complete.
    fn read(&mut self) -> Result<bool> {
        if self.read == self.pictures.len() {
            return Ok(false);
        }
        for picture in &self.pictures[self.read..] {
            self.photographs.add(picture)?;
        }
        self.read = self.pictures.len();
        match self.photographs.messages() {
            Ok(messages) => self.messages = Some(messages),
            // A page may be visible in part, or have been missed.
            Err(why) if matches!(why.status, ExitStatus::CodesMissing | ExitStatus::NoCodes) => {}
            Err(why) => return Err(why),
        }
        Ok(self.messages.is_some())
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

impl Observer for Camera {
    fn output(&mut self, _: &ProgramOutput) {}

    fn poll(&mut self, _: &Transcript, folder: &Folder) -> Result<bool> {
        let is_early = self.taken.elapsed() < INTERVAL || !self.socket.exists();
        if is_early || self.messages.is_some() {
            return Ok(true);
        }
        let picture = folder.file(&format!("screen-{}.ppm", self.pictures.len()));
        if self.take(picture)? && self.read()? {
            self.end_machine()?;
        }
        self.taken = Instant::now();
        Ok(true)
    }
}
