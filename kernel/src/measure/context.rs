//! A context: the counts of one program by one session.

mod bank;
mod cpu;
mod instances;
mod phases;
pub mod report;

use alloc::{
    boxed::Box,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use core::mem::take;

use tally_abi::{
    Error, Opened, PhaseConfig, Reading, Scope, SessionConfig, SessionStats,
    branches::BranchFilter, session::MAX_SAMPLE_HZ, trace::MAX_STACK_BYTES, vpmu::Op,
};
use tally_engine::{Session, ThresholdError, histogram::Histogram};
use tally_pmu::{ResolveError, Resolved};

use super::{
    catalogue,
    claim::{Claim, Purpose},
    counted_cpu::CountedCpu,
    instances::Instances,
    readings::{PendingReadings, vouched},
    refusal::Refusal,
    session_id, settings,
    threads::ThreadCounts,
    truth::{mark, mark_in},
    unit::UnitCounts,
    upcall::{Threshold, Upcall, UpcallHandler},
};
use crate::{
    machine::clock,
    memory::{heap, lent_pages::LentPages, space::AddressSpace, user::UserMemory},
};

/// The samples of an event.
#[derive(Clone, Copy, Debug)]
pub struct Samples {
    /// The event, by its index in the session's list.
    pub event: usize,
    /// Events between two samples; 0 for no samples.
    pub period: u64,
    /// Samples per second instead of a period; 0 if the period is given.
    pub hz: u64,
    /// Bytes of the stack to copy with each sample.
    pub stack_bytes: u64,
    /// Branches to record with each sample of the session.
    pub branches: BranchFilter,
}

fn refused_threshold(error: ThresholdError) -> Error {
    match error {
        ThresholdError::NoSuchEvent => Error::BadArgument,
        ThresholdError::NoBank => Error::WrongState,
    }
}

/// The counting of one program: its session, and its events.
pub struct Context {
    id: u32,
    /// The running thread's session, when counting per thread.
    pub(super) session: Session,
    /// The sessions of the other threads, when counting per thread.
    pub(super) instances: Option<Box<Instances>>,
    resolved: Vec<Resolved>,
    owner: Owner,
    /// Number and name of the program that it counts.
    pid: u32,
    program: String,
    /// Whether the session is between start and stop; it runs only while the program does.
    pub(super) started: bool,
    /// Whether counting starts when the program is next switched in.
    pub(super) start_pending: bool,
    /// Whether the session ends, without a report, when the program opens one itself.
    pub is_default: bool,
    /// Address of the page that programs write, followed by the bank, in the memory of the program
    /// that opened the session, if that has mapped it.
    pub(super) bank: Option<u64>,
    /// The pages of the bank. Dropped after `session`, which refers to them.
    lent: Option<Arc<LentPages>>,
    /// Handlers of thresholds, by event.
    handlers: Vec<Option<UpcallHandler>>,
    /// Handler to call when the program has entered another phase.
    change_handler: Option<UpcallHandler>,
    /// Bytes of the stack to copy with each sample.
    pub(super) stack_bytes: u64,
    /// Counts of each thread, from the first call that requests them.
    pub(super) threads: Option<Box<ThreadCounts>>,
    /// Counts of the counter unit, if the session uses it.
    pub(super) unit: Option<UnitCounts>,
    /// The CPU that the context counts, if it counts a CPU instead of a program.
    cpu: Option<CountedCpu>,
    /// Held while this session needs exclusive counters: no session on whole CPUs may start.
    _claim: Option<Claim>,
}

/// Identity of a program to count.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The program's number.
    pub pid: u32,
    /// The program's name.
    pub name: String,
    /// The program's address space ([`AddressSpace::id`]).
    pub space: u64,
}

/// The opener of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The command line, which may count everything. No program may stop or read the session.
    CommandLine,
    /// A program, by its number.
    Program(u32),
}

fn log_plan(id: u32, session: &Session, resolved: &[Resolved]) {
    if !log::log_enabled!(log::Level::Info) {
        return;
    }
    let plan = session.plan().explain(|event| resolved[event].name.as_str()).to_string();
    for line in plan.lines() {
        log::info!("session {id}: {line}");
    }
}

