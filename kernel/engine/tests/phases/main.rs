//! Phases, judged on streams with known phases.
//!
//! `tuning` has the streams by which thresholds were chosen; `judging` has others, which are never
//! used for tuning. The limits are asserted on the judging streams only.

mod judging;
mod stream;
mod tuning;
