//! The order in which code and data access the levels that they share.

mod common;

use common::{Ran, core_of, feed};
use tally_model::{BranchKind, CacheShape, Geometry, Operation, PipelineMode, Signal};

/// Two lines of code with a load in the second. The load alternately replaces that line in the L2,
/// or not. If the model executed the load before the fetch of its line of code, that line would
/// stay in the L2.
fn rivals(disturbs: impl Fn(u64) -> u64, leaves: u64) -> Vec<Ran> {
    let start = 0x40_0038;
    let nop = |pc| Ran::new(pc, Operation::default());
    let mut stream = Vec::new();
    for round in 0..200 {
        let address = if round % 2 == 0 { disturbs(round) } else { leaves };
        stream.extend([nop(start), nop(start + 4), nop(start + 8).load(address)]);
        stream.push(nop(start + 12).branch(BranchKind::Jump, start));
    }
    stream
}

#[test]
fn code_and_data_access_shared_levels_in_program_order() {
    // First levels of one line, and a direct-mapped L2: every access reaches the L2, and the last
    // one's line is in it.
    let one = CacheShape { sets: 1, ways: 1 };
    let geometry = Geometry {
        l1i: one,
        l1d: one,
        l2: CacheShape { sets: 1024, ways: 1 },
        ..Geometry::ICELAKE_SERVER
    };
    // The second line of code is the second of physical page 405H (`common::physical`).
    let set = (0x405 << 6 | 1) & 1023u64;
    // Data in that set, in a page whose translation is cached; a page-table entry in that set, of
    // another page each time. (`Core::walk` has eight entries to a line.)
    let data = rivals(|_| (set >> 6 ^ 5) << 12 | 1 << 6, (set >> 6 ^ 5) << 12 | 2 << 6);
    let walks = rivals(|round| ((round + 1) << 10 | set) << 15, 0x1000_0080);
    for (what, stream) in [("data", data), ("walks", walks)] {
        for geometry in [geometry, geometry.out_of_order(PipelineMode::Real)] {
            // Once in whole blocks, and once instruction by instruction.
            for is_cut in [false, true] {
                let mut core = core_of(&geometry);
                feed(&mut core, &stream, |_| is_cut);
                // The line is read again after each load that replaced it.
                let counts = &core.counts()[0];
                let missed = counts[Signal::LlcCodeHit] + counts[Signal::LlcCodeMiss];
                assert!((100..110).contains(&missed), "{what}: {missed}");
            }
        }
    }
}
