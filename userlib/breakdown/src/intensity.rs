//! Floating-point operations for each byte that a level of the memory hierarchy gave, and for each
//! cycle: the axes of a roofline.

use alloc::vec::Vec;

use super::{
    count::{Count, Counts, INDEPENDENT, square},
    formulas::{CORE_CYCLES, CYCLES},
    groups::{
        BY_L2, BY_L3, BY_MEMORY, DOUBLE, FROM_MEMORY, Group, INTO_L1, INTO_L2, LINE_BYTES, SINGLE,
        ZEN_FLOPS, per,
    },
    stacks,
};

/// Events, each with what one of it stands for.
type Terms = &'static [(&'static str, f64)];

/// Events of a processor: its operations, and the bytes that each level gives.
#[derive(Debug)]
pub struct Intensity {
    cycles: &'static str,
    flops: Terms,
    levels: &'static [(&'static str, Terms)],
}

static INTEL: Intensity = Intensity {
    cycles: CYCLES,
    flops: &[
        (DOUBLE[0], 1.0),
        (DOUBLE[1], 2.0),
        (DOUBLE[2], 4.0),
        (DOUBLE[3], 8.0),
        (SINGLE[0], 1.0),
        (SINGLE[1], 4.0),
        (SINGLE[2], 8.0),
        (SINGLE[3], 16.0),
    ],
    levels: &[
        ("L2", &[(INTO_L1, LINE_BYTES)]),
        ("L3", &[(INTO_L2, LINE_BYTES)]),
        ("memory", &[(FROM_MEMORY, LINE_BYTES)]),
    ],
};

static ZEN_4: Intensity = Intensity {
    cycles: CORE_CYCLES,
    flops: &[(ZEN_FLOPS, 1.0)],
    levels: &[
        ("L2", &[(BY_L2, LINE_BYTES), (BY_L3, LINE_BYTES), (BY_MEMORY, LINE_BYTES)]),
        ("L3", &[(BY_L3, LINE_BYTES), (BY_MEMORY, LINE_BYTES)]),
        ("memory", &[(BY_MEMORY, LINE_BYTES)]),
    ],
};

impl Intensity {
    /// Levels of the processor with this signature (CPUID leaf 1, EAX).
    ///
    /// # Errors
    /// The formulas for the processor are not known; with the reason.
    pub fn of(signature: u32) -> Result<&'static Intensity, &'static str> {
        let groups: &[Group] = stacks::of(signature).map_or(&[], |stack| stack.named);
        let has =
            |name| groups.iter().any(|group| group.name == name && group.method.missing.is_empty());
        match (has("FLOPS_DP"), has("FLOPS")) {
            (true, _) => Ok(&INTEL),
            (_, true) => Ok(&ZEN_4),
            _ => Err("no formulas for floating-point operations of this processor are known"),
        }
    }

    /// Events that are counted, each once.
    pub fn events(&self) -> Vec<&'static str> {
        let mut events = Vec::from([self.cycles]);
        let terms = self.levels.iter().flat_map(|(_, terms)| *terms);
        for (event, _) in self.flops.iter().chain(terms) {
            if !events.contains(event) {
                events.push(event);
            }
        }
        events
    }

    /// Operations for each cycle; `None` if an event was not measured. The errors of the events are
    /// taken as independent, here and in [`Self::flops_a_byte`].
    pub fn flops_a_cycle(&self, counts: Counts<'_>) -> Option<Count> {
        Some(quotient(sum(counts, self.flops)?, counts(self.cycles)?))
    }

    /// Operations for each byte from each level; not finite for a level that gave nothing. `None`
    /// if an event was not measured.
    pub fn flops_a_byte(&self, counts: Counts<'_>) -> Option<Vec<(&'static str, Count)>> {
        let flops = sum(counts, self.flops)?;
        let of = |(level, bytes): &(&'static str, Terms)| {
            Some((*level, quotient(flops, sum(counts, bytes)?)))
        };
        self.levels.iter().map(of).collect()
    }
}

/// Sum of terms; `None` if an event was not measured.
fn sum(counts: Counts<'_>, terms: Terms) -> Option<Count> {
    let mut estimate = 0.0;
    for (event, factor) in terms {
        estimate += factor * counts(event)?.estimate;
    }
    let half_width_95 = libm::sqrt(square(counts, INDEPENDENT, terms));
    Some(Count { estimate, half_width_95, truth: None })
}

/// Count divided by another one.
fn quotient(part: Count, whole: Count) -> Count {
    let estimate = per(part.estimate, whole.estimate);
    let of_part = per(part.half_width_95, whole.estimate);
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

    /// Lines that a level gave passed through the levels before it.
    #[test]
    fn zen_4_counts_operations_by_one_event_and_lines_by_their_source() {
        let intensity = Intensity::of(0x00a1_0f11).unwrap();
        let counts = |name: &str| {
            let estimate = match name {
                "RETIRED_SSE_AVX_FLOPS.ANY" => 6_400.0,
                CORE_CYCLES => 800.0,
                BY_L2 => 5.0,
                BY_L3 => 3.0,
                BY_MEMORY => 2.0,
                _ => return None,
            };
            Some(Count { estimate, half_width_95: 0.0, truth: None })
        };
        assert_eq!(intensity.flops_a_cycle(&counts).unwrap().estimate, 8.0);
        let levels = intensity.flops_a_byte(&counts).unwrap();
        let of_levels: Vec<f64> = levels.iter().map(|(_, of)| of.estimate).collect();
        assert_eq!(of_levels, [10.0, 20.0, 50.0]);
        assert_eq!(intensity.events().len(), 5);
    }

    #[test]
    fn processors_without_such_events_say_why() {
        assert!(Intensity::of(0).is_err());
    }
}
