//! State of the library, protected by one lock.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{
    ffi::{c_int, c_ulong, c_void},
    sync::atomic::{AtomicPtr, Ordering},
};

use tally_rust::{eprintln, lock::Lock, sys};

use crate::{
    answer::Code,
    events::Events,
    layout::ComponentInfo,
    machine::{self, Machine, USER},
    overflow::IN_LIBRARY,
    pointers::put,
    pool::Pool,
    set::Set,
};

/// Bits of `PAPI_is_initialized`.
pub(crate) const LOW_LEVEL: c_int = 1;
pub(crate) const HIGH_LEVEL: c_int = 2;
pub(crate) const THREADS: c_int = 4;

/// Number of pointers that a thread can store.
pub(crate) const OWN_POINTERS: usize = 4;

/// A thread that the library knows.
pub(crate) struct Thread {
    pub(crate) thread: u64,
    /// Result of `PAPI_thread_id` for the thread.
    pub(crate) id: c_ulong,
    pub(crate) pointers: [usize; OWN_POINTERS],
}

/// A region that a thread is in.
pub(crate) struct Entered {
    pub(crate) thread: u64,
    pub(crate) name: String,
}

/// A set owned by the library, whose events a thread requests as rates.
pub(crate) struct Rate {
    pub(crate) thread: u64,
    pub(crate) set: c_int,
    /// Time of the start.
    pub(crate) real_ns: i64,
    pub(crate) thread_ns: i64,
    pub(crate) totals: Vec<i64>,
}

/// State of the library.
pub(crate) struct State {
    /// Bits of `PAPI_is_initialized`; 0 before initialization.
    pub(crate) level: c_int,
    pub(crate) machine: Machine,
    pub(crate) events: Events,
    /// Sets by number, from 0: programs use it as an index.
    pub(crate) sets: Vec<Option<Set>>,
    pub(crate) pool: Pool,
    pub(crate) threads: Vec<Thread>,
    pub(crate) entered: Vec<Entered>,
    pub(crate) rates: Vec<Rate>,
    /// Domain of new sets.
    pub(crate) domain: c_int,
    /// Interval in nanoseconds, signal and timer of PAPI's own multiplexing, which is not used.
    pub(crate) timer: [c_int; 3],
    pub(crate) component: &'static ComponentPlace,
}

/// Description of the component, which C programs read while the library may change it.
pub(crate) struct ComponentPlace(AtomicPtr<ComponentInfo>);

impl ComponentPlace {
    pub(crate) fn pointer(&self) -> *mut ComponentInfo {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes the description.
    pub(crate) fn change(&self, change: impl FnOnce(&mut ComponentInfo)) {
        // SAFETY: the description was leaked, and the library changes it under its lock alone.
        change(unsafe { &mut *self.pointer() });
    }
}

static STATE: Lock<Option<State>> = Lock::new(None);

impl State {
    fn new() -> State {
        let machine = Machine::detect();
        let events = Events::new(machine.pmu);
        let info = Box::leak(Box::new(machine.component(events.presets())));
        let component = Box::leak(Box::new(ComponentPlace(AtomicPtr::new(info))));
        State {
            level: 0,
            machine,
            events,
            sets: Vec::new(),
            pool: Pool::default(),
            threads: Vec::new(),
            entered: Vec::new(),
            rates: Vec::new(),
            domain: USER,
            timer: [100_000, 27, 2],
            component,
        }
    }

    /// Initializes the library.
    ///
    /// # Errors
    /// Fails if the kernel is not Tally, or drives no PMU.
    pub(crate) fn initialize(&mut self) -> Result<(), Code> {
        if !sys::is_tally() {
            eprintln!("libpapi: {}", tally_abi::Error::NotTally.message());
            return Err(Code::NoSupp);
        }
        if self.machine.pmu.is_none() {
            self.disable(Code::NoCntr, "the processor has no PMU that Tally drives");
        }
        self.component.change(|info| info.initialized = 1);
        self.level |= LOW_LEVEL;
        Ok(())
    }

    /// Disables the only component.
    pub(crate) fn disable(&self, code: Code, why: &str) {
        self.component.change(|info| {
            info.disabled = code as c_int;
            put(&mut info.disabled_reason, why);
        });
    }

    /// Returns whether the component is disabled.
    pub(crate) fn is_disabled(&self) -> bool {
        let mut is_disabled = false;
        self.component.change(|info| is_disabled = info.disabled != 0);
        is_disabled
    }

    /// Ends all sets, and resets everything except the description of the machine.
    pub(crate) fn shut_down(&mut self) {
        for set in self.sets.iter_mut().flatten() {
            // An error means that the set does not count, or counts another thread, which ends too.
            let _ = set.stop(&mut self.pool);
        }
        self.sets.clear();
        self.rates.clear();
        self.pool = Pool::default();
        self.threads.clear();
        self.level = 0;
    }

    pub(crate) fn check_initialized(&self) -> Result<(), Code> {
        if self.level == 0 { Err(Code::NoInit) } else { Ok(()) }
    }

    /// Returns the set with this number.
    pub(crate) fn set(&mut self, number: c_int) -> Result<&mut Set, Code> {
        let index = usize::try_from(number).ok();
        let found = index.and_then(|index| self.sets.get_mut(index)).and_then(Option::as_mut);
        found.ok_or(Code::NoEvst)
    }

    /// Returns the set with this number if it belongs to the component.
    pub(crate) fn assigned_set(&mut self, number: c_int) -> Result<&mut Set, Code> {
        let set = self.set(number)?;
        set.check_component()?;
        Ok(set)
    }

    /// Returns the data of the calling thread, which is added if it is not known yet.
    pub(crate) fn thread(&mut self) -> &mut Thread {
        let thread = machine::thread();
        let at = self.threads.iter().position(|of| of.thread == thread);
        let at = at.unwrap_or_else(|| {
            let id = thread_id().unwrap_or(thread);
            self.threads.push(Thread { thread, id, pointers: [0; OWN_POINTERS] });
            self.threads.len() - 1
        });
        &mut self.threads[at]
    }
}

/// The program's function that identifies threads, or null.
pub(crate) static THREAD_ID: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Returns the result of the program's function for the calling thread.
pub(crate) fn thread_id() -> Option<c_ulong> {
    let function = THREAD_ID.load(Ordering::Relaxed);
    if function.is_null() {
        return None;
    }
    // SAFETY: `PAPI_thread_init` stored a function of this type.
    let function =
        unsafe { core::mem::transmute::<*mut c_void, extern "C" fn() -> c_ulong>(function) };
    Some(function())
}

/// Calls `work` with the state. Handlers of thresholds are delayed until it has returned.
pub(crate) fn with<T>(work: impl FnOnce(&mut State) -> T) -> T {
    IN_LIBRARY.fetch_add(1, Ordering::Relaxed);
    let result = work(STATE.lock().get_or_insert_with(State::new));
    IN_LIBRARY.fetch_sub(1, Ordering::Relaxed);
    result
}
