//! The kernel's side of the sampling engine: whom it counts for, and where results go.
//!
//! Each CPU has a [`Measure`]: its multiplexer and its end of the trace ring. Each program that
//! opened a session has a [`Context`], which is the CPU's while the program runs and the program's
//! while it waits. The overflow path touches these two and the interrupt controller, and nothing
//! that another CPU could hold. What of it the kernel may be at when the interrupt comes is [`Own`].

mod context;
mod direct;
mod kept;
mod own;
mod port;
mod settings;
mod stream;
mod trace;
mod truth;

use alloc::boxed::Box;
use core::mem::take;

use tally_abi::{
    Error, Mode, SessionConfig,
    bank::HALF_WIDTH_TICKS,
    boot::{Delivery, Failure},
    trace::End,
    vpmu::Op,
};
use tally_engine::{Counts, Group, Multiplexer, Pmu};
use tally_pmu::{DetectedPmu, Driver, InitError, bus::Native};

pub use context::{Context, Refusal, Subject};
pub use direct::OwnCounters;
pub use own::Own;
use settings::{detected, lack, pmu, settings};
pub use settings::{init, is_alike, overflows, permit, pmu_info, seed};
pub use stream::finish;
pub use trace::ring_memory;
use trace::{AtInterrupt, Trace, Tsc};
use truth::mark;

use crate::{
    cpu::{self, entry::Interrupted, lapic::Lapic},
    task::{Process, divert::Handler},
};

/// Groups whose spread is worked out at each turn of the scheduler, where shares adapt: some thousands of
/// instructions for each of its events, as the kernel has no floating-point unit.
const GROUPS_A_TICK: usize = 1;

/// Makes the driver of this CPU, once.
fn driver(cpu: u16, found: &DetectedPmu) -> Result<Driver<Native>, InitError> {
    let init = || {
        // SAFETY: (1) this is ring 0; (2) `detect` found the PMU on this machine, whose CPUs are alike; (3)
        // the driver stays with this CPU.
        let bus = unsafe { Native::new() };
        found.init_cpu(bus, overflows() == Delivery::Nmi)
    };
    if settings().fail == Some(Failure::Pmu) && cpu > 0 {
        init()?.restore(&Group::NONE, Mode::User, &Counts::default());
    }
    init()
}

/// One CPU's part of the engine.
pub struct Measure {
    multiplexer: Option<Multiplexer<Driver<Native>>>,
    /// What is measured of the program that runs on this CPU.
    context: Option<Box<Context>>,
    /// The counters that it looks after itself.
    own: Option<Box<OwnCounters>>,
    /// Whether ring 3 may use RDPMC.
    rdpmc_allowed: bool,
    trace: Trace,
    lapic: Lapic,
}

impl Measure {
    /// Takes this CPU's PMU over. Runs on the CPU itself, once.
    pub fn new(cpu: u16, lapic: &Lapic) -> Self {
        let multiplexer = detected().ok().and_then(|found| {
            let others = lapic.pmi_msr_accesses(overflows());
            let multiplexer = |driver| Multiplexer::new(driver, cpu, others);
            driver(cpu, found).map_err(|reason| lack(cpu, reason)).ok().map(multiplexer)
        });
        let trace = Trace::new(cpu, *lapic, settings().trace);
        let lapic = *lapic;
        Measure { multiplexer, context: None, own: None, rdpmc_allowed: false, trace, lapic }
    }

    /// The overflow interrupt.
    #[inline(always)]
    fn overflow(&mut self, interrupted: &Interrupted, delivery: Delivery) {
        if let Some(multiplexer) = &mut self.multiplexer {
            let session = self.context.as_mut().map(|context| &mut context.session);
            let mut sink = AtInterrupt { trace: &mut self.trace, interrupted };
            multiplexer.overflow(session, &Tsc, &mut sink);
        }
        self.lapic.end_pmi(delivery);
    }

