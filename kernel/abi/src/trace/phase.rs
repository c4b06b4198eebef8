//! The trace's record of an interval whose phase is known.

use serde::{Deserialize, Serialize};

use crate::{
    Malformed,
    phase::{Bottleneck, COSTS},
    record::{Field, FieldType, Form, RecordType, place, record},
};

record! {
    /// An interval of a session whose phases are tracked has ended, and is evaluated.
    PhaseRecord = 9 "phase", stamp tsc "TSC when the interval's last slice was folded." {
        /// The session.
        session: u32,
        /// The CPU.
        cpu: u16,
        /// The phase; 32 if there were more.
        phase: u8,
        /// Whether the error bars of the costs cross no boundary between classes.
        sure: bool,
        /// The number of the interval, from 0.
        number: u32,
        /// Whether the program has changed, in this interval or the few before it.
        changed: bool,
        /// The largest cost.
        bottleneck: Bottleneck,
        /// The next phase by the most frequent of the last three.
        history: u8,
        /// The next phase by what followed the last three.
        markov: u8,
        /// The next phase by the length of the run.
        run_length: u8,
        /// The next phase by the predictor that has been right most often.
        best: u8,
        /// Core cycles of the interval.
        cycles: u64,
        /// Instructions of the interval.
        instructions: u64,
        /// Core cycles of the interval by the cost model.
        model_cycles: u64,
        /// Cycles per 1,000 instructions: misses of the instruction TLB.
        itlb_misses: u32,
        /// Half the width of its 95 % interval.
        itlb_misses_bar: u32,
        /// Cycles per 1,000 instructions: misses of the L1 instruction cache.
        l1i_misses: u32,
        /// Half the width of its 95 % interval.
        l1i_misses_bar: u32,
        /// Cycles per 1,000 instructions: code that the L2 did not have.
        l2_code_misses: u32,
        /// Half the width of its 95 % interval.
        l2_code_misses_bar: u32,
        /// Cycles per 1,000 instructions: mispredicted direct branches.
        direct_mispredictions: u32,
        /// Half the width of its 95 % interval.
        direct_mispredictions_bar: u32,
        /// Cycles per 1,000 instructions: full queues.
        full_queues: u32,
        /// Half the width of its 95 % interval.
        full_queues_bar: u32,
        /// Cycles per 1,000 instructions: instructions that waited for a port.
        port_contention: u32,
        /// Half the width of its 95 % interval.
        port_contention_bar: u32,
        /// Cycles per 1,000 instructions: divisions and other long operations.
        expensive_instructions: u32,
        /// Half the width of its 95 % interval.
        expensive_instructions_bar: u32,
        /// Cycles per 1,000 instructions: misses of the data TLB.
        dtlb_misses: u32,
        /// Half the width of its 95 % interval.
        dtlb_misses_bar: u32,
        /// Cycles per 1,000 instructions: misses of the L1 data cache.
        l1d_misses: u32,
        /// Half the width of its 95 % interval.
        l1d_misses_bar: u32,
        /// Cycles per 1,000 instructions: data that the L2 did not have.
        l2_data_misses: u32,
        /// Half the width of its 95 % interval.
        l2_data_misses_bar: u32,
        /// Cycles per 1,000 instructions: mispredicted indirect branches and returns.
        indirect_mispredictions: u32,
        /// Half the width of its 95 % interval.
        indirect_mispredictions_bar: u32,
    }
}

impl Default for PhaseRecord {
    fn default() -> Self {
        let words = [0; PhaseRecord::HEAD];
        PhaseRecord::decode(0, &words).expect("zeros are a record")
    }
}

impl PhaseRecord {
    /// The costs with their half widths, in cycles per 1,000 instructions, in the order of
    /// [`Bottleneck::ALL`].
    pub fn costs(&self) -> [(u32, u32); COSTS] {
        let mut copy = *self;
        copy.cost_fields().map(|(cost, bar)| (*cost, *bar))
    }

    /// Sets the costs and half widths that [`Self::costs`] returns.
    pub fn set_costs(&mut self, costs: [(u32, u32); COSTS]) {
        for ((cost, bar), of) in self.cost_fields().into_iter().zip(costs) {
            (*cost, *bar) = of;
        }
    }

    fn cost_fields(&mut self) -> [(&mut u32, &mut u32); COSTS] {
        [
            (&mut self.itlb_misses, &mut self.itlb_misses_bar),
            (&mut self.l1i_misses, &mut self.l1i_misses_bar),
            (&mut self.l2_code_misses, &mut self.l2_code_misses_bar),
            (&mut self.direct_mispredictions, &mut self.direct_mispredictions_bar),
            (&mut self.full_queues, &mut self.full_queues_bar),
            (&mut self.port_contention, &mut self.port_contention_bar),
            (&mut self.expensive_instructions, &mut self.expensive_instructions_bar),
            (&mut self.dtlb_misses, &mut self.dtlb_misses_bar),
            (&mut self.l1d_misses, &mut self.l1d_misses_bar),
            (&mut self.l2_data_misses, &mut self.l2_data_misses_bar),
            (&mut self.indirect_mispredictions, &mut self.indirect_mispredictions_bar),
        ]
    }
}
