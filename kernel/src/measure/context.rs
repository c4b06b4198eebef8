//! What is measured of one program, by itself or by another.

use alloc::{
    boxed::Box,
    string::{String, ToString},
    vec::Vec,
};
use core::{
    mem::take,
    sync::atomic::{AtomicU32, Ordering},
};

use tally_abi::{
    Error, Mode, Reading, SessionConfig, SessionStats, Value, bank, vpmu::Op, wire::Message,
};
use tally_engine::{Demand, Session, ThresholdError, bank::Page, histogram::Histogram};
use tally_pmu::{DetectedPmu, ResolveError, Resolved};

use super::truth::mark_in;
use crate::{
    machine::serial,
    memory::{heap, space::Access},
    task::{Process, divert::Handler},
};

static NEXT_SESSION: AtomicU32 = AtomicU32::new(1);

/// Why a session could not be opened: the error and a text for people.
pub struct Refusal {
    /// The error.
    pub error: Error,
    /// What went wrong, where, what to do.
    pub detail: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal { error, detail: error.message().into() }
    }
}

impl From<ResolveError> for Refusal {
    fn from(refused: ResolveError) -> Self {
        Refusal { error: refused.error, detail: refused.to_string() }
    }
}

/// A number for a session, or for whatever else is marked for the truth's sake.
pub(super) fn next_id() -> u32 {
    NEXT_SESSION.fetch_add(1, Ordering::Relaxed)
}

/// What the events of a list are, and what they ask of the planner.
pub(super) fn resolve(
    found: &DetectedPmu,
    list: &str,
    mode: Mode,
) -> Result<(Vec<Resolved>, Vec<Demand>), Refusal> {
    let resolved = found.catalogue().resolve(list, mode)?;
    let demands = resolved.iter().map(|event| event.demand).collect();
    Ok((resolved, demands))
}

/// Fails where ring 0 is counted and may not be.
pub(super) fn permit_kernel<'a>(
    mode: Mode,
    mut demands: impl Iterator<Item = &'a Demand>,
) -> Result<(), Refusal> {
    match mode.kernel() || demands.any(|demand| demand.kernel) {
        true => super::permit(1, "counting in ring 0"),
        false => Ok(()),
    }
}

fn refused_threshold(error: ThresholdError) -> Error {
    match error {
        ThresholdError::NoSuchEvent => Error::BadArgument,
        ThresholdError::NoBank => Error::WrongState,
        ThresholdError::TooMany => Error::TooManyThresholds,
    }
}

/// What is measured of one program: its session, and what its events are.
pub struct Context {
    pub(super) session: Session,
    resolved: Vec<Resolved>,
    /// The program that opened it, by number.
    owner: u32,
    /// The program that it measures: its number and name.
    pid: u32,
    program: String,
    /// Between start and stop; the session itself runs only while the program does.
    pub(super) started: bool,
    /// Counting begins when the program next comes onto a CPU.
    pub(super) starts: bool,
    /// Where the program's own page is, and behind it those in which it sees its logical counters, if
    /// it asked for that.
    pub(super) bank: Option<u64>,
    /// By event: where the program wants to hear of its threshold.
    handlers: Vec<Option<Handler>>,
}

/// What a context has to know of the program that it measures.
#[derive(Clone, Debug)]
pub struct Subject {
    pid: u32,
    name: String,
    space: u64,
}

impl Subject {
    /// A program, as a subject.
    pub fn of(process: &Process) -> Subject {
        Subject { pid: process.pid, name: process.name.clone(), space: process.space.id() }
    }
}

/// The owner of a context that no program opened; their numbers begin at 1.
const NOBODY: u32 = 0;

