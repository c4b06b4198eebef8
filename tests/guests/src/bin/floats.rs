//! Counts instructions of AVX, FMA and SSE in a loop of known content.
//!
//! `floats EVENT=COUNT…`: each event has this count for each iteration.

#![no_std]
#![no_main]

use core::arch::asm;

use tally::{Session, SessionConfig, Value, println, runtime::arguments};

tally::main!(main);

const ITERATIONS: u64 = 1000;

#[repr(C, align(64))]
struct Memory([u8; 256]);

/// Each iteration has 21 instructions with vectors: 18 of 256 or 128 bits, 3 of an element. Three
/// of four loads cross a line, each at another place of its 32 bytes.
fn work(iterations: u64) {
    let memory = Memory([0; 256]);
    // SAFETY: reads local memory, and changes vector registers that are named here.
    unsafe {
        asm!(
            "vzeroall",
            "2:",
            "vaddpd ymm0, ymm1, ymm2",
            "vmaxpd ymm3, ymm1, ymm2",
            "vfmadd231pd ymm4, ymm1, ymm2",
            "vfmadd213pd ymm5, ymm1, ymm2",
            "vfnmsub132pd ymm6, ymm1, ymm2",
            "vmulps ymm7, ymm1, ymm2",
            "vfmaddsub213ps ymm8, ymm1, ymm2",
            "mulps xmm9, xmm1",
            "addps xmm9, xmm1",
            "sqrtps xmm10, xmm1",
            "vhaddps xmm10, xmm1, xmm2",
            "vaddpd xmm11, xmm1, xmm2",
            "vaddsd xmm12, xmm1, xmm2",
            "vfmadd231sd xmm13, xmm1, xmm2",
            "subss xmm14, xmm1",
            "vpaddd ymm15, ymm1, ymm2",
            "vpxor ymm15, ymm1, ymm2",
            "vmovups ymm15, [{memory} + 32]",
            "vmovups ymm15, [{memory} + 33]",
            "vmovups ymm15, [{memory} + 48]",
            "vmovups ymm15, [{memory} + 127]",
            "sub {iterations}, 1",
            "jnz 2b",
            "vzeroupper",
            iterations = inout(reg) iterations => _,
            memory = in(reg) &raw const memory,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
            out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
            out("xmm15") _,
            options(nostack, readonly),
        );
    }
}

/// The exact count of an event in a run of the loop.
fn count(event: &str, iterations: u64) -> Option<u64> {
    let session = Session::open(event, SessionConfig::default()).ok()?;
    session.start().ok()?;
    work(iterations);
    session.stop().ok()?;
    match session.read().ok()?[0].value {
        Value::Exact { count } => Some(count),
        _ => None,
    }
}

fn main() -> i32 {
    for word in arguments().skip(1) {
        let Some((event, expected)) = word.split_once('=') else { return 2 };
        let base = count(event, 1);
        let all = count(event, ITERATIONS + 1);
        let found = base.zip(all).map(|(base, all)| all - base);
        if found != expected.parse().ok().map(|each: u64| each * ITERATIONS) {
            println!("FAILED {event}: {found:?}, expected {expected} for each iteration");
            return 1;
        }
        println!("floats: {event} is exact");
    }
    0
}
