//! Starts the other processors.
//!
//! Each is woken with the INIT and start-up interrupts (Intel SDM volume 3, "MP Initialization"),
//! in 16-bit mode at a page below 1 MiB, where a short trampoline takes it to 64-bit mode and to
//! [`start_here`]. One at a time: they share the trampoline. Then each waits until the first has
//! loaded the programs.

use alloc::vec::Vec;
use core::{
    arch::global_asm,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use x86_64::{
    registers::control::{Cr4, Cr4Flags},
    structures::paging::PhysFrame,
};

use super::{Cpu, lapic::Lapic};
use crate::{
    machine::{acpi, clock},
    measure,
    memory::{frames, space::AddressSpace},
    task,
};

const INIT: u32 = 0x4500;
const START_UP: u32 = 0x4600;
/// How long a processor may take to answer, in steps of [`STEP_US`].
const PATIENCE_STEPS: u32 = 200;
const STEP_US: u64 = 1_000;

/// Processors that run. Release order with [`start_here`]'s increment, acquire with the wait.
static STARTED: AtomicU32 = AtomicU32::new(1);
/// Processors that answered and are left out, being of another kind than the first. Ordered as [`STARTED`].
static UNLIKE: AtomicU32 = AtomicU32::new(0);
/// Set when the programs are loaded: pairs acquire with release.
static GO: AtomicBool = AtomicBool::new(false);
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
    // The page's linear address, for what needs one: the descriptor table, the far jump's target.
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

/// Starts processors until `wanted` run, and gives how many do. Those that do not answer or are of another kind
/// are left alone and named in the log.
pub fn start_others(rsdp: Option<u64>, wanted: usize, timer_ticks: u32) -> u32 {
    TIMER_TICKS.store(timer_ticks, Ordering::Relaxed);
    // SAFETY: interrupts are off and no other reference to this CPU's state is live.
    let lapic = unsafe { Cpu::current() }.lapic;
    let me = lapic.id();
    let others: Vec<u32> = acpi::processors(rsdp).into_iter().filter(|id| *id != me).collect();
    if others.is_empty() || wanted == 1 {
        return 1;
    }
    let (Some(page), Ok(mut space)) =
        (frames::low_frame(), AddressSpace::for_program(task::kernel_space()))
    else {
        log::error!("no memory below 1 MiB to start other CPUs from; one runs");
        return 1;
    };
    if space.map_identity(page).is_err() || space.id() > u64::from(u32::MAX) {
        log::error!("no page tables below 4 GiB to start other CPUs with; one runs");
        return 1;
    }
    for id in others {
        if STARTED.load(Ordering::Acquire) as usize == wanted {
            break;
        }
        let now = || [&STARTED, &UNLIKE].map(|count| count.load(Ordering::Acquire));
        let before = now();
        fill_trampoline(page, &space);
        wake(&lapic, id, page);
        let mut steps = 0;
        while now() == before && steps < PATIENCE_STEPS {
            clock::wait_us(STEP_US);
            steps += 1;
        }
        if now() == before {
            log::error!("the CPU with interrupt controller {id} does not answer; it is left out");
            // It may still wake up, on this page and these tables.
            core::mem::forget(space);
            break;
        }
        if now()[1] != before[1] {
            log::warn!(
                "the CPU with interrupt controller {id} counts other events; it is left out"
            );
        }
    }
    STARTED.load(Ordering::Acquire)
}

/// The processors that run: a bit for each.
pub fn running() -> u64 {
    // Relaxed is enough: it is asked for after [`release`] alone, and changes no more then.
    u64::MAX >> (u64::BITS - STARTED.load(Ordering::Relaxed))
}

/// Lets the other processors run programs.
pub fn release() {
    GO.store(true, Ordering::Release);
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
    let words = [space.id(), task::kernel_stack().as_u64(), start_here as *const () as u64];
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

/// Where a processor arrives: 64-bit mode, its own stack, the trampoline's page tables.
extern "C" fn start_here() -> ! {
    // SAFETY: only keeps what the boot loader set on the first processor: global pages.
    unsafe { Cr4::update(|flags| flags.insert(Cr4Flags::PAGE_GLOBAL)) };
    task::activate_kernel_space();
    if !measure::is_alike() {
        UNLIKE.fetch_add(1, Ordering::Release);
        loop {
            // Interrupts are off, and nobody sends it any that are not.
            x86_64::instructions::hlt();
        }
    }
    let index = STARTED.load(Ordering::Acquire) as u16;
    Cpu::start(index);
    STARTED.fetch_add(1, Ordering::Release);
    while !GO.load(Ordering::Acquire) {
        core::hint::spin_loop();
    }
    // SAFETY: interrupts are off and no other reference to this CPU's state is live.
    let lapic = unsafe { Cpu::current() }.lapic;
    lapic.start_timer(TIMER_TICKS.load(Ordering::Relaxed));
    super::run()
}
