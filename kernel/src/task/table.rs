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
use tally_abi::Error;

use self::watches::{Watch, Watched};
use super::Process;
use crate::{
    cpu::Cpu,
    machine::clock::{self, SECOND_NS},
    measure::{Context, Subject},
};

/// The most programs that one has loaded and not waited for.
const MAX_CHILDREN: usize = 32;

/// How long a program is kept for whoever asked for it, in nanoseconds: as many turns as that one may wait for
/// its own. Most come at once; one that does not had a signal or another thread come between.
const KEPT_NS: u64 = SECOND_NS;

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
    /// The same wherever it is.
    subject: Subject,
    place: Place,
    /// The program itself, while it is here: not on a CPU, and not ended.
    process: Option<Box<Process>>,
}

#[derive(Clone, Copy)]
enum Place {
    /// Made, and not let go yet.
    New,
    /// It waits for a CPU.
    Ready,
    /// All of its threads wait; for when anything of it happens by itself, in nanoseconds.
    Waits(Option<u64>),
    /// It was running when somebody asked for it, and is kept until that one has come, or until this time, in
    /// nanoseconds.
    Kept(u64),
    /// The CPU with this interrupt controller has it; whether somebody wants to look at it.
    Running { lapic: u32, wanted: bool },
    /// It has ended, with this status, which its parent has not asked for yet.
    Ended(u8),
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

/// Where a program goes none of whose threads runs.
fn place_of(process: &mut Process) -> Place {
    process.find_deadlock();
    match process.threads.next_affinity() {
        Some(_) => Place::Ready,
        None => Place::Waits(process.deadline()),
    }
}

impl Table {
    /// A number for a new program or thread, which none had before; none if all are used up.
    pub fn number(&mut self) -> Option<u32> {
        self.last = self.last.checked_add(1)?;
        Some(self.last)
    }

    /// Takes in a new program, which `parent` (or, if that is 0, nobody) made. One with a parent
    /// begins when that lets it go.
    pub fn add(&mut self, process: Box<Process>, parent: u32) {
        let (pid, subject) = (process.pid, Subject::of(&process));
        let entry = Entry { parent, subject, place: Place::New, process: Some(process) };
        self.known.insert(pid, entry);
        if parent == 0 {
            self.make_ready(pid);
        }
    }

    fn make_ready(&mut self, pid: u32) {
        self.set(pid, Place::Ready);
        self.ready.push_back(pid);
    }

    /// All that are in such places are ready.
    fn make_all_ready(&mut self, which: impl Fn(Place) -> bool) {
        for (pid, entry) in self.known.iter_mut().filter(|(_, entry)| which(entry.place)) {
            entry.place = Place::Ready;
            self.ready.push_back(*pid);
        }
    }

    fn set(&mut self, pid: u32, place: Place) {
        if let Some(entry) = self.known.get_mut(&pid) {
            entry.place = place;
        }
    }

