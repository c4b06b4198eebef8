//! Event sets: their contents, and counting with them.

use alloc::{boxed::Box, string::String, vec, vec::Vec};
use core::{ffi::c_int, ptr};

use tally_abi::{Mode, Reading, Value, reading::Reason};
use tally_pmu::Derived;
use tally_rust::{Part, derived};

use crate::{
    answer::Code,
    events::Events,
    histogram::Histograms,
    layout::OverflowHandler,
    machine::{self, KERNEL, USER},
    overflow::{self, Overflow},
    pool::Pool,
};

/// Value that `PAPI_read` gives for an event that has not been counted at all.
const NOT_MEASURED: i64 = -1;

/// Bits of a state.
const STOPPED: c_int = 0x01;
const RUNNING: c_int = 0x02;
const OVERFLOWING: c_int = 0x10;
const PROFILING: c_int = 0x20;
const MULTIPLEXING: c_int = 0x40;

/// An event set.
pub(crate) struct Set {
    /// Event codes.
    pub(crate) events: Vec<c_int>,
    /// Whether the set belongs to the component: once it has had an event, or was assigned to it.
    pub(crate) has_component: bool,
    pub(crate) is_multiplexed: bool,
    pub(crate) domain: c_int,
    running: Option<Running>,
    /// Values and readings at the last stop.
    values: Vec<i64>,
    readings: Vec<Reading>,
    pub(crate) watched: Vec<Watched>,
    pub(crate) handler: Option<OverflowHandler>,
    /// Flags of `PAPI_overflow`.
    pub(crate) flags: c_int,
}

/// Counting state of a set.
struct Running {
    /// Index of the session in the pool.
    session: usize,
    thread: u64,
    part: Part<'static>,
    second_terms: Vec<SecondTerm>,
}

/// Second event of a derived preset. The session's list has it after all first ones, so that the
/// other events have the same positions as in the set.
struct SecondTerm {
    /// Position of the preset in the set.
    place: usize,
    subtracts: bool,
}

/// An event with a threshold.
pub(crate) struct Watched {
    pub(crate) code: c_int,
    pub(crate) threshold: u64,
    pub(crate) histograms: Option<Box<Histograms>>,
}

impl Set {
    pub(crate) fn new(domain: c_int) -> Set {
        Set {
            events: Vec::new(),
            has_component: false,
            is_multiplexed: false,
            domain,
            running: None,
            values: Vec::new(),
            readings: Vec::new(),
            watched: Vec::new(),
            handler: None,
            flags: 0,
        }
    }

    /// Returns the bits of the set's state.
    pub(crate) fn state(&self) -> c_int {
        let profiles = |watched: &Watched| watched.histograms.is_some();
        let bits = [
            (self.is_running(), RUNNING),
            (!self.is_running(), STOPPED),
            (!self.watched.is_empty(), OVERFLOWING),
            (self.watched.iter().any(profiles), PROFILING),
            (self.is_multiplexed, MULTIPLEXING),
        ];
        bits.into_iter().filter(|(is_set, _)| *is_set).fold(0, |state, (_, bit)| state | bit)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Returns whether the set counts the calling thread.
    pub(crate) fn is_running_here(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.thread == machine::thread())
    }

    pub(crate) fn check_component(&self) -> Result<(), Code> {
        if self.has_component { Ok(()) } else { Err(Code::NoCmp) }
    }

    pub(crate) fn check_stopped(&self) -> Result<(), Code> {
        if self.is_running() { Err(Code::IsRun) } else { Ok(()) }
    }

    /// Returns the position of an event.
    pub(crate) fn position(&self, code: c_int) -> Option<usize> {
        self.events.iter().position(|event| *event == code)
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, code: c_int) -> Result<(), Code> {
        self.check_stopped()?;
        if self.position(code).is_some() {
            return Err(Code::Cnflct);
        }
        self.events.push(code);
        self.has_component = true;
        self.forget();
        Ok(())
    }

    /// Removes an event, with its threshold.
    pub(crate) fn remove(&mut self, code: c_int) -> Result<(), Code> {
        self.check_stopped()?;
        let at = self.position(code).ok_or(Code::Inval)?;
        self.events.remove(at);
        self.watched.retain(|watched| watched.code != code);
        self.forget();
        Ok(())
    }

    /// Removes all events and thresholds.
    pub(crate) fn clear(&mut self) -> Result<(), Code> {
        self.check_stopped()?;
        *self = Set::new(self.domain);
        Ok(())
    }

    /// Clears the values and readings, which do not belong to the current list of events.
    fn forget(&mut self) {
        self.values = vec![0; self.events.len()];
        let value = Value::NotMeasured { reason: Reason::NotStarted };
        let reading = Reading { value, counted: 0, counted_cycles: 0, total_cycles: 0, slices: 0 };
        self.readings = vec![reading; self.events.len()];
    }

