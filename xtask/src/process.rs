//! Child processes that never outlive this process.
//!
//! Each child leads its own process group. Dropping a [`Child`] kills the group and reaps the
//! child. The signal handler kills every group before it exits. If this process is killed, Linux
//! kills the direct children (`PR_SET_PDEATHSIG`).

use std::{
    collections::BTreeSet,
    io::{self, Read},
    os::unix::process::CommandExt,
    process::{Command, ExitStatus, Output, Stdio},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::output;

/// Leaders of the live process groups.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Exit status after SIGINT, as shells report it: 128 + 2.
pub const INTERRUPTED: u8 = 130;

/// Whether the first signal is only noted. Relaxed order is enough: it stands for itself.
static IS_NOTED: AtomicBool = AtomicBool::new(false);
/// When the first signal came, if it came.
static CAME: OnceLock<Instant> = OnceLock::new();
/// Time after the first signal in which another is the same one: `timeout` sends its signal to the
/// command, then to the command's group.
const SAME: Duration = Duration::from_millis(500);
/// Hook that is called before this process exits by a signal.
static BEFORE_EXIT: OnceLock<fn()> = OnceLock::new();

/// Sets a hook that is called before this process exits by a signal, after its children are dead.
/// Only the first hook of a process is called.
pub fn before_exit_by_signal(hook: fn()) {
    // Another hook is set already.
    let _ = BEFORE_EXIT.set(hook);
}

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill_group(leader: i32) {
    if let Some(leader) = Pid::from_raw(leader) {
        // An error means that the group has ended already.
        let _ = rustix::process::kill_process_group(leader, Signal::KILL);
    }
}

/// While the value exists, the first SIGINT, SIGHUP or SIGTERM is only noted: a machine that can
/// end early has results.
pub struct FirstSignal(());

impl FirstSignal {
    /// Notes the first signal instead of ending the process.
    pub fn note() -> FirstSignal {
        IS_NOTED.store(true, Ordering::Relaxed);
        FirstSignal(())
    }
}

/// Returns whether a signal came that was only noted.
pub fn signal_came() -> bool {
    CAME.get().is_some()
}

impl Drop for FirstSignal {
    fn drop(&mut self) {
        IS_NOTED.store(false, Ordering::Relaxed);
    }
}

/// Installs a handler that kills all children on SIGINT, SIGHUP and SIGTERM, then exits.
pub fn kill_children_on_signals() {
    let installed = ctrlc::set_handler(|| {
        let is_first = CAME.get_or_init(Instant::now).elapsed() < SAME;
        if is_first && IS_NOTED.load(Ordering::Relaxed) {
            return;
        }
        // The lock is never released, so that no thread starts another child.
        let groups = groups();
        groups.iter().copied().for_each(kill_group);
        for leader in groups.iter().copied().filter_map(Pid::from_raw) {
            // Another thread may have reaped it already.
            let _ = rustix::process::waitpid(Some(leader), WaitOptions::empty());
        }
        if let Some(hook) = BEFORE_EXIT.get() {
            hook();
        }
        std::process::exit(INTERRUPTED.into());
    });
    if let Err(error) = installed {
        output::note(format_args!("xtask: cannot handle signals: {error}"));
    }
}

/// Runs `command` to its end and returns its status and output.
///
/// # Errors
/// The command cannot be started, or its output cannot be read.
pub fn output(command: &mut Command) -> io::Result<Output> {
    output_within(command, Duration::MAX)
}

/// Runs a command as [`output`] does, for at most `limit`; after that time its process group is
/// killed.
///
/// # Errors
/// As [`output`]; [`io::ErrorKind::TimedOut`] after `limit`.
pub fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    let mut child = Child::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (out, errors, group) = (child.take_stdout(), child.take_stderr(), child.group);
    thread::scope(|scope| {
        let (ended, waited) = mpsc::channel::<()>();
        let watch = scope.spawn(move || {
            let is_late = waited.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if is_late {
                kill_group(group);
            }
            is_late
        });
        // Both pipes are read at once: the child blocks while one of them is full.
        let errors = scope.spawn(|| errors.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut stderr)));
        let out = out.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut stdout));
        let errors = errors.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let status = child.wait();
        drop(ended);
        if watch.join().unwrap_or_default() {
            let words = format!("it did not end within {limit:?}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, words));
        }
        out.and(errors).and(status)
    })
    .map(|status| Output { status, stdout, stderr })
}

