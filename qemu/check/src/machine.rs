//! The bare machine: registers, serial port, exit.

use core::{
    arch::asm,
    fmt::{self, Write},
};

use tally_abi::vpmu::Op;

/// Vector of the performance interrupt in these checks.
pub const PMI_VECTOR: u8 = 0xe0;
/// Vector of the timer.
pub const TIMER_VECTOR: u8 = 0xe1;

/// Tag of a region that is opened after the truth has ended.
const AFTER_THE_END: u32 = 9;

/// Reads an MSR.
pub fn rdmsr(msr: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: ring 0; the handlers catch a fault.
    unsafe { asm!("rdmsr", in("ecx") msr, out("eax") low, out("edx") high) };
    u64::from(high) << 32 | u64::from(low)
}

/// Writes an MSR.
pub fn wrmsr(msr: u32, value: u64) {
    // SAFETY: ring 0; the guest writes only the registers that it checks.
    unsafe {
        asm!("wrmsr", in("ecx") msr, in("eax") value as u32, in("edx") (value >> 32) as u32);
    }
}

/// Reads a counter.
pub fn rdpmc(index: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter.
    unsafe { asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high) };
    u64::from(high) << 32 | u64::from(low)
}

/// CPUID: `[EAX, EBX, ECX, EDX]`.
pub fn cpuid(leaf: u32, subleaf: u32) -> [u32; 4] {
    let answer = core::arch::x86_64::__cpuid_count(leaf, subleaf);
    [answer.eax, answer.ebx, answer.ecx, answer.edx]
}

/// Sends an operation to the virtual PMU; returns CPUID's answer.
pub fn vpmu(op: Op, argument: u32) -> [u32; 4] {
    let (eax, ecx, edx): (u32, u32, u32);
    let mut rbx = 0u64;
    // SAFETY: CPUID changes only its four registers; RBX is restored.
    unsafe {
        asm!(
            "xchg {saved}, rbx",
            "cpuid",
            "xchg {saved}, rbx",
            saved = inout(reg) rbx,
            inout("eax") tally_abi::vpmu::LEAF => eax,
            inout("ecx") op as u32 => ecx,
            inout("edx") argument => edx,
        );
    }
    [eax, rbx as u32, ecx, edx]
}

/// Writes a byte to an I/O port.
pub fn outb(port: u16, value: u8) {
    // SAFETY: the ports in use are the serial port's and the exit device's.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value) };
}

fn outl(port: u16, value: u32) {
    // SAFETY: likewise.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value) };
}

/// Ends QEMU through its `isa-debug-exit` device at port F4H, with the status `2 * status + 1`.
pub fn exit(status: u32) -> ! {
    end_truth();
    outl(0xf4, status);
    loop {
        // SAFETY: waits for QEMU to end.
        unsafe { asm!("hlt") };
    }
}

/// Ends the truth, then runs code in a region that must stay empty. Prints the region's tag, so
/// that the host can check the truth files.
fn end_truth() {
    // The serial port cannot fail.
    let _ = writeln!(Serial, "empty {AFTER_THE_END}");
    vpmu(Op::End, 0);
    vpmu(Op::Open, AFTER_THE_END);
    (0..10_000).for_each(|_| core::hint::spin_loop());
    vpmu(Op::Close, AFTER_THE_END);
}

/// The first serial port.
pub struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| outb(0x3f8, byte));
        Ok(())
    }
}
