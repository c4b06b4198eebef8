//! A minimal kernel: segments, interrupt handlers that count and record, ring 3 and back.
//!
//! There is one CPU, and handlers only write the statics here, so relaxed atomics are enough.

use core::{
    arch::{asm, global_asm, naked_asm},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::{
    apic::{LVT_PERFORMANCE, apic_write, end_of_interrupt},
    machine::{PMI_VECTOR, outb, wrmsr},
    vendor::VendorPmu,
};

/// Interrupts and exceptions taken, by vector.
pub static TAKEN: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];
/// The address at which execution resumes after a fault, instead of at the faulting instruction, if
/// not zero.
static FAULT_RESUME: AtomicU64 = AtomicU64::new(0);
/// RCX as seen by the last fault's handler.
pub static FAULT_RCX: AtomicU64 = AtomicU64::new(0);
/// RFLAGS in the last fault's frame.
pub static FAULT_RFLAGS: AtomicU64 = AtomicU64::new(0);
/// Interrupted address of the last performance interrupt.
pub static PMI_RIP: AtomicU64 = AtomicU64::new(0);

/// The period with which the performance interrupt's handler re-arms the first counter, if not
/// zero.
pub static REARM: AtomicU64 = AtomicU64::new(0);

/// The trap frame that the stubs push.
#[repr(C)]
pub struct Frame {
    /// R11 to RAX, as pushed.
    scratch: [u64; 9],
    vector: u64,
    error: u64,
    rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
}

static mut GDT: [u64; 8] = [
    0,
    0x00af_9a00_0000_ffff,
    0x00cf_9200_0000_ffff,
    0x00cf_f200_0000_ffff,
    0x00af_fa00_0000_ffff,
    0,
    0,
    0,
];
static mut TSS: [u32; 26] = [0; 26];
static mut IDT: [[u64; 2]; 256] = [[0; 2]; 256];
static mut FAULT_STACK: [u64; 2048] = [0; 2048];
static mut USER_STACK: [u64; 2048] = [0; 2048];

/// Selectors of [`GDT`]: SYSRET's order, user data before user code.
const USER_DATA: u64 = 3 << 3 | 3;
const USER_CODE: u64 = 4 << 3 | 3;
const TASK: u16 = 5 << 3;

/// The length of every stub.
const STUB_BYTES: u64 = 16;

global_asm!(
    r#"
    .section .text
    .balign 16
stubs:
    .set vector, 0
    .rept 256
    .balign 16
    .if (vector == 8) | ((vector >= 10) & (vector <= 14)) | (vector == 17) | (vector == 21)
    .else
    push 0
    .endif
    push vector
    jmp common
    .set vector, vector + 1
    .endr
common:
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    mov rdi, rsp
    cld
    call {on_interrupt}
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    add rsp, 16
    iretq
    "#,
    on_interrupt = sym on_interrupt,
);

unsafe extern "C" {
    static stubs: u8;
}

extern "C" fn on_interrupt(frame: &mut Frame) {
    TAKEN[frame.vector as usize & 0xff].fetch_add(1, Relaxed);
    match frame.vector as u8 {
        2 | PMI_VECTOR => {
            PMI_RIP.store(frame.rip, Relaxed);
            rearm();
        }
        3 => {}
        14 if map_hole() => {}
        0..32 => {
            FAULT_RCX.store(frame.scratch[7], Relaxed);
            FAULT_RFLAGS.store(frame.rflags, Relaxed);
            let resume = FAULT_RESUME.swap(0, Relaxed);
            assert!(resume != 0, "fault {} ({:#x}) at {:#x}", frame.vector, frame.error, frame.rip);
            if frame.cs & 3 == 3 {
                // From ring 3: return to the kernel, as a system call does.
                frame.cs = 8;
                frame.ss = 16;
                frame.rsp = USER_RETURN_RSP.load(Relaxed);
            }
            frame.rip = resume;
        }
        _ => {}
    }
    if frame.vector as u8 >= 32 {
        end_of_interrupt();
    }
}

