//! Instructions and accesses of overflow handlers, summed by step, from the virtual PMU's file
//! (`qemu/plugin/src/handlers.rs`).

use std::{collections::BTreeSet, iter::zip};

use serde::Serialize;

use super::steps::{PathStep, PmuAccess};

/// Binary logarithm of the size of a cache line.
const LINE_BITS: u32 = 6;

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// An instruction, and the binary logarithm of the size of its page.
    Instruction { address: u64, page_bits: u32 },
    /// An access of the last instruction; no cache holds the data of a `device`.
    Access { address: u64, bytes: u64, page_bits: u32, device: bool },
}

impl Recorded {
    pub(super) fn parse(line: &str) -> Option<Recorded> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let mut number = || words.next()?.parse::<u32>().ok();
        if line.starts_with(' ') {
            let (bytes, page_bits) = (number()?.into(), number()?);
            let device = words.next() == Some("device");
            return Some(Recorded::Access { address, bytes, page_bits, device });
        }
        Some(Recorded::Instruction { address, page_bits: number()? })
    }
}

/// The cost of one or several steps; for several switches their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Cost {
    pub(super) instructions: f64,
    pub(super) msr_accesses: f64,
    pub(super) rdpmcs: f64,
    /// Cache lines of data and of code, each counted once per step.
    pub(super) data_lines: f64,
    pub(super) code_lines: f64,
    /// Pages, and so TLB entries, of data and of code.
    pub(super) data_pages: f64,
    pub(super) code_pages: f64,
}

impl Cost {
    fn numbers(&mut self) -> [&mut f64; 7] {
        let Cost { instructions, msr_accesses, rdpmcs, .. } = self;
        let Cost { data_lines, code_lines, data_pages, code_pages, .. } = self;
        [instructions, msr_accesses, rdpmcs, data_lines, code_lines, data_pages, code_pages]
    }

    fn add(&mut self, mut more: Cost) {
        zip(self.numbers(), more.numbers()).for_each(|(sum, more)| *sum += *more);
    }

    /// The mean of a sum over `switches` switches.
    fn over(mut self, switches: usize) -> Cost {
        self.numbers().into_iter().for_each(|sum| *sum /= switches as f64);
        self
    }
}

/// Lines and pages of one kind.
#[derive(Clone, Debug, Default)]
struct Touched {
    lines: BTreeSet<u64>,
    pages: BTreeSet<(u64, u32)>,
}

impl Touched {
    fn touch(&mut self, address: u64, bytes: u64, page_bits: u32, cached: bool) {
        let last = address + bytes.max(1) - 1;
        if cached {
            self.lines.extend(address >> LINE_BITS..=last >> LINE_BITS);
        }
        self.pages.extend([address, last].map(|byte| (byte >> page_bits, page_bits)));
    }

    fn add(&mut self, more: &Touched) {
        self.lines.extend(&more.lines);
        self.pages.extend(&more.pages);
    }
}

/// Work of one step of one switch.
#[derive(Clone, Debug, Default)]
struct Footprint {
    instructions: u32,
    msr_accesses: u32,
    rdpmcs: u32,
    data: Touched,
    code: Touched,
}

impl Footprint {
    fn add(&mut self, more: &Footprint) {
        self.instructions += more.instructions;
        self.msr_accesses += more.msr_accesses;
        self.rdpmcs += more.rdpmcs;
        self.data.add(&more.data);
        self.code.add(&more.code);
    }

    fn cost(&self) -> Cost {
        Cost {
            instructions: self.instructions.into(),
            msr_accesses: self.msr_accesses.into(),
            rdpmcs: self.rdpmcs.into(),
            data_lines: self.data.lines.len() as f64,
            code_lines: self.code.lines.len() as f64,
            data_pages: self.data.pages.len() as f64,
            code_pages: self.code.pages.len() as f64,
        }
    }
}

/// The mean costs of switches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Costs {
    pub(super) switches: usize,
    pub(super) steps: [Cost; PathStep::ALL.len()],
    /// All steps but logging.
    pub(super) switch: Cost,
    /// All steps.
    pub(super) whole: Cost,
}