/// A running child and its process group.
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
    group: i32,
}

impl Child {
    /// Starts `command` with its standard input closed.
    ///
    /// The thread that starts a child must live until the child has ended: Linux treats the end of
    /// that thread as the parent's death.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<Child> {
        let me = rustix::process::getpid();
        command.stdin(Stdio::null()).process_group(0);
        // SAFETY: between fork and exec, the closure makes two system calls and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                match rustix::process::getppid() {
                    Some(parent) if parent == me => Ok(()),
                    _ => Err(io::ErrorKind::Interrupted.into()),
                }
            });
        }
        let mut groups = groups();
        let inner = command.spawn()?;
        let group = inner.id().cast_signed();
        groups.insert(group);
        Ok(Child { inner, group })
    }

    /// The status, if the child has ended.
    ///
    /// # Errors
    /// The host refuses to wait for the child.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.inner.try_wait()
    }

    /// Waits for the child's end.
    ///
    /// # Errors
    /// The host refuses to wait for the child.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.inner.wait()
    }

    /// Processor time that all threads of the child have used, to about 10 ms; `None` after its
    /// end.
    pub fn processor_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.group)).ok()?;
        // utime and stime: the 12th and 13th word after the name, which may have any bytes
        // (proc(5)).
        let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        let mut ticks = || words.next()?.parse::<u64>().ok();
        let ticks = ticks()? + ticks()?;
        (ticks > 0).then(|| {
            Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
        })
    }

    /// The pipe of the child's standard error; `None` if there is no pipe or it was taken.
    pub fn take_stderr(&mut self) -> Option<std::process::ChildStderr> {
        self.inner.stderr.take()
    }

    /// The pipe of the child's standard output; `None` if there is no pipe or it was taken.
    pub fn take_stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.inner.stdout.take()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        kill_group(self.group);
        // The child is dead or was reaped before; an error here has no remedy.
        let _ = self.inner.wait();
        groups().remove(&self.group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_longer_than_a_pipe_is_complete() {
        let script =
            "for i in $(seq 9999); do echo to stdout $i; echo to stderr $i >&2; done; exit 3";
        let output = output(Command::new("sh").args(["-c", script])).unwrap();
        let last = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().last().map(str::to_owned);
        assert_eq!(last(&output.stdout).unwrap(), "to stdout 9999");
        assert_eq!(last(&output.stderr).unwrap(), "to stderr 9999");
        assert_eq!(output.status.code(), Some(3));
    }

    /// The test includes a command whose own child holds the pipes.
    #[test]
    fn a_command_that_does_not_end_in_time_is_killed() {
        let start = std::time::Instant::now();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & sleep 60"]);
        let late = output_within(&mut command, Duration::from_millis(50)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        assert!(late.to_string().contains("50ms") && start.elapsed() < Duration::from_secs(30));
        assert!(output_within(&mut Command::new("true"), Duration::from_secs(60)).is_ok());
    }

    #[test]
    fn processor_time_grows_with_work_and_not_with_sleep() {
        let used = |script: &str| {
            let mut child = Child::spawn(Command::new("sh").args(["-c", script])).unwrap();
            let start = std::time::Instant::now();
            let mut used = Duration::ZERO;
            while child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(20) {
                used = child.processor_time().unwrap_or(used);
                if used >= Duration::from_millis(100) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            used
        };
        assert!(used("while :; do :; done") >= Duration::from_millis(100));
        assert!(used("sleep 0.3") < Duration::from_millis(100));
    }

    #[test]
    fn dropping_a_child_kills_its_group() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $!; wait"]).stdout(Stdio::piped());
        let mut child = Child::spawn(&mut command).unwrap();
        let mut stdout = child.take_stdout().unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"\n") {
            let mut byte = [0];
            stdout.read_exact(&mut byte).unwrap();
            text.push(byte[0]);
        }
        drop(child);
        // The grandchild holds the other end of the pipe: end of file means that it is gone.
        assert_eq!(stdout.read(&mut [0]).unwrap(), 0);
    }
}
