//! A vCPU: its PMU, its core, and the block that it is in.
//!
//! A block is counted when it is known how much of it ran: when the next one starts, when an
//! interrupt or exception leaves it, or when the plugin intercepts one of its instructions. So a
//! guest's reading is exact at the instruction that reads, and a block that was left in the middle
//! is counted as far as it ran.
//!
//! Invariant: everything before the pending block is counted, and the first `settled` instructions
//! of the pending block.

use std::sync::atomic::{AtomicPtr, Ordering};

use tally_model::{Block, Privilege, cost};
use tally_vpmu::{Deliveries, PluginOptions, VirtualPmu};

use crate::{
    apic::{Apic, Source},
    cores::Cores,
    injection::{self, Injections},
    log::{self, Once},
    pending::{self, BlockExit, Fixup},
    places::Places,
    precision::Precision,
    region::{self, VcpuTruth},
    registers::{GuestRegisters, Reg},
    series::Series,
    timestamp::Timestamp,
    totals::instructions,
};

/// Maximum vCPUs that the plugin supports.
pub(crate) const MAX_VCPUS: usize = 1024;

static VCPUS: [AtomicPtr<Vcpu>; MAX_VCPUS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_VCPUS];

/// A vCPU. Only its own thread accesses it, except at the end of the run.
pub(crate) struct Vcpu {
    pub(crate) registers: GuestRegisters,
    pub(crate) pmu: VirtualPmu,
    pub(crate) core: Cores,
    pub(crate) apic: Apic,
    pub(crate) truth: VcpuTruth,
    pub(crate) pending: *const Block,
    pub(crate) settled: usize,
    /// The instruction and the kind of access whose first part was counted last.
    part: (usize, bool),
    /// The clock up to which no counter can overflow.
    deadline: u64,
    generation: u64,
    /// Page number of the address space's top-level table.
    pub(crate) space: u64,
    /// Base of the interrupt descriptor table, once the guest has loaded it.
    pub(crate) idt: Option<u64>,
    /// The address of the handler that a pending performance interrupt will enter.
    pub(crate) expected_handler: Option<u64>,
    /// Interrupts and exceptions inside the performance handler that have not returned, while it
    /// runs.
    pub(crate) handler_depth: Option<u32>,
    /// Whether the performance handler runs, or the kernel's code after it until ring 3 resumes.
    pub(crate) is_followed: bool,
    /// Whether an exception was raised and is not delivered yet.
    pub(crate) raised: bool,
    /// A register, and the value to restore when the fault that the plugin provoked is delivered.
    pub(crate) restore: Option<(Reg, u64)>,
    /// The address of the instruction of a pending general-protection fault.
    pub(crate) fault_at: Option<u64>,
    index: u32,
    pub(crate) precision: Precision,
    /// Deliveries of overflow interrupts.
    pub(crate) deliveries: Deliveries,
    /// Overflow interrupts to raise at chosen instructions.
    pub(crate) injections: Injections,
    /// Counts and times by code address, if the options request them.
    pub(crate) places: Option<Places>,
    /// The correction of registers after the instruction that is about to run.
    pub(crate) fixup: Option<Fixup>,
    /// The address to resume at after that instruction, if it leaves the block.
    pub(crate) block_exit: Option<BlockExit>,
}

/// Creates a vCPU's state; called once for each, from its initialization.
pub(crate) fn create(index: usize, options: &PluginOptions) -> Result<(), String> {
    let slot = VCPUS
        .get(index)
        .ok_or_else(|| format!("CPU {index}: at most {MAX_VCPUS} are supported"))?;
    let registers = GuestRegisters::of_current_vcpu()
        .ok_or("QEMU lacks a register that the PMU needs: use qemu-system-x86_64 11.1 or later")?;
    let profile = &options.profile;
    let series = options.series.as_ref();
    let series = series.map(|series| Series::new(index as u32, "", series, profile));
    let vcpu = Box::new(Vcpu {
        registers,
        pmu: VirtualPmu::new(options.profile, options.counters_of(index as u32))
            .with_quirks(&options.quirks)
            .with_unit(options.has_unit),
        core: Cores::new(index as u32, options),
        apic: Apic::new(),
        truth: VcpuTruth::new(series),
        pending: std::ptr::null(),
        settled: 0,
        part: (0, false),
        deadline: 0,
        generation: 0,
        space: 0,
        idt: None,
        expected_handler: None,
        handler_depth: None,
        is_followed: false,
        raised: false,
        restore: None,
        fault_at: None,
        deliveries: Deliveries::of(options.quirks),
        injections: Injections::of(index as u32, &options.interrupts),
        index: index as u32,
        precision: Precision::with(Timestamp::default()),
        places: Places::of(options),
        fixup: None,
        block_exit: None,
    });
    slot.store(Box::into_raw(vcpu), Ordering::Release);
    Ok(())
}

