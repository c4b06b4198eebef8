//! The set-up of a CPU: its stacks, tables, interrupt controller and its part of the engine.

use alloc::boxed::Box;

use crate::{
    arch::{control, lapic::Lapic, segments},
    cpu::Cpu,
    measure::{self, Measure, NmiCell},
    memory::kernel,
};

use super::{
    idt,
    ring_3::{self, Ring3Loop},
    stubs,
};

/// Sets up the executing CPU as number `index`, with interrupts off. Once for each CPU.
pub fn start_cpu(index: u16) {
    let kernel_stack = kernel::allocate_stack();
    // The overflow interrupt finds the CPU's `NmiCell` in the first of these two words; it is null
    // until the cell exists.
    let pmi_stack = kernel::allocate_stack() - 2 * size_of::<u64>() as u64;
    let cell_word = pmi_stack.as_mut_ptr::<Option<&NmiCell>>();
    // SAFETY: the stack is new, and reaches two words further.
    unsafe { cell_word.write(None) };
    segments::load(kernel_stack, pmi_stack);
    idt::load();
    stubs::enable_syscall();
    control::enable_features();
    let lapic = Lapic::enable();
    log::debug!("CPU {index}: APIC ID {}, kernel stack below {kernel_stack:#x}", lapic.id());
    let measure = &*Box::leak(Box::new(NmiCell::new(Measure::new(index, &lapic))));
    // SAFETY: as above; the stub that reads the word on this CPU reads it whole.
    unsafe { cell_word.write_volatile(Some(measure)) };
    Cpu::install(index, kernel_stack, lapic, measure);
    lapic.unmask_pmi(measure::delivery());
    check_ring_3(measure, &lapic);
}

/// Checks this CPU's counts in ring 3, if requested.
fn check_ring_3(measure: &NmiCell, lapic: &Lapic) {
    if measure.lock().is_to_be_checked() {
        // The pending interrupt is that of the check of the overflow interrupt.
        ring_3::take_pending_interrupts();
        measure.check_nmi();
        let ring_3 = Ring3Loop::new();
        measure.lock().check_ring_3(|until_interrupt| ring_3.run(lapic, until_interrupt));
    }
}
