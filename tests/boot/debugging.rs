//! Aids for finding defects: gdb, QEMU's own options, the report of a kernel that stops, and the
//! files kept from a failing boot test.

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
use tally_abi::{ExitStatus, boot::KERNEL_BASE};
use xtask::{
    machine::{self, Boot, Outcome, Request},
    process,
    project::Project,
    report::Report,
};

use crate::{artefacts, assert_success, boot, machine_permit, run};

/// Longest permitted time for an answer of the stub.
const PATIENCE: Duration = Duration::from_secs(60);

/// Boots a machine that waits for gdb, and calls `debug` with the stub's socket meanwhile.
fn debugged<T: Send>(debug: impl FnOnce(&Path) -> T + Send) -> (Boot, T) {
    let socket = machine::gdb_socket();
    // A debugger that fails leaves the machine stopped.
    let gdb = Some(socket.clone());
    let request = Request { gdb, time_limit: 2 * PATIENCE, ..Request::new("wire -- status 42") };
    // The debugger's time limit begins when the machine may start.
    let _permit = machine_permit();
    thread::scope(|scope| {
        let debugger = scope.spawn(|| {
            let start = Instant::now();
            while !listens(&socket) {
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

/// Returns whether a process listens on the socket. The socket's file exists earlier, but refuses
/// connections until then.
fn listens(socket: &Path) -> bool {
    /// `__SO_ACCEPTCON` (Linux, net.h).
    const LISTENS: &str = "00010000";
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    let is_it = |line: &str| line.ends_with(&format!(" {}", socket.display()));
    sockets.lines().any(|line| is_it(line) && line.split(' ').nth(3) == Some(LISTENS))
}

/// Connection to gdb's remote protocol: `$PAYLOAD#SUM`, each packet acknowledged by `+`.
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
            // Bytes before the packet acknowledge our own packet.
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

/// Address of the kernel's entry.
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
        // Register 16 is RIP, in the target's byte order.
        let rip = u64::from_str_radix(&stub.ask("p10"), 16).unwrap().swap_bytes();
        assert_eq!(stub.ask(&format!("z1,{entry:x},1")), "OK");
        assert_eq!(stub.ask("D"), "OK");
        rip
    });
    assert_eq!(rip, entry);
    // The stopped machine continues to its normal end.
    assert_eq!(boot.outcome, Outcome::Done(42));
}

/// Runs gdb with the command that `run --gdb` prints, followed by `steps`; `None` if gdb is not
/// installed.
fn gdb(socket: &Path, steps: &[&str]) -> Option<Output> {
    let mut gdb = machine::gdb(&artefacts().symbols, socket);
    gdb.args(["-batch", "-nx"]);
    steps.iter().for_each(|step| _ = gdb.args(["-ex", step]));
    match process::output_within(&mut gdb, PATIENCE) {
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

/// A test is made to fail on purpose.
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
    // A run without a failure keeps nothing.
    let boot = run("", "status 0");
    let folder = boot.folder.file("");
    assert_success(&boot);
    drop(boot);
    assert!(!folder.exists());
}

/// Number of the line with `text` in the kernel's source file `plant.rs`.
fn planted(text: &str) -> u32 {
    let source = fs::read_to_string(Project::here().root.join("kernel/src/plant.rs")).unwrap();
    let line = source.lines().position(|line| line.contains(text)).expect(text);
    line as u32 + 1
}

/// Asserts that the kernel stopped with `message`, in `function`, at the line of `plant.rs` that
/// contains `text`.
fn assert_stopped(fail: &str, message: &str, function: &str, text: &str) -> Boot {
    let boot = run(&format!("fail={fail}"), "status 0");
    let Outcome::Panicked { message: found, registers, backtrace } = &boot.outcome else {
        panic!("{fail}: {}", boot.outcome)
    };
    assert!(found.contains(message), "{fail}: {found}");
    assert_eq!(boot.outcome.status(), u8::from(ExitStatus::KernelPanic));
    let frame = registers.frame;
    assert!(registers.cr3 != 0 && frame.rip > KERNEL_BASE && frame.rsp > KERNEL_BASE);
    let places = backtrace.iter().flat_map(|frame| &frame.places);
    let mut stopped = places.filter(|place| place.file.as_deref() == Some("kernel/src/plant.rs"));
    let place = stopped.next().unwrap_or_else(|| panic!("{fail}: {}", boot.outcome));
    assert!(place.function.ends_with(function), "{fail}: {}", boot.outcome);
    assert_eq!(place.line, Some(planted(text)), "{fail}: {}", boot.outcome);
    boot
}

/// Asserts that the backtrace reaches the kernel's entry.
fn assert_to_the_entry(boot: &Boot) {
    let text = boot.outcome.to_string();
    assert!(text.contains("tally_kernel::plant::plant at kernel/src/plant.rs:"), "{text}");
    assert!(text.contains("tally_kernel::boot at kernel/src/main.rs:"), "{text}");
}

#[test]
fn a_panic_is_told_with_its_line_and_its_callers() {
    let line = "panic!(\"requested by the command line\")";
    let boot = assert_stopped("panic", "requested by the command line", "::plant", line);
    assert_to_the_entry(&boot);
    let json = serde_json::to_value(Report::of(&boot)).unwrap();
    assert!(json["panic"]["message"].as_str().unwrap().contains("requested by"), "{json}");
    let places = json["panic"]["backtrace"].to_string();
    assert!(places.contains("\"function\":\"tally_kernel::plant::plant\""), "{json}");
}

#[test]
fn a_fault_in_the_kernel_is_told_with_its_registers_and_its_line() {
    let line = ".read_volatile()";
    let boot = assert_stopped("fault", "page fault in the kernel", "::read_unmapped", line);
    assert_to_the_entry(&boot);
    let Outcome::Panicked { registers, .. } = &boot.outcome else { unreachable!() };
    let frame = registers.frame;
    assert_eq!((frame.vector, frame.error, registers.cr2), (14, 0, KERNEL_BASE >> 32));
    // The log contains the whole report too, for machines without a host that listens.
    let log = boot.folder.log_tail(60);
    assert!(log.contains(&format!("cr2 {:016x}", registers.cr2)), "{log}");
    let on_stack = "on the stack at 0xffff";
    assert!(log.contains(on_stack), "{log}");
}

#[test]
fn a_kernel_stack_that_is_used_up_is_told_from_the_double_fault_s_stack() {
    let line = "recurse(depth + 1) + 1";
    let boot = assert_stopped("stack", "double fault in the kernel", "::recurse", line);
    let Outcome::Panicked { backtrace, .. } = &boot.outcome else { unreachable!() };
    let recurses = |frame: &xtask::symbols::StackFrame| {
        frame.places.iter().any(|place| place.function.ends_with("::recurse"))
    };
    assert!(backtrace.len() == 64 && backtrace.iter().all(recurses), "{}", boot.outcome);
}

#[test]
fn an_nmi_and_a_machine_check_are_told_with_what_they_interrupted() {
    for (fail, message, function) in [
        ("nmi", "non-maskable interrupt in the kernel", "raise_nmi"),
        ("machine-check", "machine check in the kernel", "raise_machine_check"),
    ] {
        let boot = run(&format!("fail={fail}"), "status 0");
        let text = boot.outcome.to_string();
        assert!(
            text.contains(message)
                && text.contains(&format!("tally_kernel::plant::{function} at ")),
            "{text}"
        );
        assert_to_the_entry(&boot);
    }
}
