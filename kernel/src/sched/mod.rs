//! The scheduler: assigns programs and their threads to CPUs.
//!
//! Runnable programs are in one queue, first in, first out; the timer ends a program's turn if
//! another is runnable. A CPU owns the program that it runs until it returns it to the table. The
//! threads of a program take turns within its turns: when a thread blocks or the timer interrupts
//! it, the next one follows. A program may load others and wait for their end. When the last
//! program of a job has ended, the next job begins; after the last job, the machine stops.

mod block;
pub mod children;
mod deliver;
mod exit;
mod jobs;
mod load;
mod sent_files;
mod status;
mod switch;
pub mod table;
mod watch;
mod watches;

pub use self::{
    block::{block, end_thread, preempt, yield_cpu},
    children::kill_all,
    deliver::{deliver, fault, raise, trace_stack, upcall},
    exit::{exit, finish},
    jobs::{begin_job, set_jobs},
    sent_files::send_files_at_end,
    status::refuse,
    switch::{run_next_thread, schedule},
};
