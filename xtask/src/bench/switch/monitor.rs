//! A client of QEMU's monitor, which logs the address of every instruction that the guest executes.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// The monitor's prompt.
const PROMPT: &[u8] = b"(qemu) ";
/// Time limit of a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// A connection to the monitor.
#[derive(Debug)]
pub(super) struct Monitor(UnixStream);

impl Monitor {
    /// Connects to the monitor's socket.
    pub(super) fn connect(socket: &Path) -> io::Result<Monitor> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(COMMAND_LIMIT))?;
        let mut monitor = Monitor(stream);
        monitor.answer()?;
        Ok(monitor)
    }

    /// Gives a command and waits for the answer.
    fn command(&mut self, command: &str) -> io::Result<String> {
        writeln!(self.0, "{command}")?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<String> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(PROMPT) {
            let mut more = [0; 4096];
            match self.0.read(&mut more)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => bytes.extend_from_slice(&more[..count]),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The handler's address in the first entry of the interrupt descriptor table.
    pub(super) fn first_entry(&mut self) -> io::Result<u64> {
        let registers = self.command("info registers")?;
        let table = registers.split("IDT=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let table = table.and_then(|word| u64::from_str_radix(word, 16).ok()).ok_or_else(odd)?;
        let dump = self.command(&format!("x/2gx {table:#x}"))?;
        let words = dump.split_whitespace().filter_map(|word| word.strip_prefix("0x"));
        let words: Vec<u64> = words.filter_map(|word| u64::from_str_radix(word, 16).ok()).collect();
        // The command is echoed, so the gate's two words are the last.
        let [.., low, high] = words[..] else { return Err(odd()) };
        Ok(low & 0xffff | low >> 48 << 16 | high << 32)
    }

    /// Resumes the stopped guest with one instruction per translation block until QEMU has written
    /// `bytes` bytes to `log`; then ends QEMU.
    pub(super) fn record(&mut self, log: &Path, bytes: u64) -> io::Result<()> {
        for command in [
            "one-insn-per-tb on",
            &format!("logfile {}", log.display()),
            "log exec,nochain",
            "cont",
        ] {
            self.command(command)?;
        }
        let start = Instant::now();
        while fs::metadata(log).map_or(0, |log| log.len()) < bytes {
            if start.elapsed() > COMMAND_LIMIT {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.stop()?;
        writeln!(self.0, "quit")
    }

    /// Stops the guest.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        self.command("stop").map(drop)
    }
}

fn odd() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "unexpected output of QEMU's monitor")
}

/// The addresses of the instructions in QEMU's log, in order: the second field of
/// `Trace 0: 0x… [cs_base/pc/flags/cflags]`.
pub(super) fn addresses(log: &Path) -> io::Result<Vec<u64>> {
    let text = fs::read_to_string(log)?;
    let address = |line: &str| {
        let field = line.strip_prefix("Trace ")?.split('/').nth(1)?;
        u64::from_str_radix(field, 16).ok()
    };
    Ok(text.lines().filter_map(address).collect())
}

/// An unused path for a socket, short enough for one.
pub(super) fn socket() -> PathBuf {
    std::env::temp_dir().join(format!("tally-monitor-{}", std::process::id()))
}
