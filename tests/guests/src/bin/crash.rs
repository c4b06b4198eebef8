//! Faults in the way named by its argument. The kernel must report the fault and continue.

#![no_std]
#![no_main]

use core::{arch::asm, hint::black_box};

use tally::{println, runtime::arguments};

tally::main!(main);

/// Address in the kernel's half.
const KERNEL_ADDRESS: u64 = 0xffff_8000_0000_0000;

fn main() -> i32 {
    let way = arguments().nth(1).unwrap_or_default();
    println!("crash: {way}");
    // SAFETY: none: each of these is unsound, but the processor raises an exception before it has
    // an effect, and the kernel ends the program.
    unsafe {
        match way {
            "read-null" => asm!("mov rax, [0]", out("rax") _),
            "write-null" => asm!("mov qword ptr [8], 1"),
            "read-kernel" => asm!("mov rax, [{}]", in(reg) KERNEL_ADDRESS, out("rax") _),
            "jump-kernel" => asm!("jmp {}", in(reg) KERNEL_ADDRESS),
            "write-code" => {
                asm!("mov qword ptr [{}], 1", in(reg) main as fn() -> i32 as usize as u64)
            }
            "run-stack" => asm!("jmp rsp"),
            "invalid" => asm!("ud2"),
            // VPADDD of ZMM0, ZMM1 and ZMM2, and of memory of the segment GS.
            "evex" => asm!(".byte 0x62, 0xf1, 0x75, 0x48, 0xfe, 0xc2"),
            "masked-evex" => asm!(".byte 0x65, 0x62, 0xf1, 0x75, 0x49, 0xfe, 0x00"),
            "divide" => asm!("xor ecx, ecx", "div ecx", out("rax") _, out("rcx") _, out("rdx") _),
            "privileged" => asm!("cli"),
            "msr" => asm!("rdmsr", in("ecx") 0x38f, out("rax") _, out("rdx") _),
            "rdpmc" => asm!("rdpmc", in("ecx") 0, out("rax") _, out("rdx") _),
            "interrupt" => asm!("int 0x31"),
            "port" => asm!("out 0xf4, al", in("al") 0_u8),
            "trap-flag" => asm!("pushf", "or dword ptr [rsp], 0x100", "popf", "nop"),
            "non-canonical" => {
                asm!("mov rax, [{}]", in(reg) 0x8000_0000_0000_0000_u64, out("rax") _);
            }
            "stack" => {
                overflow(0);
            }
            _ => return 2,
        }
    }
    println!("crash: {way} was survived");
    3
}

#[expect(unconditional_recursion, reason = "it must overflow the stack")]
fn overflow(depth: u64) -> u64 {
    let page = black_box([depth; 128]);
    overflow(depth + 1) + page[0]
}
