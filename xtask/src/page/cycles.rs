//! Cycles of a session by cause, on its page.

use serde::Serialize;

use crate::report::{Breakdown, CyclePart, SessionReport};

/// Tolerance of the ends of intervals for truths: a thousandth of a percent.
const LEAST_DIFFERENCE: f64 = 1e-5;

/// Cycles of a session by cause, in some rings.
#[derive(Serialize)]
pub(super) struct Cycles<'a> {
    /// Suffix of ids on the page; empty for the session's first breakdown.
    suffix: &'static str,
    /// The rings, in words after "cycles"; empty for user mode.
    rings: &'static str,
    breakdown: &'a Breakdown,
    /// Parts of the cycles, as a tree.
    parts: Vec<Share<&'a str>>,
    /// The cause that most cycles are lost to.
    losses: Option<String>,
}

impl<'a> Cycles<'a> {
    /// Makes the breakdowns of a session, user mode first.
    pub(super) fn of(session: &'a SessionReport) -> Vec<Cycles<'a>> {
        let user = session.breakdown.iter().map(|of| ("", "", of));
        let kernel = session.kernel_breakdown.iter();
        let kernel =
            kernel.map(|of| ("-ring-0", " in ring 0, without the engine's interrupts,", of));
        let view = |(suffix, rings, breakdown): (_, _, &'a Breakdown)| Cycles {
            suffix,
            rings,
            breakdown,
            parts: breakdown.parts.iter().map(|of| part(of, breakdown)).collect(),
            losses: breakdown.losses(),
        };
        user.chain(kernel).map(view).collect()
    }
}

/// A part of the cycles or slots. Shares are 0 to 1.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Share<Text> {
    name: Text,
    /// The metric's name in perf.
    metric: Option<Text>,
    /// The level in a tree, from 1.
    level: u8,
    of_cycles: bool,
    pub(super) cpi: Option<f64>,
    share: f64,
    half_width: f64,
    low: f64,
    high: f64,
    truth: Option<f64>,
    is_within: Option<bool>,
}

impl<Text> Share<Text> {
    /// Makes a share of a tree's level, with its half width and the truth.
    pub(super) fn around(
        name: Text,
        level: u8,
        [share, half_width]: [f64; 2],
        truth: Option<f64>,
    ) -> Share<Text> {
        let is_within = |truth: f64| (truth - share).abs() <= half_width + LEAST_DIFFERENCE;
        Share {
            name,
            metric: None,
            level,
            of_cycles: false,
            cpi: None,
            share,
            half_width,
            low: (share - half_width).max(0.0),
            high: (share + half_width).min(1.0),
            truth,
            is_within: truth.map(is_within),
        }
    }
}

/// Makes the share of a part in all cycles, and that of its truth in all true ones.
fn part<'a>(part: &'a CyclePart, all: &Breakdown) -> Share<&'a str> {
    let of_all = |part: f64| part / all.cycles.max(1) as f64;
    let of_true = |part: f64| part / all.true_cycles().max(1.0);
    Share {
        name: &part.name,
        metric: (!part.metric.is_empty()).then_some(&*part.metric),
        level: part.level,
        of_cycles: part.of_cycles,
        cpi: Some(part.cpi),
        share: part.share,
        half_width: of_all(part.half_width_95),
        low: of_all(part.low_95),
        high: of_all(part.high_95),
        truth: part.truth.map(of_true),
        is_within: part.truth.map(|truth| part.contains(truth)),
    }
}
