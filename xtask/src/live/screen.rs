//! The terminal while it shows a view. However the view ends, by a normal end, an error, a panic or
//! a signal, the terminal is restored and the programs' output is printed.

use std::{
    env,
    io::{self, IsTerminal, Stderr, Write},
    panic,
    path::Path,
    sync::{Mutex, MutexGuard, Once, TryLockError},
    thread,
    time::{Duration, Instant},
};

use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor, execute,
        terminal::{self, EnterAlternateScreen, LeaveAlternateScreen},
    },
};
use tally_abi::ExitStatus;

use crate::{Failure, Result, machine::ProgramOutput, output::ProgramWriter, process};

/// The smallest terminal: columns, rows.
pub const LEAST: (u16, u16) = (40, 10);
/// The time that a signal waits for a picture that is being drawn.
const PATIENCE: Duration = Duration::from_secs(1);

/// The programs' output since the view began; `None` if there is no view.
static HELD: Mutex<Option<Vec<ProgramOutput>>> = Mutex::new(None);

/// A view on the terminal. Dropping it ends the view.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

/// Checks that standard error is a terminal that a view can use.
///
/// # Errors
/// Standard error is no terminal, the terminal knows no escape sequences, or is too small.
pub fn check() -> Result<()> {
    let usage = |why: String| Err(Failure::new(ExitStatus::Usage, why));
    if !io::stderr().is_terminal() {
        return usage("--live: standard error is no terminal: omit --live".into());
    }
    if env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb") {
        return usage("--live: the terminal has no escape sequences (TERM): omit --live".into());
    }
    let (columns, rows) = terminal::size().map_err(|error| failed(&error))?;
    if columns < LEAST.0 || rows < LEAST.1 {
        let (least_columns, least_rows) = LEAST;
        return usage(format!(
            "--live: the terminal of {columns} columns and {rows} rows is too small: it needs \
             {least_columns} and {least_rows}"
        ));
    }
    Ok(())
}

impl Screen {
    /// Begins a view.
    ///
    /// # Errors
    /// The terminal refuses.
    pub fn open() -> Result<Screen> {
        static HOOKS: Once = Once::new();
        HOOKS.call_once(|| {
            process::before_exit_by_signal(end_quietly);
            let others = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                end_quietly();
                others(panic);
            }));
        });
        *held() = Some(Vec::new());
        let open = || {
            terminal::enable_raw_mode()?;
            execute!(io::stderr(), EnterAlternateScreen, cursor::Hide)?;
            Terminal::new(CrosstermBackend::new(io::stderr()))
        };
        open().map(|terminal| Screen { terminal }).map_err(|error| {
            end_quietly();
            failed(&error)
        })
    }

    /// Draws a picture.
    ///
    /// # Errors
    /// The terminal refuses.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> Result<()> {
        let held = held();
        // A signal has ended the view.
        if held.is_none() {
            return Ok(());
        }
        self.terminal.draw(picture).map(|_| ()).map_err(|error| failed(&error))
    }

    /// Holds a program's output until the view has ended.
    pub fn hold(&self, output: &ProgramOutput) {
        held().as_mut().into_iter().for_each(|held| held.push(output.clone()));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        end_quietly();
    }
}

fn held() -> MutexGuard<'static, Option<Vec<ProgramOutput>>> {
    HELD.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Takes the lock, unless another picture takes too long, or the thread that draws one panics.
fn patiently() -> Option<MutexGuard<'static, Option<Vec<ProgramOutput>>>> {
    let start = Instant::now();
    loop {
        match HELD.try_lock() {
            Ok(held) => return Some(held),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if thread::panicking() || start.elapsed() > PATIENCE => {
                return None;
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Ends the view, if there is one: restores the terminal and prints the held output.
///
/// # Errors
/// Standard output cannot be written and is not closed.
pub fn end() -> Result<()> {
    let mut lock = patiently();
    let outputs = match &mut lock {
        None => Vec::new(),
        Some(held) => match held.take() {
            None => return Ok(()),
            Some(outputs) => outputs,
        },
    };
    // If the terminal is gone, nothing needs to be restored.
    let _ = terminal::disable_raw_mode();
    let _ = execute!(io::stderr(), LeaveAlternateScreen, cursor::Show);
    let _ = io::stderr().flush();
    let mut writer = ProgramWriter::new(false);
    outputs.iter().for_each(|output| writer.write(output.fd, &output.bytes));
    writer.end()
}

fn end_quietly() {
    // The run ends by another failure.
    let _ = end();
}

/// The failure that the terminal refuses.
pub fn failed(error: &io::Error) -> Failure {
    Failure::io("use", Path::new("the terminal"), error)
}

#[cfg(test)]
mod tests;