    /// A program comes onto this CPU.
    pub fn enter(&mut self, process: &mut Process) {
        self.context = process.context.take();
        self.load_direct(process);
        self.let_rdpmc();
        let starts = |context: &mut Box<Context>| take(&mut context.starts);
        if self.context.as_mut().is_some_and(starts) {
            if self.start().is_err() {
                log::error!("{}: this CPU cannot count", process.name);
            }
        } else if let (Some(multiplexer), Some(context)) =
            (&mut self.multiplexer, &mut self.context)
            && context.started
        {
            multiplexer.resume(&mut context.session, &Tsc, &mut self.trace);
        }
        // It may have fired as the program left a CPU.
        self.remind();
    }

    /// If a threshold of the running program has fired and nobody has heard of it, an interrupt tells.
    pub fn remind(&self) {
        if self.context.as_ref().is_some_and(|context| context.session.has_fired()) {
            self.trace.upcall();
        }
    }

    /// The program leaves this CPU for a time.
    pub fn leave(&mut self, process: &mut Process) {
        self.suspend(End::SwitchedOut);
        self.settle();
        process.context = self.context.take();
        self.save_direct();
        process.own_counters = self.own.take();
        self.let_rdpmc();
    }

    /// RDPMC is for a program that sees its logical counters or looks after them itself, while it is
    /// here.
    fn let_rdpmc(&mut self) {
        let context = self.context.as_ref().filter(|context| context.session.has_bank());
        if let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, context)
            && !context.session.is_running()
        {
            multiplexer.scrub_counters(&context.session);
        }
        let allowed = context.is_some() || self.own.is_some();
        if allowed != self.rdpmc_allowed {
            cpu::allow_rdpmc(allowed);
            self.rdpmc_allowed = allowed;
        }
    }

    /// Lets the running program see its logical counters; gives their address.
    ///
    /// # Errors
    /// It has no session, it counts already, or there is no memory.
    pub fn map(&mut self, process: &mut Process) -> Result<u64, Error> {
        let address = self.context.as_mut().ok_or(Error::NoSession)?.map(process)?;
        self.let_rdpmc();
        Ok(address)
    }

    /// The scheduler's timer: shares follow what is uncertain, and the running program hears of its
    /// counters' errors, and of its counts, so that what comes between fits the 32 bits that it looks
    /// at however long a slice is. Where ring 0 is counted, an overflow may have been lost.
    pub fn tick(&mut self) {
        let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &mut self.context) else {
            return;
        };
        context.session.adapt(GROUPS_A_TICK);
        let session = &mut context.session;
        let exposed = session.has_bank();
        if exposed || session.counts_kernel() {
            multiplexer.sync(session, &Tsc, &mut self.trace);
        }
        if exposed {
            session.publish_errors(HALF_WIDTH_TICKS);
        }
    }

    /// A program that has stopped its counters by its own word, as the engine found, has stopped.
    fn settle(&mut self) {
        if let Some(context) = &mut self.context
            && context.started
            && context.session.is_stopped()
        {
            context.started = false;
            mark(Op::Close, context.id());
        }
    }

    fn suspend(&mut self, end: End) {
        if let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &mut self.context)
            && context.session.is_running()
        {
            multiplexer.suspend(&mut context.session, end, &Tsc, &mut self.trace);
        }
    }

    /// Makes a session for the program that runs here, out of a list of events: its number.
    ///
    /// # Errors
    /// Why not, for people.
    pub fn open(
        &mut self,
        process: &Process,
        list: &str,
        config: SessionConfig,
    ) -> Result<u32, Refusal> {
        if self.context.is_some() || self.own.is_some() {
            return Err(Error::Busy.into());
        }
        let context = Context::open(Subject::of(process), process.pid, list, config)?;
        Ok(self.context.insert(Box::new(context)).id())
    }

    /// Brings the values of the running program's session up to date, if it opened it and it has this
    /// number.
    ///
    /// # Errors
    /// It has no such session.
    pub fn sync(&mut self, session: u64) -> Result<(), Error> {
        let context = self.context.as_ref();
        let is_it = context.is_some_and(|it| u64::from(it.id()) == session && it.is_own());
        if !is_it {
            return Err(Error::NoSession);
        }
        self.update();
        self.settle();
        Ok(())
    }

    /// Brings the values of the running program's session up to date, if it has one.
    fn update(&mut self) {
        if let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &mut self.context) {
            multiplexer.sync(&mut context.session, &Tsc, &mut self.trace);
        }
    }

    /// The running program's context, after [`Self::sync`], with all that is told of its values.
    ///
    /// # Errors
    /// It has none.
    pub fn context(&mut self) -> Result<&mut Context, Error> {
        let context = self.context.as_mut().ok_or(Error::NoSession)?;
        context.session.publish_errors(1);
        Ok(context)
    }

    /// Takes samples of an event of the running program's session, after [`Self::sync`].
    ///
    /// # Errors
    /// There is no such event, the session runs and is not mapped, or there
    /// are too many thresholds.
    pub fn set_period(
        &mut self,
        process: &mut Process,
        event: usize,
        period: u64,
    ) -> Result<(), Error> {
        let context = self.context.as_mut().ok_or(Error::NoSession)?;
        context.set_period(process, event, period)?;
        self.update();
        self.let_rdpmc();
        Ok(())
    }

    /// Sets the threshold of an event of the running program's session, after [`Self::sync`].
    ///
    /// # Errors
    /// There is no such event, or no bank, or there are too many.
    pub fn set_threshold(
        &mut self,
        event: usize,
        count: Option<u64>,
        handler: Option<Handler>,
    ) -> Result<(), Error> {
        let context = self.context.as_mut().ok_or(Error::NoSession)?;
        context.set_threshold(event, count, handler)?;
        self.update();
        Ok(())
    }

    /// A threshold of the running program that has fired, with its handler, event and count.
    pub fn take_upcall(&mut self) -> Option<(Handler, u64, u64)> {
        self.context.as_mut()?.take_upcall()
    }

    /// The program asks for counting to begin, or to go on.
    ///
    /// # Errors
    /// It has no session, it has begun, or this CPU cannot count.
    pub fn start(&mut self) -> Result<(), Error> {
        let context = self.context.as_mut().ok_or(Error::NoSession)?;
        if context.started {
            return Err(Error::WrongState);
        }
        let multiplexer = self.multiplexer.as_mut().ok_or(Error::NoPmu)?;
        context.started = true;
        mark(Op::Open, context.id());
        multiplexer.resume(&mut context.session, &Tsc, &mut self.trace);
        Ok(())
    }

    /// The program asks for counting to pause.
    ///
    /// # Errors
    /// It does not count.
    pub fn stop(&mut self) -> Result<(), Error> {
        if !self.context.as_ref().is_some_and(|context| context.started) {
            return Err(Error::WrongState);
        }
        self.pause();
        Ok(())
    }

    /// The running program's session ends, if it has one: counting stops and the last values are
    /// told.
    pub fn close(&mut self, process: &mut Process) {
        self.pause();
        if let Some(context) = self.context.take() {
            context.close(Some(process));
            self.let_rdpmc();
        }
    }

    /// The running program ends: counting stops. Gives the context that another program opened.
    pub fn end(&mut self, process: &mut Process) -> Option<Box<Context>> {
        self.close_direct();
        if self.context.as_ref().is_none_or(|context| context.is_own()) {
            self.close(process);
        }
        self.pause();
        let mut context = self.context.take();
        if let Some(context) = &mut context {
            context.lose_bank();
        }
        context
    }

    /// Counting stops, whether it went on or not.
    fn pause(&mut self) {
        self.suspend(End::Stopped);
        if let Some(context) = self.context.as_mut().filter(|context| context.started) {
            context.started = false;
            mark(Op::Close, context.id());
        }
    }

    /// Sends this CPU's trace records to the host.
    pub fn drain(&mut self) {
        let unowned = self.multiplexer.as_ref().map_or(0, Multiplexer::stray_overflows);
        assert!(unowned == 0, "an overflow interrupt found counters at work that nobody owns");
        self.trace.drain();
    }
}
