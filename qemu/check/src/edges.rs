//! Counts of code that leaves its blocks in the middle: by devices, faults, traps, system calls,
//! and instructions that access memory in several parts.

use core::arch::global_asm;

use crate::{
    kernel::{self, in_ring3},
    report::CheckReport,
    vendor::{USR, VendorPmu},
};

global_asm!(
    r#"
    .section .text
    .balign 64
// Each: RDI rounds with memory at RSI, in ring 3, to a system call.
edge_device:
    mov edx, 0xfee00030             // APIC version; 50H further on, its task priority
    xor ecx, ecx
1:  mov eax, [rdx]
    nop
    mov [rdx + 0x50], ecx
    mov [rsi], eax
    dec rdi
    jnz 1b
    syscall
edge_breakpoint:
1:  inc rax
    int3
    inc rax
    dec rdi
    jnz 1b
    syscall
edge_page_faults:
    mov rsi, {hole}
1:  inc rax
    mov rax, [rsi]
    mov [rsi + 8], rax
    add rsi, 0x200000
    dec rdi
    jnz 1b
    syscall
edge_string_faults:
    mov rcx, rdi
    mov rdi, {hole}
    cld
    rep stosq
    syscall
edge_system_calls:
1:  mov eax, {return_at_once}
    syscall
    dec rdi
    jnz 1b
    xor eax, eax
    syscall
edge_intercepts:
    mov r8, rdi
1:  xor eax, eax
    cpuid
    rdtsc
    xor ecx, ecx
    rdpmc
    dec r8
    jnz 1b
    syscall
edge_wide:
1:  vmovdqu ymm0, [rsi]
    vmovdqu [rsi + 32], ymm0
    movdqu xmm1, [rsi]
    dec rdi
    jnz 1b
    syscall
edge_atomic:
1:  xchg [rsi], rax
    lock cmpxchg [rsi + 8], rcx
    lock xadd [rsi + 16], rcx
    dec rdi
    jnz 1b
    syscall
edge_stack:
1:  push [rsi]
    pop [rsi + 8]
    call 2f
    mov rcx, rdi
    loop 3f
3:  dec rdi
    jnz 1b
    syscall
2:  push rbp
    mov rbp, rsp
    leave
    ret
edge_strings:
    mov rdx, rdi
    mov r8, rsi
    cld
1:  mov rsi, r8
    lea rdi, [r8 + 64]
    movsq
    lodsb
    stosb
    mov ecx, 3
    mov rsi, r8
    mov rdi, r8
    repe cmpsb
    dec rdx
    jnz 1b
    syscall
edge_divide:
1:  xor edx, edx
    mov eax, 1000
    mov ecx, 7
    div rcx
    pause
    dec rdi
    jnz 1b
    syscall
// The last 16 pages, both ways, RDI times.
edge_last_pages:
1:  mov rsi, -0x10000
2:  mov rax, [rsi]
    mov [rsi + 0xff8], rax
    add rsi, 0x1000
    jnz 2b
    dec rdi
    jnz 1b
    syscall
edge_overwrites:
1:  inc rax
    mov byte ptr [rip + 2f], 0x90
    inc rax
2:  nop
    nop
    dec rdi
    jnz 1b
    syscall
edge_overwrites_next:
1:  mov byte ptr [rip + 2f], 0x90
    jmp 2f
2:  nop
    dec rdi
    jnz 1b
    syscall
    "#,
    hole = const kernel::HOLE,
    return_at_once = const kernel::RETURN_AT_ONCE,
);

unsafe extern "C" {
    static edge_device: u8;
    static edge_breakpoint: u8;
    static edge_page_faults: u8;
    static edge_string_faults: u8;
    static edge_system_calls: u8;
    static edge_intercepts: u8;
    static edge_wide: u8;
    static edge_atomic: u8;
    static edge_stack: u8;
    static edge_strings: u8;
    static edge_divide: u8;
    static edge_last_pages: u8;
    static edge_overwrites: u8;
    static edge_overwrites_next: u8;
}

