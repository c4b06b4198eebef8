//! One vCPU: its PMU, its core, and the block that it is in.
//!
//! A block is counted when it is known how far it got, which is when the next one starts, when an
//! interrupt or exception leaves it, or when the plugin steps in at one of its instructions. So what
//! a guest reads is exact at the instruction that reads it, and a block that was left in the middle
//! counts its part.
//!
//! Invariant: `settled` instructions of the pending block are counted already, and everything before
//! the pending block is.

use std::sync::{
    OnceLock,
    atomic::{AtomicPtr, Ordering},
};

use tally_model::{Block, Core, Llc, Ring, Signal};
use tally_vpmu::{Pmu, Vendor};

use crate::{
    after::{self, After, Stop},
    apic::Apic,
    log::Said,
    options::Options,
    planned::{self, Planned},
    region::{self, Shares},
    registers::{Reg, Registers},
    series::{Stretch, instructions},
};

/// Cycles from an interrupt's or exception's recognition to its handler's first instruction: about
/// what Linux kernel selftests and the x86 literature measure for bare delivery without mitigation.
const DELIVERY_CYCLES: u32 = 250;

/// The most vCPUs that are served.
pub(crate) const MAX_VCPUS: usize = 256;

static VCPUS: [AtomicPtr<Vcpu>; MAX_VCPUS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_VCPUS];

/// One vCPU. Only its own thread touches it, but for the end of the run.
pub(crate) struct Vcpu {
    pub(crate) registers: Registers,
    pub(crate) pmu: Pmu,
    pub(crate) core: Core,
    pub(crate) apic: Apic,
    pub(crate) shares: Shares,
    pub(crate) pending: *const Block,
    settled: usize,
    /// The part of an instruction in several parts that was counted as its load or store.
    part: (usize, bool),
    /// The clock before which no counter can overflow.
    deadline: u64,
    generation: u64,
    /// Page number of the top table of the address space.
    pub(crate) space: u64,
    /// Base of the interrupt descriptor table, once it has been seen being loaded.
    pub(crate) idt: Option<u64>,
    /// The address of the handler that a performance interrupt on its way will enter.
    expected_handler: Option<u64>,
    /// Interrupts and exceptions taken since the performance handler was entered, and not returned
    /// from.
    handler_depth: Option<u32>,
    /// Whether an exception was raised that is not delivered yet.
    pub(crate) raised: bool,
    /// A register to put back when the fault that its value provokes is delivered.
    pub(crate) restore: Option<(Reg, u64)>,
    /// The address of the instruction that a general-protection fault on its way is of.
    pub(crate) fault_at: Option<u64>,
    index: u32,
    /// Overflow interrupts that are asked for at instructions.
    pub(crate) planned: Planned,
    /// What is to be done behind the instruction that is about to run.
    pub(crate) after: Option<After>,
    pub(crate) stop: Option<Stop>,
}

/// The last-level cache that all vCPUs share.
fn llc(options: &Options) -> Llc {
    static SHARED: OnceLock<Llc> = OnceLock::new();
    SHARED.get_or_init(|| Llc::new(options.profile.geometry.llc)).clone()
}

/// Makes a vCPU's state; called once for each, from its initialisation.
pub(crate) fn create(index: usize, options: &Options) -> Result<(), String> {
    let slot = VCPUS.get(index).ok_or_else(|| format!("at most {MAX_VCPUS} CPUs are served"))?;
    let registers = Registers::of_current_vcpu()
        .ok_or("QEMU does not name the registers that the PMU needs; is this an x86-64 guest?")?;
    let series = options.series.as_ref();
    let series = series.map(|series| Stretch::new(index as u32, series.every, &options.profile));
    let vcpu = Box::new(Vcpu {
        registers,
        pmu: Pmu::new(options.profile, options.counters_of(index as u32)),
        core: Core::sharing(&options.profile.geometry, llc(options)),
        apic: Apic::default(),
        shares: Shares::with(series),
        pending: std::ptr::null(),
        settled: 0,
        part: (0, false),
        deadline: 0,
        generation: 0,
        space: 0,
        idt: None,
        expected_handler: None,
        handler_depth: None,
        raised: false,
        restore: None,
        fault_at: None,
        planned: Planned::of(index as u32, &options.interrupts),
        index: index as u32,
        after: None,
        stop: None,
    });
    slot.store(Box::into_raw(vcpu), Ordering::Release);
    Ok(())
}

/// The state of the vCPU whose callback is running.
#[inline]
pub(crate) fn current<'a>(index: u32) -> &'a mut Vcpu {
    // Acquire pairs with the release in `create`.
    let vcpu = VCPUS[index as usize].load(Ordering::Acquire);
    // SAFETY: QEMU initialises a vCPU before it runs, so the pointer is set; it is never freed; and
    // a vCPU's callbacks run one at a time on its own thread, each using this reference only until
    // it returns.
    unsafe { &mut *vcpu }
}

