//! Which programs there are, and where each is.
//!
//! A program that has not ended is in one place: with the CPU that runs it, or here, and then this
//! table owns it. So whoever finds a program here may look at its memory and at what is measured of
//! it; for one that is running, ask with [`Table::here`], which has it brought here.
//!
//! The lock is never taken in the overflow path, and nobody who holds it waits for another CPU.

mod watches;

use alloc::{boxed::Box, collections::BTreeMap, collections::VecDeque, vec::Vec};

use spin::{Mutex, MutexGuard};

use self::watches::{Watch, Watched};
use super::Process;
use crate::{machine::clock, measure::Context};

/// The most programs that one has loaded and not waited for.
const MAX_CHILDREN: usize = 32;

static TABLE: Mutex<Table> = Mutex::new(Table {
    ready: VecDeque::new(),
    known: BTreeMap::new(),
    sessions: BTreeMap::new(),
    last: 0,
});

/// The table, for as long as the answer lives.
pub fn lock() -> MutexGuard<'static, Table> {
    TABLE.lock()
}

/// Every program, and every session on a program that another opened.
pub struct Table {
    /// Programs that wait for a CPU, first come, first served.
    ready: VecDeque<u32>,
    known: BTreeMap<u32, Entry>,
    sessions: BTreeMap<u32, Watch>,
    /// The highest number that a program was given.
    last: u32,
}

struct Entry {
    /// The program that made it, or 0.
    parent: u32,
    place: Place,
}

enum Place {
    /// Made, and not let go yet.
    New(Box<Process>),
    /// It waits for a CPU.
    Ready(Box<Process>),
    /// It waits for the end of a program that it made.
    Waits { child: u32, process: Box<Process> },
    /// It waits for a time.
    Asleep { until_ns: u64, process: Box<Process> },
    /// It was running when somebody asked for it, and is kept until that one has come.
    Kept(Box<Process>),
    /// The CPU with this interrupt controller has it; whether somebody wants to look at it.
    Running { lapic: u32, wanted: bool },
    /// It has ended, with this status, which its parent has not asked for yet.
    Ended(u8),
}

impl Place {
    fn process(&mut self) -> Option<&mut Process> {
        match self {
            Place::New(process)
            | Place::Ready(process)
            | Place::Waits { process, .. }
            | Place::Asleep { process, .. }
            | Place::Kept(process) => Some(process),
            Place::Running { .. } | Place::Ended(_) => None,
        }
    }
}

/// Where a program is that somebody asked for.
pub enum Found<T> {
    /// Here.
    Here(T),
    /// It is running, on the CPU with this interrupt controller: it has to come here first.
    Away(u32),
    /// It has ended.
    Ended,
    /// There is none of that number.
    Nowhere,
}

/// What a program that has ended leaves behind.
#[derive(Default)]
pub struct Remains {
    /// Programs that it made and never let go: nobody else will.
    pub orphans: Vec<Process>,
    /// Contexts on programs that ended before it.
    pub contexts: Vec<Context>,
    /// Whether it was the last.
    pub is_last: bool,
}

/// How a program fares that another one waits for.
pub enum Awaited {
    /// It has ended, with this status, and is forgotten now.
    Ended(u8),
    /// It goes on, or waits to.
    Alive,
    /// It was not let go yet.
    New,
    /// There is no such program of the asker's.
    Nowhere,
}

impl Table {
    /// A number for a new program.
    pub fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// Takes in a new program, which `parent` (or, if that is 0, nobody) made. One with a parent
    /// begins when that lets it go.
    pub fn add(&mut self, process: Box<Process>, parent: u32) {
        let pid = process.pid;
        let place = match parent {
            0 => self.ready(process),
            _ => Place::New(process),
        };
        self.known.insert(pid, Entry { parent, place });
    }

    fn ready(&mut self, process: Box<Process>) -> Place {
        self.ready.push_back(process.pid);
        Place::Ready(process)
    }

