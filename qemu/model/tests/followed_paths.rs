//! Wrong paths through code that is in memory: fetch takes the branches there as they are
//! predicted.

mod common;

use common::{
    Ran,
    code::{self, WRITTEN, hide, put, put_end},
    op, user_counts_of,
};
use tally_model::{BranchKind, Core, Counts, Geometry, PipelineMode, Signal, Unit};

const PC: u64 = 0x40_0000;
const PAGE: u64 = 4096;
const LINE: u64 = 64;
const SITES: u64 = 400;

/// A page with an untaken branch at the end of its line 0. An unknown branch is predicted taken:
/// here to byte 16 of line 10. Lines 10, 62, 63 and 64 (in the next page) have run before. After
/// the branch line 20 runs.
#[derive(Clone, Copy)]
struct Site(u64);

impl Site {
    fn all() -> impl Iterator<Item = Site> {
        (0..SITES).map(|at| Site(PC + 2 * at * PAGE))
    }

    fn at(self, line: u64, byte: u64) -> u64 {
        self.0 + line * LINE + byte
    }

    /// The instructions that run.
    fn stream(self) -> Vec<Ran> {
        let jump = |from, to| Ran::new(from, op(Unit::None, &[], 15)).branch(BranchKind::Jump, to);
        let branch = Ran::new(self.at(0, 60), op(Unit::None, &[], 15));
        let branch = branch.branch(BranchKind::Cond, self.at(10, 16));
        let mut call = jump(self.at(10, 0), self.at(62, 0));
        call.kind = BranchKind::Call;
        let mut back = jump(self.at(1, 0), self.at(10, 4));
        back.kind = BranchKind::Return;
        back.target = None;
        vec![
            jump(self.at(64, 0), self.at(10, 0)),
            call,
            jump(self.at(62, 0), self.at(63, 0)),
            jump(self.at(63, 0), self.at(0, 60)),
            Ran { next_pc: self.at(1, 0), ..branch },
            back,
            jump(self.at(10, 4), self.at(20, 0)),
            jump(self.at(20, 0), self.at(128 + 64, 0)),
        ]
    }
}

/// The counts of a geometry with and without wrong paths. `write` puts the code of each site that
/// does not run.
fn both(geometry: &Geometry, write: impl Fn(Site)) -> [Counts; 2] {
    code::clear();
    let stream: Vec<Ran> = Site::all().flat_map(Site::stream).collect();
    for ran in &stream {
        put(ran.insn.pc, 4, ran.kind, ran.target.unwrap_or_default());
    }
    Site::all().for_each(write);
    [true, false].map(|has_wrong_paths| {
        let mut core = Core::new(&Geometry { has_wrong_paths, ..*geometry });
        core.set_code_memory(WRITTEN);
        user_counts_of(core, &stream)
    })
}

fn geometries() -> impl Iterator<Item = (&'static str, Geometry)> {
    Geometry::ALL.iter().flat_map(|(name, geometry)| {
        [(*name, *geometry), (*name, geometry.out_of_order(PipelineMode::Real))]
    })
}

/// The counts that wrong paths add to a signal, per misprediction.
fn each(name: &str, [with, without]: &[Counts; 2], signal: Signal) -> f64 {
    let mispredicted = with[Signal::Mispredicts];
    assert!(mispredicted > SITES / 2, "{name}: {mispredicted}");
    for same in [Signal::Mispredicts, Signal::MispredictReturn, Signal::Instructions] {
        assert_eq!(with[same], without[same], "{name}: {same:?}");
    }
    (with[signal] - without[signal]) as f64 / mispredicted as f64
}

/// Asserts that the wrong paths hit `hits` lines in the L1, and fetch line 20 if `brings`.
fn assert_path(what: &str, hits: u64, brings: bool, write: impl Fn(Site)) {
    for (name, geometry) in geometries() {
        let name = format!("{what}, {name}");
        let counts = both(&geometry, &write);
        // Line 20 is missed by the wrong path instead of the right one; line 10, to which the right
        // path returns, is fetched in both.
        assert_eq!(each(&name, &counts, Signal::L1iMiss), 0.0, "{name}");
        let more = if brings { hits + 1 } else { hits };
        assert_eq!(each(&name, &counts, Signal::L1iHit), more as f64, "{name}");
        let [with, without] = counts.map(|counts| counts[Signal::StallL1i]);
        assert_eq!(with < without, brings, "{name}: {with}, {without}");
    }
}

