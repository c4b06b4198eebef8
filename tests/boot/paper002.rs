//! NAS FT, the benchmark with which paper 002 shows vector events: its results equal those of the
//! specification, and its counts the truth.

use xtask::{
    machine::{Pmu, Request},
    report::{Kind, Report},
};

use crate::{assert_output, assert_success, boot};

const SCALAR: &str = "FP_ARITH_INST_RETIRED.SCALAR_DOUBLE";
const PACKED: &str = "FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE";

#[test]
fn a_transform_with_vectors_is_right_and_counted_exactly() {
    let line = format!("wire -- events={SCALAR},{PACKED} ft 1");
    let boot = boot(&Request { pmu: Pmu::Intel, ..Request::new(line) });
    assert_success(&boot);
    assert_output(&boot, "ft: verified");
    let session = Report::of(&boot).first.expect("there is a session");
    for event in &session.events {
        assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth), "{}", event.name);
    }
    let [scalar, packed] = [0, 1].map(|event| session.events[event].estimate.unwrap());
    // Nearly all operations are in loops that can use vectors.
    assert!(packed > 4 * scalar && scalar > 0, "{packed} and {scalar}");
}
