//! Floating-point operations for each byte that a level of the memory hierarchy gave, and for each
//! cycle: the axes of a roofline.

use alloc::vec::Vec;

use super::{
    count::{Count, Counts, INDEPENDENT, square},
    formulas::CYCLES,
    groups::{DOUBLE, FROM_MEMORY, Group, INTO_L1, INTO_L2, LINE_BYTES, SINGLE, per},
    stacks,
};

/// Operations of one instruction of each event of [`DOUBLE`] and [`SINGLE`].
const FLOPS_OF: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 1.0, 4.0, 8.0, 16.0];

/// Levels of a processor, each with the event of the lines that it gives.
#[derive(Debug)]
pub struct Intensity {
    levels: &'static [(&'static str, &'static str)],
}

static INTEL: Intensity =
    Intensity { levels: &[("L2", INTO_L1), ("L3", INTO_L2), ("memory", FROM_MEMORY)] };

impl Intensity {
    /// Levels of the processor with this signature (CPUID leaf 1, EAX).
    ///
    /// # Errors
    /// The processor has no events of floating-point operations; with the reason.
    pub fn of(signature: u32) -> Result<&'static Intensity, &'static str> {
        let groups: &[Group] = stacks::of(signature).map_or(&[], |stack| stack.named);
        match groups.iter().find(|group| group.name == "FLOPS_DP") {
            Some(group) if group.method.missing.is_empty() => Ok(&INTEL),
            Some(group) => Err(group.method.missing),
            None => Err("no formulas for floating-point operations of this processor are known"),
        }
    }

    /// Events that are counted.
    pub fn events(&self) -> Vec<&'static str> {
        let lines = self.levels.iter().map(|(_, event)| *event);
        [CYCLES].into_iter().chain(DOUBLE).chain(SINGLE).chain(lines).collect()
    }

    /// Operations for each cycle; `None` if an event was not measured. The errors of the events are
    /// taken as independent, here and in [`Self::flops_a_byte`].
    pub fn flops_a_cycle(&self, counts: Counts<'_>) -> Option<Count> {
        Some(quotient(flops(counts)?, counts(CYCLES)?, 1.0))
    }

    /// Operations for each byte from each level; not finite for a level that gave nothing. `None`
    /// if an event was not measured.
    pub fn flops_a_byte(&self, counts: Counts<'_>) -> Option<Vec<(&'static str, Count)>> {
        let flops = flops(counts)?;
        let of = |(level, event): &(&'static str, &str)| {
            Some((*level, quotient(flops, counts(event)?, LINE_BYTES)))
        };
        self.levels.iter().map(of).collect()
    }
}

/// Operations of both precisions; `None` if an event was not measured.
fn flops(counts: Counts<'_>) -> Option<Count> {
    let terms: Vec<_> = DOUBLE.into_iter().chain(SINGLE).zip(FLOPS_OF).collect();
    let mut estimate = 0.0;
    for (event, factor) in &terms {
        estimate += factor * counts(event)?.estimate;
    }
    let half_width_95 = libm::sqrt(square(counts, INDEPENDENT, &terms));
    Some(Count { estimate, half_width_95, truth: None })
}

/// Count divided by `factor` times another one.
fn quotient(part: Count, whole: Count, factor: f64) -> Count {
    let estimate = per(part.estimate, factor * whole.estimate);
    let of_part = per(part.half_width_95, factor * whole.estimate);
    let of_whole = per(estimate * whole.half_width_95, whole.estimate);
    let half_width_95 = libm::sqrt(of_part * of_part + of_whole * of_whole);
    Count { estimate, half_width_95, truth: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of a loop of known content: 1,000 FMAs of four doubles, 20 lines from the L2.
    #[test]
    fn a_loop_of_known_content_has_its_intensity() {
        let intensity = Intensity::of(0x606a6).unwrap();
        let counts = |name: &str| {
            let estimate = match name {
                CYCLES => 500.0,
                "FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE" => 2_000.0,
                INTO_L1 => 20.0,
                _ => 0.0,
            };
            let half_width_95 = if name == INTO_L1 { 2.0 } else { 0.0 };
            Some(Count { estimate, half_width_95, truth: None })
        };
        let rate = intensity.flops_a_cycle(&counts).unwrap();
        assert_eq!((rate.estimate, rate.half_width_95), (16.0, 0.0));
        let [l2, l3, memory] = intensity.flops_a_byte(&counts).unwrap()[..] else { panic!() };
        assert_eq!((l2.0, l2.1.estimate), ("L2", 6.25));
        assert!((l2.1.half_width_95 - 0.625).abs() < 1e-9);
        assert!(!l3.1.estimate.is_finite() && !memory.1.estimate.is_finite());
        assert_eq!(intensity.flops_a_cycle(&|_| None), None);
    }

    #[test]
    fn processors_without_such_events_say_why() {
        assert!(Intensity::of(0x00a1_0f11).unwrap_err().contains("PMCx003"));
        assert!(Intensity::of(0).is_err());
    }
}
