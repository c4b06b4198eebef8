//! One run of the program: what it is counted by, and for how long it runs.

use alloc::vec::Vec;

use tally::{
    Error, OpenError, Program, Reading, Session, SessionStats, Usage, children_usage,
    runtime::now_ns,
};
use tally_abi::command::Command;

use super::count::Span;

const MILLISECOND_NS: u64 = 1_000_000;

/// A run.
pub struct Run {
    /// The program's status.
    pub status: u8,
    /// Its values.
    pub span: Span,
    /// The engine's statistics; none without a session.
    pub stats: Option<SessionStats>,
}

/// Runs the program once, and gives `each` the values of each interval, and its end in nanoseconds
/// since the program's start.
pub fn measure(command: &Command, each: &mut dyn FnMut(&Span, u64)) -> Result<Run, OpenError> {
    let program = Program::load(&command.program)?;
    let session = match command.events() {
        "" => None,
        events => Some(Session::open_on(&program, events, command.config)?),
    };
    if let Some(session) = &session {
        session.start()?;
    }
    let others = children_usage()?;
    let start_ns = now_ns();
    program.run()?;
    let mut intervals = Intervals { session: session.as_ref(), last: None, start_ns };
    let status = wait(command, program, &mut intervals, each)?;
    let time_ns = now_ns() - start_ns;
    let usage = children_usage()?.since(others);
    if command.stat.interval_ms.is_some() {
        intervals.end(usage, each)?;
    }
    let readings = session.as_ref().map_or(Ok(Vec::new()), Session::read)?;
    let stats = session.as_ref().map(Session::stats).transpose()?;
    let span = Span { readings, before: Vec::new(), usage, time_ns };
    Ok(Run { status, span, stats })
}

/// Waits for the program's end: ends it at the time limit, and reads it at the end of intervals.
fn wait(
    command: &Command,
    program: Program,
    intervals: &mut Intervals,
    each: &mut dyn FnMut(&Span, u64),
) -> Result<u8, Error> {
    let in_ns = |ms: Option<u64>| ms.map(|ms| ms.saturating_mul(MILLISECOND_NS));
    let interval_ns = in_ns(command.stat.interval_ms);
    let mut limit = in_ns(command.stat.timeout_ms);
    let mut next = interval_ns;
    loop {
        let Some(until) = limit.into_iter().chain(next).min() else { return program.wait() };
        let passed = now_ns() - intervals.start_ns;
        if let Some(status) = program.wait_for(until.saturating_sub(passed))? {
            return Ok(status);
        }
        let passed = now_ns() - intervals.start_ns;
        if limit.is_some_and(|limit| passed >= limit) {
            program.kill()?;
            limit = None;
        } else if next.is_some_and(|next| passed >= next) {
            intervals.end(program.usage()?, each)?;
            next = next.zip(interval_ns).map(|(next, interval)| next + interval);
        }
    }
}

/// The intervals of a run.
struct Intervals<'a> {
    session: Option<&'a Session>,
    /// The end of the interval before, in nanoseconds since the program's start, and the values
    /// then.
    last: Option<(u64, Vec<Reading>, Usage)>,
    start_ns: u64,
}

impl Intervals<'_> {
    /// Ends an interval; `usage` is what the program used up to now.
    fn end(&mut self, usage: Usage, each: &mut dyn FnMut(&Span, u64)) -> Result<(), Error> {
        let readings = self.session.map_or(Ok(Vec::new()), Session::read)?;
        let now = now_ns() - self.start_ns;
        let (last, before, used) = self.last.take().unwrap_or_default();
        let span = Span { readings, before, usage: usage.since(used), time_ns: now - last };
        each(&span, now);
        self.last = Some((now, span.readings, usage));
        Ok(())
    }
}