/// Every vCPU, once none of them runs any more.
pub(crate) fn all<'a>() -> impl Iterator<Item = &'a mut Vcpu> {
    VCPUS.iter().map(|slot| slot.load(Ordering::Acquire)).filter(|vcpu| !vcpu.is_null()).map(
        |vcpu| {
            // SAFETY: as in `current`; the caller runs at QEMU's exit or with all vCPUs stopped.
            unsafe { &mut *vcpu }
        },
    )
}

impl Vcpu {
    /// A block starts: the one before went on to it.
    #[inline]
    pub(crate) fn enter(&mut self, block: &Block) {
        self.finish_here(block.pc);
        self.pending = block;
        self.core.fetch(block);
        if self.core.clock() >= self.deadline || region::generation() != self.generation {
            self.attend();
        }
    }

    /// The pending block ended and execution goes on at `next_pc`.
    pub(crate) fn finish(&mut self, next_pc: u64) {
        self.finish_here(next_pc);
    }

    #[inline(always)] // Into `enter`: saving registers for a call costs as much as counting.
    fn finish_here(&mut self, next_pc: u64) {
        // SAFETY: blocks live until the translation cache is flushed, which settles first.
        let Some(block) = (unsafe { self.pending.as_ref() }) else { return };
        if self.settled == 0 && !block.ends_in_repeat {
            self.core.retire(block, next_pc);
        } else {
            self.finish_in_part(block, next_pc);
        }
        self.abandon();
        if block.ends_in_iret {
            self.handler_returned();
        }
    }

    #[cold]
    fn finish_in_part(&mut self, block: &Block, next_pc: u64) {
        let count = block.insns().len();
        let repeats =
            block.ends_in_repeat && block.insns()[count - 1].pc.wrapping_sub(next_pc) & 0xfff == 0;
        // A string instruction that goes on where it is has not retired yet.
        let end = if repeats { count - 1 } else { count };
        if self.settled < end {
            self.core.retire_part(block, self.settled..end);
        }
        if !repeats {
            self.core.resolve(block.ring, &block.branch, next_pc);
        }
    }

    /// Counts the pending block's instructions before `end`.
    pub(crate) fn settle(&mut self, end: usize) {
        // SAFETY: as in `finish`.
        let Some(block) = (unsafe { self.pending.as_ref() }) else { return };
        if self.settled < end {
            self.core.retire_part(block, self.settled..end);
            self.settled = end;
        }
    }

    /// Counts the whole pending block, wherever execution goes on: its translation is going.
    pub(crate) fn settle_all(&mut self) {
        if self.leave_patched() {
            return;
        }
        // SAFETY: as in `finish`.
        let end = unsafe { self.pending.as_ref() }.map_or(0, |block| block.insns().len());
        self.settle(end);
        self.abandon();
    }

    /// Notes what is to be done behind the instruction that is about to run.
    pub(crate) fn note_after(&mut self, after: After) {
        self.after = Some(after);
        after::raise_flag(self.index);
    }

    /// The rest of the pending block will not run.
    pub(crate) fn abandon(&mut self) {
        self.pending = std::ptr::null();
        self.settled = 0;
        self.part = (0, false);
    }

    /// The block that is running.
    #[inline]
    pub(crate) fn is_in(&self, block: *const Block) -> bool {
        std::ptr::eq(self.pending, block)
    }

    /// Whether an access of an instruction in several parts is its first of this kind.
    #[inline]
    pub(crate) fn is_first_part(&mut self, instruction: usize, store: bool) -> bool {
        let is_first = self.part != (instruction, store);
        self.part = (instruction, store);
        is_first
    }

    /// The instruction at `pc` raises an exception: the pending block ends before it, or after it
    /// where it is one that asks for that.
    fn faulted(&mut self, pc: u64) {
        // SAFETY: as in `finish`.
        let pending = unsafe { self.pending.as_ref() };
        match pending.and_then(|block| Some((block, block.index_of(pc)?))) {
            Some((block, index)) => {
                self.settle(index + usize::from(block.insns()[index].traps));
                self.abandon();
            }
            None => self.finish(pc),
        }
    }

