//! Test of a view that a panic ends, in its own terminal. `tests/boot/live.rs` tests the other ends
//! with the tool.

use std::io::Read;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use super::*;

const HELD: &str = "what a program wrote";
const PANIC: &str = "the panic's text";
/// Variable that is set in the process whose view must panic.
const PANICS: &str = "TALLY_TEST_VIEW_PANICS";

#[test]
fn a_panic_restores_the_terminal() {
    let pair = native_pty_system().openpty(PtySize::default()).unwrap();
    let mut command = CommandBuilder::new(env::current_exe().unwrap());
    let own = "live::screen::tests::a_view_that_panics";
    command.args(["--exact", "--nocapture", own]);
    command.env("TERM", "xterm-256color");
    command.env(PANICS, "yes");
    let mut child = pair.slave.spawn_command(command).unwrap();
    let mut from = pair.master.try_clone_reader().unwrap();
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        // Reading ends with an error once no process has the terminal open.
        let _ = from.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    });
    assert!(!child.wait().unwrap().success());
    let mode = pair.master.get_termios().expect("the terminal has settings");
    drop(pair);
    let written = reader.join().unwrap();
    let flags = format!("{:?}", mode.local_flags);
    assert!(["ECHO", "ICANON", "ISIG"].iter().all(|flag| flags.contains(flag)), "{flags}");
    // The main screen and the cursor are restored before the panic's text is written.
    let places = ["\u{1b}[?1049h", "\u{1b}[?1049l", "\u{1b}[?25h", PANIC];
    let places = places.map(|text| written.find(text).unwrap_or_else(|| panic!("{written:?}")));
    assert!(places.is_sorted() && written.contains(HELD), "{places:?}: {written:?}");
}

/// Helper of [`a_panic_restores_the_terminal`], which runs it in a separate process.
#[test]
fn a_view_that_panics() {
    if env::var_os(PANICS).is_none() {
        return;
    }
    let mut screen = Screen::open().unwrap();
    let bytes = format!("{HELD}\n").into_bytes();
    screen.hold(&ProgramOutput { pid: 1, fd: 1, bytes, seen_at: Duration::ZERO });
    let _ = screen.draw(|_| panic!("{PANIC}"));
}
