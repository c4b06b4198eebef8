//! The stacks of samples, assembled from their records.

use std::collections::BTreeMap;

use tally_abi::{registers::Frame, trace::SampleRecord};

use crate::{symbols::Stack, trace_file::Records};

/// The registers and the stack of a thread that was sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SampledStack {
    /// The registers. Only the general ones and RIP are known.
    pub(crate) registers: Frame,
    /// The stack from RSP up, as far as it was copied and no record was lost.
    pub(crate) stack: Stack,
}

/// The stacks of samples, by CPU and time stamp of the sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stacks(BTreeMap<(u16, u64), SampledStack>);

impl Stacks {
    /// Puts the stacks together.
    pub(crate) fn of(records: &Records) -> Stacks {
        let mut stacks: BTreeMap<_, SampledStack> = BTreeMap::new();
        for record in &records.registers {
            let registers = record.frame();
            let stack = Stack::at(registers.rsp);
            stacks.insert((record.cpu, record.sample_tsc), SampledStack { registers, stack });
        }
        for part in &records.stacks {
            let Some(of) = stacks.get_mut(&(part.cpu, part.sample_tsc)) else { continue };
            // Parts after a lost one are not contiguous and are dropped.
            if part.address == of.stack.end() {
                let words = part.words.iter().take(part.valid.into());
                let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
                of.stack.push(part.address, &bytes);
            }
        }
        Stacks(stacks)
    }

    /// The stack of a sample, if it was copied. That of a precise sample is the interrupt's, some
    /// instructions later.
    pub(crate) fn of_sample(&self, sample: &SampleRecord) -> Option<&SampledStack> {
        let stack = self.0.get(&(sample.cpu, sample.tsc))?;
        (sample.precise || stack.registers.rip == sample.address).then_some(stack)
    }

    /// Returns whether no stack was copied.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::trace::{RegistersRecord, STACK_WORDS, StackRecord};

    use super::*;

    fn part(cpu: u16, address: u64, words: &[u64]) -> StackRecord {
        let mut record = StackRecord {
            tsc: 0,
            session: 1,
            cpu,
            sample_tsc: 9,
            address,
            valid: words.len() as u8,
            words: [0; STACK_WORDS],
        };
        record.words[..words.len()].copy_from_slice(words);
        record
    }

    #[test]
    fn a_stack_ends_where_a_record_was_lost() {
        let frame = Frame { rip: 7, rsp: 0x1000, ..Frame::default() };
        let registers = RegistersRecord::of_frame(1, 2, 9, &frame);
        let stacks = vec![
            part(3, 0x1000, &[5]),
            part(2, 0x1000, &[1, 2]),
            part(2, 0x1010, &[3]),
            part(2, 0x1020, &[4]),
        ];
        let records = Records { registers: vec![registers], stacks, ..Records::default() };
        let mut stack = Stack::at(0x1000);
        for (word, address) in [(1_u64, 0x1000), (2, 0x1008), (3, 0x1010)] {
            stack.push(address, &word.to_le_bytes());
        }
        let whole = BTreeMap::from([((2, 9), SampledStack { registers: frame, stack })]);
        assert_eq!(Stacks::of(&records), Stacks(whole));
    }
}