    /// An interrupt or, if one was raised, an exception is delivered to the handler at `to_pc`. An
    /// interrupt leaves the pending block at its end for that.
    pub(crate) fn delivered(&mut self, from_pc: u64, to_pc: u64) {
        if std::mem::take(&mut self.raised) {
            self.faulted(from_pc);
        } else if !self.leave_patched() {
            self.finish(from_pc);
        }
        if let Some((register, value)) = self.restore.take() {
            self.registers.write(register, value);
        }
        if let Some(fault_at) = self.fault_at.take() {
            // The handler's frame: the error code, then the address to return to.
            let frame = self.registers.read(Reg::Rsp);
            self.registers.write_virtual(frame.wrapping_add(8), &fault_at.to_le_bytes());
        }
        self.note_handler(to_pc);
        self.core.interrupt(DELIVERY_CYCLES);
    }

    fn note_handler(&mut self, to_pc: u64) {
        if let Some(depth) = &mut self.handler_depth {
            *depth += 1;
        } else if self.expected_handler == Some(to_pc) {
            self.expected_handler = None;
            if self.shares.inside() {
                self.handler_depth = Some(0);
                let instructions = self.kernel_instructions();
                self.shares.handlers.begin(instructions, self.core.clock());
            }
        }
    }

    #[cold]
    fn handler_returned(&mut self) {
        match self.handler_depth {
            None => {}
            Some(0) => {
                self.handler_depth = None;
                let instructions = self.kernel_instructions();
                self.shares.handlers.end(instructions, self.core.clock());
            }
            Some(depth) => self.handler_depth = Some(depth - 1),
        }
    }

    fn kernel_instructions(&mut self) -> u64 {
        self.core.counts()[Ring::Kernel as usize][Signal::Instructions]
    }

    /// Something may be due: an overflow, or a region opened or closed elsewhere.
    #[cold]
    pub(crate) fn attend(&mut self) {
        if region::generation() != self.generation {
            self.update_regions();
        }
        self.pmu.sync(self.core.counts());
        self.after_pmu();
    }

    /// Has the next block attend to whatever is due.
    pub(crate) fn attend_soon(&mut self) {
        self.deadline = 0;
    }

    /// Delivers what the PMU asks for and works out when to look again.
    pub(crate) fn after_pmu(&mut self) {
        if self.pmu.take_interrupt() {
            self.raise_interrupt();
        }
        self.set_deadline();
        for what in self.pmu.take_unmodelled() {
            crate::log::once(Said::Unmodelled(what), || what.to_string());
        }
    }

    fn set_deadline(&mut self) {
        let profile = *self.pmu.profile();
        let clock = self.core.clock();
        let counts = self.core.counts();
        let mut slots = self.pmu.slots_to_overflow(counts);
        if let Some(series) = &mut self.shares.series {
            slots = slots.min(series.tick(counts, clock, &profile));
        }
        if let Some(left) = self.planned.next_in(instructions(counts)) {
            slots = slots.min(planned::slots_to(left));
            if planned::is_near(left) {
                after::raise_flag(self.index);
            }
        }
        self.deadline = clock + slots.max(1);
    }

    /// Raises the overflow interrupt as the local vector table says; whether it is delivered.
    pub(crate) fn raise_interrupt(&mut self) -> bool {
        let vendor: Vendor = self.pmu.profile().vendor;
        let vector = self.apic.deliver(&mut self.registers, vendor);
        if let Some(vector) = vector {
            self.expected_handler = self.handler(vector);
        }
        vector.is_some()
    }

    /// The address that the interrupt descriptor table has for a vector (SDM vol. 3, "64-bit Mode
    /// IDT").
    fn handler(&mut self, vector: u8) -> Option<u64> {
        let gate = self.registers.read_virtual(self.idt? + 16 * u64::from(vector))?;
        let gate = u128::from_le_bytes(gate);
        let low = gate as u64 & 0xffff | (gate >> 32) as u64 & 0xffff_0000;
        Some(low | ((gate >> 64) as u64 & 0xffff_ffff) << 32)
    }

    /// The address space is now the one whose top table is at `cr3`.
    pub(crate) fn switch_space(&mut self, cr3: u64) {
        self.space = cr3 >> 12 & 0xff_ffff_ffff;
        self.core.switch_space(self.space);
        self.update_regions();
    }

    /// Enters and leaves regions.
    pub(crate) fn update_regions(&mut self) {
        let profile = *self.pmu.profile();
        let clock = self.core.clock();
        self.generation = self.shares.update(self.space, self.core.counts(), clock, &profile);
    }

    /// Leaves every region and ends the last row, for good.
    pub(crate) fn end_truth(&mut self) {
        let profile = *self.pmu.profile();
        let clock = self.core.clock();
        self.shares.end(self.core.counts(), clock, &profile);
    }

    /// Whether the block that is running is counted: nothing is before the first counter or region.
    pub(crate) fn counts_now(&self) -> bool {
        !self.pending.is_null()
    }
}
