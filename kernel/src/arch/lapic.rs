//! The local APIC, in either of its two modes.
//!
//! x2APIC (registers are MSRs) if the processor has it, else xAPIC (registers in memory). Written
//! by hand, because other crates lack the performance entry of the local vector table. Intel SDM
//! volume 3, chapter "Advanced Programmable Interrupt Controller (APIC)"; AMD APM volume 2, chapter
//! 16.

use core::{arch::asm, ptr::NonNull};

use raw_cpuid::CpuId;
use volatile::VolatilePtr;
use x86_64::{PhysAddr, instructions::port::Port, registers::model_specific::Msr};

use tally_abi::boot::Delivery;

use super::vectors;
use crate::memory::frames;

const APIC_BASE: u32 = 0x1b;
const BASE_ENABLE: u64 = 1 << 11;
const BASE_X2APIC: u64 = 1 << 10;
const BASE_ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// First MSR of the x2APIC's registers.
const X2APIC_FIRST: u32 = 0x800;

/// Offsets of registers in the xAPIC's page. The x2APIC's MSR is [`X2APIC_FIRST`] and a sixteenth
/// of the offset.
mod register {
    pub(super) const ID: u32 = 0x20;
    pub(super) const VERSION: u32 = 0x30;
    pub(super) const EOI: u32 = 0xb0;
    pub(super) const SPURIOUS: u32 = 0xf0;
    /// The first of eight registers with a bit for each vector.
    pub(super) const INTERRUPT_REQUEST: u32 = 0x200;
    pub(super) const LVT_MACHINE_CHECKS: u32 = 0x2f0;
    pub(super) const COMMAND: u32 = 0x300;
    pub(super) const COMMAND_HIGH: u32 = 0x310;
    pub(super) const LVT_TIMER: u32 = 0x320;
    pub(super) const LVT_THERMAL: u32 = 0x330;
    pub(super) const LVT_PERFORMANCE: u32 = 0x340;
    pub(super) const LVT_LINT0: u32 = 0x350;
    pub(super) const LVT_LINT1: u32 = 0x360;
    pub(super) const LVT_ERROR: u32 = 0x370;
    pub(super) const TIMER_INITIAL: u32 = 0x380;
    pub(super) const TIMER_CURRENT: u32 = 0x390;
    pub(super) const TIMER_DIVIDE: u32 = 0x3e0;
    /// AMD's: features, with the number of entries of the extended local vector table, and the
    /// first of these.
    pub(super) const EXTENDED_FEATURES: u32 = 0x400;
    pub(super) const EXTENDED_LVT: u32 = 0x500;
}

/// Fraction of the timer's period (one in so many) after which its interrupt counts as late.
const LATE: u32 = 8;
const SOFTWARE_ENABLE: u32 = 1 << 8;
const TIMER_PERIODIC: u32 = 1 << 17;
const MASKED: u32 = 1 << 16;
const DIVIDE_BY_1: u32 = 0b1011;
const DELIVERY_PENDING: u32 = 1 << 12;
const LEVEL_ASSERT: u32 = 1 << 14;
const DELIVERY_NMI: u32 = 0b100 << 8;
const TO_SELF: u32 = 0b01 << 18;
const TO_OTHERS: u32 = 0b11 << 18;

/// Masks the two legacy interrupt controllers (8259), which this kernel does not use, and ends the
/// count of their timer (8254, channel 0), which firmware has started: with `-icount`, QEMU ends a
/// block of instructions wherever a timer expires, and the virtual PMU works block by block.
pub fn mask_legacy_interrupts() {
    // All ones masks every interrupt. One count in mode 0 is the last.
    for (port, value) in [(0x21, 0xff), (0xa1, 0xff), (0x43, 0b0011_0000), (0x40, 1), (0x40, 0)] {
        // SAFETY: the mask registers of the two 8259s, and the timer's command and count, which
        // nothing else uses.
        unsafe { Port::<u8>::new(port).write(value) };
    }
}

/// A CPU's local APIC.
#[derive(Clone, Copy, Debug)]
pub enum Lapic {
    /// Registers in memory: the first of the page.
    XApic(VolatilePtr<'static, u32>),
    /// Registers in MSRs.
    X2Apic,
}

impl Lapic {
    /// Enables this CPU's local APIC; all of its interrupt sources are masked.
    pub fn enable() -> Lapic {
        let mut base = Msr::new(APIC_BASE);
        // SAFETY: every x86-64 processor has this MSR.
        let value = unsafe { base.read() };
        let has_x2apic = CpuId::new().get_feature_info().is_some_and(|f| f.has_x2apic());
        let lapic = if has_x2apic {
            // Two steps: x2APIC mode can be entered only from enabled xAPIC mode.
            // SAFETY: CPUID reports the mode; the kernel has not used xAPIC mode.
            unsafe {
                base.write(value | BASE_ENABLE);
                base.write(value | BASE_ENABLE | BASE_X2APIC);
            }
            Lapic::X2Apic
        } else {
            // SAFETY: sets only the enable bit.
            unsafe { base.write(value | BASE_ENABLE) };
            let page = frames::kernel_view(PhysAddr::new(value & BASE_ADDRESS));
            let page = NonNull::new(page.as_mut_ptr()).expect("the kernel's view is not at 0");
            // SAFETY: the page is the APIC's, mapped for the kernel for ever; all of its
            // registers are words that any access may read and write.
            Lapic::XApic(unsafe { VolatilePtr::new(page) })
        };
        lapic.write(register::SPURIOUS, SOFTWARE_ENABLE | u32::from(vectors::SPURIOUS));
        lapic.mask_all();
        lapic
    }

