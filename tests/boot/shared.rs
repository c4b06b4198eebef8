//! Boots shared by several tests, and the limit on concurrent machines.

use std::sync::{Condvar, Mutex, OnceLock};

use xtask::{
    Failure,
    machine::{self, Artefacts, Boot, Request},
    test::SEED_VARIABLE,
};

use crate::artefacts;

/// A boot checked by several tests, each for one behaviour. The first test that needs the machine
/// boots it. The machine's folder remains until a later run removes old ones.
pub struct SharedBoot {
    request: fn() -> Request,
    boot: OnceLock<Result<Boot, String>>,
}

impl SharedBoot {
    pub const fn new(request: fn() -> Request) -> SharedBoot {
        SharedBoot { request, boot: OnceLock::new() }
    }

    /// Machine after its end. Prints the path of its log, which a failing test shows.
    pub fn get(&self) -> &Boot {
        let boot = self.boot.get_or_init(|| {
            boot_drawn(&artefacts(), &(self.request)()).map_err(|failure| failure.to_string())
        });
        let boot = boot.as_ref().unwrap_or_else(|failure| panic!("{failure}"));
        println!("log of the machine: {}", boot.folder.log().display());
        boot
    }
}

/// Boots a machine with the seed of its command line plus that of `cargo xtask test --seed`.
pub fn boot_drawn(artefacts: &Artefacts, request: &Request) -> Result<Boot, Failure> {
    let _permit = machine_permit();
    let added = std::env::var(SEED_VARIABLE).map_or(0, |text| text.parse().expect("a number"));
    let mut request = request.clone();
    // Repeats are told apart by their seeds.
    let has_repeats = request.command_line.contains("repeat=");
    if added != 0 && !request.command_line.is_empty() && !has_repeats {
        request.command_line = reseeded(&request.command_line, added);
    }
    machine::boot(artefacts, &request, &mut |_| {})
}

/// Kernel's command line with `added` more in its seed, which is 1 without one.
fn reseeded(line: &str, added: u64) -> String {
    let options = line.split(" -- ").next().unwrap_or_default();
    match options.split(' ').find_map(|word| word.strip_prefix("seed=")) {
        Some(own) => {
            let seed: u64 = own.parse().expect("a seed is a number");
            line.replacen(&format!("seed={own}"), &format!("seed={}", seed + added), 1)
        }
        None => format!("seed={} {line}", 1 + added),
    }
}

/// Machines that may start now; `None` until the first request.
static FREE: Mutex<Option<usize>> = Mutex::new(None);
static FREED: Condvar = Condvar::new();

/// Permit for one machine to run for the lifetime of the value.
pub struct MachinePermit(());

/// Waits until fewer machines run than the host has processors. The number of test threads is
/// higher, because some wait for a [`SharedBoot`] that another thread boots.
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