    fn set(&mut self, pid: u32, place: Place) {
        if let Some(entry) = self.known.get_mut(&pid) {
            entry.place = place;
        }
    }

    /// Whether there is any program that has not ended.
    pub fn any_live(&self) -> bool {
        self.known.values().any(|entry| !matches!(entry.place, Place::Ended(_)))
    }

    /// Whether the program that is running would have to give its CPU up.
    pub fn is_due(&mut self, pid: u32) -> bool {
        self.wake();
        !self.ready.is_empty() || self.is_wanted(pid)
    }

    fn is_wanted(&self, pid: u32) -> bool {
        let place = self.known.get(&pid).map(|entry| &entry.place);
        matches!(place, Some(Place::Running { wanted: true, .. }))
    }

    /// The next program for the CPU with this interrupt controller.
    pub fn next(&mut self, lapic: u32) -> Option<Box<Process>> {
        self.wake();
        let entry = self.known.get_mut(&self.ready.pop_front()?)?;
        match core::mem::replace(&mut entry.place, Place::Running { lapic, wanted: false }) {
            Place::Ready(process) => Some(process),
            _ => unreachable!("what is in the queue is ready"),
        }
    }

    /// Takes a program in that gave its CPU up.
    pub fn give_back(&mut self, process: Box<Process>) {
        let pid = process.pid;
        let place = match self.is_wanted(pid) {
            true => Place::Kept(process),
            false => self.ready(process),
        };
        self.set(pid, place);
    }

    /// Takes a program in that wants a CPU again.
    pub fn queue(&mut self, process: Box<Process>) {
        let pid = process.pid;
        let place = self.ready(process);
        self.set(pid, place);
    }

    /// Takes a program in that waits for the end of `child`, which it made. That may just have come.
    pub fn park(&mut self, mut process: Box<Process>, child: u32) {
        let pid = process.pid;
        let place = match self.awaited(child, pid) {
            Awaited::Ended(status) => {
                process.frame.rax = status.into();
                self.ready(process)
            }
            _ => Place::Waits { child, process },
        };
        self.set(pid, place);
    }

    /// Takes a program in that waits for a time of the machine's clock.
    pub fn put_to_sleep(&mut self, process: Box<Process>, until_ns: u64) {
        self.set(process.pid, Place::Asleep { until_ns, process });
    }

    /// Those whose time has come are ready.
    fn wake(&mut self) {
        let now = clock::now_ns();
        for entry in self.known.values_mut() {
            if matches!(entry.place, Place::Asleep { until_ns, .. } if until_ns <= now)
                && let Place::Asleep { process, .. } =
                    core::mem::replace(&mut entry.place, Place::Ended(0))
            {
                self.ready.push_back(process.pid);
                entry.place = Place::Ready(process);
            }
        }
    }

    /// Lets a new program of `parent`'s go; whether there is one of that number.
    pub fn let_go(&mut self, pid: u32, parent: u32) -> bool {
        let Some(entry) = self.known.get_mut(&pid).filter(|entry| entry.parent == parent) else {
            return false;
        };
        match core::mem::replace(&mut entry.place, Place::Ended(0)) {
            Place::New(process) => {
                let place = self.ready(process);
                self.set(pid, place);
                true
            }
            other => {
                entry.place = other;
                false
            }
        }
    }

    /// How a program of `parent`'s fares.
    pub fn awaited(&mut self, pid: u32, parent: u32) -> Awaited {
        match self.known.get(&pid).filter(|entry| entry.parent == parent).map(|e| &e.place) {
            None => Awaited::Nowhere,
            Some(Place::New(_)) => Awaited::New,
            Some(Place::Ended(status)) => {
                let status = *status;
                self.known.remove(&pid);
                Awaited::Ended(status)
            }
            Some(_) => Awaited::Alive,
        }
    }

