//! What helps to find a defect: gdb, QEMU's own options, and what a failing boot test leaves behind.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    panic,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use object::{Object, ObjectSymbol};
use tally_abi::boot::KERNEL_BASE;
use xtask::{
    machine::{self, Boot, Outcome, Request},
    process,
};

use crate::{artefacts, assert_success, boot, machine_permit, run};

/// How long the stub may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Boots a machine that waits for gdb, and calls `debug` with the stub's socket meanwhile.
fn debugged<T: Send>(debug: impl FnOnce(&Path) -> T + Send) -> (Boot, T) {
    let socket = machine::gdb_socket();
    let request = Request { gdb: Some(socket.clone()), ..Request::new("wire -- status 42") };
    // The debugger's patience begins when the machine may start.
    let _permit = machine_permit();
    thread::scope(|scope| {
        let debugger = scope.spawn(|| {
            let start = Instant::now();
            while !socket.exists() {
                assert!(start.elapsed() < PATIENCE, "QEMU listens");
                thread::sleep(Duration::from_millis(10));
            }
            debug(&socket)
        });
        let boot = machine::boot(&artefacts(), &request, &mut |_| {});
        let boot = boot.unwrap_or_else(|failure| panic!("{failure}"));
        (boot, debugger.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
    })
}

/// gdb's remote protocol: `$PAYLOAD#SUM`, each acknowledged by `+`.
struct Stub(UnixStream);

impl Stub {
    fn connect(socket: &Path) -> Stub {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Stub(stream)
    }

    fn send(&mut self, payload: &str) {
        let sum = payload.bytes().fold(0_u8, u8::wrapping_add);
        write!(self.0, "${payload}#{sum:02x}").unwrap();
    }

    fn answer(&mut self) -> String {
        let mut packet = Vec::new();
        while packet.iter().rev().nth(2) != Some(&b'#') {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            // What is before the packet acknowledges ours.
            if byte != *b"+" || !packet.is_empty() {
                packet.push(byte[0]);
            }
        }
        self.0.write_all(b"+").unwrap();
        String::from_utf8_lossy(&packet[1..packet.len() - 3]).into_owned()
    }

    fn ask(&mut self, payload: &str) -> String {
        self.send(payload);
        self.answer()
    }
}

/// Where the kernel is entered.
fn entry(symbols: &Path) -> u64 {
    let bytes = fs::read(symbols).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let start = file.symbols().find(|symbol| symbol.name() == Ok("_start"));
    KERNEL_BASE + start.expect("the entry has a name").address()
}

#[test]
fn the_gdb_stub_stops_the_machine_at_the_kernel_s_entry() {
    let entry = entry(&artefacts().symbols);
    let (boot, rip) = debugged(|socket| {
        let mut stub = Stub::connect(socket);
        assert_eq!(stub.ask(&format!("Z1,{entry:x},1")), "OK");
        let stopped = stub.ask("c");
        assert!(stopped.starts_with("T05"), "{stopped}");
        // Register 16 is RIP, in the target's order of bytes.
        let rip = u64::from_str_radix(&stub.ask("p10"), 16).unwrap().swap_bytes();
        assert_eq!(stub.ask(&format!("z1,{entry:x},1")), "OK");
        assert_eq!(stub.ask("D"), "OK");
        rip
    });
    assert_eq!(rip, entry);
    // What was stopped goes on as if nothing had been.
    assert_eq!(boot.outcome, Outcome::Done(42));
}

/// gdb on the command that `run --gdb` prints, with `steps` after it; none where no gdb is installed.
fn gdb(socket: &Path, steps: &[&str]) -> Option<Output> {
    let mut gdb = machine::gdb(&artefacts().symbols, socket);
    gdb.args(["-batch", "-nx"]);
    steps.iter().for_each(|step| _ = gdb.args(["-ex", step]));
    match process::output(&mut gdb) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        output => Some(output.unwrap()),
    }
}

#[test]
fn gdb_knows_the_kernel_s_functions_where_they_are() {
    if process::output(Command::new("gdb").arg("--version")).is_err() {
        return;
    }
    let entry = entry(&artefacts().symbols);
    let steps = ["p/x $rip", "hbreak tally_kernel::announce", "continue", "bt", "detach"];
    let (boot, output) = debugged(|socket| gdb(socket, &steps).expect("it is installed"));
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(text[0].contains(&format!("$1 = {entry:#x}")), "{text:#?}");
    // From the entry to the breakpoint, with an argument's value.
    for part in ["#0  tally_kernel::announce (cpus=1", "tally_kernel::boot", "__impl_start"] {
        assert!(text[0].contains(part), "{part}: {text:#?}");
    }
    assert_eq!(boot.outcome, Outcome::Done(42));
}

#[test]
fn qemu_gets_further_arguments_as_they_are() {
    let log = std::env::temp_dir().join(format!("tally-qemu-{}.log", std::process::id()));
    let qemu_args = ["-d", "cpu_reset", "-D"].map(str::to_owned).to_vec();
    let qemu_args = [qemu_args, vec![log.display().to_string()]].concat();
    assert_success(&boot(&Request { qemu_args, ..Request::new("wire -- status 0") }));
    let text = fs::read_to_string(&log).expect("QEMU writes it");
    fs::remove_file(&log).unwrap();
    assert!(text.contains("CPU Reset (CPU 0)"), "{text}");
}

/// A test fails here on purpose.
#[test]
fn a_failing_test_keeps_what_its_machine_left() {
    let mut folder = PathBuf::new();
    let failed = panic::catch_unwind(panic::AssertUnwindSafe(|| {
        let boot = run("", "status 42");
        folder = boot.folder.file("");
        assert_success(&boot);
    }));
    assert!(failed.is_err());
    let read =
        |name: &str| fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(String::from_utf8_lossy(&read("log.txt")).contains("ended with status 42"));
    assert!(!read("wire.bin").is_empty() && read("truth.json").starts_with(b"{"));
    fs::remove_dir_all(&folder).unwrap();
    // One that does not fail leaves nothing.
    let boot = run("", "status 0");
    let folder = boot.folder.file("");
    assert_success(&boot);
    drop(boot);
    assert!(!folder.exists());
}