    /// Returns the kernel's list of the set's events, with the second terms of derived presets at
    /// its end.
    fn list(&self, events: &Events) -> Result<(String, Vec<SecondTerm>), Code> {
        let (mut list, mut last, mut second_terms) = (Vec::new(), Vec::new(), Vec::new());
        for (place, code) in self.events.iter().enumerate() {
            let name = events.name(*code)?;
            let Some(Derived { terms: [first, second], subtracts }) = events.derived(name) else {
                list.push(name);
                continue;
            };
            list.push(first);
            last.push(second);
            second_terms.push(SecondTerm { place, subtracts });
        }
        list.append(&mut last);
        Ok((list.join(","), second_terms))
    }

    fn mode(&self) -> Mode {
        match self.domain & (USER | KERNEL) {
            KERNEL => Mode::Kernel,
            USER => Mode::User,
            _ => Mode::Full,
        }
    }

    /// Starts counting the calling thread, from 0. `number` is that of the set.
    pub(crate) fn start(
        &mut self,
        number: c_int,
        events: &Events,
        pool: &mut Pool,
    ) -> Result<(), Code> {
        let is_private = !self.watched.is_empty();
        let (list, second_terms) = self.list(events)?;
        let session = pool.get(&list, self.mode(), is_private)?;
        let started = self.watch(number, pool, session).and_then(|()| pool.start(session));
        let part = started.and_then(|()| {
            let id = pool.session(session)?.id();
            Part::of(id).map_err(Code::of)
        });
        let mut part = part.inspect_err(|_| self.leave(pool, session))?;
        let thread = machine::thread();
        part.reset().map_err(Code::of)?;
        self.running = Some(Running { session, thread, part, second_terms });
        Ok(())
    }

    /// Sets the thresholds of a session that is not yet started.
    fn watch(&self, number: c_int, pool: &mut Pool, session: usize) -> Result<(), Code> {
        let session = pool.session(session)?;
        if !self.watched.is_empty() {
            // The kernel requires a mapped bank for thresholds, although it is not read here.
            session.map().map_err(Code::of)?;
        }
        for watched in &self.watched {
            let histograms = watched.histograms.as_deref();
            overflow::begin(
                session,
                &Overflow {
                    set: number,
                    event: self.position(watched.code).ok_or(Code::Bug)?,
                    threshold: watched.threshold,
                    handler: self.handler,
                    histograms: histograms
                        .map_or(ptr::null_mut(), |of| ptr::from_ref(of).cast_mut()),
                },
            )?;
        }
        Ok(())
    }

    fn leave(&self, pool: &mut Pool, session: usize) {
        if let (false, Ok(session)) = (self.watched.is_empty(), pool.session(session)) {
            overflow::end(session);
        }
        pool.stop(session);
    }

    /// Stops counting, and keeps the values.
    pub(crate) fn stop(&mut self, pool: &mut Pool) -> Result<(), Code> {
        if self.running.is_none() {
            return Err(Code::NotRun);
        }
        self.readings = self.readings_now()?;
        self.values = self.readings.iter().map(value).collect();
        if let Some(running) = self.running.take() {
            self.leave(pool, running.session);
        }
        Ok(())
    }

    /// Returns the readings since the start or the last reset; for a stopped set up to the stop.
    pub(crate) fn readings_now(&mut self) -> Result<Vec<Reading>, Code> {
        match &mut self.running {
            Some(running) => {
                let readings = running.part.read().map_err(refused)?;
                Ok(with_derived(readings, &running.second_terms))
            }
            None => Ok(self.readings.clone()),
        }
    }

    /// Returns these readings as numbers.
    pub(crate) fn values_now(&mut self) -> Result<Vec<i64>, Code> {
        match &self.running {
            Some(_) => Ok(self.readings_now()?.iter().map(value).collect()),
            None => Ok(self.values.clone()),
        }
    }

    /// Restarts counting from 0; sets a stopped set's values to 0.
    pub(crate) fn reset(&mut self) -> Result<(), Code> {
        match &mut self.running {
            Some(running) => running.part.reset().map_err(refused),
            None => {
                self.forget();
                Ok(())
            }
        }
    }
}

/// Converts the readings of a session's events to those of a set's events.
fn with_derived(mut readings: Vec<Reading>, second_terms: &[SecondTerm]) -> Vec<Reading> {
    let seconds = readings.split_off(readings.len() - second_terms.len());
    for (term, second) in second_terms.iter().zip(&seconds) {
        readings[term.place] = derived::reading(&readings[term.place], second, term.subtracts);
    }
    readings
}

/// Converts an error of a part, which can be read only by the thread that it counts.
fn refused(error: tally_abi::Error) -> Code {
    match error {
        tally_abi::Error::WrongState => Code::CLost,
        other => Code::of(other),
    }
}

/// Returns the number that PAPI's functions report. For an event that was counted in too few slices
/// for an error, this is its count, scaled.
fn value(reading: &Reading) -> i64 {
    match reading.value {
        Value::Exact { count } | Value::Estimated { estimate: count, .. } => count as i64,
        Value::NotMeasured { .. } if reading.counted_cycles > 0 => {
            let scaled = u128::from(reading.counted) * u128::from(reading.total_cycles);
            (scaled / u128::from(reading.counted_cycles)) as i64
        }
        Value::NotMeasured { .. } => NOT_MEASURED,
    }
}