impl Context {
    /// Opens a session on a program for a list of events.
    ///
    /// # Errors
    /// The list is wrong, the owner may not count it, or this PMU cannot.
    pub fn open(
        subject: Subject,
        owner: Owner,
        list: &str,
        config: SessionConfig,
    ) -> Result<Self, Refusal> {
        let found = settings::pmu()?;
        let (resolved, demands) = catalogue::resolve(found, list, config.mode)?;
        if owner != Owner::CommandLine {
            catalogue::permit_kernel(config.mode, &demands)?;
        }
        let id = session_id::next();
        let instances = Instances::of(config, demands.len())?;
        // In per-thread mode, one truth region (with this id) covers all threads.
        let own_id = if instances.is_some() { session_id::next() } else { id };
        let (seed, layout) = (settings::seed(), settings::layout(found));
        let mut session = Session::open(own_id, subject.space, config, seed, demands, &layout)
            .map_err(|refused| ResolveError::of_plan(refused, &resolved))?;
        session.set_overcount(settings::overcount());
        let is_alone = config.exclusive || session.counts_kernel();
        let is_alone = is_alone && config.scope != Scope::Cpus;
        let claim = is_alone.then(|| Claim::take(Purpose::Alone)).transpose()?;
        session.set_bounds(found.catalogue().bounds(&resolved, config.mode));
        log_plan(id, &session, &resolved);
        let (program, groups) = (&subject.name, session.plan().groups.len());
        log::debug!("session {id}: on {program}, {list}, {groups} groups, {config:?}");
        Ok(Context {
            unit: config.unit.then(|| UnitCounts::new(found, &resolved)).transpose()?,
            id,
            session,
            instances,
            resolved,
            owner,
            pid: subject.pid,
            program: subject.name,
            started: false,
            start_pending: false,
            is_default: false,
            bank: None,
            lent: None,
            handlers: Vec::new(),
            change_handler: None,
            stack_bytes: 0,
            threads: None,
            cpu: None,
            _claim: claim,
        })
    }

    /// Opens a session of the command line on a program that has not run yet.
    ///
    /// # Errors
    /// The list is wrong, this PMU cannot count it, or its phases cannot be tracked as in `phases`.
    pub fn around(
        subject: Subject,
        list: &str,
        config: SessionConfig,
        phases: Option<PhaseConfig>,
    ) -> Result<Box<Self>, Refusal> {
        let mut context = Context::open(subject, Owner::CommandLine, list, config)?;
        if let Some(phases) = phases {
            context.track_phases(phases, None)?;
        }
        Ok(Box::new(Context { start_pending: true, ..context }))
    }

    /// Returns whether the counted program itself opened the session.
    pub fn is_own(&self) -> bool {
        self.owner == Owner::Program(self.pid)
    }