    /// Masks every entry of the local vector table: firmware leaves LINT1 as an NMI, and may leave
    /// the others on. The version register has the number of the last entry.
    fn mask_all(&self) {
        const ENTRIES: [(u32, u32); 7] = [
            (0, register::LVT_TIMER),
            (1, register::LVT_LINT0),
            (2, register::LVT_LINT1),
            (3, register::LVT_ERROR),
            (4, register::LVT_PERFORMANCE),
            (5, register::LVT_THERMAL),
            (6, register::LVT_MACHINE_CHECKS),
        ];
        let last = self.read(register::VERSION) >> 16 & 0xff;
        for (_, entry) in ENTRIES.into_iter().filter(|(number, _)| *number <= last) {
            self.write(entry, self.read(entry) | MASKED);
        }
    }

    /// The APIC ID.
    pub fn id(&self) -> u32 {
        match self {
            Lapic::XApic(_) => self.read(register::ID) >> 24,
            Lapic::X2Apic => self.read(register::ID),
        }
    }

    /// Returns whether an interrupt can be sent to the CPU with this APIC ID: without x2APIC mode
    /// an ID has 8 bits, and all ones are every CPU's.
    pub fn reaches(&self, id: u32) -> bool {
        matches!(self, Lapic::X2Apic) || id < 0xff
    }

    /// Ends the interrupt in service. One access.
    #[inline(always)]
    pub fn end_of_interrupt(&self) {
        self.write(register::EOI, 0);
    }

    /// Unmasks overflow interrupts. One access; needed after each interrupt, because delivery sets
    /// the mask bit (Intel SDM volume 3, "Local Vector Table").
    #[inline(always)]
    pub fn unmask_pmi(&self, delivery: Delivery) {
        self.write(register::LVT_PERFORMANCE, pmi_entry(delivery));
    }

    /// Unmasks an entry of the extended local vector table, as overflow interrupts are delivered;
    /// returns whether the APIC has it. Delivery sets no mask bit (AMD APM volume 2, "Extended
    /// Interrupts").
    pub fn unmask_extended(&self, entry: u8, delivery: Delivery) -> bool {
        const HAS_EXTENDED: u32 = 1 << 31;
        if self.read(register::VERSION) & HAS_EXTENDED == 0 {
            return false;
        }
        let entries = self.read(register::EXTENDED_FEATURES) >> 16 & 0xff;
        let is_there = u32::from(entry) < entries;
        if is_there {
            self.write(register::EXTENDED_LVT + 0x10 * u32::from(entry), pmi_entry(delivery));
        }
        is_there
    }

    /// Ends an overflow interrupt: unmasks the next, and signals the end of interrupt unless it was
    /// an NMI, which is never in service.
    #[inline(always)]
    pub fn end_pmi(&self, delivery: Delivery) {
        // A copy, so that the mode is not loaded again after the first access.
        let lapic = *self;
        lapic.unmask_pmi(delivery);
        if delivery == Delivery::Fixed {
            lapic.end_of_interrupt();
        }
    }

    /// Number of MSR accesses of [`Self::end_pmi`]. Registers in memory are not MSRs.
    pub fn pmi_msr_accesses(&self, delivery: Delivery) -> u64 {
        match (self, delivery) {
            (Lapic::XApic(_), _) => 0,
            (Lapic::X2Apic, Delivery::Fixed) => 2,
            (Lapic::X2Apic, Delivery::Nmi) => 1,
        }
    }

    /// Starts the timer: an interrupt every `ticks` of the APIC's clock.
    pub fn start_timer(&self, ticks: u32) {
        self.write(register::TIMER_DIVIDE, DIVIDE_BY_1);
        self.write(register::LVT_TIMER, TIMER_PERIODIC | u32::from(vectors::TIMER));
        self.write(register::TIMER_INITIAL, ticks);
    }

    /// Starts the timer for one interrupt, after `ticks` of the APIC's clock.
    pub fn interrupt_after(&self, ticks: u32) {
        self.write(register::TIMER_DIVIDE, DIVIDE_BY_1);
        self.write(register::LVT_TIMER, vectors::TIMER.into());
        self.write(register::TIMER_INITIAL, ticks);
    }

    /// Restarts the timer's period, in the timer's interrupt, if the interrupt is late because the
    /// kernel had interrupts off: so the turn that begins now is a whole one.
    pub fn restart_late_period(&self) {
        let period = self.timer_period();
        let passed = period.saturating_sub(self.read(register::TIMER_CURRENT));
        if passed > period / LATE {
            self.write(register::TIMER_INITIAL, period);
        }
    }

