//! Counts and times by code address, as the options ask for them.

use tally_vpmu::PluginOptions;

use crate::{
    blocks::{Blocks, Key},
    cores::Cores,
    instructions::Instructions,
};

/// The counts and times by code address of one vCPU.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) blocks: Option<Blocks>,
    pub(crate) instructions: Option<Instructions>,
}

impl Places {
    /// Returns `None` if the options ask for nothing by code address.
    pub(crate) fn of(options: &PluginOptions) -> Option<Places> {
        let blocks = options.blocks.is_some().then(Blocks::default);
        let instructions = options.instructions.is_some().then(Instructions::default);
        let is_asked = blocks.is_some() || instructions.is_some();
        is_asked.then_some(Places { blocks, instructions })
    }

    /// Ends a block. What was counted is kept if the vCPU is `inside` a region.
    pub(crate) fn end_block(&mut self, key: Key, core: &mut Cores, inside: bool) {
        if let Some(blocks) = &mut self.blocks {
            blocks.end_block(key, core.counts(), inside);
        }
        self.take_times(key.0, core, inside);
    }

    /// Takes the times of instructions in the address space `space`. They are kept if the vCPU is
    /// `inside` a region.
    pub(crate) fn take_times(&mut self, space: u64, core: &mut Cores, inside: bool) {
        if let Some(instructions) = &mut self.instructions {
            let charges = core.take_times().filter(|_| inside);
            charges.into_iter().for_each(|charges| instructions.add(space, charges));
        }
    }
}