/// Start of an address range that the page-fault handler maps on access.
pub const HOLE: u64 = 0x8000_0000;
/// The hole's number of 2 MiB pages.
pub const HOLE_PAGES: u64 = 64;

unsafe extern "C" {
    /// The top-level page table.
    pub static mut tables_pml4: [u64; 512];
    /// The tables of the first 4 GiB, in pages of 2 MiB.
    pub static mut tables_pd: [u64; 2048];
    /// The tables of the second and third level for the end of the address space.
    static mut tables_last: [[u64; 512]; 2];
}

/// Page-table entry for memory above the image that nothing else uses: 2 MiB, present, writable,
/// for ring 3 too.
pub const SPARE_PAGE: u64 = 64 << 20 | 0x87;

/// Maps the last 2 MiB of the address space.
pub fn map_last_pages() {
    let (top, last) = (&raw mut tables_pml4, &raw mut tables_last);
    let table = last as u64;
    // SAFETY: the tables are this kernel's, and their last entries were empty.
    unsafe {
        (*last)[1][511] = SPARE_PAGE;
        (*last)[0][511] = (table + 4096) | 7;
        (*top)[511] = table | 7;
    }
}

/// Unmaps the hole.
pub fn unmap_hole() {
    let first = (HOLE >> 21) as usize;
    let tables = &raw mut tables_pd;
    for page in first..first + HOLE_PAGES as usize {
        // SAFETY: nothing but the checks' own loops uses the hole.
        unsafe { (*tables)[page] = 0 };
    }
    // SAFETY: rewriting CR3 only flushes the hole's translations.
    unsafe { asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _) };
}

/// Maps the page of the hole at the faulting address; all its pages have the same memory. Returns
/// whether the address is in the hole.
fn map_hole() -> bool {
    let address: u64;
    // SAFETY: reading CR2 has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) address) };
    let inside = (HOLE..HOLE + (HOLE_PAGES << 21)).contains(&address);
    if inside {
        let tables = &raw mut tables_pd;
        // SAFETY: the hole is the checks' own.
        unsafe { (*tables)[(address >> 21) as usize] = SPARE_PAGE };
    }
    inside
}

/// Enables AVX.
pub fn enable_avx() {
    // SAFETY: sets CR4.OSXSAVE and, in XCR0, x87, SSE and AVX, which the processor has.
    unsafe {
        asm!(
            "mov {0}, cr4",
            "or {0}, 0x40000",
            "mov cr4, {0}",
            "xsetbv",
            out(reg) _,
            in("ecx") 0,
            in("eax") 7,
            in("edx") 0,
        );
    }
}

/// Re-arms the first counter, if a period is set.
fn rearm() {
    let period = REARM.load(Relaxed);
    if period != 0 {
        let vendor = VendorPmu::here();
        wrmsr(vendor.counter.0, 0u64.wrapping_sub(period) & vendor.counter_mask());
        vendor.reset_overflow();
        apic_write(LVT_PERFORMANCE, PMI_VECTOR.into());
    }
}

/// Sets up segments, handlers and system calls.
pub fn set_up() {
    let gates = &raw mut IDT;
    let first = &raw const stubs as u64;
    for vector in 0..256 {
        let address = first + vector * STUB_BYTES;
        let low = address & 0xffff | 8 << 16 | 0xee00 << 32 | (address & 0xffff_0000) << 32;
        // SAFETY: set up once, before anything uses it.
        unsafe { (*gates)[vector as usize] = [low, address >> 32] };
    }
    let tss = &raw mut TSS;
    let stack = &raw const FAULT_STACK as u64 + 2048 * 8;
    // SAFETY: likewise.
    unsafe { (*tss)[1] = stack as u32 };
    let gdt = &raw mut GDT;
    let base = tss as u64;
    let task = 103 | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    // SAFETY: likewise.
    unsafe { (*gdt)[5] = task };
    load(gdt as u64, gates as u64);
    wrmsr(0xc000_0081, (2 << 3 | 3) << 48 | 8 << 32);
    wrmsr(0xc000_0082, on_syscall as *const () as u64);
    wrmsr(0xc000_0084, 0x200);
    // Masks both legacy interrupt controllers.
    outb(0x21, 0xff);
    outb(0xa1, 0xff);
    // Enables the APIC, with its spurious vector.
    apic_write(0xf0, 0x1ff);
}

