//! Starting the other processors (application processors).
//!
//! The first CPU starts each with INIT and start-up IPIs (Intel SDM volume 3, "Multiple-Processor
//! Initialization"). A processor begins in 16-bit mode at a page below 1 MiB, where a short
//! trampoline switches it to 64-bit mode and jumps to [`start_here`]. Processors start one at a
//! time, as they share the trampoline, and then halt until the first CPU has loaded the programs.

use alloc::vec::Vec;
use core::{
    arch::global_asm,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use tally_abi::wire::Message;
use x86_64::{instructions::interrupts, structures::paging::PhysFrame};

use super::start::start_cpu;
use crate::{
    arch::{control, extended_state, lapic::Lapic},
    cpu::{self, Cpu, online},
    machine::{acpi, clock, serial},
    measure,
    memory::{frames, kernel, space::AddressSpace},
};

const INIT: u32 = 0x4500;
const START_UP: u32 = 0x4600;
/// Maximum time for a processor's start, in steps of [`STEP_US`]: 10 s, as Linux waits
/// (arch/x86/kernel/smpboot.c). A virtual machine's processor starts when its host schedules it.
const MAX_STEPS: u32 = 10_000;
const STEP_US: u64 = 1_000;

/// Number of started processors that stay offline because their PMU differs from the first one's.
/// Release order with [`start_here`]'s increment, acquire in the loop that waits for it.
static MISMATCHED: AtomicU32 = AtomicU32::new(0);
/// Set when the programs are loaded. Release order in [`release`], acquire in [`start_here`].
static PROGRAMS_LOADED: AtomicBool = AtomicBool::new(false);
/// The timer's ticks of one turn. Relaxed order is enough: [`PROGRAMS_LOADED`] orders it.
static TIMER_TICKS: AtomicU32 = AtomicU32::new(0);

// Runs at the start of a page below 1 MiB, whose segment is in CS. Offsets are within that page.
// The three words at its end are filled in for each processor.
global_asm!(
    ".code16",
    "tally_trampoline:",
    "cli",
    "cld",
    "movw %cs, %ax",
    "movw %ax, %ds",
    // The page's linear address, for the descriptor table and the far jump's target.
    "movzwl %ax, %ebx",
    "shll $4, %ebx",
    "leal (tally_trampoline_gdt - tally_trampoline)(%ebx), %eax",
    "movl %eax, (tally_trampoline_gdtr - tally_trampoline + 2)",
    "leal (tally_trampoline_64 - tally_trampoline)(%ebx), %eax",
    "movl %eax, (tally_trampoline_target - tally_trampoline)",
    "lgdtl (tally_trampoline_gdtr - tally_trampoline)",
    // PAE; CR3; long mode and no-execute; then protection and paging at once.
    "movl $0x20, %eax",
    "movl %eax, %cr4",
    "movl (tally_trampoline_root - tally_trampoline), %eax",
    "movl %eax, %cr3",
    "movl $0xc0000080, %ecx",
    "rdmsr",
    "orl $0x900, %eax",
    "wrmsr",
    "movl $0x80010011, %eax",
    "movl %eax, %cr0",
    "ljmpl *(tally_trampoline_target - tally_trampoline)",
    ".code64",
    "tally_trampoline_64:",
    "movl %ebx, %ebx",
    "movl $16, %eax",
    "movl %eax, %ss",
    "xorl %eax, %eax",
    "movl %eax, %ds",
    "movl %eax, %es",
    "movl %eax, %fs",
    "movl %eax, %gs",
    "movq (tally_trampoline_stack - tally_trampoline)(%rbx), %rsp",
    "movq (tally_trampoline_entry - tally_trampoline)(%rbx), %rax",
    "callq *%rax",
    "ud2",
    ".balign 8",
    "tally_trampoline_gdt:",
    ".quad 0",
    ".quad 0x00af9b000000ffff",
    ".quad 0x00cf93000000ffff",
    "tally_trampoline_gdtr:",
    ".word 23",
    ".long 0",
    ".balign 8",
    "tally_trampoline_target:",
    ".long 0",
    ".word 8",
    ".balign 8",
    "tally_trampoline_root: .quad 0",
    "tally_trampoline_stack: .quad 0",
    "tally_trampoline_entry: .quad 0",
    "tally_trampoline_end:",
    options(att_syntax)
);

unsafe extern "C" {
    safe static tally_trampoline: u8;
    safe static tally_trampoline_root: u8;
    safe static tally_trampoline_end: u8;
}

/// Starts processors until `wanted` run. Returns how many do. A processor that does not start, or
/// whose PMU differs from the first one's, stays offline; a log line reports it.
pub fn start_others(rsdp: Option<u64>, wanted: usize, timer_ticks: u32) -> u32 {
    TIMER_TICKS.store(timer_ticks, Ordering::Relaxed);
    // SAFETY: interrupts are off and no other reference to this CPU's state is live.
    let lapic = unsafe { Cpu::current() }.lapic;
    let me = lapic.id();
    let others: Vec<u32> = acpi::processors(rsdp).into_iter().filter(|id| *id != me).collect();
    if others.is_empty() || wanted == 1 {
        return 1;
    }
    let Some((page, space)) = trampoline() else { return 1 };
    for id in others {
        if online::count() as usize == wanted {
            break;
        }
        if !lapic.reaches(id) {
            log::warn!("CPU with APIC ID {id} needs x2APIC mode, which CPUID lacks; offline");
            send_offline(id, "its APIC ID needs x2APIC mode, which CPUID lacks");
            continue;
        }
        match start_one(&lapic, id, page, &space) {
            Started::Online => {}
            Started::Mismatched => {
                log::warn!("CPU with APIC ID {id} has another PMU than the first CPU; offline");
                send_offline(id, "it has another PMU than the first CPU");
            }
            Started::NoAnswer => {
                log::error!("CPU with APIC ID {id} did not start; offline");
                send_offline(id, "it did not start");
                // The processor may still start, in this page and with these tables.
                core::mem::forget(space);
                break;
            }
        }
    }
    online::count()
}

/// Tells the host that a processor stays offline.
fn send_offline(apic_id: u32, why: &str) {
    serial::send(&Message::Offline { apic_id, why });
}

/// The page in which processors start, and the address space with which they enable paging.
fn trampoline() -> Option<(PhysFrame, AddressSpace)> {
    let (Some(page), Ok(mut space)) =
        (frames::low_frame(), AddressSpace::for_program(kernel::space()))
    else {
        log::error!("no memory below 1 MiB to start other CPUs in; 1 CPU runs");
        return None;
    };
    if space.map_identity(page).is_err() || space.id() > u64::from(u32::MAX) {
        log::error!("no page tables below 4 GiB to start other CPUs with; 1 CPU runs");
        return None;
    }
    Some((page, space))
}

/// Outcome of start-up IPIs.
enum Started {
    Online,
    Mismatched,
    NoAnswer,
}

fn start_one(lapic: &Lapic, id: u32, page: PhysFrame, space: &AddressSpace) -> Started {
    let (online, mismatched) = (online::count(), MISMATCHED.load(Ordering::Acquire));
    fill_trampoline(page, space);
    wake(lapic, id, page);
    for _ in 0..MAX_STEPS {
        if online::count() != online {
            return Started::Online;
        }
        if MISMATCHED.load(Ordering::Acquire) != mismatched {
            return Started::Mismatched;
        }
        clock::wait_us(STEP_US);
    }
    Started::NoAnswer
}

/// Allows the other processors to run programs.
pub fn release() {
    PROGRAMS_LOADED.store(true, Ordering::Release);
    // SAFETY: interrupts are off and no other reference to this CPU's state is live.
    unsafe { Cpu::current() }.ask_others();
}

fn wake(lapic: &Lapic, id: u32, page: PhysFrame) {
    lapic.send(id, INIT);
    clock::wait_us(10_000);
    let vector = (page.start_address().as_u64() >> 12) as u32;
    for _ in 0..2 {
        lapic.send(id, START_UP | vector);
        clock::wait_us(200);
    }
}

fn fill_trampoline(page: PhysFrame, space: &AddressSpace) {
    let code = &raw const tally_trampoline;
    let length = &raw const tally_trampoline_end as usize - code as usize;
    let words_at = &raw const tally_trampoline_root as usize - code as usize;
    let words = [space.id(), kernel::allocate_stack().as_u64(), start_here as *const () as u64];
    let to: *mut u8 = frames::kernel_view(page.start_address()).as_mut_ptr();
    // SAFETY: (1) the page is usable memory that the frame allocator never hands out; (2) the
    // trampoline is shorter than a page (asserted by the assembler's offsets, checked here); (3)
    // its words are aligned to 8.
    unsafe {
        assert!(length <= frames::FRAME_BYTES as usize);
        to.copy_from_nonoverlapping(code, length);
        to.add(words_at).cast::<[u64; 3]>().write(words);
    }
}

/// The trampoline's target: 64-bit mode, a stack of its own, the trampoline's page tables.
extern "C" fn start_here() -> ! {
    control::set_memory_types();
    kernel::activate_space();
    if !measure::pmu_matches() || !extended_state::is_as_on_first() {
        MISMATCHED.fetch_add(1, Ordering::Release);
        loop {
            // The processor stays here: interrupts are off, and no CPU sends it an NMI.
            x86_64::instructions::hlt();
        }
    }
    start_cpu(online::count() as u16);
    online::add();
    while !PROGRAMS_LOADED.load(Ordering::Acquire) {
        // The interrupt of `release` cannot come between the test and the halt.
        interrupts::enable_and_hlt();
        interrupts::disable();
    }
    // SAFETY: interrupts are off and no other reference to this CPU's state is live.
    let lapic = unsafe { Cpu::current() }.lapic;
    lapic.start_timer(TIMER_TICKS.load(Ordering::Relaxed));
    cpu::run()
}
