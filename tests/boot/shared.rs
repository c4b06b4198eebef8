//! Boots that several tests check, and how many machines run at once.

use std::sync::{Condvar, Mutex, OnceLock};

use xtask::machine::{self, Boot, Request};

use crate::artefacts;

/// A boot that several tests check, one behaviour each. The first test that needs it boots it; its
/// folder stays until a later run removes old ones.
pub struct SharedBoot {
    request: fn() -> Request,
    boot: OnceLock<Result<Boot, String>>,
}

impl SharedBoot {
    pub const fn new(request: fn() -> Request) -> SharedBoot {
        SharedBoot { request, boot: OnceLock::new() }
    }

    /// The machine, which has ended. Prints where its log is, which a failing test shows.
    pub fn get(&self) -> &Boot {
        let boot = self.boot.get_or_init(|| {
            let _permit = machine_permit();
            let boot = machine::boot(&artefacts(), &(self.request)(), &mut |_| {});
            boot.map_err(|failure| failure.to_string())
        });
        let boot = boot.as_ref().unwrap_or_else(|failure| panic!("{failure}"));
        println!("log of the machine: {}", boot.folder.log().display());
        boot
    }
}

/// Machines that may start now; none until the first asks.
static FREE: Mutex<Option<usize>> = Mutex::new(None);
static FREED: Condvar = Condvar::new();

/// Lets one machine run for as long as it lives.
pub struct MachinePermit(());

/// Waits until fewer machines run than the host has processors. There are more test threads than
/// that, as some wait for a [`SharedBoot`] of another.
pub fn machine_permit() -> MachinePermit {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let mut free = FREE.lock().unwrap();
    loop {
        match free.get_or_insert_with(processors) {
            0 => free = FREED.wait(free).unwrap(),
            free => {
                *free -= 1;
                return MachinePermit(());
            }
        }
    }
}

impl Drop for MachinePermit {
    fn drop(&mut self) {
        if let Ok(mut free) = FREE.lock() {
            *free = free.map(|free| free + 1);
        }
        FREED.notify_one();
    }
}
