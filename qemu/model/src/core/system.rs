//! Effects of the system on a core between instructions: interrupts, and changes of translations.

use super::state::Core;
use crate::{block::Privilege, ooo::Alone, signal::Signal};

impl Core {
    /// Keeps the core busy for `cycles` without an instruction, as for the delivery of an
    /// interrupt.
    pub fn serialize(&mut self, ring: Privilege, cycles: u32) {
        self.fuses_with = 0;
        if !self.is_out_of_order {
            self.enter_ring(ring);
            self.stall(ring, Signal::StallSerialize, cycles);
            self.learn_nothing(cycles);
        } else if let Some(engine) = &mut self.engine {
            self.clock += engine.enter(ring, &mut self.counts);
            let alone = Alone::serializing(cycles);
            self.clock += engine.occupy(alone, &mut self.counts[ring as usize]);
        }
    }

    /// Delivers an interrupt or exception.
    pub fn interrupt(&mut self, cycles: u32) {
        self.string.forget_lines();
        self.bump(Privilege::Kernel, Signal::Interrupts);
        self.serialize(Privilege::Kernel, cycles);
    }

    /// Switches to the address space `space`, the page number of its top-level table, and removes
    /// the translations of the old one.
    pub fn switch_space(&mut self, space: u64) {
        self.space = space & 0x3fff;
        self.change_sampler();
        self.flush(false);
    }

    /// Removes all translations; those of global pages (the kernel's) only if `global_too`.
    pub fn flush(&mut self, global_too: bool) {
        self.bump(Privilege::Kernel, Signal::TlbFlushes);
        self.forget_last_accesses();
        self.tlbs.flush(global_too);
    }

    /// Removes the translation of the page at `address`.
    pub fn flush_page(&mut self, address: u64) {
        self.forget_last_accesses();
        self.tlbs.flush_page(address >> 12);
    }

    /// Makes the next accesses look up their translations.
    fn forget_last_accesses(&mut self) {
        self.fetched = u64::MAX;
        self.fetched_page = u64::MAX;
        self.touched = u64::MAX;
    }
}