    /// A running program has ended with `status`; `context` is what another measured of it.
    pub fn end(&mut self, pid: u32, status: u8, context: Option<Box<Context>>) -> Remains {
        let mut remains = Remains::default();
        if let Some(context) = context {
            match self.sessions.remove(&context.id()).map_or(0, |watch| watch.owner) {
                0 => remains.contexts.push(*context),
                owner => {
                    let id = context.id();
                    self.sessions.insert(id, Watch { owner, on: Watched::Ended(context) });
                }
            }
        }
        self.disown(pid, &mut remains);
        let parent = self.known.get(&pid).map_or(0, |entry| entry.parent);
        match self.known.remove(&parent).map(|entry| (entry.parent, entry.place)) {
            Some((grand, Place::Waits { child, mut process })) if child == pid => {
                process.frame.rax = status.into();
                let place = self.ready(process);
                self.known.insert(parent, Entry { parent: grand, place });
                self.known.remove(&pid);
            }
            Some((grand, place)) => {
                self.known.insert(parent, Entry { parent: grand, place });
                self.set(pid, Place::Ended(status));
            }
            None => {
                self.known.remove(&pid);
            }
        }
        self.keep_none();
        remains.is_last = !self.any_live();
        remains
    }

    /// Whoever had a program kept may have ended without coming; one that has not asks again.
    fn keep_none(&mut self) {
        for entry in self.known.values_mut() {
            if matches!(entry.place, Place::Kept(_))
                && let Place::Kept(process) = core::mem::replace(&mut entry.place, Place::Ended(0))
            {
                self.ready.push_back(process.pid);
                entry.place = Place::Ready(process);
            }
        }
    }

    /// What `pid` made and watched is nobody's from now on.
    fn disown(&mut self, pid: u32, remains: &mut Remains) {
        for entry in self.known.values_mut().filter(|entry| entry.parent == pid) {
            entry.parent = 0;
        }
        let left = |_: &u32, entry: &mut Entry| {
            entry.parent == 0 && matches!(entry.place, Place::New(_) | Place::Ended(_))
        };
        for (_, entry) in self.known.extract_if(.., left) {
            if let Place::New(process) = entry.place {
                remains.orphans.push(*process);
            }
        }
        for watch in self.sessions.values_mut().filter(|watch| watch.owner == pid) {
            watch.owner = 0;
        }
        let over = |_: &u32, watch: &mut Watch| match watch.on {
            Watched::Ended(_) => watch.owner == 0,
            Watched::Program(on) => remains.orphans.iter().any(|process| process.pid == on),
        };
        for (_, watch) in self.sessions.extract_if(.., over) {
            if let Watched::Ended(context) = watch.on {
                remains.contexts.push(*context);
            }
        }
    }

    /// Does `look` with the program of that number; one that was kept for this goes on after.
    pub fn here<T>(&mut self, pid: u32, look: impl FnOnce(&mut Process) -> T) -> Found<T> {
        let Some(entry) = self.known.get_mut(&pid) else { return Found::Nowhere };
        if let Place::Running { lapic, wanted } = &mut entry.place {
            *wanted = true;
            return Found::Away(*lapic);
        }
        let Some(process) = entry.place.process() else { return Found::Ended };
        let answer = look(process);
        if let Place::Kept(_) = entry.place
            && let Place::Kept(process) = core::mem::replace(&mut entry.place, Place::Ended(0))
        {
            let place = self.ready(process);
            self.set(pid, place);
        }
        Found::Here(answer)
    }

    /// The program that made this one, or 0.
    pub fn parent(&self, pid: u32) -> u32 {
        self.known.get(&pid).map_or(0, |entry| entry.parent)
    }

    /// Whether `parent` made the program.
    pub fn is_child(&self, pid: u32, parent: u32) -> bool {
        self.known.get(&pid).is_some_and(|entry| entry.parent == parent)
    }

    /// Whether `parent` may load one more program: those that it has not waited for count too.
    pub fn may_load(&self, parent: u32) -> bool {
        self.known.values().filter(|entry| entry.parent == parent).count() < MAX_CHILDREN
    }
}
