//! Sessions: lists of events, counted between start and stop.

use alloc::{string::String, vec, vec::Vec};

use tally_abi::{
    CpuSet, CpuSetWords, Error, Instance, Opened, Reading, Scope, SessionConfig, SessionStats,
    instance::InstanceWords,
    reading::ReadingWords,
    session::{MAX_DETAIL_BYTES, StatsWords},
};

use crate::{
    bank::Bank,
    error::{OpenError, check, text_of},
    program::Program,
    sequences, sys,
};

/// The target of a session's counts.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// The program with this number; 0 is the caller.
    Program(u64),
    /// The CPUs of a set; all, if it is empty.
    Cpus(CpuSet),
}

/// A session on a list of events. Dropping it closes it.
#[derive(Debug)]
pub struct Session {
    id: u64,
    events: usize,
    of: Target,
    config: SessionConfig,
    /// Cost of counting beside other sessions, as a sentence; empty if there were none.
    cost: String,
}

impl Session {
    /// Opens a session that counts `events` for this program. The list has the vendor's names, or
    /// raw events such as `r01c2`, separated by commas or white space. A program has up to 8
    /// sessions on itself, and other programs can open up to 8 more on it; they take turns on the
    /// counters.
    ///
    /// # Errors
    /// This machine cannot count the list, the slice is out of range, the program has 8 sessions on
    /// itself, or the session conflicts with another one; the detail names the reason.
    pub fn open(events: &str, config: SessionConfig) -> Result<Session, OpenError> {
        Session::open_of(Target::Program(0), events, config)
    }

    /// Opens a session that counts for a program which this one loaded. The session can be read at
    /// any time, even after the program's end.
    ///
    /// # Errors
    /// See [`Self::open`]; or the program has ended.
    pub fn open_on(
        program: &Program,
        events: &str,
        config: SessionConfig,
    ) -> Result<Session, OpenError> {
        Session::open_of(Target::Program(program.number()), events, config)
    }

    /// Opens a session that counts whole CPUs in ring 3, whichever programs they run. The empty
    /// set stands for all CPUs. Each CPU is an instance ([`Self::instances`]). Needs `paranoid=0`
    /// on the command line.
    ///
    /// # Errors
    /// See [`Self::open`]; or a CPU does not exist, or the machine's user does not permit it.
    pub fn open_on_cpus(
        cpus: CpuSet,
        events: &str,
        config: SessionConfig,
    ) -> Result<Session, OpenError> {
        let config = SessionConfig { scope: Scope::Cpus, ..config };
        Session::open_of(Target::Cpus(cpus), events, config)
    }

    fn open_of(of: Target, events: &str, config: SessionConfig) -> Result<Session, OpenError> {
        let words = config.to_words();
        let set: CpuSetWords;
        let target = match of {
            Target::Program(number) => number,
            Target::Cpus(cpus) => {
                set = cpus.to_words();
                set.as_ptr() as u64
            }
        };
        let mut detail = [0_u8; MAX_DETAIL_BYTES];
        let arguments = [
            events.as_ptr() as u64,
            events.len() as u64,
            words.as_ptr() as u64,
            detail.as_mut_ptr() as u64,
            detail.len() as u64,
            target,
        ];
        // SAFETY: the list, the set and the configuration are valid for reading, the detail for
        // writing.
        let result = check(unsafe { sys::tally_call(sys::SESSION_OPEN, arguments) });
        let word = result.map_err(|error| OpenError::new(error, &detail))?;
        let Opened { session, events } = Opened::from_word(word);
        let cost = text_of(&detail).into();
        Ok(Session { id: session.into(), events: events as usize, of, config, cost })
    }

    /// Counts other events of the same program or CPUs, in the same configuration. The counts of
    /// the former list are reported as at the session's end. The new list begins at 0, under
    /// another session number, and is not started; map its bank and set thresholds and samples
    /// again.
    ///
    /// # Errors
    /// See [`Self::open`]. The session is then unchanged, and continues to count if it is started.
    /// Both sessions exist for a moment. Therefore one that must be alone (exclusive, or in ring 0)
    /// returns `Busy`, and the last of 8 returns `TooManySessions`: drop it and open another.
    pub fn change(&mut self, events: &str) -> Result<(), OpenError> {
        *self = Session::open_of(self.of, events, self.config)?;
        Ok(())
    }

    /// Starts or resumes counting.
    ///
    /// # Errors
    /// The session is already started.
    pub fn start(&self) -> Result<(), Error> {
        self.call(sys::SESSION_START, 0, 0).map(|_| ())
    }

    /// Stops counting.
    ///
    /// # Errors
    /// The session is already stopped.
    pub fn stop(&self) -> Result<(), Error> {
        self.call(sys::SESSION_STOP, 0, 0).map(|_| ())
    }

    /// Returns the session's number.
    #[doc(hidden)]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns what counting beside the program's other sessions costs this one and those, as a
    /// sentence; `None` if there were none when it was opened.
    pub fn cost_beside(&self) -> Option<&str> {
        Some(&*self.cost).filter(|cost| !cost.is_empty())
    }