    /// Takes a program in that was on a CPU.
    fn take_in(&mut self, process: Box<Process>, place: Place) {
        let pid = process.pid;
        if let Some(entry) = self.known.get_mut(&pid) {
            entry.process = Some(process);
        }
        match place {
            Place::Ready => self.make_ready(pid),
            _ => self.set(pid, place),
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
        let place = self.known.get(&pid).map(|entry| entry.place);
        matches!(place, Some(Place::Running { wanted: true, .. }))
    }

    /// The next program for a CPU: the first whose next thread may run there.
    pub fn next(&mut self, cpu: &Cpu) -> Option<Box<Process>> {
        self.wake();
        let known = &self.known;
        let may_run = |pid: &u32| {
            let process = known.get(pid).and_then(|entry| entry.process.as_deref());
            let affinity = process.and_then(|process| process.threads.next_affinity());
            affinity.is_some_and(|affinity| affinity & cpu.bit() != 0)
        };
        let index = self.ready.iter().position(may_run)?;
        let entry = self.known.get_mut(&self.ready.remove(index)?)?;
        entry.place = Place::Running { lapic: cpu.lapic.id(), wanted: false };
        entry.process.take()
    }

    /// Takes a program in that gave its CPU up.
    pub fn give_back(&mut self, process: Box<Process>) {
        let place = match self.is_wanted(process.pid) {
            true => Place::Kept(clock::now_ns() + KEPT_NS),
            false => Place::Ready,
        };
        self.take_in(process, place);
    }

    /// Takes a program in that wants a CPU again.
    pub fn queue(&mut self, process: Box<Process>) {
        self.take_in(process, Place::Ready);
    }

    /// Takes a program in whose threads all wait. What one waits for may just have come.
    pub fn park(&mut self, mut process: Box<Process>) {
        self.tell_ends(&mut process);
        let place = place_of(&mut process);
        self.take_in(process, place);
    }

    /// Tells the threads of `process` that wait for the ends of programs of those that have come.
    pub fn tell_ends(&mut self, process: &mut Process) {
        let pid = process.pid;
        process.threads.tell_ends(|child| match self.awaited(child, pid) {
            Awaited::Ended(status) => Some(status.into()),
            Awaited::Alive | Awaited::New => None,
            // Another thread was told.
            Awaited::Nowhere => Some(Error::NoProgram.to_return() as u64),
        });
    }

    /// Those of which something happens by itself now are ready, if a thread of theirs is, and those that
    /// nobody came for.
    fn wake(&mut self) {
        let now = clock::now_ns();
        for (pid, entry) in &mut self.known {
            let (Place::Waits(Some(until)) | Place::Kept(until)) = entry.place else { continue };
            let Some(process) = entry.process.as_deref_mut().filter(|_| until <= now) else {
                continue;
            };
            process.expire();
            entry.place = place_of(process);
            if let Place::Ready = entry.place {
                self.ready.push_back(*pid);
            }
        }
    }

    /// Lets a new program of `parent`'s go; whether there is one of that number.
    pub fn let_go(&mut self, pid: u32, parent: u32) -> bool {
        let entry = self.known.get(&pid).filter(|entry| entry.parent == parent);
        let is_new = entry.is_some_and(|entry| matches!(entry.place, Place::New));
        if is_new {
            self.make_ready(pid);
        }
        is_new
    }

    /// How a program of `parent`'s fares.
    pub fn awaited(&mut self, pid: u32, parent: u32) -> Awaited {
        match self.known.get(&pid).filter(|entry| entry.parent == parent).map(|e| e.place) {
            None => Awaited::Nowhere,
            Some(Place::New) => Awaited::New,
            Some(Place::Ended(status)) => {
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
        let parent = self.parent(pid);
        match self.known.get_mut(&parent) {
            Some(Entry { place, process, .. }) => {
                let waits = matches!(place, Place::Waits(_));
                let process = process.take_if(|_| waits);
                self.set(pid, Place::Ended(status));
                // One that is ready or runs is told when it waits or its turn ends.
                process.into_iter().for_each(|process| self.park(process));
            }
            None => {
                self.known.remove(&pid);
            }
        }
        // Whoever had a program kept may have ended without coming; one that has not may ask again.
        self.make_all_ready(|place| matches!(place, Place::Kept(_)));
        remains.is_last = !self.any_live();
        remains
    }

    /// What `pid` made and watched is nobody's from now on.
    fn disown(&mut self, pid: u32, remains: &mut Remains) {
        for entry in self.known.values_mut().filter(|entry| entry.parent == pid) {
            entry.parent = 0;
        }
        let left = |_: &u32, entry: &mut Entry| {
            entry.parent == 0 && matches!(entry.place, Place::New | Place::Ended(_))
        };
        for (_, entry) in self.known.extract_if(.., left) {
            remains.orphans.extend(entry.process.map(|process| *process));
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
        let Some(process) = &mut entry.process else { return Found::Ended };
        let answer = look(process);
        if let Place::Kept(_) = entry.place {
            self.make_ready(pid);
        }
        Found::Here(answer)
    }

    /// A program that has not ended, as something to be measured, and whether it is, as far as one sees that
    /// of one that may be running.
    pub fn subject(&self, pid: u32) -> Option<(Subject, bool)> {
        let entry = self.known.get(&pid)?;
        let is_measured = entry.process.as_deref().is_some_and(Process::is_measured);
        (!matches!(entry.place, Place::Ended(_))).then(|| (entry.subject.clone(), is_measured))
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
