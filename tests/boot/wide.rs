//! Programs use the vector registers that the processor has, and keep them over system calls,
//! turns, handlers and signal frames of their own making.

use xtask::{
    machine::{Boot, Pmu, Request},
    report::Report,
};

use crate::{SharedBoot, assert_exact_counts_are_true, assert_success, boot, output_of};

/// The output of `wide`, here and under Linux, up to its last line.
const CHECKED: &str = "wide: system calls\nwide: turns of threads\nwide: a new thread\n\
                       wide: handlers\nwide: handlers\nwide: forged frames\n";
/// The output of `matrix`.
const PRODUCT: &str = "matrix: 212850104\n";

/// A machine with three programs that take turns, each with registers of its own; the processor has
/// these flags besides QEMU's for it.
fn request(pmu: Pmu, cpus: usize, flags: &str) -> Request {
    let line = "wire -- events=instructions,branches wide 1 -- wide-pie 2 -- wide 3";
    let qemu_args = if flags.is_empty() {
        Vec::new()
    } else {
        vec!["-cpu".to_owned(), format!("{},-x2apic{flags}", pmu.qemu_cpu())]
    };
    Request { pmu, cpus, qemu_args, ..Request::new(line) }
}

/// Panics unless each of the three programs found its registers as it left them.
fn assert_kept(boot: &Boot, end: &str) {
    assert_success(boot);
    for index in 0..3 {
        assert_eq!(output_of(boot, index, 1), format!("{CHECKED}wide: done {end} AVX\n"));
    }
}

#[test]
fn registers_of_avx_are_kept_on_intel() {
    assert_kept(&boot(&request(Pmu::Intel, 1, "")), "with");
}

#[test]
fn registers_of_avx_are_kept_on_amd_with_two_cpus() {
    assert_kept(&boot(&request(Pmu::Amd, 2, "")), "with");
}

#[test]
fn registers_of_sse_are_kept_on_a_processor_without_xsave() {
    assert_kept(&boot(&request(Pmu::Intel, 1, ",-xsave")), "without");
}

#[test]
fn registers_of_sse_are_kept_on_a_processor_without_avx() {
    assert_kept(&boot(&request(Pmu::Amd, 1, ",-avx")), "without");
}

/// A boot with what only processors with AVX2 and FMA execute, and an instruction that they lack.
static BOOT: SharedBoot =
    SharedBoot::new(|| Request::new("wire -- matrix -- crash evex -- crash masked-evex"));

#[test]
fn a_program_of_x86_64_v3_computes_what_scalar_code_does() {
    assert_eq!(output_of(BOOT.get(), 0, 1), PRODUCT);
}

#[test]
fn the_fault_of_an_instruction_of_avx_512_names_it() {
    let failures = &BOOT.get().transcript.failures;
    let named = failures.iter().filter(|failure| {
        failure.to_string().contains("AVX-512 instruction: this processor has none")
    });
    assert_eq!(named.count(), 2, "{failures:#?}");
}

/// Panics unless the events, with their counts for each iteration of `floats`, are exact.
fn assert_counted(pmu: Pmu, events: &[&str]) {
    let request = Request { pmu, ..Request::new(format!("wire -- floats {}", events.join(" "))) };
    let boot = boot(&request);
    assert_success(&boot);
    assert_eq!(output_of(&boot, 0, 1).matches("is exact").count(), events.len());
    assert_exact_counts_are_true(&Report::of(&boot));
}

/// An instruction of FMA counts twice, the others once.
#[test]
fn arithmetic_is_counted_by_width_on_intel() {
    let events = [
        "FP_ARITH_INST_RETIRED.SCALAR_DOUBLE=3",
        "FP_ARITH_INST_RETIRED.SCALAR_SINGLE=1",
        "FP_ARITH_INST_RETIRED.SCALAR=4",
        "FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE=1",
        "FP_ARITH_INST_RETIRED.128B_PACKED_SINGLE=4",
        "FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE=8",
        "FP_ARITH_INST_RETIRED.256B_PACKED_SINGLE=3",
        "FP_ARITH_INST_RETIRED.4_FLOPS=12",
        "FP_ARITH_INST_RETIRED.8_FLOPS=3",
        "FP_ARITH_INST_RETIRED.VECTOR=16",
        "INST_RETIRED.ANY=23",
        "MEM_INST_RETIRED.ALL_LOADS=4",
        "MEM_INST_RETIRED.SPLIT_LOADS=3",
    ];
    assert_counted(Pmu::Intel, &events);
    assert_counted(Pmu::SapphireRapids, &events[..10]);
}

#[test]
fn instructions_with_vectors_are_counted_on_amd() {
    let events = [
        "RETIRED_MMX_FP_INSTRUCTIONS.SSE_INSTR=21",
        "RETIRED_INSTRUCTIONS=23",
        "LS_DISPATCH.LD_DISPATCH=4",
        "MISALIGNED_LOADS.MA64=3",
    ];
    assert_counted(Pmu::Amd, &events);
}
