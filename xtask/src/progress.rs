//! Progress of long steps: a spinner on a terminal, one line a step elsewhere. Always on standard
//! error, so that results have standard output to themselves.

use std::{
    io::IsTerminal,
    sync::LazyLock,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::output;

static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// A step under way.
#[derive(Debug)]
pub struct Step {
    title: String,
    bar: Option<ProgressBar>,
    start: Instant,
}

impl Step {
    /// Begins a step.
    pub fn start(title: impl Into<String>) -> Step {
        let title = title.into();
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = BARS.add(ProgressBar::new_spinner());
            let style = ProgressStyle::with_template("{spinner} {elapsed:>4} {prefix}: {wide_msg}");
            bar.set_style(style.expect("the template is right"));
            bar.set_prefix(title.clone());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            output::note(format_args!("{title} …"));
        }
        Step { title, bar, start: Instant::now() }
    }

    /// Shows what the step is at; only a terminal sees it.
    pub fn at(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// Ends the step. Short steps leave no line on a terminal.
    pub fn done(self) {
        let line = format!("{}: {:.1} s", self.title, self.start.elapsed().as_secs_f64());
        match &self.bar {
            Some(bar) => {
                bar.finish_and_clear();
                if self.start.elapsed() > Duration::from_secs(3) {
                    // With nothing drawn there is nothing that could fail.
                    let _ = BARS.println(line);
                }
            }
            None => output::note(line),
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
