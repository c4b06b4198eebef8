//! `cargo xtask run --live` in a pseudo terminal: its display while the machine runs, and the state
//! of the terminal after each kind of end.

use std::{
    io::{Read, Write},
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use tally_abi::ExitStatus;
use vt100::Parser;

use crate::{machine_permit, on_host};

/// Longest permitted time for a picture or an end.
const LIMIT: Duration = Duration::from_secs(180);

/// `cargo xtask run` in its own terminal.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    /// Kept open so that the terminal outlives the tool.
    slave: Box<dyn SlavePty + Send>,
    screen: Arc<Mutex<Parser>>,
    reader: Option<thread::JoinHandle<()>>,
}

/// Path of the tool: the tests are in `deps`, next to it.
fn tool() -> std::path::PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("tally")
}

impl Terminal {
    fn start(columns: u16, rows: u16, words: &[&str]) -> Terminal {
        let size = PtySize { rows, cols: columns, ..PtySize::default() };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(tool());
        command.args(["run", "--live"].iter().chain(words));
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        command.cwd(std::env::current_dir().unwrap());
        let child = pair.slave.spawn_command(command).unwrap();
        let screen = Arc::new(Mutex::new(Parser::new(rows, columns, 1_000)));
        let (mut from, to) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&screen));
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                to.lock().unwrap().process(&bytes[..count]);
            }
        });
        Terminal { child, master: pair.master, slave: pair.slave, screen, reader: Some(reader) }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until `wanted` accepts the picture.
    fn wait_for(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !wanted(&self.text()) {
            let ended = self.child.try_wait().unwrap();
            let text = self.text();
            assert!(ended.is_none() && start.elapsed() < LIMIT, "no {what}: {ended:?}\n{text}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end; returns the status and the content of the terminal. The terminal must be
    /// on its normal screen, with a cursor, and echo the keys.
    fn end(mut self) -> (u32, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.exit_code();
            }
            assert!(start.elapsed() < LIMIT, "it ends:\n{}", self.text());
            thread::sleep(Duration::from_millis(20));
        };
        let mode = self.master.get_termios().expect("the terminal has settings");
        drop((self.master, self.slave));
        self.reader.take().unwrap().join().unwrap();
        let screen = self.screen.lock().unwrap();
        let screen = screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        let flags = format!("{:?}", mode.local_flags);
        assert!(["ECHO", "ICANON", "ISIG"].iter().all(|flag| flags.contains(flag)), "{flags}");
        (status, screen.contents())
    }
}

/// Program with steady behaviour, with two events that are counted all the time.
const STEADY: [&str; 6] = [
    "--events",
    "INST_RETIRED.ANY,BR_INST_RETIRED.ALL_BRANCHES",
    "--",
    "rounds",
    "100000",
    "60000",
];

/// First number of the line that begins with `name`.
fn number(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
    line.split_whitespace().next()?.replace(',', "").parse().ok()
}

/// Returns whether the display has rates and the output that the program writes when it has warmed
/// up. Slices are counted before that.
fn has_rates_and_output(text: &str) -> bool {
    text.contains("begin") && number(text, "INST_RETIRED.ANY") == Some(1000.0)
}

fn signal(name: &str, process: u32) {
    let sent = on_host(Command::new("sh").args(["-c", &format!("kill -{name} {process}")]));
    assert!(sent.status.success(), "{sent:?}");
}

#[test]
fn rates_are_shown_while_the_program_runs_and_the_table_after_it() {
    let _permit = machine_permit();
    let words = [&STEADY[..4], &["40", "60000"]].concat();
    let mut terminal = Terminal::start(90, 40, &words);
    let branches = "BR_INST_RETIRED.ALL_BRANCHES";
    terminal.wait_for("output and rates", |text| {
        number(text, branches).is_some() && has_rates_and_output(text)
    });
    let shown = terminal.text();
    let (status, after) = terminal.end();
    assert_eq!(status, 0, "{after}");
    assert!(after.contains("begin") && after.contains("end"), "output: {after}");
    assert!(after.contains("within ± 95 %") && !after.contains("in 1,000 i."), "{after}");
    let [instructions, all] =
        ["INST_RETIRED.ANY", branches].map(|name| number(&after, name).unwrap_or_default());
    // A name that is too long has its numbers in the next line.
    let all = if all > 0.0 { all } else { number_below(&after, branches) };
    let (rate, of_run) = (number(&shown, branches).unwrap(), 1_000.0 * all / instructions);
    assert!((rate / of_run - 1.0).abs() < 0.2, "{rate}, {of_run}: {shown}\n{after}");
}

