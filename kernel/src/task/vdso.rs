//! The shared object that programs read the clocks with, without a system call: Linux's vDSO.
//!
//! C libraries and the runtimes of languages find it by `AT_SYSINFO_EHDR` of the auxiliary vector
//! and its functions by name (vdso(7)); some have no other way to the time. The object is one page:
//! an ELF header, a table of symbols, the code, and the clock's parameters, which do not change
//! while programs run.

use core::arch::global_asm;

use tally_abi::{program::VDSO_BASE, syscall};
use tally_elf::Segment;

use crate::machine::clock;

/// The clocks of `clock_gettime` for real time and for time since boot, coarse ones included.
pub const CLOCKS: [u64; 9] = [0, 1, 4, 5, 6, 7, 8, 9, 11];
/// Clocks that show the date: `CLOCK_REALTIME`, its coarse form and its form for alarms, and
/// `CLOCK_TAI`, without leap seconds here.
pub const DATES: [u64; 4] = [0, 5, 8, 11];

/// A mask with a bit for each clock.
const fn mask(clocks: &[u64]) -> u32 {
    let (mut mask, mut index) = (0, 0);
    while index < clocks.len() {
        mask |= 1 << clocks[index];
        index += 1;
    }
    mask
}

global_asm!(
    r#"
    .section .rodata.vdso, "a"
    .balign 8
    .globl tally_vdso, tally_vdso_clock, tally_vdso_end
tally_vdso:
    .byte 0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0
    .8byte 0
    .2byte 3, 62                            // ET_DYN, EM_X86_64
    .4byte 1
    .8byte 0, 8f - tally_vdso, 9f - tally_vdso // entry, program headers, section headers
    .4byte 0
    .2byte 64, 56, 2, 64, 4, 0
8:  .4byte 1, 5                             // PT_LOAD, readable and executable
    .8byte 0, 0, 0, tally_vdso_end - tally_vdso, tally_vdso_end - tally_vdso, 4096
    .4byte 2, 4                             // PT_DYNAMIC
    .8byte 2f - tally_vdso, 2f - tally_vdso, 2f - tally_vdso, 3f - 2f, 3f - 2f, 8
2:  .8byte 4, 4f - tally_vdso               // DT_HASH
    .8byte 5, 5f - tally_vdso               // DT_STRTAB
    .8byte 6, 3f - tally_vdso               // DT_SYMTAB
    .8byte 10, 6f - 5f                      // DT_STRSZ
    .8byte 11, 24                           // DT_SYMENT
    .8byte 14, 1                            // DT_SONAME
    .8byte 0x6ffffff0, 16f - tally_vdso     // DT_VERSYM
    .8byte 0x6ffffffc, 17f - tally_vdso     // DT_VERDEF
    .8byte 0x6ffffffd, 2                    // DT_VERDEFNUM
    .8byte 0, 0
3:  .8byte 0, 0, 0
    .4byte 17
    .byte 0x12, 0                           // a global function
    .2byte 1
    .8byte 12f - tally_vdso, 13f - 12f
    .4byte 38
    .byte 0x12, 0
    .2byte 1
    .8byte 13f - tally_vdso, 14f - 13f
    .4byte 58
    .byte 0x12, 0
    .2byte 1
    .8byte 14f - tally_vdso, 15f - 14f
9:  .8byte 0, 0, 0, 0, 0, 0, 0, 0           // sections, by which dietlibc finds the symbols
    .4byte 0, 1                             // SHT_PROGBITS
    .8byte 6, 12f - tally_vdso, 12f - tally_vdso, 15f - 12f, 0, 16, 0
    .4byte 0, 3                             // SHT_STRTAB
    .8byte 2, 5f - tally_vdso, 5f - tally_vdso, 6f - 5f, 0, 1, 0
    .4byte 0, 11                            // SHT_DYNSYM, of the names in section 2
    .8byte 2, 3b - tally_vdso, 3b - tally_vdso, 9b - 3b
    .4byte 2, 1
    .8byte 8, 24
4:  .4byte 1, 4, 1, 0, 2, 3, 0              // one bucket, which chains the symbols
16: .2byte 0, 2, 2, 2                       // version 2 of all, which Go does not do without
17: .2byte 1, 1, 1, 1                       // the object's own version
    .4byte 0xdeebfa1, 20, 28, 1, 0
    .2byte 1, 0, 2, 1
    .4byte 0x3ae75f6, 20, 0, 70, 0
5:  .asciz "", "linux-vdso.so.1", "__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time"
    .asciz "LINUX_2.6"
6:
    .balign 16
// int __vdso_clock_gettime(int clock, struct timespec *time)
12: cmp edi, 31
    ja 2f
    mov eax, {clocks}
    bt eax, edi
    jnc 2f
    call 7f
    mov ecx, {dates}
    bt ecx, edi
    jnc 1f
    add rax, [rip + tally_vdso_clock + 24]
1:  xor edx, edx
    mov ecx, 1000000000
    div rcx
    mov [rsi], rax
    mov [rsi + 8], rdx
    xor eax, eax
    ret
2:  mov eax, {clock_gettime}
    syscall
    ret

// int __vdso_gettimeofday(struct timeval *time, struct timezone *zone)
    .balign 16
13: test rdi, rdi
    jz 1f
    call 6f
    mov [rdi], rax
    mov eax, edx
    xor edx, edx
    mov ecx, 1000
    div ecx
    mov [rdi + 8], rax
1:  test rsi, rsi
    jz 2f
    mov qword ptr [rsi], 0
2:  xor eax, eax
    ret

// time_t __vdso_time(time_t *time)
    .balign 16
14: call 6f
    test rdi, rdi
    jz 1f
    mov [rdi], rax
1:  ret
15:
// The date: RAX = seconds, RDX = nanoseconds.
6:  call 7f
    add rax, [rip + tally_vdso_clock + 24]
    xor edx, edx
    mov ecx, 1000000000
    div rcx
    ret
// RAX = nanoseconds since boot, as the kernel computes them.
7:  lfence
    rdtsc
    shl rdx, 32
    or rax, rdx
    sub rax, [rip + tally_vdso_clock]
    mul qword ptr [rip + tally_vdso_clock + 16]
    div qword ptr [rip + tally_vdso_clock + 8]
    ret
    .balign 8
// Words of the clock's parameters, which the kernel fills in.
tally_vdso_clock:
    .8byte 0, 1, 0, 0
tally_vdso_end:
    .text
    "#,
    clocks = const mask(&CLOCKS),
    dates = const mask(&DATES),
    clock_gettime = const syscall::CLOCK_GETTIME,
);

unsafe extern "C" {
    static tally_vdso: u8;
    static tally_vdso_clock: u8;
    static tally_vdso_end: u8;
}

/// The object as a segment at [`VDSO_BASE`].
pub fn segment() -> Segment<'static> {
    let bytes = image();
    Segment {
        start: VDSO_BASE,
        end: VDSO_BASE + bytes.len() as u64,
        bytes,
        is_writable: false,
        is_executable: true,
    }
}

/// The address of the clock's parameters in a program, and their bytes.
pub fn parameters() -> (u64, [u8; 32]) {
    let offset = (&raw const tally_vdso_clock).addr() - (&raw const tally_vdso).addr();
    let mut bytes = [0; 32];
    let (parts, _) = bytes.as_chunks_mut::<8>();
    for (part, word) in parts.iter_mut().zip(clock::parameters()) {
        *part = word.to_le_bytes();
    }
    (VDSO_BASE + offset as u64, bytes)
}

/// The object's bytes.
fn image() -> &'static [u8] {
    let (start, end) = (&raw const tally_vdso, &raw const tally_vdso_end);
    // SAFETY: the two are the first byte of the assembly's read-only object and the one behind its
    // last.
    unsafe { core::slice::from_raw_parts(start, end.addr() - start.addr()) }
}
