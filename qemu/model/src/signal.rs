//! The signals that the model counts. Events are sums of signals.
//!
//! Invariant: a block's bytes determine the first [`STATIC_SIGNALS`]; addresses and time the rest.

#[macro_use]
mod stacks;
#[macro_use]
mod episodes;
mod sets;

pub use self::sets::{GROWTH_PER_SLOT, STATIC_SIGNALS};

macro_rules! signals {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// A quantity that the model counts, per ring.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Signal { $($(#[$doc])* $name),* }

        impl Signal {
            /// Every signal, in the order of the accumulators.
            pub const ALL: &[Signal] = &[$(Signal::$name),*];
        }
    };
}

with_episodes! {
    /// Instructions retired; a repeated string instruction is one.
    Instructions,
    /// Micro-operations retired, in the fused domain: the pipeline slots in use.
    Uops,
    /// Pipeline slots that passed: width times cycles.
    Slots,
    /// Branches retired, of every kind.
    Branches,
    /// Conditional branches retired.
    BranchCond,
    /// Near calls retired, direct and indirect.
    BranchCall,
    /// Near returns retired.
    BranchReturn,
    /// Near indirect jumps and calls retired, without returns.
    BranchIndirect,
    /// Near unconditional branches retired: jumps, calls and returns.
    BranchUncond,
    /// No-operation instructions retired.
    Nops,
    /// Pairs of a compare and a branch that retired as one micro-operation.
    Fused,
    /// SSE and AVX instructions retired.
    Sse,
    /// Far branches retired: system calls and returns, software interrupts, far jumps.
    BranchFar,
    /// Cycles in which a serializing or microcoded instruction has the pipeline to itself.
    StallSerialize,
    /// Instructions retired with a lock.
    Locked,
    /// Scalar double-precision arithmetic instructions retired; here and below, those with two
    /// calculations for each element count twice.
    FpScalarDouble,
    /// Scalar single-precision arithmetic instructions retired.
    FpScalarSingle,
    /// Packed 128-bit double-precision arithmetic instructions retired.
    FpPackedDouble,
    /// Packed 128-bit single-precision arithmetic instructions retired.
    FpPackedSingle,
    /// Packed 256-bit double-precision arithmetic instructions retired.
    FpWideDouble,
    /// Packed 256-bit single-precision arithmetic instructions retired.
    FpWideSingle,
    /// x87 instructions retired.
    X87,
    /// Divisions and square roots retired.
    Divisions,
    /// Cycles in which the divider was busy.
    DividerActive,
    /// PAUSE instructions retired.
    Pauses,
    /// Micro-operations retired that came from the microcode sequencer.
    UopsMicrocode,
    /// Instructions retired that the microcode sequencer ran.
    Microcoded,
    /// Software prefetch instructions retired.
    Prefetches,
    /// CPUID instructions retired.
    Cpuids,
    /// Cache-line flush instructions retired.
    Flushes,
    /// Floating-point additions and subtractions retired, here and below by element.
    FlopsAdd,
    /// Floating-point multiplications retired.
    FlopsMultiply,
    /// Floating-point divisions and square roots retired.
    FlopsDivide,
    /// Calculations of FMA instructions retired: two for each element.
    FlopsFused,

    /// Conditional branches that were taken.
    CondTaken,
    /// Conditional branches that were not taken.
    CondNotTaken,
    /// Near branches that were taken.
    Taken,
    /// Mispredicted branches of every near kind.
    Mispredicts,
    /// Mispredicted conditional branches.
    MispredictCond,
    /// Mispredicted conditional branches that were taken.
    MispredictCondTaken,
    /// Mispredicted conditional branches that were not taken.
    MispredictCondNotTaken,
    /// Mispredicted near returns.
    MispredictReturn,
    /// Mispredicted indirect jumps and calls.
    MispredictIndirect,
    /// Mispredicted indirect calls.
    MispredictIndirectCall,
    /// Taken branches that fetch did not know, except mispredicted ones: fetch went straight on
    /// until the branch was decoded.
    Resteers,
    /// Micro-operations that the micro-op cache delivered, microcode aside.
    UopsCached,
    /// Micro-operations that the decoders delivered, microcode aside: all, without a micro-op
    /// cache.
    UopsDecoded,
    /// Cycles in which the micro-op cache delivered any.
    CachedCycles,
    /// Cycles in which the decoders delivered any.
    DecodeCycles,
    /// Cycles in which the micro-op cache delivered as many as dispatch takes.
    CachedFullCycles,
    /// Cycles in which the decoders delivered as many as dispatch takes.
    DecodeFullCycles,
    /// Look-ups of micro-op cache entries that hit.
    UopCacheHits,
    /// Look-ups of micro-op cache entries that missed.
    UopCacheMisses,
    /// Switches from the micro-op cache to the decoders.
    DecodeSwitches,
    /// Cycles from a switch to the decoders until they delivered.
    DecodeSwitchCycles,
    /// Stores retired.
    Stores,
    /// Loads retired that took a page walk.
    LoadsWalked,
    /// Stores retired that took a page walk.
    StoresWalked,
    /// Loads retired that crossed a cache line.
    SplitLoads,
    /// Stores retired that crossed a cache line.
    SplitStores,
    /// Loads retired that the L1 data cache served. Every load counts here or in one of the next
    /// three.
    LoadL1Hit,
    /// Loads retired that the L2 served.
    LoadL2Hit,
    /// Loads retired that the last-level cache served.
    LoadL3Hit,
    /// Loads retired that memory served.
    LoadL3Miss,
    /// Loads retired above the latency of [`Core::set_slow_loads`](crate::Core::set_slow_loads).
    SlowLoads,
    /// Lines that were inserted into the L1 data cache.
    L1dFills,
    /// Data reads that hit the L2.
    L2ReadHit,
    /// Data reads that missed the L2 and that the last-level cache served.
    LlcReadHit,
    /// Data reads that memory served.
    LlcReadMiss,
    /// Requests for ownership that hit the L2.
    L2RfoHit,
    /// Requests for ownership that missed the L2 and that the last-level cache served.
    LlcRfoHit,
    /// Requests for ownership that memory served.
    LlcRfoMiss,
    /// Code reads that hit the L2.
    L2CodeHit,
    /// Code reads that missed the L2 and that the last-level cache served.
    LlcCodeHit,
    /// Code reads that memory served.
    LlcCodeMiss,
    /// Reads of the L2 by the page walker.
    L2WalkReads,
    /// Lines of code fetched that hit the L1 instruction cache.
    L1iHit,
    /// Lines of code fetched that missed the L1 instruction cache.
    L1iMiss,
    /// Loads on pages of 4 KiB that missed the first-level data TLB and hit the second level.
    DtlbLoadStlbHit,
    /// Loads on pages of 2 MiB that missed the first-level data TLB and hit the second level.
    DtlbLoadStlbHit2M,
    /// Loads on pages of 1 GiB that missed the first-level data TLB and hit the second level.
    DtlbLoadStlbHit1G,
    /// Page walks for loads from pages of 4 KiB.
    DtlbLoadWalks,
    /// Page walks for loads from pages of 2 MiB.
    DtlbLoadWalks2M,
    /// Page walks for loads from pages of 1 GiB.
    DtlbLoadWalks1G,
    /// Cycles of page walks for loads.
    DtlbLoadWalkCycles,
    /// Stores to pages of 4 KiB that missed the first-level data TLB and hit the second level.
    DtlbStoreStlbHit,
    /// Stores to pages of 2 MiB that missed the first-level data TLB and hit the second level.
    DtlbStoreStlbHit2M,
    /// Stores to pages of 1 GiB that missed the first-level data TLB and hit the second level.
    DtlbStoreStlbHit1G,
    /// Page walks for stores to pages of 4 KiB.
    DtlbStoreWalks,
    /// Page walks for stores to pages of 2 MiB.
    DtlbStoreWalks2M,
    /// Page walks for stores to pages of 1 GiB.
    DtlbStoreWalks1G,
    /// Cycles of page walks for stores.
    DtlbStoreWalkCycles,
    /// Fetches from pages of 4 KiB that hit the instruction TLB.
    ItlbHit,
    /// Fetches from pages of 2 MiB that hit the instruction TLB.
    ItlbHit2M,
    /// Fetches from pages of 1 GiB that hit the instruction TLB.
    ItlbHit1G,
    /// Fetches that missed the instruction TLB and hit the second level, of pages of any size.
    ItlbStlbHit,
    /// Page walks for fetches from pages of 4 KiB.
    ItlbWalks,
    /// Page walks for fetches from pages of 2 MiB.
    ItlbWalks2M,
    /// Page walks for fetches from pages of 1 GiB.
    ItlbWalks1G,
    /// Cycles of page walks for fetches.
    ItlbWalkCycles,
    /// Cycles without retirement behind the divider.
    StallDivider,
    /// Cycles without retirement because fetch waited for a line of code.
    StallL1i,
    /// Cycles without retirement because fetch waited for a translation.
    StallItlb,
    /// Cycles without retirement between a mispredicted branch and the right path.
    StallMispredict,
    /// Cycles without retirement because fetch and dispatch delivered nothing, for no other cause.
    StallFrontEnd,
    /// Cycles without retirement because a structure was full.
    StallResources,
    /// Cycles without retirement behind data that the L1 data cache or the store queue served.
    StallL1Hit,
    /// Cycles without retirement behind data that the L2 served.
    StallL2Hit,
    /// Cycles without retirement behind data that the last-level cache served.
    StallL3Hit,
    /// Cycles without retirement behind data that memory served.
    StallMemory,
    /// Cycles without retirement behind a data page walk.
    StallDtlb,
    /// Cycles without retirement behind a store: it waits for its data, the store queue is full, or
    /// a load waits for a store that cannot be forwarded to it.
    StallStore,
    /// Cycles without retirement behind floating-point and vector units, dividers aside.
    StallFp,
    /// Cycles without retirement behind integer units, the divider aside.
    StallInteger,
    /// Cycles in which something retired.
    RetireCycles,
    /// Slots of cycles in which fetch delivered nothing to dispatch, on the right path.
    SlotsFetchLatency,
    /// Empty slots of cycles in which fetch delivered something to dispatch.
    SlotsFetchBandwidth,
    /// Slots of micro-operations behind a mispredicted branch, until it was resolved.
    SlotsWrongPath,
    /// Slots between the resolution of a mispredicted branch and the dispatch of the right path.
    SlotsRefill,
    /// Slots in which dispatch waited for an entry of a structure, behind memory.
    SlotsMemory,
    /// Slots in which dispatch waited for an entry of a structure behind anything but memory, or
    /// for a serializing instruction.
    SlotsCore,
    /// Cycles for which a full reorder buffer kept an instruction from dispatch.
    FullReorder,
    /// Cycles for which a full scheduler kept an instruction from dispatch.
    FullScheduler,
    /// Cycles for which a full load queue kept an instruction from dispatch.
    FullLoads,
    /// Cycles for which a full store queue kept an instruction from dispatch.
    FullStores,
    /// Cycles in which a line waited for a fill buffer of the L1 data cache.
    FullFills,
    /// Times at which lines began to wait for a fill buffer.
    FullFillPeriods,
    /// Fill buffers in use, summed over cycles.
    PendingMisses,
    /// Cycles in which a fill buffer was in use.
    PendingMissCycles,
    /// Loads that a store in the store queue served.
    Forwards,
    /// Loads that waited for a store that could not be forwarded.
    ForwardsBlocked,
    /// Loads that were issued again for a store to another page with the same low 12 bits.
    AliasedLoads,
    /// Clears of the pipeline for a load that was executed ahead of a store to the same bytes.
    MachineClears,
    /// Cycles in which one micro-operation executed: an operation of a unit, a load, or a store's
    /// address. Every cycle counts here or in one of the next eight.
    Executed1,
    /// Cycles in which two executed.
    Executed2,
    /// Cycles in which three executed.
    Executed3,
    /// Cycles in which four executed.
    Executed4,
    /// Cycles in which five or more executed.
    Executed5,
    /// Cycles in which none executed, as the scheduler was empty.
    IdleEmpty,
    /// Cycles in which none executed while a load was outstanding.
    IdleLoads,
    /// Cycles in which none executed while the store queue was full and no load outstanding.
    IdleStores,
    /// Cycles in which none executed while operations of units alone were in progress.
    IdleUnits,
    /// Cycles with an empty scheduler in which a full structure or a serializing instruction kept
    /// the next instruction from dispatch; a part of `IdleEmpty`.
    IdleBlocked,
    /// Times at which the empty scheduler got a micro-operation.
    IdleEmptyEnds,
    /// Cycles in which a micro-operation had its operands and no free port.
    PortContention,
    /// Micro-operations that executed on port 0.
    Port0,
    /// Micro-operations that executed on port 1.
    Port1,
    /// Micro-operations that executed on port 2.
    Port2,
    /// Micro-operations that executed on port 3.
    Port3,
    /// Micro-operations that executed on port 4.
    Port4,
    /// Micro-operations that executed on port 5.
    Port5,
    /// Micro-operations that executed on port 6.
    Port6,
    /// Micro-operations that executed on port 7.
    Port7,
    /// Micro-operations that executed on port 8.
    Port8,
    /// Micro-operations that executed on port 9.
    Port9,
    /// Micro-operations that executed on port 10.
    Port10,
    /// Micro-operations that executed on port 11.
    Port11,
    /// Cycles without retirement, each gap charged as a whole to the step that ended it: a
    /// serializing or microcoded instruction.
    ResumedSerialize,
    /// Cycles of gaps that the divider ended.
    ResumedDivider,
    /// Cycles of gaps that a line of code ended.
    ResumedL1i,
    /// Cycles of gaps that a translation of code ended.
    ResumedItlb,
    /// Cycles of gaps that the recovery from a misprediction ended.
    ResumedMispredict,
    /// Cycles of gaps that fetch and dispatch ended, for no other cause.
    ResumedFrontEnd,
    /// Cycles of gaps that a full structure ended.
    ResumedResources,
    /// Cycles of gaps that data from the L1 data cache or the store queue ended.
    ResumedL1Hit,
    /// Cycles of gaps that data from the L2 ended.
    ResumedL2Hit,
    /// Cycles of gaps that data from the last-level cache ended.
    ResumedL3Hit,
    /// Cycles of gaps that data from memory ended.
    ResumedMemory,
    /// Cycles of gaps that a data page walk ended.
    ResumedDtlb,
    /// Cycles of gaps that a store ended.
    ResumedStore,
    /// Cycles of gaps that a floating-point or vector unit ended.
    ResumedFp,
    /// Cycles of gaps that an integer unit ended.
    ResumedInteger,
    /// Lines that the L1 data cache's prefetchers fetched from the L2.
    L1PrefetchL2Hit,
    /// Lines that the L1 data cache's prefetchers fetched from the last-level cache.
    L1PrefetchLlcHit,
    /// Lines that the L1 data cache's prefetchers fetched from memory.
    L1PrefetchLlcMiss,
    /// Lines of data that the L2's prefetchers fetched from the last-level cache.
    L2PrefetchLlcHit,
    /// Lines of data that the L2's prefetchers fetched from memory.
    L2PrefetchLlcMiss,
    /// Lines of code that the L2's prefetchers fetched from the last-level cache.
    L2PrefetchCodeHit,
    /// Lines of code that the L2's prefetchers fetched from memory.
    L2PrefetchCodeMiss,
    /// Interrupts and exceptions delivered.
    Interrupts,
    /// TLB flushes.
    TlbFlushes,
}
