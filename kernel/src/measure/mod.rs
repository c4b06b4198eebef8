//! The kernel's side of the sampling engine: the programs for which it counts, and the destination
//! of results.
//!
//! Each CPU has a [`Measure`]: its multiplexer and its end of the trace ring. Each session on a
//! program is a [`Context`], which the CPU owns while the program runs and the program owns
//! otherwise ([`Slot`]). The overflow path touches these two and the interrupt controller, and
//! nothing that another CPU could lock. State that the overflow NMI can observe half-changed is
//! kept in an [`NmiCell`]: the NMI finds it locked, and the overflow is replayed on unlock.

mod catalogue;
mod checked;
mod claim;
mod closing;
mod context;
mod counted_cpu;
pub mod cpus;
mod direct;
mod halt;
mod instances;
mod memory;
mod nmi_cell;
mod per_cpu;
mod port;
mod readings;
mod refusal;
mod sequences;
mod session;
mod session_id;
mod settings;
mod slot;
mod stream;
mod threads;
mod trace;
mod trace_ring;
mod transport;
mod truth;
mod unit;
mod upcall;

use tally_abi::boot::CommandLine;

pub use checked::send as send_checked;
pub use closing::Closing;
pub use context::{Context, Owner, Samples, Subject};
pub use direct::DirectCounters;
pub use instances::ThreadTurn;
pub use nmi_cell::NmiCell;
pub use per_cpu::Measure;
pub use readings::PendingReadings;
pub use refusal::Refusal;
pub use sequences::Sequences;
pub use session::SessionRef;
pub use settings::{
    delivery, halts, is_tracing, late_failure, overflows_are_nmis, permit, pmu_info, pmu_matches,
    seed, set_seed, trace_events,
};
pub use slot::{Contexts, Slot};
pub use trace_ring::{ProcessorClock, ring_memory};
pub use truth::{close_region, open_region};
pub use upcall::{Threshold, UpcallHandler};

/// Detects the PMU, takes the command line's options for measuring, and starts the trace if
/// requested. Once, before CPUs start.
pub fn init(line: &CommandLine) {
    settings::init(line);
    if line.trace.is_some() {
        stream::init();
    }
}

/// Ends the trace, and reports the halts. Nothing may be counted any more.
pub fn finish() {
    stream::finish();
    halt::report();
}
