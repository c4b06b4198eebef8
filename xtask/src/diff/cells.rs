//! The values of a comparison as text, for its tables on a terminal and on a page.

use tally_abi::text::{Grouped, percent};

use super::{compared::Compared, measured::Measured};

/// The bounds of the ratio's interval.
pub fn range(row: &Compared) -> String {
    match (row.ratio_low_95, row.ratio_high_95) {
        _ if row.is_exact() => "exact".into(),
        (Some(low), Some(high)) => format!("{}..{}", ratio_text(low), ratio_text(high)),
        // The first value may be 0.
        _ if row.difference.is_some() => "unbounded".into(),
        _ => "unknown".into(),
    }
}

/// A ratio in at most six characters.
pub fn ratio_text(ratio: f64) -> String {
    match ratio {
        0.0..9.9995 => format!("{ratio:.3}"),
        0.0..999.95 => format!("{ratio:.1}"),
        0.0..99_999.5 => format!("{ratio:.0}"),
        _ => format!("{ratio:.0e}"),
    }
}

/// A value's half width as a share of the value, or in events if the value is 0.
pub fn bar(value: &Measured) -> String {
    match (value.half_width_95, value.estimate) {
        (0.0, _) => "exact".into(),
        (width, 0.0) => format!("±{}", Grouped(width.round() as u64)),
        (width, estimate) => percent(width / estimate, false),
    }
}