    /// Returns the number of events.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Reads the value of every event, in the order of the list. While the session is started,
    /// values are current.
    ///
    /// With a bank, or more than 64 events, the call works in steps. If an interrupt is pending
    /// between two steps, its SYSCALL retires again, and is counted again.
    ///
    /// # Errors
    /// The kernel's answer has the format of another version.
    pub fn read(&self) -> Result<Vec<Reading>, Error> {
        let mut words: Vec<ReadingWords> = vec![[0; 8]; self.events];
        self.read_words(&mut words)?;
        decode(words)
    }

    /// Reads like [`Self::read`], but stores the values as the kernel writes them
    /// ([`Reading::from_words`]), as many as fit, and returns the number of events. The call enters
    /// the kernel within some twenty instructions and allocates nothing.
    ///
    /// # Errors
    /// None while the session is open.
    pub fn read_words(&self, to: &mut [ReadingWords]) -> Result<usize, Error> {
        let events = self.call(sys::SESSION_READ, to.as_mut_ptr() as u64, to.len() as u64)?;
        Ok(events as usize)
    }

    /// Reads the instances of a session that counts instances separately ([`Scope`](crate::Scope)):
    /// the identity of each, and the value of every event, in the order of the list. Threads are in
    /// the order of their first turns, CPUs in that of their numbers.
    ///
    /// # Errors
    /// `WrongState`: the session does not count instances separately.
    pub fn instances(&self) -> Result<Vec<(Instance, Vec<Reading>)>, Error> {
        let mut all = Vec::new();
        loop {
            let (mut of, mut words) = (InstanceWords::default(), vec![[0; 8]; self.events]);
            let [to, readings] = [of.as_mut_ptr() as u64, words.as_mut_ptr() as u64];
            let arguments = [self.id, all.len() as u64, to, readings, words.len() as u64, 0];
            // SAFETY: the buffers are of the sizes that the call is told.
            let count = check(unsafe { sys::tally_call(sys::SESSION_INSTANCE, arguments) })?;
            if all.len() as u64 >= count {
                return Ok(all);
            }
            all.push((Instance::from_words(of), decode(words)?));
        }
    }

    /// Reads the counts of the counter unit for every event up to now, in the order of the list,
    /// all exact. For a session with [`SessionConfig::unit`].
    ///
    /// # Errors
    /// `WrongState`: the session does not count on the unit.
    pub fn unit_counts(&self) -> Result<Vec<u64>, Error> {
        let mut counts = vec![0; self.events];
        self.call(sys::SESSION_UNIT, counts.as_mut_ptr() as u64, counts.len() as u64)?;
        Ok(counts)
    }

    /// Returns the engine's statistics of the session and of its own work.
    ///
    /// # Errors
    /// `WrongState`: the session counts whole CPUs and is not stopped.
    pub fn stats(&self) -> Result<SessionStats, Error> {
        let mut words = StatsWords::default();
        self.call(sys::SESSION_STATS, words.as_mut_ptr() as u64, 0)?;
        Ok(SessionStats::from_words(words))
    }

    /// Maps the session's bank, from which the program reads logical counters without system calls.
    /// Must be called before the session is started.
    ///
    /// The bank of a session on another program ([`Self::open_on`]) holds the counts up to the end
    /// of the last slice, or of the last scheduler tick (10 ms), while that program runs, on any
    /// CPU; and all counts when it does not run. [`Bank::start`] and [`Bank::stop`] make system
    /// calls there.
    ///
    /// # Errors
    /// The session is started, counts threads separately, or is on a program that has ended; or
    /// there is no memory.
    pub fn map(&self) -> Result<Bank<'_>, Error> {
        self.map_cpu(0)
    }

    /// Maps the bank of a CPU of a session on whole CPUs, by its index among the instances. The
    /// bank holds the counts up to the end of the CPU's last slice, or of the last scheduler tick
    /// (10 ms); half widths are those of the last [`Self::instances`]. [`Bank::start`] and
    /// [`Bank::stop`] start and stop the session.
    ///
    /// # Errors
    /// See [`Self::map`]; `BadArgument`: there is no such CPU.
    pub fn map_cpu(&self, index: usize) -> Result<Bank<'_>, Error> {
        let address = self.call(sys::SESSION_MAP, index as u64, sequences::address())?;
        // SAFETY: the kernel keeps a bank of all events there, behind the program's writable page,
        // until the session closes, which takes the `Session` that the bank borrows.
        Ok(unsafe { Bank::new(address as *const u64, self.events) })
    }

    /// Makes a call whose buffer, if it has one, is valid for the call's result.
    fn call(&self, number: u64, buffer: u64, room: u64) -> Result<u64, Error> {
        // SAFETY: the callers here pass buffers of their own, of the call's size.
        check(unsafe { sys::tally_call(number, [self.id, buffer, room, 0, 0, 0]) })
    }
}

/// Decodes the readings that a call wrote.
///
/// # Errors
/// The readings have the format of another version.
pub(crate) fn decode(words: Vec<ReadingWords>) -> Result<Vec<Reading>, Error> {
    let readings = words.into_iter().map(Reading::from_words);
    readings.map(|reading| reading.map_err(|_| Error::BadArgument)).collect()
}

impl Drop for Session {
    fn drop(&mut self) {
        // An error means that the session is closed already.
        let _ = self.call(sys::SESSION_CLOSE, 0, 0);
    }
}
