//! The interrupt descriptor table, which leads every vector to its stub.

use spin::Once;
use x86_64::{PrivilegeLevel, VirtAddr, structures::idt::InterruptDescriptorTable};

use tally_abi::boot::Delivery;

use super::stubs;
use crate::{
    arch::{
        segments::{FAULT_STACK, PMI_STACK},
        vectors::PMI,
    },
    measure,
};

/// Bytes from one stub to the next.
const STUB_BYTES: u64 = 16;

static IDT: Once<InterruptDescriptorTable> = Once::new();

/// Loads the table on this CPU; the first call builds it.
pub fn load() {
    IDT.call_once(build).load();
}

fn build() -> InterruptDescriptorTable {
    let mut idt = InterruptDescriptorTable::new();
    set_exceptions(&mut idt);
    for vector in 32..=255_u8 {
        // SAFETY: as in `set_exceptions`; these vectors have no error code, and their stubs push 0.
        unsafe { idt[vector].set_handler_addr(stub(vector.into())) };
    }
    set_overflow_interrupt(&mut idt);
    idt
}

/// The stub of a vector.
fn stub(vector: u64) -> VirtAddr {
    stubs::table() + vector * STUB_BYTES
}

fn set_exceptions(idt: &mut InterruptDescriptorTable) {
    macro_rules! exceptions {
        ($($vector:literal $name:ident),* $(,)?) => {
            $(
                // SAFETY: the stub saves all registers, handles a frame with this vector's error
                // code, and returns by IRET (`stubs`).
                unsafe { idt.$name.set_handler_addr(stub($vector)) };
            )*
        };
    }
    exceptions! {
        0 divide_error, 1 debug, 4 overflow, 5 bound_range_exceeded,
        6 invalid_opcode, 7 device_not_available, 10 invalid_tss, 11 segment_not_present,
        12 stack_segment_fault, 13 general_protection_fault, 14 page_fault,
        16 x87_floating_point, 17 alignment_check, 19 simd_floating_point, 20 virtualization,
        21 cp_protection_exception,
    }
    // Programs may execute INT3; its exception becomes their SIGTRAP.
    // SAFETY: as above.
    unsafe { idt.breakpoint.set_handler_addr(stub(3)).set_privilege_level(PrivilegeLevel::Ring3) };
    // SAFETY: as above, and the stack was set in every CPU's task state (`arch::segments`). These
    // three may come while the stack in use is broken.
    unsafe {
        idt.non_maskable_interrupt.set_handler_addr(stub(2)).set_stack_index(FAULT_STACK);
        idt.double_fault.set_handler_addr(stub(8)).set_stack_index(FAULT_STACK);
        idt.machine_check.set_handler_addr(stub(18)).set_stack_index(FAULT_STACK);
    }
}

fn set_overflow_interrupt(idt: &mut InterruptDescriptorTable) {
    let pmi = stubs::overflow_entry(measure::halts().is_some());
    // SAFETY: (1) the stubs save what their handlers may change and return by IRET; (2) their stack
    // was set in every CPU's task state, and its first word leads to the CPU's own `NmiCell`
    // (`super::start`). Overflows are delivered as fixed interrupts or as NMIs, never as both.
    unsafe {
        idt[PMI].set_handler_addr(pmi).set_stack_index(PMI_STACK);
        if measure::delivery() == Delivery::Nmi {
            let nmi = stubs::nmi_overflow_entry();
            idt.non_maskable_interrupt.set_handler_addr(nmi).set_stack_index(PMI_STACK);
        }
    }
}
