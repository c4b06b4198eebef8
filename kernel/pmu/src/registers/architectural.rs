//! Intel's architectural events (SDM vol. 3, "Pre-defined Architectural Performance Events").

/// Event code of core cycles on a general counter.
pub const CORE_CYCLES: u16 = 0x3c;
/// Event code of retired instructions on a general counter.
pub const INSTRUCTIONS_RETIRED: u16 = 0xc0;
/// Event code of retired branches of all kinds.
pub const BRANCHES_RETIRED: u16 = 0xc4;

/// Code and unit mask of the architectural events, by their bits in CPUID leaf 0AH's EBX
/// ("Pre-defined Architectural Performance Events").
pub const ARCHITECTURAL_EVENTS: [(u16, u8); 13] = [
    (CORE_CYCLES, 0x00),
    (INSTRUCTIONS_RETIRED, 0x00),
    // Reference cycles.
    (0x3c, 0x01),
    // References to the last-level cache, and misses.
    (0x2e, 0x4f),
    (0x2e, 0x41),
    // Branches retired, and those mispredicted.
    (0xc4, 0x00),
    (0xc5, 0x00),
    // Top-down: slots, bound by the back end, bad speculation, bound by the front end, retiring.
    (0xa4, 0x01),
    (0xa4, 0x02),
    (0x73, 0x00),
    (0x9c, 0x01),
    (0xc2, 0x02),
    // Branch records inserted.
    (0xe4, 0x01),
];
