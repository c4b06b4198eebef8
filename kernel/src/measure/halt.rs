//! Halts of a CPU by the overflow of its halt timer ([`tally_abi::halt`]).
//!
//! [`Halter::halt`] runs in the overflow interrupt, with interrupts off, on machines booted with
//! halts; other machines have another entry for that interrupt, without code for halts. Paper 003,
//! section II.

use alloc::{boxed::Box, vec};
use core::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};
use tally_abi::{
    halt::{HaltTimer as During, Halts},
    wire::Message,
};
use tally_engine::Clock;
use tally_pmu::{HaltTimer, bus::Native};

use super::{
    settings::{detected, halts, seed, settings},
    trace_ring::ProcessorClock,
};
use crate::{arch::lapic::Lapic, machine::serial};

/// Words of a cache line.
const LINE_WORDS: usize = 8;

/// Halts of all CPUs, and their cycles. Relaxed order: they are sums on which nothing depends.
static COUNT: AtomicU64 = AtomicU64::new(0);
static CYCLES: AtomicU64 = AtomicU64::new(0);

/// Halts of a CPU.
pub(super) struct Halter {
    timer: HaltTimer<Native>,
    halts: Halts,
    during: During,
    /// Core cycles in ring 3 until the first halt, drawn by the seed; `None` once it is armed.
    first: Option<u64>,
    /// Memory that halts touch.
    footprint: Box<[u64]>,
    lapic: Lapic,
    /// The period of the scheduler's timer, if a halt has cut the current period short.
    turn_ticks: Option<u32>,
}

impl Halter {
    /// Makes CPU number `cpu`'s halter, after its driver; `None` if the command line asks for no
    /// halts.
    pub(super) fn new(cpu: u16, lapic: Lapic) -> Option<Halter> {
        let (halts, found) = (settings().halts?, detected().ok()?);
        // SAFETY: (1) this is ring 0; (2) the timer stays with this CPU, and has a counter for
        // itself (`DetectedPmu::with_halt_timer`); (3) `detect` found the PMU on this machine.
        let timer = found.halt_timer(unsafe { Native::new() })?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed() ^ u64::from(cpu) << 32);
        let bytes = halts.footprint_bytes as usize;
        Some(Halter {
            timer,
            halts,
            during: settings().halt_timer,
            first: Some(1 + random.next_u64() % halts.period_cycles),
            footprint: vec![0; bytes.div_ceil(8)].into(),
            lapic,
            turn_ticks: None,
        })
    }

    /// Arms the first halt, when the CPU's first program is switched in.
    pub(super) fn start(&mut self) {
        if let Some(cycles) = self.first.take() {
            self.timer.start(cycles);
        }
    }

    /// Returns whether a halt is due.
    pub(super) fn is_due(&mut self) -> bool {
        self.timer.has_overflowed()
    }

    /// Halts the CPU, and arms the next halt. Runs in the overflow interrupt.
    #[inline(never)]
    pub(super) fn halt(&mut self) {
        let start = now();
        let held = (self.during == During::Held).then(|| {
            self.turn_ticks.get_or_insert_with(|| self.lapic.timer_period());
            self.lapic.hold_timer()
        });
        for line in self.footprint.chunks_mut(LINE_WORDS) {
            line[0] = black_box(line[0]).wrapping_add(1);
        }
        while now().wrapping_sub(start) < self.halts.length_cycles {
            core::hint::spin_loop();
        }
        COUNT.fetch_add(1, Ordering::Relaxed);
        CYCLES.fetch_add(now().wrapping_sub(start), Ordering::Relaxed);
        self.timer.arm(self.halts.period_cycles);
        if let Some(left) = held {
            self.lapic.release_timer(left);
        }
    }

    /// Restores the period of the scheduler's timer, at the end of a turn that halts have cut
    /// short.
    pub(super) fn end_turn(&mut self) {
        if let Some(ticks) = self.turn_ticks.take() {
            self.lapic.start_timer(ticks);
        }
    }
}

/// Core cycles, or ticks of the TSC if the processor does not count them.
fn now() -> u64 {
    ProcessorClock.core_cycles().unwrap_or_else(|| ProcessorClock.tsc())
}

/// Reports the number and the length of the machine's halts to the host, if the command line asks
/// for halts.
pub(super) fn report() {
    if let Some(halts) = halts() {
        let [count, cycles] = [&COUNT, &CYCLES].map(|sum| sum.load(Ordering::Relaxed));
        serial::send(&Message::Halted { halts, timer: settings().halt_timer, count, cycles });
    }
}
