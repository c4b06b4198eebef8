//! Progress of long steps on standard error: a spinner on a terminal, else one line per step.

use std::{
    io::IsTerminal,
    sync::LazyLock,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::{output, visible::visible_lines};

static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// A running step.
#[derive(Debug)]
pub struct Step {
    title: String,
    bar: Option<ProgressBar>,
    start: Instant,
}

impl Step {
    /// Starts a step.
    pub fn start(title: impl Into<String>) -> Step {
        let title = title.into();
        let has_bar = std::io::stderr().is_terminal() && output::has_notes();
        let bar = has_bar.then(|| {
            let bar = BARS.add(ProgressBar::new_spinner());
            let style = ProgressStyle::with_template("{spinner} {elapsed:>4} {prefix}: {wide_msg}");
            bar.set_style(style.expect("the template is valid"));
            bar.set_prefix(title.clone());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            output::note(format_args!("{title} …"));
        }
        Step { title, bar, start: Instant::now() }
    }

    /// Shows the step's current action, on a terminal only.
    pub fn at(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// Removes the spinner from the terminal: programs write there from now on.
    pub fn hide(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }

    /// Ends the step. Steps under 3 s leave no line with their time.
    pub fn done(self) {
        self.hide();
        if self.start.elapsed() < Duration::from_secs(3) {
            return;
        }
        let line = format!("{}: {:.1} s", self.title, self.start.elapsed().as_secs_f64());
        if self.bar.is_some() {
            output::end_row();
            // Printing fails only if the terminal is gone.
            let _ = BARS.println(visible_lines(&line));
        } else {
            output::note(line);
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
