//! From QEMU's PVH entry (32-bit protected mode, paging off) to Rust in 64-bit mode.
//!
//! The first 4 GiB, which contain the APIC's pages, are identity-mapped by 2 MiB pages that ring 3
//! can access: the check guest is one program that runs in both rings.

use core::arch::global_asm;

global_asm!(
    r#"
    .section .note.pvh, "a"
    .align 4
    .long 4, 4, 18              // XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .long start32

    .section .text.boot, "ax"
    .code32
    .globl start32
start32:
    cli
    mov esp, offset boot_stack_end
    // Page tables: one top entry, four gigabytes of 2 MiB pages.
    mov eax, offset tables_pdpt
    or eax, 7
    mov [tables_pml4], eax
    mov ecx, 0
1:  mov eax, ecx
    shl eax, 12
    add eax, offset tables_pd
    or eax, 7
    mov [tables_pdpt + ecx * 8], eax
    inc ecx
    cmp ecx, 4
    jne 1b
    mov ecx, 0
2:  mov eax, ecx
    shl eax, 21
    or eax, 0x87                // present, writable, user, 2 MiB
    mov [tables_pd + ecx * 8], eax
    inc ecx
    cmp ecx, 2048
    jne 2b
    mov eax, offset tables_pml4
    mov cr3, eax
    mov eax, cr4
    or eax, 0x620               // PAE, OSFXSR, OSXMMEXCPT
    mov cr4, eax
    mov ecx, 0xc0000080
    rdmsr
    or eax, 0x901               // LME, NXE, SCE
    wrmsr
    mov eax, cr0
    or eax, 0x80010022          // PG, WP, NE, MP
    and eax, 0xfffffffb         // no EM
    mov cr0, eax
    lgdt [boot_gdt_pointer]
    ljmp 0x08, offset start64
    .code64
start64:
    mov ax, 0x10
    mov ds, ax
    mov es, ax
    mov ss, ax
    lea rsp, [rip + boot_stack_end]
    mov edi, ebx                // hvm_start_info
    xor ebp, ebp
    call pvh_main
3:  hlt
    jmp 3b

    .align 8
boot_gdt:
    .quad 0
    .quad 0x00af9a000000ffff
    .quad 0x00cf92000000ffff
boot_gdt_pointer:
    .word boot_gdt_pointer - boot_gdt - 1
    .long boot_gdt

    .section .bss.boot, "aw", @nobits
    .align 4096
.globl tables_pml4
tables_pml4: .skip 4096
tables_pdpt: .skip 4096
.globl tables_pd
tables_pd: .skip 16384
.globl tables_last
tables_last: .skip 8192
boot_stack: .skip 65536
boot_stack_end:
    "#,
);