/// First number in the line after the line `name`.
fn number_below(text: &str, name: &str) -> f64 {
    let mut lines = text.lines().skip_while(|line| line.trim() != name).skip(1);
    let word = lines.next().unwrap_or_default().split_whitespace().next().unwrap_or_default();
    word.replace(',', "").parse().unwrap_or_default()
}

#[test]
fn a_key_stops_the_machine() {
    let _permit = machine_permit();
    let mut terminal = Terminal::start(80, 24, &STEADY);
    terminal.wait_for("output and rates", has_rates_and_output);
    terminal.master.take_writer().unwrap().write_all(b"q").unwrap();
    let (status, after) = terminal.end();
    assert_eq!(status, 130, "{after}");
    let why = "xtask: the machine was stopped before its programs ended";
    assert!(after.contains(why) && after.contains("begin"), "{after}");
}

#[test]
fn signals_restore_the_terminal_and_end_the_machine() {
    for name in ["TERM", "HUP"] {
        let _permit = machine_permit();
        let mut terminal = Terminal::start(80, 24, &STEADY);
        terminal.wait_for("output and rates", has_rates_and_output);
        let tool = terminal.child.process_id().unwrap();
        let machine = machine_of(tool);
        signal(name, tool);
        let (status, after) = terminal.end();
        assert_eq!(status, 130, "{name}: {after}");
        assert!(after.contains("begin"), "what the program wrote: {after}");
        assert!(!std::path::Path::new(&format!("/proc/{machine}")).exists());
    }
}

#[test]
fn the_end_of_a_machine_restores_the_terminal() {
    let _permit = machine_permit();
    let mut terminal = Terminal::start(80, 24, &STEADY);
    terminal.wait_for("output and rates", has_rates_and_output);
    signal("KILL", machine_of(terminal.child.process_id().unwrap()));
    let (status, after) = terminal.end();
    assert_eq!(status, u32::from(u8::from(ExitStatus::MachineFailed)), "{after}");
    assert!(after.contains("begin"), "what the program wrote: {after}");
    assert!(after.contains("the machine ended without the kernel's last message"), "{after}");
}

/// Process of the machine of a running tool.
fn machine_of(tool: u32) -> u32 {
    let tasks = std::fs::read_dir(format!("/proc/{tool}/task")).unwrap().flatten();
    let children = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap());
    let children = children.collect::<Vec<_>>().join(" ");
    // QEMU may have its own dynamic linker, whose name the process then has.
    let is_machine = |process: &u32| {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("qemu-system")
    };
    let mut children = children.split_whitespace().filter_map(|word| word.parse().ok());
    children.find(is_machine).expect("the machine runs")
}

#[test]
fn without_a_terminal_that_will_do_there_is_a_line() {
    let refused = on_host(Command::new(tool()).args(["run", "--live"]));
    let why = "xtask: --live: standard error is no terminal: omit --live\n";
    assert_eq!(String::from_utf8_lossy(&refused.stderr), why);
    assert_eq!(refused.status.code(), Some(u8::from(ExitStatus::Usage).into()));
    let (status, after) = Terminal::start(39, 24, &STEADY).end();
    assert_eq!(status, u32::from(u8::from(ExitStatus::Usage)), "{after}");
    let line = after.replace('\n', "");
    assert!(line.contains("39 columns and 24 rows is too small: it needs 40 and 10"), "{after}");
}
