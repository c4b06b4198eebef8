//! The engine's state: the cycles at which structures' entries become free and registers are ready.

use super::{
    execution::Execution,
    memory::{Covered, Lines, Order, StoreTimes, Stores},
    queue::{Fifo, Pool, Stage},
    slots::Slots,
    steps::Charged,
};
use crate::{
    access::{Access, Ahead, ServedBy},
    block::Privilege,
    geometry::{Geometry, PipelineMode},
    operation::{REGISTERS, RegisterSet},
    oracle::Oracle,
    perfect::Perfect,
    prefetch::IN_FLIGHT,
    signal::Signal,
    stacks::{FetchWait, Stacks},
};

/// An access to data, and the level that served it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) access: Access,
    pub(crate) store: bool,
    pub(crate) line: u64,
    pub(crate) by: ServedBy,
    pub(crate) walk_cycles: u32,
    /// The access's prefetches: first and end index in [`Engine::ahead`].
    pub(crate) ahead: (usize, usize),
}

/// Lines on their way into the L2, requested by its prefetchers.
#[derive(Clone, Debug)]
pub(super) struct IntoL2 {
    pub(super) entries: Fifo,
    pub(super) lines: Lines,
}

/// The bundle: the instructions that were dispatched since the last retirement.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    /// Maximum instructions of a bundle; 1 if each retires by itself.
    pub(super) most: u8,
    pub(super) instructions: u8,
    /// Entries of the reorder buffer and of the load queue in use by the bundle.
    pub(super) uops: usize,
    pub(super) loads: usize,
    /// Stores of the bundle, each with its times except for `leaves_at`.
    pub(super) stores: Vec<(StoreTimes, Touch)>,
    /// The cycle at which all instructions of the bundle are complete.
    pub(super) complete: u64,
    /// The cycles before the bundle's retirement that are charged.
    pub(super) charged: Option<Charged>,
}

impl Bundle {
    pub(super) fn new(mode: PipelineMode) -> Bundle {
        Bundle {
            most: if let PipelineMode::Bundles(most) = mode { most.max(1) } else { 1 },
            instructions: 0,
            uops: 0,
            loads: 0,
            stores: Vec::new(),
            complete: 0,
            charged: None,
        }
    }

    /// Returns whether instructions retire in bundles.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.most > 1
    }
}

impl IntoL2 {
    fn new() -> IntoL2 {
        IntoL2 { entries: Fifo::new(IN_FLIGHT as usize), lines: Lines::new() }
    }
}

/// A delay of fetch before an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starved {
    pub(super) insn: usize,
    pub(super) wait: FetchWait,
    pub(super) cycles: u32,
}