/// A loop and its counts.
struct Edge {
    name: &'static str,
    entry: *const u8,
    rounds: u64,
    /// Instructions, branches, loads and stores per round, and outside the rounds.
    each: [u64; 4],
    once: [u64; 4],
}

const ROUNDS: u64 = 200;
/// The number of loops.
const COUNT: usize = 14;

/// Runs every check of this module.
pub fn run(report: &mut CheckReport) {
    let vendor = VendorPmu::here();
    kernel::enable_avx();
    kernel::map_last_pages();
    let is_intel = vendor.is_intel();
    edges(is_intel).iter().for_each(|edge| check(report, &vendor, edge));
}

/// All loops. The system call at the end of a loop is one instruction and one branch.
fn edges(is_intel: bool) -> [Edge; COUNT] {
    // A repeated string instruction is one load and one store on Intel; on AMD each element is.
    let (string_stores, compare_loads) = if is_intel { ([0, 1], 1) } else { ([1, 0], 3 * 2) };
    let edge = |name, entry, each, once| Edge { name, entry, rounds: ROUNDS, each, once };
    [
        edge("a device", &raw const edge_device, [6, 1, 1, 2], [3, 1, 0, 0]),
        edge("breakpoints", &raw const edge_breakpoint, [5, 2, 0, 0], [1, 1, 0, 0]),
        Edge {
            rounds: kernel::HOLE_PAGES,
            ..edge("page faults", &raw const edge_page_faults, [6, 1, 1, 1], [2, 1, 0, 0])
        },
        Edge {
            rounds: 3 * (2 << 20) / 8,
            ..edge(
                "a string over faults",
                &raw const edge_string_faults,
                [0, 0, 0, string_stores[0]],
                [5, 1, 0, string_stores[1]],
            )
        },
        edge("system calls", &raw const edge_system_calls, [4, 2, 0, 0], [2, 1, 0, 0]),
        edge("intercepted instructions", &raw const edge_intercepts, [7, 1, 0, 0], [2, 1, 0, 0]),
        edge("wide accesses", &raw const edge_wide, [5, 1, 2, 1], [1, 1, 0, 0]),
        edge("atomics", &raw const edge_atomic, [5, 1, 3, 3], [1, 1, 0, 0]),
        // push, pop, call and LOOP; in the function push, leave and ret.
        edge("the stack", &raw const edge_stack, [11, 4, 4, 4], [1, 1, 0, 0]),
        edge("strings", &raw const edge_strings, [11, 1, 2 + compare_loads, 2], [4, 1, 0, 0]),
        edge("the last pages", &raw const edge_last_pages, [67, 17, 16, 16], [1, 1, 0, 0]),
        edge(
            "a block that overwrites itself",
            &raw const edge_overwrites,
            [7, 1, 0, 1],
            [1, 1, 0, 0],
        ),
        edge(
            "a block that overwrites the next",
            &raw const edge_overwrites_next,
            [5, 2, 0, 1],
            [1, 1, 0, 0],
        ),
        edge("divisions", &raw const edge_divide, [7, 1, 0, 0], [1, 1, 0, 0]),
    ]
}

fn check(report: &mut CheckReport, vendor: &VendorPmu, edge: &Edge) {
    let [instructions, branches, _, loads, stores] = vendor.events;
    kernel::unmap_hole();
    let counts = vendor.count(&[instructions, branches, loads, stores], USR, || {
        in_ring3(edge.entry as u64, edge.rounds, crate::exactness::memory());
    });
    for (index, name) in ["instructions", "branches", "loads", "stores"].iter().enumerate() {
        let want = edge.each[index] * edge.rounds + edge.once[index];
        report.equal(format_args!("{}: {name}", edge.name), counts[index], want);
    }
}