    /// Stops the timer.
    pub fn stop_timer(&self) {
        self.write(register::TIMER_INITIAL, 0);
    }

    /// The timer's period, in ticks of the APIC's clock.
    pub fn timer_period(&self) -> u32 {
        self.read(register::TIMER_INITIAL)
    }

    /// Stops the timer. Returns the ticks that were left of its period.
    pub fn hold_timer(&self) -> u32 {
        let left = self.read(register::TIMER_CURRENT);
        self.write(register::TIMER_INITIAL, 0);
        left
    }

    /// Restarts the timer with an interrupt after `left` ticks, the result of [`Self::hold_timer`].
    /// Until [`Self::start_timer`], `left` is also its period.
    pub fn release_timer(&self, left: u32) {
        self.write(register::TIMER_INITIAL, left.max(1));
    }

    /// Measures the ticks of the APIC's clock during `wait`, and returns them with the wait's
    /// result; `None` if the wait fails.
    pub fn measure_timer<T>(&self, wait: impl FnOnce() -> Option<T>) -> Option<(T, u32)> {
        self.write(register::TIMER_DIVIDE, DIVIDE_BY_1);
        self.write(register::LVT_TIMER, MASKED | u32::from(vectors::TIMER));
        self.write(register::TIMER_INITIAL, u32::MAX);
        let waited = wait();
        let elapsed = u32::MAX - self.read(register::TIMER_CURRENT);
        self.write(register::TIMER_INITIAL, 0);
        waited.map(|waited| (waited, elapsed.max(1)))
    }

    /// Returns whether an interrupt of this vector is pending: raised, but not delivered yet.
    pub fn is_pending(&self, vector: u8) -> bool {
        let [register, bit] = [vector / 32, vector % 32].map(u32::from);
        self.read(register::INTERRUPT_REQUEST + 0x10 * register) >> bit & 1 == 1
    }

    /// Sends an interrupt to one CPU.
    pub fn interrupt(&self, to: u32, vector: u8) {
        self.send(to, LEVEL_ASSERT | u32::from(vector));
    }

    /// Sends an interrupt to every other CPU.
    pub fn interrupt_others(&self, vector: u8) {
        self.send(0, TO_OTHERS | LEVEL_ASSERT | u32::from(vector));
    }

    /// Sends an interrupt to this CPU. One access, so that an NMI can do it during [`Self::send`].
    pub fn interrupt_self(&self, vector: u8) {
        let command = TO_SELF | LEVEL_ASSERT | u32::from(vector);
        match self {
            Lapic::XApic(_) => self.write(register::COMMAND, command),
            // SAFETY: as in `send`.
            Lapic::X2Apic => unsafe {
                Msr::new(X2APIC_FIRST + (register::COMMAND >> 4)).write(command.into());
            },
        }
    }

    /// Sends an interrupt command (delivery mode, level and vector in `command`) to one CPU.
    pub fn send(&self, to: u32, command: u32) {
        match self {
            Lapic::XApic(_) => {
                self.write(register::COMMAND_HIGH, to << 24);
                self.write(register::COMMAND, command);
                while self.read(register::COMMAND) & DELIVERY_PENDING != 0 {
                    core::hint::spin_loop();
                }
            }
            Lapic::X2Apic => {
                let value = u64::from(to) << 32 | u64::from(command);
                // SAFETY: (1) fences change nothing; (2) the x2APIC's command register takes both
                // halves in one write.
                unsafe {
                    // The write is not serializing: without fences the other CPU could see the
                    // interrupt before this CPU's stores (Intel SDM volume 3, "x2APIC Register
                    // Access Semantics").
                    asm!("mfence", "lfence", options(nostack, preserves_flags));
                    Msr::new(X2APIC_FIRST + (register::COMMAND >> 4)).write(value);
                }
            }
        }
    }

    fn read(&self, offset: u32) -> u32 {
        match *self {
            Lapic::XApic(page) => in_page(page, offset).read(),
            // SAFETY: the offsets above name registers that every x2APIC has.
            Lapic::X2Apic => unsafe { Msr::new(X2APIC_FIRST + (offset >> 4)).read() as u32 },
        }
    }

    #[inline(always)]
    fn write(&self, offset: u32, value: u32) {
        match *self {
            Lapic::XApic(page) => in_page(page, offset).write(value),
            // SAFETY: as in `read`.
            Lapic::X2Apic => unsafe {
                Msr::new(X2APIC_FIRST + (offset >> 4)).write(u64::from(value));
            },
        }
    }
}

/// An entry of a local vector table for overflow interrupts.
#[inline(always)]
fn pmi_entry(delivery: Delivery) -> u32 {
    match delivery {
        Delivery::Fixed => u32::from(vectors::PMI),
        Delivery::Nmi => DELIVERY_NMI,
    }
}

/// The register at an offset of [`register`].
fn in_page(page: VolatilePtr<'static, u32>, offset: u32) -> VolatilePtr<'static, u32> {
    // SAFETY: the offsets are multiples of 16 within the APIC's page.
    unsafe { page.map(|first| first.byte_add(offset as usize)) }
}
