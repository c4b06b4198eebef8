//! The trace's record of a sample's memory access.

use serde::{Deserialize, Serialize};

use crate::{
    Malformed,
    record::{Field, FieldType, Form, RecordType, place, record},
};

record! {
    /// The memory access of a precise sample: the record follows that of the sample, which has the
    /// same session, CPU, event and time stamp. `info` and `latency` are the processor's own. On
    /// Intel: the auxiliary information and the latency of the memory group of PEBS (SDM vol. 3,
    /// "Memory Access Info Group"). On AMD: `IbsOpData3`, and `IbsOpData` with `IbsOpData2` from
    /// bit 48 on (APM vol. 2, "Instruction-Based Sampling").
    AccessRecord = 14 "access", stamp tsc "TSC of the sample." {
        /// The session.
        session: u32,
        /// The CPU.
        cpu: u16,
        /// The event, by its index in the session's list.
        event: u16,
        /// The linear address of the data; 0 if the instruction accessed nothing.
        address: u64 as Address,
        /// Source and other properties of the access.
        info: u64,
        /// Latencies of the access; 0 where they were not measured.
        latency: u64,
    }
}
