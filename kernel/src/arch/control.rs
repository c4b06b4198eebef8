//! Control registers: the features that the kernel enables, ring 3's access to RDPMC, and their
//! values for a report.

use core::ops::Range;

use raw_cpuid::CpuId;
use tally_abi::registers::Registers;
use x86_64::registers::{
    control::{Cr0, Cr0Flags, Cr2, Cr3, Cr4, Cr4Flags},
    model_specific::Msr,
};

use super::{extended_state, frame::Frame};

/// The table of memory types.
const PAT: u32 = 0x277;
/// A byte for each type, twice: write-back (6), write-combining (1), uncached (7), and strongly
/// uncached (0).
const MEMORY_TYPES: u64 = 0x0007_0106_0007_0106;

unsafe extern "C" {
    // Symbols of the linker.
    safe static stext: u8;
    safe static etext: u8;
}

/// Sets whether ring 3 may execute RDPMC on this CPU.
///
/// While RDPMC is allowed, the counters contain only the running program's events:
/// `measure::Measure` scrubs the others.
pub fn set_rdpmc_access(allowed: bool) {
    // SAFETY: CR4.PCE changes what ring 3 may read and nothing else.
    unsafe { Cr4::update(|flags| flags.set(Cr4Flags::PERFORMANCE_MONITOR_COUNTER, allowed)) };
}

/// Sets this CPU's types of memory, by the flags of a page: write-combining in place of
/// write-through, which nothing uses, and the others as after reset (Intel SDM volume 3, "Page
/// Attribute Table"). Every CPU sets the same.
pub fn set_memory_types() {
    // SAFETY: every x86-64 processor has the table, and no page has the changed type yet: neither
    // the boot loader's tables nor the kernel's use write-through.
    unsafe { Msr::new(PAT).write(MEMORY_TYPES) };
}

/// Turns on SSE, global pages and, where the processor has them, XSAVE with the extended state,
/// SMEP, SMAP and UMIP, and turns off every other optional feature of CR4.
pub fn enable_features() {
    let features = CpuId::new().get_extended_feature_info();
    let mut cr4 = Cr4Flags::OSFXSR | Cr4Flags::OSXMMEXCPT_ENABLE | Cr4Flags::PAGE_GLOBAL;
    cr4.set(Cr4Flags::OSXSAVE, extended_state::has_xsave());
    cr4.set(
        Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION,
        features.as_ref().is_some_and(|f| f.has_smep()),
    );
    cr4.set(
        Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION,
        features.as_ref().is_some_and(|f| f.has_smap()),
    );
    cr4.set(Cr4Flags::USER_MODE_INSTRUCTION_PREVENTION, features.is_some_and(|f| f.has_umip()));
    // Firmware may have left more on: with FSGSBASE programs could set bases that a context switch
    // does not restore, with PKE use a register that it does not save, with PCE read counters.
    let kept = Cr4Flags::PHYSICAL_ADDRESS_EXTENSION
        | Cr4Flags::MACHINE_CHECK_EXCEPTION
        | Cr4Flags::L5_PAGING;
    // SAFETY: (1) every x86-64 processor has SSE; (2) the kernel never touches programs' memory
    // through programs' addresses; (3) write protection holds for ring 0 too, as before; (4)
    // the global pages are the kernel's, the same in every address space.
    unsafe {
        Cr0::update(|flags| {
            flags.remove(Cr0Flags::EMULATE_COPROCESSOR | Cr0Flags::TASK_SWITCHED);
            flags.insert(
                Cr0Flags::MONITOR_COPROCESSOR | Cr0Flags::NUMERIC_ERROR | Cr0Flags::WRITE_PROTECT,
            );
        });
        // Raw: `Cr4::update` keeps the bits that its crate does not know, as FRED's, with which no
        // entry of the IDT is used.
        Cr4::write_raw(Cr4::read_raw() & kept.bits() | cr4.bits());
    }
    extended_state::enable();
}

/// Collects the registers of a frame, and this CPU's control registers.
pub fn registers(frame: &Frame) -> Registers {
    let (page_table, flags) = Cr3::read_raw();
    Registers {
        frame: *frame,
        cr0: Cr0::read_raw(),
        cr2: Cr2::read_raw(),
        cr3: page_table.start_address().as_u64() | u64::from(flags),
        cr4: Cr4::read_raw(),
        apic_id: apic_id().into(),
    }
}

/// The executing CPU's APIC ID, also above 255 (Intel SDM volume 2, CPUID leaves 1 and 0BH).
fn apic_id() -> u32 {
    let id = CpuId::new();
    let topology = id.get_extended_topology_info().and_then(|mut levels| levels.next());
    let short = || id.get_feature_info().map(|info| info.initial_local_apic_id().into());
    topology.map(|level| level.x2apic_id()).or_else(short).unwrap_or(0)
}

/// The addresses of the kernel's code.
pub fn code() -> Range<u64> {
    (&raw const stext).addr() as u64..(&raw const etext).addr() as u64
}
