//! Scheduling attributes of a thread: policy, priority and nice value (Linux's `sched(7)`).
//!
//! A program sets and reads them. They do not change the order in which threads take turns, so that
//! counts do not depend on them.

/// Lowest and highest nice value (`MIN_NICE` and `MAX_NICE`).
const NICE: [i32; 2] = [-20, 19];

/// A scheduling policy, with its number in Linux's `uapi/linux/sched.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`.
    #[default]
    Other = 0,
    /// `SCHED_FIFO`.
    Fifo = 1,
    /// `SCHED_RR`.
    RoundRobin = 2,
    /// `SCHED_BATCH`.
    Batch = 3,
    /// `SCHED_IDLE`.
    Idle = 5,
}

impl Policy {
    /// The policy of a number; `None` for `SCHED_DEADLINE`, which the kernel does not have, and for
    /// unknown ones.
    pub fn of(number: u32) -> Option<Policy> {
        use Policy::*;
        [Other, Fifo, RoundRobin, Batch, Idle].into_iter().find(|policy| *policy as u32 == number)
    }

    /// Returns whether threads of the policy have a priority.
    pub fn is_real_time(self) -> bool {
        matches!(self, Policy::Fifo | Policy::RoundRobin)
    }

    /// Lowest and highest priority (`sched_get_priority_min(2)`).
    pub fn priorities(self) -> [u32; 2] {
        if self.is_real_time() { [1, 99] } else { [0, 0] }
    }
}

/// The scheduling attributes of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scheduling {
    /// The policy.
    pub policy: Policy,
    /// Priority under a real-time policy, else 0.
    pub priority: u32,
    /// Nice value, -20 to 19.
    pub nice: i32,
    /// Whether new threads get the default policy in place of a real-time one, and no negative nice
    /// value (`SCHED_RESET_ON_FORK`).
    pub resets_on_fork: bool,
    /// I/O priority (`ioprio_set(2)`).
    pub io_priority: u16,
}

impl Scheduling {
    /// Sets the nice value, cut to its range.
    pub fn set_nice(&mut self, nice: i32) {
        self.nice = nice.clamp(NICE[0], NICE[1]);
    }

    /// Sets policy and priority. Returns whether the policy has the priority.
    pub fn set(&mut self, policy: Policy, priority: u32) -> bool {
        let [lowest, highest] = policy.priorities();
        let fits = (lowest..=highest).contains(&priority);
        if fits {
            (self.policy, self.priority) = (policy, priority);
        }
        fits
    }

    /// The attributes of a thread that a thread with these makes.
    pub fn inherited(self) -> Scheduling {
        let kept = Scheduling { resets_on_fork: false, ..self };
        match (self.resets_on_fork, self.policy.is_real_time()) {
            (false, _) => self,
            (true, false) => Scheduling { nice: self.nice.max(0), ..kept },
            (true, true) => Scheduling { policy: Policy::Other, priority: 0, nice: 0, ..kept },
        }
    }
}
