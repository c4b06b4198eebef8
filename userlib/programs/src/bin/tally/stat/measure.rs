//! Single run of the program: the sessions that count it, and the time for which it runs.

use alloc::vec::Vec;

use tally::{
    Error, Instance, OpenError, Program, Reading, Scope, Session, SessionStats, Usage,
    children_usage, runtime::now_ns,
};
use tally_abi::command::Command;
use tally_programs::Clock;

use super::{count::Span, row::Row};

const MILLISECOND_NS: u64 = 1_000_000;

/// Results of a run.
pub struct Run {
    /// Exit status of the program.
    pub status: u8,
    /// Values of the run.
    pub span: Span,
    /// Values of its threads or of CPUs, if these are counted separately.
    pub rows: Vec<Row>,
    /// Statistics of the engine; `None` without a session.
    pub stats: Option<SessionStats>,
}

/// Callback for an interval: its values, the values of separately counted threads or CPUs, and its
/// end in nanoseconds since the program's start.
pub type Each<'a> = &'a mut dyn FnMut(&Span, &[Row], u64);

/// Runs the program once, and passes the values of each interval to `each`.
pub fn measure(command: &Command, each: Each) -> Result<Run, OpenError> {
    let program = Program::load(&command.program)?;
    let session = match command.events() {
        // A session is needed for the list of threads or CPUs, and the resource usage of each.
        "" if is_apart(command) => Some(open(command, &program, "instructions")?),
        "" => None,
        events => Some(open(command, &program, events)?),
    };
    if let Some(session) = &session {
        session.start()?;
    }
    let others = children_usage()?;
    let start_ns = now_ns();
    program.run()?;
    let mut intervals = Intervals::new(command, session.as_ref(), start_ns);
    let status = wait(command, program, &mut intervals, each)?;
    let time_ns = now_ns() - start_ns;
    let usage = children_usage()?.since(others);
    if command.stat.interval_ms.is_some() {
        intervals.end(usage, each)?;
    }
    if let Some(session) = session.as_ref().filter(|_| command.stat.cpus.is_some()) {
        session.stop()?;
    }
    let stats = session.as_ref().map(Session::stats).transpose()?;
    let (span, rows) = Intervals::new(command, session.as_ref(), start_ns).next(usage, time_ns)?;
    Ok(Run { status, span, rows, stats })
}

/// Opens the session on the program, or on the CPUs.
fn open(command: &Command, program: &Program, events: &str) -> Result<Session, OpenError> {
    match command.stat.cpus {
        Some(cpus) => Session::open_on_cpus(cpus, events, command.config),
        None => Session::open_on(program, events, command.config),
    }
}

/// Returns whether threads or CPUs are counted separately.
fn is_apart(command: &Command) -> bool {
    command.config.scope != Scope::Program
}

/// Waits for the program's end: ends it at the time limit, and reads it at the end of intervals.
fn wait(
    command: &Command,
    program: Program,
    intervals: &mut Intervals,
    each: Each,
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

/// Intervals of a run.
struct Intervals<'a> {
    command: &'a Command<'a>,
    session: Option<&'a Session>,
    start_ns: u64,
    /// End of the previous interval, in nanoseconds since the program's start, and the values then.
    last: (u64, Vec<Reading>, Usage),
    /// Threads or CPUs that are counted separately, and their values then.
    instances: Vec<(Instance, Vec<Reading>)>,
}

impl<'a> Intervals<'a> {
    fn new(command: &'a Command, session: Option<&'a Session>, start_ns: u64) -> Self {
        Intervals { command, session, start_ns, last: Default::default(), instances: Vec::new() }
    }

    /// Ends an interval; `usage` is the program's resource usage so far.
    fn end(&mut self, usage: Usage, each: Each) -> Result<(), Error> {
        let now = now_ns() - self.start_ns;
        let (span, rows) = self.next(usage, now)?;
        each(&span, &rows, now);
        Ok(())
    }

    /// Returns the values of the interval that ends `now`.
    fn next(&mut self, usage: Usage, now: u64) -> Result<(Span, Vec<Row>), Error> {
        let (mut readings, mut instances) = (Vec::new(), Vec::new());
        match self.session {
            Some(session) if is_apart(self.command) => instances = session.instances()?,
            Some(session) => readings = session.read()?,
            None => {}
        }
        let (last, before, used) =
            core::mem::replace(&mut self.last, (now, readings.clone(), usage));
        let (time_ns, clock) = (now - last, Clock::of_machine());
        let earlier = core::mem::take(&mut self.instances);
        let row = |(of, readings): &(Instance, Vec<Reading>)| {
            let known = earlier.iter().find(|(known, _)| known.number == of.number);
            let (used, before) =
                known.cloned().map_or(Default::default(), |(of, before)| (of.usage, before));
            let (readings, usage) = (readings.clone(), of.usage.since(used));
            Row::of(self.command, of, Span { readings, before, usage, time_ns, clock })
        };
        let rows: Vec<Row> = instances.iter().map(row).collect();
        self.instances = instances;
        let usage = match self.command.stat.cpus {
            None => usage.since(used),
            Some(_) => rows.iter().fold(Usage::default(), |all, row| all.with(row.span.usage)),
        };
        Ok((Span { readings, before, usage, time_ns, clock }, rows))
    }
}
