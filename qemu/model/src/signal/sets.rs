//! Sets of signals that belong together.

use super::Signal;

/// Maximum growth of most signals while the clock advances by one slot; of others it is higher
/// ([`Signal::growth_per_slot`]).
pub const GROWTH_PER_SLOT: u64 = 4;

/// The number of signals that a block's bytes alone determine.
pub const STATIC_SIGNALS: usize = 34;
const _: () = assert!(Signal::CondTaken as usize == STATIC_SIGNALS);

impl Signal {
    /// Maximum growth of this signal while the clock advances by one slot.
    pub const fn growth_per_slot(self) -> u64 {
        match self {
            // All cycles of a division are counted when it retires. Until the interval pipeline has
            // learnt its block's cost, it charges only the block's micro-operations.
            Signal::DividerActive => u8::MAX as u64,
            // REP MOVSB passes 32 elements in a cycle of six slots; on AMD's profiles each counts.
            Signal::LoadL1Hit | Signal::Stores => 6,
            Signal::FlopsAdd | Signal::FlopsMultiply | Signal::FlopsDivide | Signal::FlopsFused => {
                16
            }
            _ => GROWTH_PER_SLOT,
        }
    }

    /// The causes of cycles without retirement: disjoint, and together all such cycles.
    pub const STALLS: &[Signal] = &[
        Signal::StallSerialize,
        Signal::StallDivider,
        Signal::StallL1i,
        Signal::StallItlb,
        Signal::StallMispredict,
        Signal::StallFrontEnd,
        Signal::StallResources,
        Signal::StallL1Hit,
        Signal::StallL2Hit,
        Signal::StallL3Hit,
        Signal::StallMemory,
        Signal::StallDtlb,
        Signal::StallStore,
        Signal::StallFp,
        Signal::StallInteger,
    ];

    /// The cycles of [`Self::STALLS`], in the same order, with each gap between two retirements
    /// charged as a whole to the step that ended last (paper 000, section 5.1). If steps end in the
    /// same cycle, the first of these gets the gap: fetch and dispatch, translation, data, unit,
    /// store. Only the out-of-order pipeline counts them.
    pub const RESUMED: &[Signal] = &{
        let mut all = [Signal::StallSerialize; Signal::STALLS.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = Signal::STALLS[index].resumed();
            index += 1;
        }
        all
    };

    /// The causes of cycles without retirement that lie in memory.
    pub const MEMORY_STALLS: [Signal; 6] = [
        Signal::StallL1Hit,
        Signal::StallL2Hit,
        Signal::StallL3Hit,
        Signal::StallMemory,
        Signal::StallDtlb,
        Signal::StallStore,
    ];

    /// The slots of dispatch that no retired micro-operation used, by cause: disjoint. Together
    /// with `Uops` they add up to `Slots` whenever the pipeline is empty: at a serializing
    /// instruction and at a change of the ring.
    pub const LOST_SLOTS: &[Signal] = &[
        Signal::SlotsFetchLatency,
        Signal::SlotsFetchBandwidth,
        Signal::SlotsWrongPath,
        Signal::SlotsRefill,
        Signal::SlotsMemory,
        Signal::SlotsCore,
    ];

    /// Cycles by the number of micro-operations that executed in them: 1, 2, …; the last signal
    /// counts that number or more.
    pub const EXECUTED: &[Signal; 5] = &[
        Signal::Executed1,
        Signal::Executed2,
        Signal::Executed3,
        Signal::Executed4,
        Signal::Executed5,
    ];

    /// Cycles in which no micro-operation executed, by cause: disjoint. Together with
    /// [`Self::EXECUTED`] they are all cycles whenever the pipeline is empty.
    pub const IDLE: &[Signal; 4] =
        &[Signal::IdleEmpty, Signal::IdleLoads, Signal::IdleStores, Signal::IdleUnits];

    /// Micro-operations by the port on which they executed.
    pub const PORTS: &[Signal; 12] = &[
        Signal::Port0,
        Signal::Port1,
        Signal::Port2,
        Signal::Port3,
        Signal::Port4,
        Signal::Port5,
        Signal::Port6,
        Signal::Port7,
        Signal::Port8,
        Signal::Port9,
        Signal::Port10,
        Signal::Port11,
    ];

    /// Loads that hit the second-level TLB, by the sizes of [`PageSize`](crate::PageSize).
    pub const LOAD_STLB_HITS: &[Signal; 3] =
        &[Signal::DtlbLoadStlbHit, Signal::DtlbLoadStlbHit2M, Signal::DtlbLoadStlbHit1G];
    /// Stores that hit the second-level TLB, by size.
    pub const STORE_STLB_HITS: &[Signal; 3] =
        &[Signal::DtlbStoreStlbHit, Signal::DtlbStoreStlbHit2M, Signal::DtlbStoreStlbHit1G];
    /// Page walks for loads, by size.
    pub const LOAD_WALKS: &[Signal; 3] =
        &[Signal::DtlbLoadWalks, Signal::DtlbLoadWalks2M, Signal::DtlbLoadWalks1G];
    /// Page walks for stores, by size.
    pub const STORE_WALKS: &[Signal; 3] =
        &[Signal::DtlbStoreWalks, Signal::DtlbStoreWalks2M, Signal::DtlbStoreWalks1G];
    /// Fetches that hit the instruction TLB, by size.
    pub const FETCH_HITS: &[Signal; 3] = &[Signal::ItlbHit, Signal::ItlbHit2M, Signal::ItlbHit1G];
    /// Page walks for fetches, by size.
    pub const FETCH_WALKS: &[Signal; 3] =
        &[Signal::ItlbWalks, Signal::ItlbWalks2M, Signal::ItlbWalks1G];

    /// The signal that is charged with a whole gap if this cause ended it.
    #[inline]
    pub const fn resumed(self) -> Signal {
        match self {
            Signal::StallSerialize => Signal::ResumedSerialize,
            Signal::StallDivider => Signal::ResumedDivider,
            Signal::StallL1i => Signal::ResumedL1i,
            Signal::StallItlb => Signal::ResumedItlb,
            Signal::StallMispredict => Signal::ResumedMispredict,
            Signal::StallResources => Signal::ResumedResources,
            Signal::StallL1Hit => Signal::ResumedL1Hit,
            Signal::StallL2Hit => Signal::ResumedL2Hit,
            Signal::StallL3Hit => Signal::ResumedL3Hit,
            Signal::StallMemory => Signal::ResumedMemory,
            Signal::StallDtlb => Signal::ResumedDtlb,
            Signal::StallStore => Signal::ResumedStore,
            Signal::StallFp => Signal::ResumedFp,
            Signal::StallInteger => Signal::ResumedInteger,
            _ => Signal::ResumedFrontEnd,
        }
    }
}