/// The state of the vCPU in whose callback this is called.
#[inline]
pub(crate) fn current<'a>(index: u32) -> &'a mut Vcpu {
    // Acquire pairs with the release in `create`.
    let vcpu = VCPUS[index as usize].load(Ordering::Acquire);
    // SAFETY:
    // 1. QEMU initializes a vCPU before it runs, so the pointer is set. It is never freed.
    // 2. A vCPU's callbacks run one at a time on its own thread, and each uses this reference only
    //    until it returns.
    unsafe { &mut *vcpu }
}

/// All vCPUs. To be called only while none of them runs.
pub(crate) fn all<'a>() -> impl Iterator<Item = &'a mut Vcpu> {
    VCPUS.iter().map(|slot| slot.load(Ordering::Acquire)).filter(|vcpu| !vcpu.is_null()).map(
        |vcpu| {
            // SAFETY: as in `current`; the callers run at QEMU's exit or with all vCPUs stopped.
            unsafe { &mut *vcpu }
        },
    )
}

impl Vcpu {
    /// Starts a block; the previous one continued to it.
    #[inline]
    pub(crate) fn enter(&mut self, block: &Block) {
        self.finish_inline(block.pc);
        self.pending = block;
        self.core.fetch(block);
        self.check_deadline();
    }

    #[inline(always)] // Into `enter`.
    pub(crate) fn check_deadline(&mut self) {
        if self.core.clock() >= self.deadline || region::generation() != self.generation {
            self.handle_deadline();
        }
    }

    /// Ends the pending block; execution continues at `next_pc`.
    pub(crate) fn finish(&mut self, next_pc: u64) {
        self.finish_inline(next_pc);
    }

    #[inline(always)] // Into `enter`: saving registers for a call costs as much as counting.
    fn finish_inline(&mut self, next_pc: u64) {
        // SAFETY: a block lives until QEMU flushes its translations, and `on_flush` settles first.
        let Some(block) = (unsafe { self.pending.as_ref() }) else { return };
        if self.settled == 0 && !block.ends_in_repeat && !self.precision.is_watching {
            self.core.retire(block, next_pc);
        } else {
            self.finish_in_part(block, next_pc);
        }
        self.abandon();
        if self.places.is_some() {
            self.end_block(block);
        }
        if block.ends_in_iret {
            self.handler_returned();
        }
    }

    /// Adds the counts since the block before to this block, and times to their instructions.
    #[cold]
    #[inline(never)]
    fn end_block(&mut self, block: &Block) {
        let (key, inside) = ((self.space, block.ring, block.pc), self.truth.inside());
        if let Some(places) = &mut self.places {
            places.end_block(key, &mut self.core, inside);
        }
    }

    #[cold]
    fn finish_in_part(&mut self, block: &Block, next_pc: u64) {
        let count = block.insns().len();
        let repeats =
            block.ends_in_repeat && block.insns()[count - 1].pc.wrapping_sub(next_pc) & 0xfff == 0;
        // A string instruction that will be executed again has not retired yet.
        if repeats {
            return self.settle(count - 1);
        }
        if self.precision.is_stepping {
            self.finish_stepping(block, next_pc);
        } else {
            self.finish_recording(block, next_pc);
        }
        self.begin_step();
    }

    /// Counts the pending block's instructions before `end`.
    pub(crate) fn settle(&mut self, end: usize) {
        // SAFETY: as in `finish`.
        let Some(block) = (unsafe { self.pending.as_ref() }) else { return };
        if self.precision.is_stepping {
            self.step_to(block, end);
        } else if self.settled < end {
            self.core.retire_part(block, self.settled..end);
            self.settled = end;
        }
    }

    /// The vCPU's number.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Counts the whole pending block, as QEMU is about to free its translation.
    pub(crate) fn settle_all(&mut self) {
        if self.leave_patched() {
            return;
        }
        // SAFETY: as in `finish`.
        let end = unsafe { self.pending.as_ref() }.map_or(0, |block| block.insns().len());
        self.settle(end);
        self.abandon();
    }

    /// Requests a correction of registers after the instruction that is about to run.
    pub(crate) fn request_fixup(&mut self, fixup: Fixup) {
        self.fixup = Some(fixup);
        pending::raise_flag(self.index);
    }

    /// Ends the pending block before an injected jump, if it ends in one; returns whether it did.
    pub(crate) fn leave_patched(&mut self) -> bool {
        let before = self.injections.patched_at(self.pending);
        if let Some(before) = before {
            self.settle(before);
            self.abandon();
        }
        before.is_some()
    }

    /// Drops the rest of the pending block, which will not run.
    pub(crate) fn abandon(&mut self) {
        self.pending = std::ptr::null();
        self.settled = 0;
        self.part = (0, false);
    }