/// The out-of-order engine.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    pub(super) geometry: Geometry,
    pub(super) mode: PipelineMode,
    pub(super) touches: Vec<Touch>,
    pub(super) ahead: Vec<Ahead>,
    pub(super) starved: Vec<Starved>,

    /// The cycle from which the next instruction can be dispatched, and the cause of fetch's last
    /// delay.
    pub(super) fetched_at: u64,
    pub(super) fetch_cause: Signal,
    /// Fetch into the queue before dispatch, by the cycles of dispatch that follow at once.
    pub(super) fetch: Stage,
    pub(super) dispatch: Stage,
    pub(super) retirement: Stage,
    /// The cycle of the last retirement.
    pub(super) retired_at: u64,
    /// The cycle in which the instruction that retired last was dispatched.
    pub(super) dispatched_at: u64,
    pub(super) bundle: Bundle,
    /// The cause that no instruction retired in the cycle `retired_at`, if none did.
    pub(super) stalled: Option<Signal>,
    /// Whether the last wait of retirement was for memory.
    pub(super) waited_for_memory: bool,
    pub(super) slots: Slots,
    /// The ring of the last instruction.
    pub(super) ring: Privilege,
    /// The cycles at which the last mispredicted branch was resolved, and at which the right path
    /// reached dispatch at the earliest.
    pub(super) resolved_at: u64,
    pub(super) refilled_at: u64,

    pub(super) queue: Fifo,
    /// Reorder buffer. An entry becomes free at cycle `value / 2`; the lowest bit is
    /// `waited_for_memory`.
    pub(super) reorder: Fifo,
    pub(super) loads: Fifo,
    pub(super) stores: Fifo,
    pub(super) fills: Fifo,
    /// The cycles in which a line waited for a fill buffer, and those in which a fill buffer was in
    /// use.
    pub(super) fills_full: Covered,
    pub(super) fills_pending: Covered,
    pub(super) scheduler: Pool,
    pub(super) execution: Execution,
    pub(super) ready: [u64; REGISTERS],
    pub(super) divider_free: u64,
    /// The first cycle at which a load can issue: before it an atomic operation is in progress.
    pub(super) fence: u64,
    /// The cycle at which the last store reaches the cache.
    pub(super) store_done: u64,
    pub(super) lines: Lines,
    /// The L2's prefetches in flight; `None` without prefetchers.
    pub(super) into_l2: Option<Box<IntoL2>>,
    pub(super) forwards: Stores,
    /// The memory-order predictor; `None` unless rejections are modelled.
    pub(super) order: Option<Box<Order>>,
    /// The cycle at which the last instruction was complete.
    pub(super) complete_at: u64,
    /// The CPI stacks of paper 001's architectures, if they are counted.
    pub(super) stacks: Option<Box<Stacks>>,
    /// The time of each instruction, if it is kept.
    pub(super) oracle: Option<Box<Oracle>>,
}

impl Engine {
    #[expect(clippy::too_many_lines, reason = "one value of many fields")]
    pub(crate) fn new(geometry: &Geometry, mode: PipelineMode) -> Engine {
        let Perfect { units, queues, .. } = geometry.perfect;
        let mut geometry = *geometry;
        if units {
            geometry.backend.units.iter_mut().for_each(|unit| unit.latency_cycles = 1);
        }
        let backend = &geometry.backend;
        let fifo = |entries| if queues { Fifo::endless() } else { Fifo::new(entries) };
        let pool = |entries| if queues { Pool::endless() } else { Pool::new(entries) };
        Engine {
            geometry,
            mode,
            touches: Vec::with_capacity(64),
            ahead: Vec::new(),
            starved: Vec::with_capacity(64),
            fetched_at: 0,
            fetch_cause: Signal::StallFrontEnd,
            fetch: Stage::new(geometry.width),
            dispatch: Stage::new(geometry.width),
            retirement: Stage::new(backend.retire_width),
            retired_at: 0,
            dispatched_at: 0,
            bundle: Bundle::new(mode),
            stalled: None,
            waited_for_memory: false,
            slots: Slots::new(geometry.width),
            ring: Privilege::User,
            resolved_at: 0,
            refilled_at: 0,
            queue: Fifo::new(backend.queue_uops.into()),
            reorder: fifo(geometry.reorder_uops as usize),
            loads: fifo(backend.loads.into()),
            stores: fifo(backend.stores.into()),
            fills: Fifo::new(backend.fill_buffers.into()),
            fills_full: Covered::default(),
            fills_pending: Covered::default(),
            scheduler: pool(backend.scheduler_uops.into()),
            execution: Execution::new(units),
            ready: [0; REGISTERS],
            divider_free: 0,
            fence: 0,
            store_done: 0,
            lines: Lines::new(),
            into_l2: geometry.prefetch.map(|_| Box::new(IntoL2::new())),
            forwards: Stores::new(),
            order: geometry.has_rejections.then(|| Box::new(Order::new())),
            complete_at: 0,
            stacks: geometry.stacks.then(|| Box::new(Stacks::new(&geometry))),
            oracle: geometry.oracle.then(Box::default),
        }
    }

    /// The cycle at which all of these registers are ready.
    #[inline]
    pub(super) fn ready(&self, registers: RegisterSet) -> u64 {
        let mut at = 0;
        for register in registers.numbers() {
            at = self.ready[register].max(at);
        }
        at
    }
}
