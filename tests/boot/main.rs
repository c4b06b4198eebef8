//! Tests that boot a machine and check how it ended and what it told.
//!
//! `cargo xtask test` builds what they boot and tells them where it is. Each boot is a machine of
//! its own, under TCG with the virtual PMU, and has a time limit.

mod attacks;
mod counters;
mod debugging;
mod linux;
mod measures;
mod outcomes;
mod programs;
mod threads;
mod traces;
mod virtual_pmu;

use xtask::machine::{self, Artefacts, Boot, Request};

/// What `cargo xtask test` built.
fn artefacts() -> Artefacts {
    Artefacts::from_environment().unwrap_or_else(|failure| panic!("{failure}"))
}

/// Boots what `request` asks for.
fn boot(request: &Request) -> Boot {
    machine::boot(&artefacts(), request, &mut |_| {}).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Boots one processor with Intel's virtual PMU on `programs`, with the kernel's `options`.
fn run(options: &str, programs: &str) -> Boot {
    boot(&Request::new(format!("wire {options} -- {programs}")))
}

/// Panics with everything there is to know unless `boot` ended well.
fn assert_success(boot: &Boot) {
    assert!(boot.outcome.is_success(), "{}\n{}", boot.outcome, boot.transcript.text());
}

/// What the `index`th program of the command line wrote to an output.
fn said(boot: &Boot, index: usize, fd: u8) -> String {
    let own = boot.transcript.output.iter();
    let own = own.filter(|output| output.pid as usize == index + 1 && output.fd == fd);
    String::from_utf8(own.flat_map(|output| output.bytes.clone()).collect()).unwrap()
}

/// The kernel has started all `cpus`, and is small, without programs and apart from the ramdisk.
fn assert_small(boot: &Boot, cpus: u32) {
    let booted = boot.transcript.booted.as_ref().expect("the kernel says so");
    assert_eq!(booted.cpus, cpus);
    let memory_bytes = booted.memory_bytes;
    assert!(memory_bytes <= 8 << 20, "{memory_bytes} bytes for {cpus} CPUs");
}