    /// The reason why no other session may count the program at the same time, if there is one.
    pub fn why_alone(&self) -> Option<&'static str> {
        if self.session.config().exclusive {
            return Some("a session of this program is exclusive");
        }
        let counts_kernel = self.session.counts_kernel();
        counts_kernel.then_some("a session that counts ring 0 cannot share the counters")
    }

    /// Name of the program that it counts.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Starts counting on the CPU that runs the program.
    pub(super) fn begin(&mut self) {
        self.started = true;
        self.session.note_start();
        self.tags().for_each(|tag| mark(Op::OpenSession, tag));
    }

    /// Stops counting on the CPU that runs the program, if it is started.
    pub(super) fn end(&mut self) {
        if take(&mut self.started) {
            self.tags().for_each(|tag| mark(Op::CloseSession, tag));
        }
    }

    /// Starts counting a program that is not running when it is next switched in.
    ///
    /// # Errors
    /// The session is started already.
    pub fn start_later(&mut self) -> Result<(), Error> {
        if self.started || self.start_pending {
            return Err(Error::WrongState);
        }
        self.start_pending = true;
        Ok(())
    }

    /// Stops counting a program that is not running; `space` is the program's.
    ///
    /// # Errors
    /// The session is not started.
    pub fn stop_now(&mut self, space: &AddressSpace) -> Result<(), Error> {
        if take(&mut self.started) {
            self.tags().for_each(|tag| mark_in(space, Op::CloseSession, tag));
        } else if !take(&mut self.start_pending) {
            return Err(Error::WrongState);
        }
        Ok(())
    }

    /// The session's number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The tags of the truth's regions while it counts: its own, and the running thread's when
    /// counting per thread.
    fn tags(&self) -> impl Iterator<Item = u32> + use<> {
        let own = self.instances.is_some().then_some(self.session.id());
        core::iter::once(self.id).chain(own)
    }

    /// The result of `SESSION_OPEN`.
    pub fn opened(&self) -> Opened {
        Opened { session: self.id(), events: self.events() as u32 }
    }

    /// Counts of the counter unit, in the order of the list; the session is on no unit now.
    ///
    /// # Errors
    /// The session does not use the unit.
    pub fn unit_counts(&self) -> Result<Vec<u64>, Error> {
        let counts = self.unit.as_ref().ok_or(Error::WrongState)?;
        Ok(counts.counts().to_vec())
    }

    /// Number of logical counters.
    pub fn events(&self) -> usize {
        self.resolved.len()
    }

    /// The engine's statistics.
    pub fn stats(&self) -> SessionStats {
        match &self.instances {
            Some(instances) => instances.stats(&self.session),
            None => self.session.stats(),
        }
    }

    /// Starts readings in steps, or readings `by_cycles`; `None` if there are few events.
    ///
    /// # Errors
    /// No memory is left.
    pub fn begin_readings(&self, by_cycles: bool) -> Result<Option<Box<PendingReadings>>, Error> {
        PendingReadings::begin(&self.session, by_cycles)
    }

    /// Every event's value, in the order of the list. With `of`, whose steps are done, as of the
    /// moment when it began. Otherwise as of now: by cycles alone if `by_cycles`, else the best
    /// estimate.
    pub fn readings(&mut self, of: Option<Box<PendingReadings>>, by_cycles: bool) -> Vec<Reading> {
        vouched(match of {
            Some(of) => of.complete(&mut self.session),
            None if by_cycles => self.session.readings_by_cycles(),
            None => self.session.readings(),
        })
    }

    /// Starts samples of an event, using the bank; `memory` is the measured program's.
    ///
    /// # Errors
    /// The event does not exist, the processor does not record branches, the stack is too long, the
    /// rate too high, the session is started without a mapped bank, or no memory is left.
    pub fn set_period(&mut self, memory: &mut UserMemory, of: Samples) -> Result<(), Error> {
        if of.event >= self.events() || of.stack_bytes > MAX_STACK_BYTES || of.hz > MAX_SAMPLE_HZ {
            return Err(Error::BadArgument);
        }
        if !of.branches.is_empty() {
            settings::permit_branches(of.branches, self.session.counts_kernel())?;
        }
        if !heap::has_room() {
            return Err(Error::NoMemory);
        }
        if self.instances.is_some() {
            return Err(Error::WrongState);
        }
        if self.is_own() {
            self.map(memory)?;
        } else {
            self.make_bank(self.id())?;
        }
        match clock::tsc_hz().checked_div(of.hz) {
            Some(ticks) => self.session.set_rate(of.event, ticks),
            None => self.session.set_period(of.event, of.period),
        }
        .map_err(refused_threshold)?;
        self.stack_bytes = of.stack_bytes;
        self.session.set_branches(of.branches);
        Ok(())
    }

    /// The histogram of samples: addresses and their counts. Address 0 counts samples without an
    /// address, and those without room.
    pub fn samples(&self) -> impl Iterator<Item = (u64, u64)> {
        let samples = self.session.samples();
        let others = samples.map_or(0, Histogram::others);
        let addresses = samples.into_iter().flat_map(Histogram::addresses);
        addresses.chain((others > 0).then_some((0, others)))
    }

    /// Sets the threshold of an event.
    ///
    /// # Errors
    /// There is no such event, or no bank.
    pub(super) fn set_threshold(
        &mut self,
        Threshold { event, count, handler }: Threshold,
    ) -> Result<(), Error> {
        self.session.set_threshold(event, count).map_err(refused_threshold)?;
        self.handlers.resize(self.resolved.len(), None);
        self.handlers[event] = handler;
        Ok(())
    }

    /// Takes a fired threshold with a handler (handler, event, count), or a change of phase.
    pub(super) fn take_upcall(&mut self) -> Option<Upcall> {
        while let Some((event, count)) = self.session.take_fired() {
            if let Some(handler) = self.handlers.get(event).copied().flatten() {
                return Some((handler, event as u64, count));
            }
        }
        self.take_change()
    }
}
