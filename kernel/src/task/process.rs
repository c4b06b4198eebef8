//! A process: a loaded program with its memory, threads, signals, files and session.
//!
//! A process is owned by the CPU that runs it or by the scheduler's table, never by both, so it
//! needs no lock.

use alloc::{borrow::Cow, string::String, vec::Vec};

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};
use tally_abi::{CpuSet, ExitStatus, usage::Usage};

use super::{
    loader::{self, Words},
    missing::MissingFiles,
    refused::RefusedCalls,
    settings::Settings,
    signal::Signals,
    thread::{Thread, Threads},
    timers::Timers,
    times::Times,
};
use crate::{
    arch::frame,
    files::{
        location::Base,
        open::{Descriptor, Descriptors},
        ramdisk,
        tree::Device,
    },
    measure::{self, Closing, Slot, Subject, ThreadTurn},
    memory::{space::AddressSpace, user::UserMemory},
};

/// Surroundings of a new program, from the one that loads it or from the kernel's command line:
/// what Linux keeps across `execve`, as far as it is there.
pub struct Surroundings {
    /// `NAME=VALUE`.
    pub environment: Vec<String>,
    /// Whether memory may be writable and executable at once.
    pub may_write_code: bool,
    /// Working folder.
    pub folder: Base,
    /// Standard input.
    pub input: Descriptor,
    /// Signals that are ignored, a bit for each.
    pub ignored: u64,
    /// Signals that the first thread blocks.
    pub blocked: u64,
    /// CPUs on which the first thread may run.
    pub affinity: CpuSet,
}

impl Surroundings {
    /// The surroundings of a program of the kernel's command line: an empty input, any CPU.
    pub fn of_job(environment: Vec<String>, may_write_code: bool) -> Self {
        Surroundings {
            environment,
            may_write_code,
            folder: Base::root(),
            input: Descriptor::Device(Device::Null),
            ignored: 0,
            blocked: 0,
            affinity: CpuSet::ALL,
        }
    }
}

/// A process.
pub struct Process {
    /// The process's number, from 1.
    pub pid: u32,
    /// The program's name.
    pub name: String,
    /// Environment.
    pub environment: Vec<String>,
    /// The process's memory.
    pub memory: UserMemory,
    /// The program's name and arguments.
    pub arguments: Vec<String>,
    /// Whether its memory may be writable and executable at once.
    pub may_write_code: bool,
    /// Number of the CPU that runs it, or that ran it last.
    pub cpu: u16,
    /// Working folder.
    pub folder: Base,
    /// Open files.
    pub files: Descriptors,
    /// Sessions or direct mode of the process; empty while it runs.
    pub slot: Slot,
    /// Tag of the truth's region that contains the whole process, if there is one.
    pub region: Option<u32>,
    /// Threads of the process.
    pub threads: Threads,
    /// Signals: actions, pending signals, timer.
    pub signals: Signals,
    /// Timers of `timer_create`.
    pub timers: Timers,
    /// Whether all threads wait for each other: the process ends when it is next switched in.
    pub is_deadlocked: bool,
    /// Exit status while the process is ending: no thread executes an instruction any more.
    pub ending: Option<u8>,
    /// Sessions that are closing.
    pub closing: Closing,
    /// The first thread's status, after its end.
    pub status: i32,
    /// Context switches of its threads; the other numbers are 0.
    pub switches: Usage,
    /// Values that it sets by system calls and reads again.
    pub settings: Settings,
    /// System calls that the kernel refused as unknown or unsupported.
    pub refused: RefusedCalls,
    /// Files that it looked for in vain.
    pub missing: MissingFiles,
    random: Xoshiro256PlusPlus,
}

impl Process {
    /// Loads the program `arguments[0]` from the ramdisk.
    ///
    /// # Errors
    /// The exit status and the text for the user.
    pub fn load(
        pid: u32,
        arguments: &[&str],
        surroundings: Surroundings,
        kernel: &AddressSpace,
    ) -> Result<Process, (ExitStatus, Cow<'static, str>)> {
        let name = ramdisk::plain(arguments.first().copied().unwrap_or_default());
        let file = ramdisk::file(name)
            .ok_or((ExitStatus::ProgramNotFound, "no such program in the ramdisk".into()))?;
        let mut space = AddressSpace::for_program(kernel)
            .map_err(|_| loader::LoadError::OutOfMemory.explain())?;
        // Same seed and program, same numbers: runs are repeatable.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(measure::seed() ^ u64::from(pid) << 32);
        let canary = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        let Surroundings { environment, may_write_code, folder, .. } = surroundings;
        let words = Words { arguments, environment: &environment, random: canary, may_write_code };
        let start = loader::load(&mut space, file, ramdisk::file_at, words)
            .map_err(loader::LoadError::explain)?;
        log::debug!("{name}: program {pid}, address space {:#x}", space.id());
        start.log(name);
        let mut first = Thread::first(pid, frame::user(start.rip, start.rsp));
        (first.affinity, first.signals.mask) = (surroundings.affinity, surroundings.blocked);
        Ok(Process {
            pid,
            name: name.into(),
            environment,
            memory: UserMemory::new(space, start.areas, start.heap),
            arguments: arguments.iter().map(|word| String::from(*word)).collect(),
            may_write_code,
            cpu: 0,
            folder,
            files: Descriptors::new(pid, surroundings.input),
            slot: Slot::default(),
            region: None,
            threads: Threads::new(first),
            signals: Signals::new(surroundings.ignored),
            timers: Timers::default(),
            is_deadlocked: false,
            ending: None,
            closing: Closing::default(),
            status: 0,
            switches: Usage::default(),
            settings: Settings::default(),
            refused: RefusedCalls::default(),
            missing: MissingFiles::default(),
            random,
        })
    }

    /// The identity of the process for a session.
    pub fn subject(&self) -> Subject {
        Subject { pid: self.pid, name: self.name.clone(), space: self.memory.space.id() }
    }

    /// The surroundings of a program that the running thread loads. An input that is a file is
    /// opened anew at the position where the caller's is, so that each of several children reads
    /// all of it.
    pub fn surroundings(&mut self) -> Surroundings {
        let thread = self.threads.running();
        Surroundings {
            environment: self.environment.clone(),
            may_write_code: self.may_write_code,
            folder: self.folder.clone(),
            input: self.files.input(),
            ignored: self.signals.ignored(),
            blocked: thread.signals.mask,
            affinity: thread.affinity,
        }
    }

    /// Times on CPUs so far.
    pub fn ran(&self) -> Times {
        self.threads.ran(None).unwrap_or_default()
    }

    /// Usage of the machine so far.
    pub fn usage(&self) -> Usage {
        self.usage_with(self.ran())
    }

    fn usage_with(&self, ran: Times) -> Usage {
        let (user_ns, system_ns) = (ran.user_ns(), ran.system_ns());
        Usage { user_ns, system_ns, page_faults: self.memory.page_faults, ..self.switches }
    }

    /// The turn of the thread that starts to run.
    pub fn turn(&mut self) -> ThreadTurn {
        let usage = self.usage_with(self.threads.ran_before());
        let thread = self.threads.running();
        ThreadTurn { thread: thread.tid, name: thread.name, usage }
    }

    /// The next random number.
    pub fn random(&mut self) -> u64 {
        self.random.next_u64()
    }
}