impl Context {
    /// Makes a session on a program out of a list of events, for the program `owner`, if it may.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn open(
        subject: Subject,
        owner: u32,
        list: &str,
        config: SessionConfig,
    ) -> Result<Self, Refusal> {
        let context = Context::make(subject, owner, list, config)?;
        permit_kernel(config.mode, context.resolved.iter().map(|event| &event.demand))?;
        Ok(context)
    }

    fn make(
        subject: Subject,
        owner: u32,
        list: &str,
        config: SessionConfig,
    ) -> Result<Self, Refusal> {
        let found = super::pmu()?;
        let (resolved, demands) = resolve(found, list, config.mode)?;
        let (id, seed) = (next_id(), super::seed());
        let layout = found.layout();
        let mut session = Session::open(id, subject.space, config, seed, demands, &layout)
            .map_err(|refused| ResolveError::of_plan(refused, &resolved))?;
        session.set_bounds(found.catalogue().bounds(&resolved, config.mode));
        let plan = session.plan().explain(|event| resolved[event].name.as_str()).to_string();
        for line in plan.lines() {
            log::info!("session {id}: {line}");
        }
        Ok(Context {
            session,
            resolved,
            owner,
            pid: subject.pid,
            program: subject.name,
            started: false,
            starts: false,
            bank: None,
            handlers: Vec::new(),
        })
    }

    /// A context around the whole of a program that has not run yet.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn around(
        process: &Process,
        list: &str,
        config: SessionConfig,
    ) -> Result<Box<Self>, Refusal> {
        // Whoever says so on the command line may. It is not the program's: that could stop it, or read with it
        // what it may not count.
        let context = Context::make(Subject::of(process), NOBODY, list, config)?;
        Ok(Box::new(Context { starts: true, ..context }))
    }

    /// Whether the program that it measures opened it.
    pub fn is_own(&self) -> bool {
        self.owner == self.pid
    }

    /// Another program asks for counting to begin: it does when the program, which is not running,
    /// comes onto a CPU.
    ///
    /// # Errors
    /// It has begun.
    pub fn start_later(&mut self) -> Result<(), Error> {
        if self.started || self.starts {
            return Err(Error::WrongState);
        }
        self.starts = true;
        Ok(())
    }

    /// Another program asks for counting to pause. `process` is the program, which is not running.
    ///
    /// # Errors
    /// It does not count.
    pub fn stop_now(&mut self, process: &Process) -> Result<(), Error> {
        if take(&mut self.started) {
            mark_in(&process.space, Op::Close, self.id());
        } else if !take(&mut self.starts) {
            return Err(Error::WrongState);
        }
        Ok(())
    }

    /// The session's number.
    pub fn id(&self) -> u32 {
        self.session.id()
    }

    /// How many logical counters it has.
    pub fn events(&self) -> usize {
        self.resolved.len()
    }

    /// What the engine tells of it.
    pub fn stats(&self) -> SessionStats {
        self.session.stats()
    }

    /// Every event's name and value, in the order of the list.
    pub fn readings(&mut self) -> impl Iterator<Item = (&Resolved, Reading)> {
        let Context { resolved, session, .. } = self;
        resolved.iter().zip(session.readings())
    }

    /// Lets the program see its logical counters; gives their address.
    ///
    /// # Errors
    /// It counts already, or there is no memory.
    pub(super) fn map(&mut self, process: &mut Process) -> Result<u64, Error> {
        if let Some(address) = self.bank {
            return Ok(address + size_of::<Page>() as u64);
        }
        if self.started {
            return Err(Error::WrongState);
        }
        let found = super::pmu().map_err(|_| Error::NoPmu)?;
        let bytes = bank::bytes(self.events()) as u64;
        let address = process.map_for_kernel(bytes).map_err(|_| Error::NoMemory)?;
        let page_bytes = size_of::<Page>() as u64;
        if self.is_own() {
            // Its word that stops the counters is not for a program that another measures.
            let own = process.space.protect(address, page_bytes, Access::Write);
            own.expect("it was mapped just now");
        }
        self.bank = Some(address);
        let views = (address..address + bytes)
            .step_by(size_of::<Page>())
            .filter_map(|page| process.space.page_view(page));
        // SAFETY: (1) the frame holds zeros, which a page of atomics may; it is aligned as frames
        // are; (2) programs write none but their own page, whose words may be anything, and not
        // while the kernel does; (3) it is given back in `unmap`, after the session that holds this
        // reference, as no other way leads there (`Process::map_for_kernel`).
        let mut pages = views.map(|view| unsafe { &*view.cast::<Page>() });
        let own = pages.next().expect("every page was mapped just now");
        let exposed =
            self.session.map_bank(own, pages.collect(), |assignment| found.rdpmc(assignment));
        assert!(exposed, "every page was mapped just now");
        Ok(address + page_bytes)
    }

    /// Takes the bank out of the memory of `process`, the program that it measures.
    pub fn unmap(&mut self, process: &mut Process) {
        self.session.unmap_bank();
        if let Some(address) = self.bank.take() {
            process.unmap_for_kernel(address).expect("nobody else can unmap a bank");
        }
    }

    /// The program ends, and its memory with it, where its bank is; the session lives on.
    pub(super) fn lose_bank(&mut self) {
        self.session.unmap_bank();
        self.bank = None;
    }

    /// Takes samples of an event of `process`, the program that it measures, which sees its logical
    /// counters from here on.
    ///
    /// # Errors
    /// There is no such event, it counts and is not mapped, there is no memory,
    /// or there are too many thresholds.
    pub fn set_period(
        &mut self,
        process: &mut Process,
        event: usize,
        period: u64,
    ) -> Result<(), Error> {
        if event >= self.events() {
            return Err(Error::BadArgument);
        }
        if !heap::has_room() {
            return Err(Error::NoMemory);
        }
        self.map(process)?;
        self.session.set_period(event, period).map_err(refused_threshold)
    }

    /// Where samples fell: addresses and how often; 0 stands for those that have none or no room.
    pub fn samples(&self) -> impl Iterator<Item = (u64, u64)> {
        let samples = self.session.samples();
        let others = samples.map_or(0, Histogram::others);
        let told = samples.into_iter().flat_map(Histogram::addresses);
        told.chain((others > 0).then_some((0, others)))
    }

    /// Sets the threshold of an event.
    ///
    /// # Errors
    /// There is no such event, or no bank, or there are too many.
    pub(super) fn set_threshold(
        &mut self,
        event: usize,
        count: Option<u64>,
        handler: Option<Handler>,
    ) -> Result<(), Error> {
        self.session.set_threshold(event, count).map_err(refused_threshold)?;
        self.handlers.resize(self.resolved.len(), None);
        self.handlers[event] = handler;
        Ok(())
    }

    /// A threshold that has fired and that the program wants to hear of: handler, event, count.
    pub(super) fn take_upcall(&mut self) -> Option<(Handler, u64, u64)> {
        while let Some((event, count)) = self.session.take_fired() {
            if let Some(handler) = self.handlers.get(event).copied().flatten() {
                return Some((handler, event as u64, count));
            }
        }
        None
    }

    /// Ends the context: its last values are told, and the program, if it is still there, loses
    /// sight of its counters.
    pub fn close(mut self, process: Option<&mut Process>) {
        self.report();
        let bank = self.bank;
        drop(self.session);
        if let (Some(address), Some(process)) = (bank, process) {
            process.unmap_for_kernel(address).expect("nobody else can unmap a bank");
        }
    }

    /// Sends the last values to the host; where nobody listens, to the log.
    fn report(&mut self) {
        if !serial::has_wire() {
            return self.log();
        }
        let (session, stats) = (self.id(), self.stats());
        serial::send(&Message::Session {
            session,
            pid: self.pid,
            program: &self.program,
            config: self.session.config(),
        });
        for (event, reading) in self.readings() {
            let Resolved { name, native, mode, .. } = event;
            let (native, mode) = (*native, *mode);
            serial::send(&Message::Reading { session, event: name, native, mode, reading });
        }
        serial::send(&Message::Stats { session, stats });
    }

    fn log(&mut self) {
        log::info!("{}: session {}, half width at 95 %, share of time", self.program, self.id());
        for (event, reading) in self.readings() {
            let (event, share) = (&event.name, 100.0 * reading.coverage().unwrap_or_default());
            match reading.value {
                Value::Exact { count } => log::info!("{event:<44} {count:>16} exact"),
                Value::Estimated { estimate, half_width_95, .. } => {
                    log::info!("{event:<44} {estimate:>16} +-{half_width_95:.0} {share:.1}%");
                }
                Value::NotMeasured { reason } => {
                    log::info!("{event:<44} not measured: {}", reason.message());
                }
            }
        }
        let s = self.stats();
        log::info!("{} slices, {} rounds, {} overflow interrupts", s.slices, s.rounds, s.pmis);
        let (engine, session) = (s.engine_ticks, s.session_ticks);
        log::info!("{engine} of {session} TSC ticks were the engine's own");
    }
}