    /// Returns whether `block` is the pending block.
    #[inline]
    pub(crate) fn is_in(&self, block: *const Block) -> bool {
        std::ptr::eq(self.pending, block)
    }

    /// Returns whether an access is the first of its kind by an instruction with several parts.
    #[inline]
    pub(crate) fn is_first_part(&mut self, instruction: usize, store: bool) -> bool {
        let is_first = self.part != (instruction, store);
        self.part = (instruction, store);
        is_first
    }

    /// Handles an exception that the instruction at `pc` raised: the pending block ends before it,
    /// or after it if it is a software interrupt.
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

    /// Handles the delivery of an exception, if one was raised, or else of an interrupt to the
    /// handler at `to_pc`. QEMU takes an interrupt at the end of the pending block.
    pub(crate) fn delivered(&mut self, from_pc: u64, to_pc: u64) {
        // SAFETY: as in `finish`.
        let pending = unsafe { self.pending.as_ref() };
        let is_in_user_mode = pending.is_some_and(|block| block.ring == Privilege::User);
        self.note_interrupted(from_pc);
        if std::mem::take(&mut self.raised) {
            self.faulted(from_pc);
        } else if !self.leave_patched() {
            self.finish(from_pc);
        }
        if let Some((register, value)) = self.restore.take() {
            self.registers.write(register, value);
        }
        let fault_at = self.fault_at.take();
        if let Some(fault_at) = fault_at {
            // The handler's frame: the error code, then the return address.
            let frame = self.registers.read(Reg::Rsp);
            self.registers.write_virtual(frame.wrapping_add(8), &fault_at.to_le_bytes());
        }
        if self.precision.is_stepping {
            self.pmu.pass_events(self.core.counts());
        }
        if is_in_user_mode {
            self.pmu.interrupted_in_ring_3();
        }
        self.note_handler(to_pc);
        self.core.interrupt(cost::DELIVERY_CYCLES.into());
        self.record_delivery(to_pc, fault_at);
    }

    /// Handles due work: an overflow, or a region that another vCPU opened or closed.
    #[cold]
    pub(crate) fn handle_deadline(&mut self) {
        self.begin_step();
        if region::generation() != self.generation {
            self.update_regions();
        }
        self.pmu.sync(self.core.counts());
        self.after_pmu();
    }

    /// Makes the next block handle due work.
    pub(crate) fn expire_deadline(&mut self) {
        self.deadline = 0;
    }

    /// Raises a pending interrupt of the PMU and computes the next deadline.
    pub(crate) fn after_pmu(&mut self) {
        if self.pmu.take_interrupt() {
            self.deliver_interrupt(Source::Counters);
        }
        if self.pmu.take_sampler_interrupt() {
            self.deliver_interrupt(Source::Sampler);
        }
        self.set_deadline();
        for what in self.pmu.take_unmodelled() {
            log::once(Once::Unmodelled(what), || what.to_string());
        }
    }

    fn set_deadline(&mut self) {
        let profile = *self.pmu.profile();
        let of_shadows = self.core.tick_shadows();
        let to_step = self.slots_to_step();
        self.set_recording();
        let clock = self.core.clock();
        let counts = self.core.counts();
        let mut slots = self.pmu.slots_to_overflow(counts).min(of_shadows).min(to_step);
        if let Some(series) = &mut self.truth.series {
            slots = slots.min(series.tick(counts, clock, &profile));
        }
        if let Some(left) = self.injections.next_in(instructions(counts)) {
            slots = slots.min(injection::slots_to(left));
            if injection::is_near(left) {
                pending::raise_flag(self.index);
            }
        }
        // While stepping, every block is announced.
        self.deadline = if to_step == 0 { 0 } else { clock + slots.max(1) };
    }

    /// Switches to the address space whose top-level table is at `cr3`.
    pub(crate) fn switch_space(&mut self, cr3: u64) {
        self.space = cr3 >> 12 & 0xff_ffff_ffff;
        self.core.switch_space(self.space);
        self.update_regions();
    }

    /// Enters and leaves regions as the shared list and the address space require.
    pub(crate) fn update_regions(&mut self) {
        let profile = *self.pmu.profile();
        let (clock, inside) = (self.core.clock(), self.truth.inside());
        self.places.iter_mut().for_each(|it| it.take_times(self.space, &mut self.core, inside));
        self.generation = self.truth.update(self.space, self.core.counts(), clock, &profile);
        self.core.update_regions(self.space);
    }

    /// Leaves every region and ends the series' last row, for good.
    pub(crate) fn end_truth(&mut self) {
        let profile = *self.pmu.profile();
        let (clock, inside) = (self.core.clock(), self.truth.inside());
        self.places.iter_mut().for_each(|it| it.take_times(self.space, &mut self.core, inside));
        self.truth.end(self.core.counts(), clock, &profile);
        self.core.end_truth();
    }
}
