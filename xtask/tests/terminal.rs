//! Programs, and names chosen by them, cannot affect the terminal of `cargo xtask`. The test runs
//! on messages, without a boot.

use std::{fs, io::Read, path::PathBuf, process::Command, thread};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use tally_abi::wire::{MAX_FRAME_BYTES, Message};

/// Forged line that looks like one of the tool.
const FORGED: &str = "xtask: the kernel panicked: forged";
/// Columns of the terminal.
const COLUMNS: u16 = 60;

/// Output of the program: it clears the screen, sets a title, modes and a colour, hides the cursor,
/// and forges a line by a line end, a carriage return, the cursor and a long row.
fn written() -> String {
    let far = " ".repeat(usize::from(COLUMNS));
    format!(
        "begin\n\x1b[2J\x1b]0;title\x07\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[31mred\n{FORGED}\n\
         \x1b[1A\r{FORGED}\nover\r{FORGED}\n{far}{FORGED}\nend, with no line end"
    )
}

/// File of a run's messages, whose program has a hostile name and crashes.
fn messages(name: &str) -> PathBuf {
    let (pid, fault) = (1, "page fault");
    let program = format!("\x1b[2Jprogram\n{FORGED}");
    let program = program.as_str();
    let messages = [
        Message::Booted { cpus: 1, memory_bytes: 1 << 28, seed: 1, tsc_hz: 1 << 30, pmu: None },
        Message::Output { pid, fd: 1, bytes: written().as_bytes() },
        Message::Faulted { pid, program, fault, address: None, instruction: 9 },
        Message::Done { status: 0 },
    ]
    .map(|message| message.encode(&mut [0; MAX_FRAME_BYTES]).unwrap().to_vec());
    let file = format!("xtask-terminal-{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(file);
    fs::write(&path, messages.concat()).unwrap();
    path
}

#[test]
fn a_pipe_gets_what_the_program_wrote() {
    let file = messages("pipe");
    let mut tool = Command::new(env!("CARGO_BIN_EXE_tally"));
    let output = tool.args(["import", "--messages"]).arg(&file).output().unwrap();
    fs::remove_file(file).unwrap();
    assert_eq!(output.stdout, written().as_bytes());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!errors.contains('\x1b') && errors.contains("program\\nxtask: "), "{errors:?}");
    assert!(errors.lines().all(|line| !line.starts_with(FORGED)), "{errors:?}");
}

#[test]
fn a_terminal_gets_marked_rows_and_stays_as_it_was() {
    let file = messages("terminal");
    let size = PtySize { rows: 24, cols: COLUMNS, ..PtySize::default() };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut tool = CommandBuilder::new(env!("CARGO_BIN_EXE_tally"));
    tool.args(["import", "--messages"]);
    tool.arg(&file);
    tool.env("TERM", "xterm-256color");
    let mut child = pair.slave.spawn_command(tool).unwrap();
    let mut from = pair.master.try_clone_reader().unwrap();
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        // Reading ends with an error once no process has the terminal.
        let _ = from.read_to_end(&mut all);
        String::from_utf8(all).unwrap()
    });
    assert!(!child.wait().unwrap().success());
    drop(pair);
    let text = reader.join().unwrap();
    fs::remove_file(file).unwrap();
    let (mut plain, mut colors) = (String::new(), Vec::new());
    for (index, part) in text.split('\x1b').enumerate() {
        let part = match part.strip_prefix('[').and_then(|part| part.split_once('m')) {
            Some((color, rest)) if index > 0 && ["0", "2", "31"].contains(&color) => {
                colors.push(color);
                rest
            }
            _ => {
                assert_eq!(index, 0, "a sequence that is no colour: {part:?} in {text:?}");
                part
            }
        };
        plain.push_str(part);
    }
    assert_eq!((colors.contains(&"31"), colors.last()), (true, Some(&"0")));
    let lines: Vec<&str> = plain.lines().collect();
    let (tool, program): (Vec<&str>, Vec<&str>) =
        lines.iter().partition(|line| line.starts_with("xtask: "));
    assert!(program.iter().all(|line| line.starts_with("│ ")), "{lines:?}");
    assert!(program.contains(&"│ begin") && program.contains(&"│ end, with no line end"));
    assert!(tool.len() == 1 && tool[0].contains("program\\nxtask: "), "{lines:?}");
}
