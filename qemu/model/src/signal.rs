//! The signals that the model counts. Events are sums of signals.
//!
//! Invariant: a block's bytes alone determine the first [`STATIC_SIGNALS`]; the rest depend on
//! addresses, outcomes and time.

#[macro_use]
mod stacks;
#[macro_use]
mod episodes;
mod sets;

pub use self::sets::GROWTH_PER_SLOT;

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
    /// Taken branches of which fetch did not know, the mispredicted ones aside: it went on behind
    /// the branch, until this was decoded.
    Resteers,
    /// Micro-operations that the cache of decoded ones delivered, microcode aside.
    UopsCached,
    /// Micro-operations that the decoders delivered, microcode aside: all, without such a cache.
    UopsDecoded,
    /// Cycles in which the cache delivered any.
    CachedCycles,
    /// Cycles in which the decoders delivered any.
    DecodeCycles,
    /// Cycles in which the cache delivered as many as dispatch takes.
    CachedFullCycles,
    /// Cycles in which the decoders delivered as many as dispatch takes.
    DecodeFullCycles,
    /// Entries of the cache that fetch looked for and found.
    UopCacheHits,
    /// Entries of the cache that it did not find.
    UopCacheMisses,
    /// Times at which the decoders took over from the cache.
    DecodeSwitches,
    /// Cycles until they delivered.
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
    /// Loads retired that the L1 data cache served. A load is one of this and the next three.
    LoadL1Hit,
    /// Loads retired that the L2 served.
    LoadL2Hit,
    /// Loads retired that the last-level cache served.
    LoadL3Hit,
    /// Loads retired that memory served.
    LoadL3Miss,
    /// Lines that came into the L1 data cache.
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
    /// Lines of code fetched that missed it.
    L1iMiss,
    /// Loads on pages of 4 KiB that missed the first-level data TLB and hit the second level.
    DtlbLoadStlbHit,
    /// Likewise, on pages of 2 MiB.
    DtlbLoadStlbHit2M,
    /// Likewise, on pages of 1 GiB.
    DtlbLoadStlbHit1G,
    /// Page walks for loads from pages of 4 KiB.
    DtlbLoadWalks,
    /// Likewise, for pages of 2 MiB.
    DtlbLoadWalks2M,
    /// Likewise, for pages of 1 GiB.
    DtlbLoadWalks1G,
    /// Cycles of page walks for loads.
    DtlbLoadWalkCycles,
    /// Stores to pages of 4 KiB that missed the first-level data TLB and hit the second level.
    DtlbStoreStlbHit,
    /// Likewise, on pages of 2 MiB.
    DtlbStoreStlbHit2M,
    /// Likewise, on pages of 1 GiB.
    DtlbStoreStlbHit1G,
    /// Page walks for stores to pages of 4 KiB.
    DtlbStoreWalks,
    /// Likewise, for pages of 2 MiB.
    DtlbStoreWalks2M,
    /// Likewise, for pages of 1 GiB.
    DtlbStoreWalks1G,
    /// Cycles of page walks for stores.
    DtlbStoreWalkCycles,
    /// Fetches from pages of 4 KiB that hit the instruction TLB.
    ItlbHit,
    /// Likewise, on pages of 2 MiB.
    ItlbHit2M,
    /// Likewise, on pages of 1 GiB.
    ItlbHit1G,
    /// Fetches that missed the instruction TLB and hit the second level, of pages of any size.
    ItlbStlbHit,
    /// Page walks for fetches from pages of 4 KiB.
    ItlbWalks,
    /// Likewise, for pages of 2 MiB.
    ItlbWalks2M,
    /// Likewise, for pages of 1 GiB.
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
    /// Cycles without retirement because fetch and dispatch had nothing to give, for no other
    /// cause.
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
    /// a load waits for what it cannot be forwarded.
    StallStore,
    /// Cycles without retirement behind floating-point and vector units, dividers aside.
    StallFp,
    /// Cycles without retirement behind integer units, the divider aside.
    StallInteger,
    /// Cycles in which something retired.
    RetireCycles,
    /// Slots of the cycles for which fetch gave dispatch nothing, on the right path.
    SlotsFetchLatency,
    /// Slots in which fetch gave dispatch nothing, of cycles in which it gave something.
    SlotsFetchBandwidth,
    /// Slots of micro-operations behind a mispredicted branch, until it was resolved.
    SlotsWrongPath,
    /// Slots between the resolution of a mispredicted branch and the dispatch of the right path.
    SlotsRefill,
    /// Slots in which dispatch waited for an entry of a structure, behind memory.
    SlotsMemory,
    /// Likewise, behind anything else; a serializing instruction is in it.
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
    /// address. A cycle is one of this and the next eight.
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
    /// Of the cycles with an empty scheduler those in which a full structure or a serializing
    /// instruction kept the next instruction from dispatch.
    IdleBlocked,
    /// Times at which the scheduler was empty and got a micro-operation.
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
    /// Cycles without retirement, each gap charged whole when it ended: to a serializing or
    /// microcoded instruction that ended it.
    ResumedSerialize,
    /// Likewise, the divider.
    ResumedDivider,
    /// Likewise, a line of code.
    ResumedL1i,
    /// Likewise, a translation of code.
    ResumedItlb,
    /// Likewise, the way back from a misprediction.
    ResumedMispredict,
    /// Likewise, fetch and dispatch, for no other cause.
    ResumedFrontEnd,
    /// Likewise, a full structure.
    ResumedResources,
    /// Likewise, data of the L1 data cache or the store queue.
    ResumedL1Hit,
    /// Likewise, data of the L2.
    ResumedL2Hit,
    /// Likewise, data of the last-level cache.
    ResumedL3Hit,
    /// Likewise, data of memory.
    ResumedMemory,
    /// Likewise, a data page walk.
    ResumedDtlb,
    /// Likewise, a store.
    ResumedStore,
    /// Likewise, a floating-point or vector unit.
    ResumedFp,
    /// Likewise, an integer unit.
    ResumedInteger,
    /// Lines that the L1 data cache's prefetchers fetched and the L2 had.
    L1PrefetchL2Hit,
    /// Likewise, the last-level cache.
    L1PrefetchLlcHit,
    /// Likewise, memory.
    L1PrefetchLlcMiss,
    /// Lines of data that the L2's prefetchers fetched and the last-level cache had.
    L2PrefetchLlcHit,
    /// Likewise, memory.
    L2PrefetchLlcMiss,
    /// Lines of code that the L2's prefetchers fetched and the last-level cache had.
    L2PrefetchCodeHit,
    /// Likewise, memory.
    L2PrefetchCodeMiss,
    /// Interrupts and exceptions delivered.
    Interrupts,
    /// TLB flushes.
    TlbFlushes,
}

/// The number of signals that a block's bytes alone determine.
pub const STATIC_SIGNALS: usize = 30;
const _: () = assert!(Signal::CondTaken as usize == STATIC_SIGNALS);