fn load(gdt: u64, idt: u64) {
    let pointer = |limit: u16, base: u64| {
        let mut bytes = [0u8; 10];
        bytes[..2].copy_from_slice(&limit.to_le_bytes());
        bytes[2..].copy_from_slice(&base.to_le_bytes());
        bytes
    };
    let (gdt, idt) = (pointer(63, gdt), pointer(0xfff, idt));
    // SAFETY: both tables are complete and static.
    unsafe {
        asm!("lgdt [{}]", "lidt [{}]", "ltr {:x}", in(reg) &gdt, in(reg) &idt, in(reg) TASK);
    }
}

static USER_RETURN_RSP: AtomicU64 = AtomicU64::new(0);

/// Runs the code at `entry` in ring 3 with `RDI` = `argument` and `RSI` = `memory` until it makes a
/// system call.
pub fn in_ring3(entry: u64, argument: u64, memory: u64) {
    let stack = &raw const USER_STACK as u64 + 2048 * 8;
    enter_ring3(entry, argument, memory, stack, 0x2);
}

/// Runs code in ring 3 as [`in_ring3`] does, with interrupts enabled.
pub fn in_ring3_interrupted(entry: u64, argument: u64, memory: u64) {
    let stack = &raw const USER_STACK as u64 + 2048 * 8;
    enter_ring3(entry, argument, memory, stack, 0x202);
}

#[unsafe(naked)]
extern "C" fn enter_ring3(entry: u64, argument: u64, memory: u64, stack: u64, flags: u64) {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rip + {rsp}], rsp",
        "push {data}",
        "push rcx",
        "push r8",
        "push {code}",
        "push rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "iretq",
        rsp = sym USER_RETURN_RSP,
        data = const USER_DATA,
        code = const USER_CODE,
    )
}

/// The value of EAX at a system call that returns to ring 3 at once.
pub const RETURN_AT_ONCE: u32 = 0x7a11_7a11;

#[unsafe(naked)]
extern "C" fn on_syscall() {
    naked_asm!(
        "cmp eax, {return_at_once}",
        "je 2f",
        "mov rsp, [rip + {rsp}]",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        "2: sysretq",
        rsp = sym USER_RETURN_RSP,
        return_at_once = const RETURN_AT_ONCE,
    )
}

/// Runs `code` in ring 0 with the given RCX, RAX and RDX; returns the vector of its fault, if any.
pub fn fault_of(code: unsafe extern "C" fn(), rcx: u64, rax: u64, rdx: u64) -> Option<u8> {
    let before = fault_counts();
    // SAFETY: a fault resumes behind the call with the stack restored; the code changes only the
    // registers named.
    unsafe {
        asm!(
            "lea r12, [rip + 2f]",
            "mov [rip + {resume}], r12",
            "mov r12, rsp",
            "call rsi",
            "2:",
            "mov rsp, r12",
            out("r12") _,
            in("rsi") code,
            resume = sym FAULT_RESUME,
            inout("rcx") rcx => _,
            inout("rax") rax => _,
            inout("rdx") rdx => _,
            clobber_abi("C"),
        );
    }
    FAULT_RESUME.store(0, Relaxed);
    let after = fault_counts();
    (0..32u8).find(|vector| after[*vector as usize] != before[*vector as usize])
}

/// Runs the code at `entry` in ring 3; returns the vector of the fault before its system call, if
/// any.
pub fn fault_of_ring3(entry: u64, argument: u64, memory: u64) -> Option<u8> {
    let before = fault_counts();
    FAULT_RESUME.store(on_syscall as *const () as u64, Relaxed);
    in_ring3(entry, argument, memory);
    FAULT_RESUME.store(0, Relaxed);
    let after = fault_counts();
    (0..32u8).find(|vector| after[*vector as usize] != before[*vector as usize])
}

fn fault_counts() -> [u64; 32] {
    core::array::from_fn(|vector| TAKEN[vector].load(Relaxed))
}