/// Sums the work from each `entry` to the IRET by step. `classify` returns an instruction's step,
/// its access to the PMU, and whether it is IRET.
pub(super) fn account(
    events: impl Iterator<Item = Recorded>,
    entry: u64,
    mut classify: impl FnMut(u64) -> (PathStep, PmuAccess, bool),
) -> Costs {
    let mut sums = Costs::default();
    let mut one: Option<[Footprint; PathStep::ALL.len()]> = None;
    let (mut step, mut returns) = (PathStep::Enter, false);
    for event in events {
        match event {
            Recorded::Instruction { address, page_bits } => {
                if std::mem::take(&mut returns) {
                    one.take().inspect(|steps| sums.add(steps));
                }
                if address == entry {
                    one = Some(Default::default());
                }
                let access;
                (step, access, returns) = classify(address);
                let Some(steps) = &mut one else { continue };
                let footprint = &mut steps[step as usize];
                footprint.instructions += 1;
                match access {
                    PmuAccess::Msr => footprint.msr_accesses += 1,
                    PmuAccess::Counter => footprint.rdpmcs += 1,
                    PmuAccess::None => {}
                }
                footprint.code.touch(address, 1, page_bits, true);
            }
            Recorded::Access { address, bytes, page_bits, device } => {
                if let Some(steps) = &mut one {
                    steps[step as usize].data.touch(address, bytes, page_bits, !device);
                }
            }
        }
    }
    if returns {
        one.take().inspect(|steps| sums.add(steps));
    }
    sums.mean()
}

impl Costs {
    fn add(&mut self, steps: &[Footprint; PathStep::ALL.len()]) {
        self.switches += 1;
        let (mut switch, mut whole) = (Footprint::default(), Footprint::default());
        for ((step, sum), footprint) in zip(zip(PathStep::ALL, &mut self.steps), steps) {
            sum.add(footprint.cost());
            whole.add(footprint);
            if step != PathStep::Log {
                switch.add(footprint);
            }
        }
        self.switch.add(switch.cost());
        self.whole.add(whole.cost());
    }

    fn mean(self) -> Costs {
        let Costs { switches, steps, switch, whole } = self;
        Costs {
            switches,
            steps: steps.map(|sum| sum.over(switches)),
            switch: switch.over(switches),
            whole: whole.over(switches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        let instruction = Recorded::Instruction { address: 0xffff_8000_0000_0010, page_bits: 12 };
        assert_eq!(Recorded::parse("ffff800000000010 12"), Some(instruction));
        for (line, device) in [(" 1f 8 21", false), (" 1f 8 21 device", true)] {
            let access = Recorded::Access { address: 0x1f, bytes: 8, page_bits: 21, device };
            assert_eq!(Recorded::parse(line), Some(access));
        }
        assert_eq!(["", "x 12", "10", " 10 8"].map(Recorded::parse), [None; 4]);
    }

    /// Classifies a handler at 0x1000, whose IRET is at 0x1041. Addresses above 0x2000 belong to
    /// logging.
    fn classify(address: u64) -> (PathStep, PmuAccess, bool) {
        let step = if address >= 0x2000 { PathStep::Log } else { PathStep::Read };
        (step, if address == 0x1001 { PmuAccess::Msr } else { PmuAccess::None }, address == 0x1041)
    }

    #[test]
    fn a_line_or_page_counts_once_in_each_step_and_once_in_all() {
        let handler = "1000 12\n ffe 8 12\n1001 12\n2000 12\n 1000 8 12\n 40000000 8 21\n1041 12\n \
             1010 8 12\n 1080 4 12 device";
        // Instructions between handlers count nothing, and the last handler has no end.
        let file =
            format!("1041 12\n{handler}\n5000 12\n 5000 8 12\n{handler}\n1000 12\n ffe 8 12");
        let costs = account(file.lines().filter_map(Recorded::parse), 0x1000, classify);
        let read = Cost {
            instructions: 3.0,
            msr_accesses: 1.0,
            data_lines: 2.0,
            code_lines: 2.0,
            data_pages: 2.0,
            code_pages: 1.0,
            ..Cost::default()
        };
        let log = Cost {
            instructions: 1.0,
            data_lines: 2.0,
            code_lines: 1.0,
            data_pages: 2.0,
            code_pages: 1.0,
            ..Cost::default()
        };
        assert_eq!((costs.switches, costs.switch), (2, read));
        assert_eq!(
            (costs.steps[PathStep::Read as usize], costs.steps[PathStep::Log as usize]),
            (read, log)
        );
        let whole = Cost {
            instructions: 4.0,
            msr_accesses: 1.0,
            data_lines: 3.0,
            code_lines: 3.0,
            data_pages: 3.0,
            code_pages: 2.0,
            ..Cost::default()
        };
        assert_eq!(costs.whole, whole);
    }
}
