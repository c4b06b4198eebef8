//! Sessions that are closing: their last values are computed and reported in steps, so that they
//! delay no other program (decision 21).
//!
//! Such a session is on no counter and in no slot, so its counts do not change. It belongs to the
//! program that closes it or has ended with it.

use alloc::{boxed::Box, collections::VecDeque};

use super::{context::Context, context::report::Report};

/// The closing sessions of a program, in the order of their closing.
#[derive(Default)]
pub struct Closing {
    contexts: VecDeque<Box<Context>>,
    /// Progress of the first session's report.
    report: Report,
}

impl Closing {
    /// Adds a session.
    pub fn push(&mut self, context: Box<Context>) {
        self.contexts.push_back(context);
    }

    /// Makes the next step. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        let Some(context) = self.contexts.front_mut() else { return false };
        if !context.report_step(&mut self.report) {
            self.report = Report::default();
            self.contexts.pop_front();
        }
        true
    }
}
