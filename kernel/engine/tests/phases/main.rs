//! Phases, judged on streams whose phases are planted.
//!
//! `tuning` has the streams by which thresholds were chosen; `judging` has others, which nobody
//! tunes to. The limits are asserted on the judging streams alone.

mod judging;
mod stream;
mod tuning;