#[test]
fn a_jump_is_followed() {
    assert_path("jump", 1, true, |site| {
        put(site.at(10, 16), 4, BranchKind::Jump, site.at(20, 8));
    });
    // The path leads through a line that is present.
    assert_path("two jumps", 2, true, |site| {
        put(site.at(10, 24), 4, BranchKind::Jump, site.at(62, 16));
        put(site.at(62, 24), 4, BranchKind::Jump, site.at(20, 8));
    });
}

#[test]
fn a_conditional_branch_goes_as_it_is_predicted() {
    // The branch is unknown, so it is predicted taken.
    assert_path("branch", 1, true, |site| {
        put(site.at(10, 16), 4, BranchKind::Cond, site.at(20, 8));
    });
}

#[test]
fn a_call_of_the_path_returns_to_it() {
    assert_path("call", 3, true, |site| {
        put(site.at(10, 16), 4, BranchKind::Call, site.at(62, 16));
        put(site.at(62, 20), 4, BranchKind::Return, 0);
        put(site.at(10, 20), 4, BranchKind::Jump, site.at(20, 8));
    });
}

#[test]
fn a_return_of_the_path_returns_to_the_programs_caller() {
    // Byte 4 of line 10 has the jump to line 20, which runs too.
    assert_path("return", 1, true, |site| {
        put(site.at(10, 16), 4, BranchKind::Return, 0);
    });
    assert_path("return from another line", 3, true, |site| {
        put(site.at(10, 16), 4, BranchKind::Jump, site.at(62, 16));
        put(site.at(62, 16), 4, BranchKind::Return, 0);
    });
}

#[test]
fn a_path_ends_where_nothing_is_predicted_or_decoded() {
    for kind in [BranchKind::IndirectJump, BranchKind::IndirectCall] {
        assert_path("indirect", 1, false, |site| put(site.at(10, 16), 4, kind, 0));
    }
    assert_path("no instruction", 1, false, |site| put_end(site.at(10, 32)));
    assert_path("unreadable", 2, false, |site| {
        put(site.at(10, 16), 4, BranchKind::Jump, site.at(62, 16));
        put(site.at(62, 16), 4, BranchKind::Jump, site.at(20, 8));
        hide(site.at(62, 16));
    });
}

#[test]
fn an_instruction_is_decoded_across_lines() {
    for line in [62, 63] {
        assert_path("across lines", 3, true, |site| {
            put(site.at(10, 16), 4, BranchKind::Jump, site.at(line, 60 - 8));
            put(site.at(line, 60), 7, BranchKind::Jump, site.at(20, 8));
        });
    }
}

#[test]
fn a_path_ends_at_a_page_without_a_translation() {
    assert_path("page", 1, false, |site| {
        put(site.at(10, 16), 4, BranchKind::Jump, site.at(64 * 10_000, 0));
    });
}

#[test]
fn a_path_is_followed_until_the_branch_is_resolved() {
    for (name, geometry) in geometries() {
        // The path fetches a line in each cycle.
        let counts = both(&geometry, |site| {
            put(site.at(10, 16), 4, BranchKind::Jump, site.at(62, 16));
            put(site.at(62, 16), 4, BranchKind::Jump, site.at(10, 16));
        });
        let lines = each(name, &counts, Signal::L1iHit);
        assert_eq!(lines, f64::from(geometry.latency.mispredict_cycles), "{name}");
        assert_eq!(each(name, &counts, Signal::L1iMiss), 0.0, "{name}");
        // The path stays in one line, which is fetched once.
        let counts = both(&geometry, |site| {
            put(site.at(10, 16), 4, BranchKind::Jump, site.at(10, 16));
        });
        assert_eq!(each(name, &counts, Signal::L1iHit), 1.0, "{name}");
        // A branch that fetch does not know takes longer.
        let geometry = Geometry { has_target_buffer: true, ..geometry };
        let counts = both(&geometry, |site| {
            put(site.at(10, 16), 4, BranchKind::Jump, site.at(62, 16));
            put(site.at(62, 16), 4, BranchKind::Jump, site.at(10, 16));
        });
        assert_eq!(each(name, &counts, Signal::L1iHit), 2.0, "{name}");
    }
}
