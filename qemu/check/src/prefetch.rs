//! Hardware prefetchers: the register that turns them off, and their effect on a stream of loads.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{
    machine::{cpuid, rdmsr, wrmsr},
    report::CheckReport,
    rule::{
        Rule::{Holds, RefusesWrite},
        check,
    },
    vendor::{OS, VendorPmu},
};

/// A vendor's register with a bit for each prefetcher.
struct Control {
    msr: u32,
    /// Mask of all bits.
    all: u64,
    /// For stride, stream and pair: the bit, and the fewest and the most loads from memory per page
    /// if only this prefetcher is on. The compiler makes several instructions of one load.
    alone: [(u64, [u64; 2]); 3],
    /// Event select of loads that memory served.
    memory: u64,
}

/// Intel's register: streamer, pair, next line, stride.
const INTEL: Control = Control {
    msr: 0x1a4,
    all: 0xf,
    alone: [(1 << 3, [1, 6]), (1 << 0, [3, 3]), (1 << 1, [32, 32])],
    memory: 0x20d1,
};
/// AMD's register: L1 Stream, L1 Stride, L1 Region, L2 Stream, Up/Down.
const AMD: Control = Control {
    msr: 0xc000_0108,
    all: 0x2f,
    alone: [(1 << 1, [1, 6]), (1 << 3, [3, 3]), (1 << 5, [32, 32])],
    memory: 0x843,
};

/// Address of memory that nothing has accessed, and the number of its pages that have been accessed
/// since.
const UNTOUCHED: usize = (128 << 20) + (512 << 10);
static PAGES: AtomicUsize = AtomicUsize::new(0);
/// Number of pages in a stream.
const STREAM: usize = 16;

impl Control {
    /// The register of this machine, if it has prefetchers.
    fn here(vendor: &VendorPmu) -> Option<Control> {
        if !vendor.is_intel() {
            return (cpuid(0x8000_0021, 0)[0] >> 13 & 1 == 1).then_some(AMD);
        }
        // CPUID does not announce Intel's register, and QEMU's own register reads as 0.
        let before = rdmsr(INTEL.msr);
        wrmsr(INTEL.msr, INTEL.all);
        let is_there = rdmsr(INTEL.msr) == INTEL.all;
        wrmsr(INTEL.msr, before);
        is_there.then_some(INTEL)
    }
}

/// Turns all prefetchers off, because the other checks must know which lines are in the caches.
pub fn turn_off() {
    if let Some(control) = Control::here(&VendorPmu::here()) {
        wrmsr(control.msr, control.all);
    }
}

/// Runs every check of this module. Leaves all prefetchers off.
pub fn run(report: &mut CheckReport) {
    let vendor = VendorPmu::here();
    let Some(control) = Control::here(&vendor) else { return };
    let msr = control.msr;
    for bit in 0..64 {
        let is_there = control.all >> bit & 1 == 1;
        let rule =
            if is_there { Holds(msr, 1 << bit, 1 << bit) } else { RefusesWrite(msr, 1 << bit) };
        check(report, rule);
    }
    let lines = 64 * STREAM as u64;
    // The guest's kernel adds some lines.
    let stream = |off: u64| {
        wrmsr(msr, off);
        loads_from_memory(&vendor, control.memory)
    };
    report.within(
        "prefetchers off: each line is loaded from memory",
        stream(control.all),
        lines,
        lines + 20,
    );
    report.within("prefetchers on: almost none is", stream(0), 1, lines / 20);
    for (bit, of_page) in control.alone {
        let [least, most] = of_page.map(|lines| lines * STREAM as u64);
        let what = format_args!("prefetcher {bit:#x} alone: few lines of a page are");
        report.within(what, stream(control.all & !bit), least, most + 20);
    }
    report.within("prefetchers off again: each line is", stream(control.all), lines, lines + 20);
}

/// Counts the loads from memory, by `event`, of a stream that reads each line of some new pages.
fn loads_from_memory(vendor: &VendorPmu, event: u64) -> u64 {
    let first = UNTOUCHED + (PAGES.fetch_add(STREAM, Relaxed) << 12);
    let [count, ..] = vendor.count(&[event], OS, || {
        for line in 0..64 * STREAM {
            // SAFETY: this memory exists, and nothing else uses it.
            unsafe { core::ptr::read_volatile((first + 64 * line) as *const u8) };
        }
    });
    count
}
