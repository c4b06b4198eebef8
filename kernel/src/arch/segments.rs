//! Segments: the descriptor table (GDT), the task state (TSS) and its interrupt stacks.
//!
//! Each CPU has one set, made once and never moved. SYSRET determines the order of the descriptors:
//! user data, then user code (AMD APM volume 2, section 6.1.1; Intel SDM volume 2, SYSRET).

use alloc::boxed::Box;

use x86_64::{
    VirtAddr,
    instructions::{
        segmentation::{CS, DS, ES, SS, Segment},
        tables::load_tss,
    },
    structures::{
        gdt::{Descriptor, GlobalDescriptorTable, SegmentSelector},
        tss::TaskStateSegment,
    },
};

use crate::memory::kernel;

/// Selector of ring 0's code.
pub const KERNEL_CODE: u16 = 0x08;
/// Selector of ring 0's data.
pub const KERNEL_DATA: u16 = 0x10;
/// Selector of ring 3's data.
pub const USER_DATA: u16 = 0x18 | 3;
/// Selector of ring 3's code.
pub const USER_CODE: u16 = 0x20 | 3;

/// Interrupt stack of exceptions that may occur with a broken stack: double fault, NMI, machine
/// check.
pub const FAULT_STACK: u16 = 0;
/// Interrupt stack of overflow interrupts, which can interrupt the kernel anywhere if they are
/// NMIs.
pub const PMI_STACK: u16 = 1;

/// Loads a new descriptor table and task state on this CPU. `kernel_stack` is the top of the stack
/// for interrupts from ring 3, `pmi_stack` of the stack for overflow interrupts.
pub fn load(kernel_stack: VirtAddr, pmi_stack: VirtAddr) {
    let tss: &'static mut TaskStateSegment = Box::leak(Box::new(TaskStateSegment::new()));
    tss.privilege_stack_table[0] = kernel_stack;
    tss.interrupt_stack_table[usize::from(FAULT_STACK)] = kernel::allocate_stack();
    tss.interrupt_stack_table[usize::from(PMI_STACK)] = pmi_stack;
    let gdt: &'static mut GlobalDescriptorTable = Box::leak(Box::new(GlobalDescriptorTable::new()));
    let selectors = [
        gdt.append(Descriptor::kernel_code_segment()),
        gdt.append(Descriptor::kernel_data_segment()),
        gdt.append(Descriptor::user_data_segment()),
        gdt.append(Descriptor::user_code_segment()),
    ];
    let task = gdt.append(Descriptor::tss_segment(tss));
    assert_eq!(selectors.map(|s| s.0), [KERNEL_CODE, KERNEL_DATA, USER_DATA, USER_CODE]);
    gdt.load();
    // SAFETY: (1) the table just loaded holds these selectors; (2) it is never freed; (3) code
    // and data segments are flat, so nothing that runs moves.
    unsafe {
        CS::set_reg(SegmentSelector(KERNEL_CODE));
        SS::set_reg(SegmentSelector(KERNEL_DATA));
        DS::set_reg(SegmentSelector(0));
        ES::set_reg(SegmentSelector(0));
        load_tss(task);
    }
}
