//! Checks this machine's counters and events, on every CPU, and prints the results: the lines of
//! `tally_abi::check`. `cargo xtask run --check` makes a report of them.
//!
//! `tally-check [counters]`, under a kernel with `paranoid=0`: it counts in direct mode. With
//! `counters` it checks no events.
//!
//! The program does not judge the results. It never waits for an interrupt: a loop of known content
//! ends, and only interrupts that came until then are reported.

#![no_std]
#![no_main]

extern crate alloc;

mod costs;
mod counters;
mod cpus;
mod events;
mod loops;
mod table;

use alloc::string::String;
use core::{arch::x86_64::__cpuid, fmt::Display};

use tally::{Error, ExitStatus, OpenError, eprintln, println, runtime};
use tally_abi::check::{Checked, Machine, VERSION};

use self::loops::Memory;

tally::main!(main);

/// Prints lines, and counts them.
#[derive(Debug, Default)]
struct Printer {
    lines: u32,
}

impl Printer {
    fn print(&mut self, line: impl Display) {
        println!("{line}");
        self.lines += 1;
    }
}

/// Reason why the machine cannot be checked.
struct Failure {
    status: ExitStatus,
    why: String,
}

impl From<OpenError> for Failure {
    fn from(refused: OpenError) -> Failure {
        Failure { status: refused.error.exit_status(), why: refused.detail }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { status: error.exit_status(), why: error.message().into() }
    }
}

fn main() -> i32 {
    match check() {
        Ok(()) => 0,
        Err(Failure { status, why }) => {
            eprintln!("tally-check: {why}");
            u8::from(status).into()
        }
    }
}

fn check() -> Result<(), Failure> {
    // If nothing can be counted, this call returns the reason.
    drop(tally::Direct::open("instructions", tally::Mode::User)?);
    let cpus = cpus::all();
    let mut printer = Printer::default();
    printer.print(machine(cpus.len() as u32));
    for cpu in &cpus {
        cpus::move_to(*cpu)?;
        for counter in counters::all(*cpu) {
            printer.print(counter);
        }
        printer.print(costs::measure(*cpu)?);
    }
    if runtime::arguments().nth(1) != Some("counters") {
        let memory = Memory::map()?;
        events::check(&cpus, &memory, &mut |line| printer.print(line))?;
    }
    printer.print(Checked { lines: printer.lines });
    Ok(())
}

fn machine(cpus: u32) -> Machine {
    let signature = __cpuid(1);
    let hypervisor = signature.ecx >> 31 & 1 == 1;
    Machine { version: VERSION, signature: signature.eax, hypervisor, cpus }
}
