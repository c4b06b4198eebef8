//! `cargo xtask run --live`: a view of the run on the terminal while the machine runs, from the
//! growing trace.

mod screen;
mod state;
mod view;

use std::{
    env,
    fs::File,
    io::Read,
    time::{Duration, Instant},
};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::screen::Screen;
pub use self::{
    screen::check,
    state::{Known, Planned},
};
use crate::{
    Failure, Result,
    machine::{self, Artefacts, Boot, Folder, Observer, ProgramOutput, Request, Transcript},
    trace_file::Stream,
};
use state::State;

/// Time between two pictures.
const FRAME: Duration = Duration::from_millis(200);

/// Boots with a view on the terminal. The programs' output is printed when the view has ended.
///
/// # Errors
/// As [`machine::boot`]; also if the terminal refuses, or standard output cannot be written.
pub fn boot(artefacts: &Artefacts, request: &Request, known: Known) -> Result<Boot> {
    let screen = Screen::open()?;
    let mut live = Live {
        screen,
        state: State::new(known),
        stream: Stream::default(),
        trace: None,
        start: Instant::now(),
        drawn: None,
    };
    let boot = machine::observe(artefacts, request, &mut live);
    let ended = screen::end();
    let boot = boot?;
    ended?;
    machine::warn(&boot);
    Ok(boot)
}

/// A view and its data.
struct Live {
    screen: Screen,
    state: State,
    stream: Stream,
    trace: Option<File>,
    start: Instant,
    /// Time of the last picture.
    drawn: Option<Instant>,
}

impl Observer for Live {
    fn output(&mut self, output: &ProgramOutput) {
        self.screen.hold(output);
        self.state.write(&output.bytes);
    }

    fn poll(&mut self, transcript: &Transcript, folder: &Folder) -> Result<bool> {
        self.follow_trace(folder)?;
        let mut is_new = self.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME);
        while event::poll(Duration::ZERO).map_err(|error| screen::failed(&error))? {
            match event::read().map_err(|error| screen::failed(&error))? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    if is_stop(key) {
                        return Ok(false);
                    }
                    press(&mut self.state, key.code);
                }
                _ => {}
            }
            is_new = true;
        }
        if is_new {
            self.draw(transcript)?;
        }
        Ok(true)
    }
}

impl Live {
    /// Reads the part of the trace that is new.
    fn follow_trace(&mut self, folder: &Folder) -> Result<()> {
        let path = folder.trace();
        if self.trace.is_none() && path.exists() {
            let opened = File::open(&path).map_err(|error| Failure::io("read", &path, &error))?;
            self.trace = Some(opened);
        }
        let mut fresh = Vec::new();
        if let Some(trace) = &mut self.trace {
            trace.read_to_end(&mut fresh).map_err(|error| Failure::io("read", &path, &error))?;
        }
        if fresh.is_empty() || self.state.bad.is_some() {
            return Ok(());
        }
        match self.stream.push(&fresh) {
            Ok(records) => self.state.add(&records),
            // The report repeats the message at the end.
            Err(bad) => self.state.bad = Some(bad.to_string()),
        }
        Ok(())
    }

    fn draw(&mut self, transcript: &Transcript) -> Result<()> {
        if let Some(booted) = &transcript.booted {
            self.state.pmu = booted.pmu.as_ref().map(|pmu| pmu.name.clone());
            self.state.seed = Some(booted.seed);
            // A model's seconds say nothing about the processor.
            let is_modelled = self.state.known.is_modelled;
            self.state.tsc_hz = Some(booted.tsc_hz).filter(|hz| *hz > 0 && !is_modelled);
        }
        self.state.is_ready = transcript.boot_ns.is_some();
        self.state.running = self.start.elapsed();
        self.drawn = Some(Instant::now());
        let has_color = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let state = &self.state;
        self.screen.draw(|frame| view::draw(frame, state, has_color))
    }
}

/// Returns whether the key stops the machine. In raw mode Ctrl-C is a key.
fn is_stop(key: KeyEvent) -> bool {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.code == KeyCode::Char('q') || is_control && key.code == KeyCode::Char('c')
}

/// Handles any other key.
fn press(state: &mut State, key: KeyCode) {
    match key {
        KeyCode::Tab => (state.shown, state.scrolled) = (state.shown + 1, 0),
        KeyCode::Up | KeyCode::Char('k') => state.scrolled = state.scrolled.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => state.scrolled += 1,
        KeyCode::Home => state.scrolled = 0,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_and_control_c_stop_the_machine_and_c_does_not() {
        let key = |code, modifiers| is_stop(KeyEvent::new(KeyCode::Char(code), modifiers));
        assert!(key('q', KeyModifiers::NONE) && key('c', KeyModifiers::CONTROL));
        assert!(!key('c', KeyModifiers::NONE) && !key('x', KeyModifiers::CONTROL));
    }
}
