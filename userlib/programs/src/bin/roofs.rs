//! The roofs of this machine: the most floating-point operations a cycle, and the most bytes that
//! loads bring a cycle from each level of the memory hierarchy. `run --roofline` draws them.
//!
//! `roofs` prints a line for each, `flops WIDTH VALUE` or `bytes LEVEL VALUE`. Arithmetic is of
//! doubles in independent chains; loads are consecutive, over a buffer that one level holds and
//! the level before does not. Each loop runs once to warm up.
//!
//! Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, string::String, vec};
use core::arch::{asm, x86_64::_xgetbv};

use raw_cpuid::{CacheType, CpuId, CpuIdReaderNative};
use tally::{Session, SessionConfig, Value, eprintln, println};

tally::main!(main);

/// Event whose count is exact, as a counter is its own.
const CYCLES: &str = "cycles";
/// Independent chains of arithmetic, each of one instruction a round: as many as registers allow.
/// Four units with a latency of four cycles want sixteen.
const CHAINS: f64 = 15.0;
/// Rounds of the loops of arithmetic.
const ROUNDS: u64 = 20_000;
/// Bytes that loops over the caches load at least.
const LOADED_BYTES: usize = 4 << 20;
/// Bytes of a round of the loop of loads.
const ROUND_BYTES: usize = 256;

fn main() -> i32 {
    match run() {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("roofs: {why}");
            1
        }
    }
}

fn run() -> Result<(), String> {
    let cpuid = CpuId::with_cpuid_reader(CpuIdReaderNative);
    let has_fma = has_avx2_and_fma(&cpuid);
    let scalar = measured(|| arithmetic(Width::Scalar))?;
    // A multiplication or an addition is one operation, a fused pair two.
    println!("flops scalar {:.3}", CHAINS * ROUNDS as f64 / scalar);
    let packed = measured(|| arithmetic(Width::Packed128))?;
    println!("flops 128 {:.3}", 2.0 * CHAINS * ROUNDS as f64 / packed);
    if has_fma {
        let fused = measured(|| arithmetic(Width::Fused256))?;
        println!("flops 256 {:.3}", 8.0 * CHAINS * ROUNDS as f64 / fused);
    }
    let [l1, l2, l3] = cache_bytes(&cpuid).ok_or("CPUID does not describe the caches")?;
    let larger = |bytes: usize, below: usize| (4 * bytes).min(below / 2).max(bytes + bytes / 2);
    for (level, bytes) in
        [("L1", l1 / 2), ("L2", larger(l1, l2)), ("L3", larger(l2, l3)), ("memory", 2 * l3)]
    {
        let buffer = vec![1_u8; bytes / ROUND_BYTES * ROUND_BYTES];
        let passes = (LOADED_BYTES / bytes).max(1);
        let cycles = measured(|| (0..passes).for_each(|_| load(&buffer, has_fma)))?;
        println!("bytes {level} {:.3}", (passes * buffer.len()) as f64 / cycles);
    }
    Ok(())
}

/// Cycles of `work` in user mode, after it ran once.
fn measured(work: impl Fn()) -> Result<f64, String> {
    let config = SessionConfig { exclusive: true, ..SessionConfig::default() };
    let session = Session::open(CYCLES, config).map_err(|refused| refused.detail)?;
    work();
    session.start().map_err(|error| error.message())?;
    work();
    session.stop().map_err(|error| error.message())?;
    let readings = session.read().map_err(|error| error.message())?;
    match readings.first().map(|reading| reading.value) {
        Some(Value::Exact { count }) if count > 0 => Ok(count as f64),
        other => Err(format!("cycles are not exact: {other:?}")),
    }
}

/// Returns whether vectors of 256 bits and fused operations are there, in the processor and in the
/// kernel's state (Intel SDM, volume 1, 14.5.3).
fn has_avx2_and_fma(cpuid: &CpuId<CpuIdReaderNative>) -> bool {
    const SSE_AND_AVX_STATE: u64 = 6;
    let has_fma = cpuid.get_feature_info().is_some_and(|has| has.has_oxsave() && has.has_fma());
    let has_avx2 = cpuid.get_extended_feature_info().is_some_and(|has| has.has_avx2());
    if !has_fma || !has_avx2 {
        return false;
    }
    // SAFETY: OSXSAVE is set, so XGETBV exists.
    let state = unsafe { _xgetbv(0) };
    state & SSE_AND_AVX_STATE == SSE_AND_AVX_STATE
}

