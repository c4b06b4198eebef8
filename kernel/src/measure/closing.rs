//! Sessions that end: their last values are computed and reported in steps (decision 21).
//!
//! Such a session is on no counter and in no slot, so that nothing changes it any more. It belongs
//! to the program that closes it, or that ends with it.

use alloc::{boxed::Box, collections::VecDeque};

use super::{context::Context, context::report::Report};

/// The sessions that a program closes, in the order in which it does.
#[derive(Default)]
pub struct Closing {
    contexts: VecDeque<Box<Context>>,
    /// Of the first one.
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
