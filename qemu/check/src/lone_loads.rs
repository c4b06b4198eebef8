//! Loads that memory serves, from lines of their own.

use core::arch::global_asm;

global_asm!(
    r#"
    .section .text
// RDI loads from RSI on, each from a line of its own, of which no other is near.
.globl lone_loads
lone_loads:
1:  mov rax, [rsi]
    add rsi, 4160
    dec rdi
    jnz 1b
    syscall
    "#
);

unsafe extern "C" {
    /// The code, to be entered in ring 3; its first instruction is the load.
    pub static lone_loads: u8;
}

/// Distance of the loads.
pub const STRIDE: u64 = 4160;
/// Address of memory that nothing has accessed, as far as checks of one vendor go.
pub const UNTOUCHED: u64 = 144 << 20;