/// Bytes of the caches of data of levels 1 to 3; `None` if one is not described.
fn cache_bytes(cpuid: &CpuId<CpuIdReaderNative>) -> Option<[usize; 3]> {
    let mut bytes = [0; 3];
    let all = cpuid.get_cache_parameters()?;
    for cache in all.filter(|cache| cache.cache_type() != CacheType::Instruction) {
        if let Some(of_level) = bytes.get_mut(usize::from(cache.level()).wrapping_sub(1)) {
            *of_level = cache.associativity()
                * cache.physical_line_partitions()
                * cache.coherency_line_size()
                * cache.sets();
        }
    }
    bytes.iter().all(|bytes| *bytes > 0).then_some(bytes)
}

/// Kinds of arithmetic on doubles.
#[derive(Clone, Copy)]
enum Width {
    /// An addition or a multiplication.
    Scalar,
    /// Additions and multiplications of two.
    Packed128,
    /// Fused multiplications and additions of four; for processors with FMA.
    Fused256,
}

/// Executes [`ROUNDS`] rounds of independent instructions.
fn arithmetic(width: Width) {
    macro_rules! rounds {
        ($($line:literal),*) => {
            // SAFETY: the loop uses registers only, all of which are named; FMA is there if it is
            // executed, as the caller has asked the processor.
            unsafe {
                asm!("2:", $($line,)* "dec {rounds}", "jnz 2b", rounds = inout(reg) ROUNDS => _,
                     out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                     out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                     out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
                     options(nomem, nostack));
            }
        };
    }
    match width {
        Width::Scalar => rounds!(
            ".irp i, 0, 2, 4, 6, 8, 10, 12, 14",
            "addsd xmm\\i, xmm15",
            ".endr",
            ".irp i, 1, 3, 5, 7, 9, 11, 13",
            "mulsd xmm\\i, xmm15",
            ".endr"
        ),
        Width::Packed128 => rounds!(
            ".irp i, 0, 2, 4, 6, 8, 10, 12, 14",
            "addpd xmm\\i, xmm15",
            ".endr",
            ".irp i, 1, 3, 5, 7, 9, 11, 13",
            "mulpd xmm\\i, xmm15",
            ".endr"
        ),
        Width::Fused256 => rounds!(
            ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14",
            "vfmadd231pd ymm\\i, ymm15, ymm15",
            ".endr"
        ),
    }
}

/// Loads all of a buffer, whose length is a multiple of [`ROUND_BYTES`], in vectors of 256 or 128
/// bits.
fn load(buffer: &[u8], is_wide: bool) {
    for chunk in buffer.as_chunks::<ROUND_BYTES>().0 {
        // SAFETY: the loads are within the chunk, and name the register that they write; vectors of
        // 256 bits are there if they are executed, as the caller has asked the processor.
        unsafe {
            if is_wide {
                asm!(
                    "vmovups ymm0, [{at}]", "vmovups ymm0, [{at} + 32]",
                    "vmovups ymm0, [{at} + 64]", "vmovups ymm0, [{at} + 96]",
                    "vmovups ymm0, [{at} + 128]", "vmovups ymm0, [{at} + 160]",
                    "vmovups ymm0, [{at} + 192]", "vmovups ymm0, [{at} + 224]",
                    at = in(reg) chunk.as_ptr(), out("xmm0") _, options(readonly, nostack));
            } else {
                asm!(
                    "movups xmm0, [{at}]", "movups xmm0, [{at} + 16]", "movups xmm0, [{at} + 32]",
                    "movups xmm0, [{at} + 48]", "movups xmm0, [{at} + 64]",
                    "movups xmm0, [{at} + 80]", "movups xmm0, [{at} + 96]",
                    "movups xmm0, [{at} + 112]", "movups xmm0, [{at} + 128]",
                    "movups xmm0, [{at} + 144]", "movups xmm0, [{at} + 160]",
                    "movups xmm0, [{at} + 176]", "movups xmm0, [{at} + 192]",
                    "movups xmm0, [{at} + 208]", "movups xmm0, [{at} + 224]",
                    "movups xmm0, [{at} + 240]",
                    at = in(reg) chunk.as_ptr(), out("xmm0") _, options(readonly, nostack));
            }
        }
    }
}
